#!/bin/sh
# Rebuilds the test guests from src/. The results are checked in, so
# that tests need no compiler; where clang is missing this does nothing.
set -eu
cd "$(dirname "$0")"

if ! command -v clang >/dev/null || ! command -v wasm-ld >/dev/null; then
  echo "guests: skipped, clang and wasm-ld (Debian: clang lld) are not installed"
  exit 0
fi

# text NAME: a module that is written as text.
text() {
  if command -v wat2wasm >/dev/null; then
    wat2wasm "src/$1.wat" -o "$1.wasm"
  else
    echo "guests: skipped $1, wat2wasm (Debian: wabt) is not installed"
  fi
}

text canary
text calls
text canary_table
text extism_fills
text extism_js
text init_table
text simd

# build NAME SOURCE [FLAG…]: no names keep the files at a few KB. With the stack
# first, running out of it traps instead of overwriting data.
build() {
  name=$1 source=$2
  shift 2
  clang --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -nostdlib -ffreestanding -fno-builtin \
    -fno-ident "$@" -Wl,--no-entry,--stack-first,-z,stack-size=16384 \
    -o "$name.wasm" "src/$source"
  chmod 644 "$name.wasm"
}

build ../../noop/noop noop.c -Wl,--strip-all
build echo echo.c -Wl,--strip-all
build sha256 sha256.c -Wl,--strip-all
build outcomes outcomes.c -Wno-infinite-recursion # with names, for the stack traces
build words words.c -Wl,--strip-all
build effects effects.c -Wl,--strip-all
build ops ops.c -Wl,--strip-all
build states states.c -Wl,--strip-all
build fiber fiber.c -Wl,--strip-all
build exit exit.c -Wl,--strip-all
build init init.c -Wl,--strip-all
build init_spin init.c -DSPIN -Wl,--strip-all
build init_trap init.c -DTRAP -Wl,--strip-all
build command command.c -Wno-infinite-recursion -Wl,--strip-all
build cat cat.c -Wl,--strip-all
build extism extism.c -Wno-infinite-recursion -Wl,--strip-all

# A command that needs a libc, of which clang finds one where it is installed.
if echo '#include <stdio.h>' | clang --target=wasm32-wasi -E - >/dev/null 2>&1; then
  clang --target=wasm32-wasi -std=c11 -D_GNU_SOURCE -Os -Wall -Wextra -Werror -fno-ident \
    -Wl,--strip-all,--stack-first -o libc.wasm src/libc.c
  chmod 644 libc.wasm
else
  echo "guests: libc skipped, a libc for wasm32-wasi (Debian: wasi-libc) is not installed"
fi
