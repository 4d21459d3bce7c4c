#!/bin/sh
# Builds crc32.wasm, which is checked in so that tests need no C compiler.
set -eu
cd "$(dirname "$0")"
if ! echo '#include <stdio.h>' | clang --target=wasm32-wasi -E - >/dev/null 2>&1; then
	echo "crc32: not built: there is no clang with a libc for wasm32-wasi here (Debian: clang, lld, wasi-libc)"
	exit 0
fi
clang --target=wasm32-wasi -std=c11 -Wall -Wextra -Werror -O2 -fno-ident \
	-Wl,--strip-all,--stack-first -o crc32.wasm crc32.c
chmod -x crc32.wasm # the linker takes it for a program
