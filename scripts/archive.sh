#!/usr/bin/env bash
# The command `brasa` as an archive for a release, as `cargo binstall brasa-cli` expects it: brasa-TARGET.tar.gz with the program, the licenses,
# the shell completions and the manual pages, and the checksum of the archive.
#
# scripts/archive.sh [TARGET] [DIRECTORY]: TARGET is x86_64-unknown-linux-gnu, the default, or aarch64-unknown-linux-gnu, which is cross-compiled
# with `gcc-aarch64-linux-gnu` on other machines. DIRECTORY is where the archive goes, by default `dist`.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-x86_64-unknown-linux-gnu}
out=${2:-dist}
host=$(rustc -vV | sed -n 's/^host: //p')
case $target in
  x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu) ;;
  *) echo "archives are built for x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu, not for $target" >&2; exit 2 ;;
esac
if [ "$target" != "$host" ]; then
  rustup target add "$target" >/dev/null
  compiler=${target%%-*}-linux-gnu-gcc
  command -v "$compiler" >/dev/null || { echo "$target needs $compiler (apt install gcc-${target%%-*}-linux-gnu)" >&2; exit 2; }
  linker=CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_LINKER
  export "$linker=$compiler"
fi
cargo build --profile dist --package brasa-cli --target "$target"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
name=brasa-$target
mkdir -p "$folder/$name" "$out"
cp "${CARGO_TARGET_DIR:-target}/$target/dist/brasa" README.md LICENSE* "$folder/$name/"
# The program of another architecture cannot run here.
if [ "$target" = "$host" ]; then
  for shell in bash zsh fish; do
    "$folder/$name/brasa" completions "$shell" >"$folder/$name/brasa.$shell"
  done
  "$folder/$name/brasa" man "$folder/$name/man" >/dev/null
fi
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$folder" -czf "$folder/$name.tar.gz" "$name"
mv "$folder/$name.tar.gz" "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256" && cat "$name.tar.gz.sha256")
