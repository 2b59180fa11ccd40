#!/bin/sh
# Tries a built marchwarden binary with clients that other people wrote: the MCP
# inspector and the TypeScript SDKs of both generations, over stdio and HTTP, in both
# eras of the protocol.
#
#   run.sh PATH/TO/marchwarden [DIR]
#
# DIR is where install.sh has put the packages, or puts them now; without it they go to a
# temporary folder. Prints PASS and FAIL lines and exits 1 on a FAIL. Without npm it says
# so and exits 0.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -x "$1" ]; then
	echo "usage: run.sh PATH/TO/marchwarden [DIR]" >&2
	exit 2
fi
binary=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

packages=${2:-$tmp/npm}
if ! problem=$("$here/install.sh" "$packages"); then
	case $problem in
	"there is no npm")
		echo "skipped: $problem"
		exit 0
		;;
	esac
	echo "FAIL clients: $problem"
	exit 1
fi
packages=$(CDPATH='' cd -- "$packages" && pwd)
cp "$here"/*.mjs "$tmp"/ && ln -s "$packages/node_modules" "$tmp/node_modules" || exit 1
"$packages/node" "$tmp/run.mjs" "$binary"
