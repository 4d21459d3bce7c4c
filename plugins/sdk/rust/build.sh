#!/bin/sh
# Builds a worker in Rust with nothing but rustc: build.sh WORKER.wasm FOLDER, which is that of its
# crate. -V prints what it builds with; exit code 3 = there is nothing.
#
# RUSTC and RUST_TARGET say which compiler and target to take; otherwise it is the first one that has
# a library for WASI. Debian: apt install rustc libstd-rust-dev-wasm32 lld-14
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)

# find sets rustc and target. The target has another name since Rust 1.78.
find() {
	for rustc in ${RUSTC:-/usr/bin/rustc rustc}; do
		for target in ${RUST_TARGET:-wasm32-wasi wasm32-wasip1}; do
			dir=$("$rustc" --print target-libdir --target "$target" 2>/dev/null) || continue
			[ ! -d "$dir" ] || return 0
		done
	done
	echo "rust: not built: there is no rustc with a library for wasm32-wasip1 here (Debian: rustc, libstd-rust-dev-wasm32, lld-14; rustup target add wasm32-wasip1)" >&2
	exit 3
}
find

# Debian's compiler has no linker for wasm of its own.
linker=
if [ -z "$(echo "$("$rustc" --print sysroot)"/lib/rustlib/*/bin/rust-lld | grep -v '\*')" ]; then
	linker=$(command -v wasm-ld-14 || command -v wasm-ld) || {
		echo "rust: not built: there is no linker for wasm here (Debian: lld-14)" >&2
		exit 3
	}
fi
if [ "${1-}" = -V ]; then
	echo "$("$rustc" --version), $([ -z "$linker" ] || "$linker" --version), $target"
	exit
fi
if [ $# != 2 ]; then
	echo "usage: build.sh WORKER.wasm FOLDER" >&2
	exit 2
fi

out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
worker=$(cd "$2" && pwd)
lib=$(mktemp -d)
trap 'rm -rf "$lib"' EXIT

# Panics name files as they are called here, seen from their crate: so the same sources
# make the same bytes wherever they are.
set -- --edition 2021 --target "$target" -C opt-level=s -C panic=abort
cd "$sdk"
"$rustc" "$@" -C embed-bitcode=yes --crate-type rlib --crate-name jobhost --remap-path-prefix src=jobhost \
	-o "$lib/libjobhost.rlib" src/lib.rs
cd "$worker"
"$rustc" "$@" -C lto -C strip=symbols ${linker:+-C "linker=$linker"} --crate-type cdylib --crate-name worker \
	--extern "jobhost=$lib/libjobhost.rlib" -o "$out" src/lib.rs
chmod -x "$out" # the linker takes it for a program
