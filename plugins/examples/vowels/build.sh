#!/bin/sh
# Builds vowels.wasm, which is checked in so that tests need no C compiler.
set -eu
cd "$(dirname "$0")"
for tool in clang wasm-ld; do
	if ! command -v "$tool" >/dev/null; then
		echo "vowels: not built: there is no $tool here (Debian: clang, lld)"
		exit 0
	fi
done
clang --target=wasm32 -std=c11 -Wall -Wextra -Werror -O2 -ffreestanding -nostdlib \
	-Wl,--no-entry,--strip-all,-z,stack-size=4096 -o vowels.wasm vowels.c
chmod -x vowels.wasm # the linker takes it for a program
