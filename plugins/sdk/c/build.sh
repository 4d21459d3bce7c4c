#!/bin/sh
# Builds a worker in C: build.sh [--libc] WORKER.wasm SOURCE.c…
#
# Without --libc it is what the sources and the SDK make, of which only what is used
# comes in; with it there is wasi-libc besides: stdio.h, string.h, malloc and so on.
# CFLAGS are added to what the compiler is told.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
target=wasm32 libc= freestanding=-ffreestanding
if [ "${1-}" = --libc ]; then
	target=wasm32-wasi libc=1 freestanding=
	shift
fi
if [ $# -lt 2 ]; then
	echo "usage: build.sh [--libc] WORKER.wasm SOURCE.c…" >&2
	exit 2
fi
for tool in clang wasm-ld; do
	if ! command -v "$tool" >/dev/null; then
		echo "build.sh: there is no $tool here (Debian: apt install clang lld, and wasi-libc libclang-rt-14-dev-wasm32 for --libc)" >&2
		exit 1
	fi
done
out=$1
shift

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
n=0
for source in "$@" "$sdk"/jobhost/*.c; do
	n=$((n + 1))
	# shellcheck disable=SC2086 # flags are words
	clang --target=$target -std=c11 -Wall -Wextra -O2 -mbulk-memory $freestanding ${CFLAGS-} \
		-I "$sdk/jobhost" -c -o "$objects/$n.o" "$source"
done
# The stack comes first: one that is too deep is a trap, and no damage to data. To
# link without -O keeps clang from running a wasm-opt that happens to be installed.
if [ "$libc" ]; then
	clang --target=$target -mexec-model=reactor -Wl,--strip-all,--stack-first -o "$out" "$objects"/*.o
else
	wasm-ld --no-entry --strip-all --stack-first -z stack-size=65536 -o "$out" "$objects"/*.o
fi
chmod -x "$out" # the linker takes it for a program
