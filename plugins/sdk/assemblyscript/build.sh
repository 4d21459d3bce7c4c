#!/bin/sh
# Builds a worker in AssemblyScript, the worker.ts of a folder: build.sh WORKER.wasm FOLDER
# -V prints what it builds with; exit code 3 = there is nothing.
#
# ASC says which asc to take; otherwise it is that of the PATH, or what `make toolchains` has installed.
set -eu
sdk=$(cd "$(dirname "$0")" && pwd)
toolchains=${JOBHOST_TOOLCHAINS:-${XDG_CACHE_HOME:-$HOME/.cache}/jobhost/toolchains}
asc=$(PATH=$PATH:$toolchains/node_modules/.bin command -v "${ASC:-asc}") || {
	echo "assemblyscript: not built: there is no asc here (make toolchains, or npm install assemblyscript)" >&2
	exit 3
}
command -v node >/dev/null || {
	echo "assemblyscript: not built: there is no node here, which asc runs in" >&2
	exit 3
}
if [ "${1-}" = -V ]; then
	echo "asc $("$asc" --version)"
	exit
fi
if [ $# != 2 ]; then
	echo "usage: build.sh WORKER.wasm FOLDER" >&2
	exit 2
fi

out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
worker=$(cd "$2" && pwd)
modules=$(mktemp -d)
trap 'rm -rf "$modules"' EXIT
ln -s "$sdk" "$modules/jobhost" # as npm does for a package of a path
cd "$worker"
"$asc" worker.ts --path "$modules" --config "$sdk/asconfig.json" --outFile "$out"
