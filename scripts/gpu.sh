#!/usr/bin/env bash
# Everything that needs a GPU, from a machine that can build to a machine that has one.
#
#   scripts/gpu.sh build    where Rust is: programs with the feature `cuda` into .gpu/, which travels with the working tree
#   scripts/gpu.sh run      where the GPU is: tests, short runs and measurements in ten minutes; a table in $OUT/results.md or .gpu/results.md
#
# `build` takes about half an hour from scratch on two cores. Variables:
#   BRASA_GPU_PROFILE=dev    instead of release: faster to build after other work, slower programs
#   BRASA_GPU_BUILD=command  only the command, no tests and no benches
#   BRASA_GPU_LLVM=1         links the LLVM bundle that cubecl-llvm downloads
#   CARGO_TARGET_DIR         target/gpu by default; features differ from those of other builds
# `run` needs python3, a driver of CUDA 12.8 (570) or later, and NVRTC with its headers, 12.8 or later: from CUDA_PATH, /usr/local/cuda or
# NVIDIA's wheels.
#   BRASA_GPU_SECONDS=570    time that it may take; what does not fit is skipped and said
#   BRASA_GPU_PARTS=tests,training,recipes,updates   what is done
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.gpu

# Kernels compile through NVRTC (feature `cpp` of cubecl-cuda), so no function of LLVM is ever called. Without the bundle its symbols are
# left open, and a library gives each of them an address to stop at. DOCS_RS is the variable under which cubecl-llvm does not download.
without_llvm() {
  [[ ${BRASA_GPU_LLVM:-} != 1 ]]
}

build() {
  local profile=${BRASA_GPU_PROFILE:-release} messages
  local arguments=(-p brasa-cli --features brasa-cli/cuda --bin brasa)
  if [[ ${BRASA_GPU_BUILD:-all} == all ]]; then
    # One selection of packages, so that Burn is built once.
    arguments+=(-p brasa-kernels --features brasa-kernels/cuda --test device_parity --test launches)
    arguments+=(-p brasa --features brasa/cuda --test suite --test n_launches --test recordings)
    arguments+=(-p brasa-benches --features brasa-benches/cuda --example sac --example gat --example team_dqn)
  fi
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/gpu}
  if without_llvm; then
    export DOCS_RS=1 RUSTFLAGS="-C link-arg=-Wl,--unresolved-symbols=ignore-all"
  fi
  rm -rf "$folder"
  mkdir -p "$folder/programs"
  messages=$(mktemp)
  cargo build --profile "$profile" "${arguments[@]}" --message-format=json-render-diagnostics >"$messages"
  python3 - "$messages" >"$folder/list" <<'PYTHON'
import json, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] != "build-script-build":
        print(message["executable"], message["target"]["name"])
PYTHON
  rm "$messages"
  [[ -s $folder/list ]] || fail "no program was built"
  : >"$folder/symbols"
  while read -r program name; do
    nm -D --undefined-only "$program" | awk '{print $2}' | grep -E '^(LLVM|cubecl_)' >>"$folder/symbols" || true
    strip -o "$folder/programs/$name" "$program"
  done <"$folder/list"
  { echo '#include <stdlib.h>'; sort -u "$folder/symbols" | sed 's/.*/void &(void) { abort(); }/'; } >"$folder/symbols.c"
  cc -shared -fPIC -w -o "$folder/programs/libllvmstub.so" "$folder/symbols.c"
  rm "$folder/list" "$folder/symbols" "$folder/symbols.c"
  git rev-parse HEAD >"$folder/programs/commit" 2>/dev/null || echo unknown >"$folder/programs/commit"
  echo "$profile" >"$folder/programs/profile"
  ls -la "$folder/programs"
  # The programs share most of their code, so one archive with a window over all of them.
  tar -C "$folder/programs" -c . | xz -T1 --lzma2=preset=6,dict=768MiB >"$folder/programs.tar.xz"
  cp "$folder/programs/brasa" "$folder/programs/libllvmstub.so" "$folder/"
  rm -r "$folder/programs"
  local size
  size=$(stat -c %s "$folder/programs.tar.xz")
  echo "programs.tar.xz: $((size / 1048576)) MiB"
  ((size < 60 * 1048576)) || fail "programs.tar.xz is over 60 MiB"
}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

run() {
  local place=${OUT:-$folder} work
  [[ -f $folder/programs.tar.xz ]] || fail "$folder/programs.tar.xz is missing: scripts/gpu.sh build"
  command -v python3 >/dev/null || fail "python3 is missing"
  work=$(mktemp -d)
  # A machine with Python may have no xz.
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$folder/programs.tar.xz" "$work"
  mkdir -p "$place"
  local status=0
  python3 scripts/gpu_report.py --programs "$work" --out "$place" || status=$?
  rm -rf "$work"
  return "$status"
}

case ${1:-} in
build) build ;;
run) run ;;
*) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
esac
