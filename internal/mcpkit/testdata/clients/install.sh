#!/bin/sh
# Fetches what other people wrote and our servers are tried with: the conformance suite,
# the MCP inspector, the TypeScript clients of both generations, a Node that is new enough
# for all of them, and axe-core, which finds what keeps people from using a page.
#
#   install.sh DIR
#
# Everything goes into DIR, by one npm install; DIR/node is the Node to use. A DIR that is
# complete is left alone, so that this can be started early, in the background, and asked
# again later. It takes half a minute or more, as the registry likes. Without npm it says
# so and ends with 3.
set -u

if [ $# -ne 1 ]; then
	echo "usage: install.sh DIR" >&2
	exit 2
fi
command -v npm >/dev/null 2>&1 || {
	echo "there is no npm"
	exit 3
}
mkdir -p "$1" && cd "$1" || exit 1
[ -e ready ] && exit 0

packages="@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 axe-core@4.14.0"
new=$(node -p 'Number(process.versions.node.split(".")[0]) >= 22' 2>/dev/null)
[ "$new" = true ] || packages="$packages node@22"

fetch() {
	# shellcheck disable=SC2086 # a list
	npm install --no-audit --no-fund --no-save --no-package-lock --loglevel=error --prefix . $packages >npm.log 2>&1
}
if ! fetch && ! { sleep 5 && fetch; }; then # a registry may be busy
	echo "npm install failed:"
	tail -n 20 npm.log
	exit 1
fi
if [ "$new" = true ]; then
	ln -sf "$(command -v node)" node
else
	ln -sf node_modules/node/bin/node node
fi
./node -e '' && : >ready
