#!/bin/sh
# Builds conform.wasm (C) and conform_as.wasm (AssemblyScript), which are checked in so that tests need
# no compiler: build.sh [FOLDER] puts them there. TOOLCHAIN says what built those that are checked in.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
toolchains=${JOBHOST_TOOLCHAINS:-${XDG_CACHE_HOME:-$HOME/.cache}/jobhost/toolchains}
PATH=$PATH:$toolchains/node_modules/.bin
libc() { echo '#include <stdio.h>' | clang --target=wasm32-wasi -E - >/dev/null 2>&1; }
if ! command -v asc >/dev/null || ! command -v node >/dev/null || ! libc; then
	echo "conform: not built: it takes clang with a libc for wasm32-wasi (Debian: clang, lld, wasi-libc) and asc (make toolchains)"
	exit 0
fi
clang --target=wasm32-wasi -std=gnu11 -Os -Wall -Wextra -Werror -fno-ident \
	-Wl,--strip-all,--stack-first -o "$out/conform.wasm" ./*.c
chmod -x "$out/conform.wasm" # the linker takes it for a program
asc conform.ts --use abort=conform/abort --runtime stub -O1 --outFile "$out/conform_as.wasm"
{
	clang --version | head -n 1
	echo "asc $(asc --version)"
} >"$out/TOOLCHAIN"
