#!/bin/sh
# Builds the worker in a folder, such as hello, with plain rustc: ./build.sh hello hello.wasm
#
# RUSTC names the compiler (Debian: apt install rustc libstd-rust-dev-wasm32 lld-14), RUST_TARGET
# the target: wasm32-wasi, which newer compilers call wasm32-wasip1, or wasm32-unknown-unknown.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
worker=$(cd "$1" && pwd)
out=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
rustc=${RUSTC:-/usr/bin/rustc}
target=${RUST_TARGET:-wasm32-wasi}
lib=$(mktemp -d)
trap 'rm -rf "$lib"' EXIT

# Debian's compiler has no linker for wasm of its own.
linker=
for name in wasm-ld-14 wasm-ld; do
	if command -v "$name" >/dev/null; then
		linker="-C linker=$name"
		break
	fi
done
# Sources are named in panics: by where they are in the crate, so that the same
# sources make the same bytes everywhere.
flags="--edition 2021 --target $target -C opt-level=s -C panic=abort -C embed-bitcode=yes"
cd "$sdk"
"$rustc" $flags --crate-type rlib --crate-name jobhost --remap-path-prefix "src=jobhost" \
	-o "$lib/libjobhost.rlib" src/lib.rs
cd "$worker"
"$rustc" $flags $linker -C lto -C strip=symbols --crate-type cdylib --crate-name worker \
	--extern jobhost="$lib/libjobhost.rlib" -o "$out" src/lib.rs
chmod -x "$out" # the linker takes it for a program
