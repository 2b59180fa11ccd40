#!/bin/sh
# Tries a built marchwarden binary with clients that other people wrote: the MCP
# inspector and the TypeScript SDK.
#
#   run.sh PATH/TO/marchwarden
#
# Prints one PASS or FAIL line a check and exits 1 if any failed. Without npx it
# says so and exits 0. Packages are fetched by name through npm, into its cache
# and a temporary directory; the first run takes about a minute.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
	echo "usage: run.sh PATH/TO/marchwarden" >&2
	exit 2
fi
binary=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
if ! command -v npx >/dev/null 2>&1; then
	echo "skipped: no npx"
	exit 0
fi

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
cp "$here"/*.mjs "$tmp"/ || exit 1
mkdir "$tmp/home"
cd "$tmp" || exit 1

failed=0
question="What are ideal crops for a garden in Utah?"

# check NAME FILE KIND: FILE holds the inspector's output, check.mjs judges it.
check() {
	if problem=$(node check.mjs "$3" "$2" 2>&1); then
		echo "PASS $1"
	else
		echo "FAIL $1: $problem"
		[ -s err.txt ] && grep -v '^npm warn' err.txt | sed 's/^/     /'
		failed=1
	fi
}

inspect() {
	npx -y -p node@22 -p @modelcontextprotocol/inspector@2.12.0 mcp-inspector --cli \
		-e "MARCHWARDEN_HOME=$tmp/home" "$binary" serve files --format json "$@" 2>err.txt
}

for era in legacy modern; do
	inspect --protocol-era $era --method tools/list --strict >list.json
	strict=$?
	check "inspector $era tools/list: exactly one tool, research" list.json list
	if [ $strict -eq 0 ]; then
		echo "PASS inspector $era tools/list: schemas are portable"
	else
		echo "FAIL inspector $era tools/list: --strict exits with $strict"
		failed=1
	fi
	inspect --protocol-era $era --method tools/call --tool-name research \
		--tool-arg "question=$question" --tool-arg depth=shallow >call.json
	check "inspector $era tools/call: structured content with citations" call.json call
	inspect --protocol-era $era --method tools/call --tool-name research --tool-arg depth=ultra >bad.json
	check "inspector $era tools/call: bad input is a tool error" bad.json bad
done

install() { npm install --no-audit --no-fund --no-save --prefix "$tmp" @modelcontextprotocol/sdk@1.32.2 >npm.txt 2>&1; }
if ! install && ! { sleep 5; install; }; then # a registry may be busy
	echo "FAIL typescript sdk: npm install failed"
	sed 's/^/     /' npm.txt
	exit 1
fi
MARCHWARDEN_HOME="$tmp/home" node ts-v1.mjs "$binary" "$question" || failed=1
exit $failed
