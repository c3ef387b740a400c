#!/usr/bin/env bash
# What takes too long for every change: the solver HiGHS, tests that learn, memory safety. `.ci/run` has the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

# libclang as its bindings find it: `libclang-cpp`, which comes with drivers of Mesa, is another library.
libclang() {
  compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null || compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null
}

# The optima with HiGHS, a library in C++, whose build takes minutes.
if { ! command -v cmake >/dev/null || ! libclang; } && command -v apt-get >/dev/null; then
  apt-get install -y --no-install-recommends cmake g++ libclang-dev >/dev/null 2>&1 || true
fi
if command -v cmake >/dev/null && command -v c++ >/dev/null && libclang; then
  cargo test -p brasa-lp --features highs
  cargo test -p brasa-citylearn -p brasa-energy --features brasa-citylearn/highs,brasa-energy/highs --lib --test suite -- optimum
else
  echo "!!! HiGHS SKIPPED: it cannot be built (apt install cmake g++ libclang-dev)" >&2
fi

# Learning curves and complete years.
BRASA_SLOW=1 cargo test --workspace

# Reads and writes outside of their memory.
scripts/sanitize.sh
