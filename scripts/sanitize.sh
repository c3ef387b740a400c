#!/usr/bin/env bash
# The address sanitizer over the tests of the crates with `unsafe`, for a weekly job.
#
# Needs Linux on x86-64 or ARM and a C compiler; no nightly toolchain. A finding ends the test program with a report and the script with an error.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
# Everything with `unsafe` outside of tests; `brasa-py` has no code of its own that is unsafe, but a macro.
crates=(brasa-device brasa-gym brasa-kernels brasa-nn brasa-train)
unlisted=$(grep -rlE '\bunsafe (\{|fn|impl)' crates/*/src --include=*.rs | cut -d/ -f2 | sort -u |
  grep -vxE "$(IFS='|'; echo "${crates[*]}")|brasa-test|brasa-py" || true)
if [ -n "$unlisted" ]; then
  echo "crates with \`unsafe\` that this script does not test: $unlisted" >&2
  exit 1
fi

export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address"
# The run time of Rust keeps some memory to the end of the process.
export ASAN_OPTIONS="detect_leaks=0"
# With `--target`, build scripts and macros are not instrumented.
cargo test --target "$target" --target-dir target/sanitize --lib --tests --features brasa-kernels/flex \
  "${crates[@]/#/-p}"
