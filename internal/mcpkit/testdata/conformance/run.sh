#!/bin/sh
# Runs the official conformance suite, at both revisions of the protocol, against a built
# marchwarden binary as it is served, against the same stack with the suite's own
# fixtures, which this package's test binary serves, and against our client, which is in
# the client's test binary.
#
#   run.sh PATH/TO/marchwarden [DIR]
#
# DIR is where ../clients/install.sh has put the packages, or puts them now; without it
# they go to a temporary folder. Prints a PASS line with counts, or FAIL lines, for each of
# the runs and exits 1 on a FAIL. Without npm it says so and exits 0.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -x "$1" ]; then
	echo "usage: run.sh PATH/TO/marchwarden [DIR]" >&2
	exit 2
fi
binary=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
tmp=$(mktemp -d) || exit 1
servers=
end() {
	for pid in $servers; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 130' INT TERM

packages=${2:-$tmp/npm}
if ! problem=$("$here/../clients/install.sh" "$packages"); then
	case $problem in
	"there is no npm")
		echo "skipped: $problem"
		exit 0
		;;
	esac
	echo "FAIL conformance: $problem"
	exit 1
fi
packages=$(CDPATH='' cd -- "$packages" && pwd)
if ! (cd "$here/../.." && go test -c -o "$tmp/fixtures" . && go test -c -o "$tmp/client" ./client); then
	echo "FAIL conformance: the fixtures or the client do not build"
	exit 1
fi

# address FILE: the URL that a server has written there.
address() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		url=$(sed -n 's|.*\(http://[^ ]*/mcp\).*|\1|p' "$1" 2>/dev/null | head -n 1)
		if [ -n "$url" ]; then
			echo "$url"
			return
		fi
		sleep 0.25
	done
	return 1
}

# The suite asks more often in a second than a caller may by default.
MARCHWARDEN_HOME=$tmp/home "$binary" serve pi --http 127.0.0.1:0 --rate 10000 >"$tmp/real.txt" 2>&1 &
servers=$!
MARCHWARDEN_TEST_CONFORMANCE=127.0.0.1:0 "$tmp/fixtures" >"$tmp/fixtures.txt" 2>&1 &
servers="$servers $!"
real=$(address "$tmp/real.txt") && fixtures=$(address "$tmp/fixtures.txt") || {
	echo "FAIL conformance: a server did not come up"
	cat "$tmp/real.txt" "$tmp/fixtures.txt"
	exit 1
}

# suite KIND URL REVISION LEAST: one run and its verdict.
suite() {
	"$packages/node" "$packages/node_modules/.bin/conformance" server --url "$2" --requirements "$3" \
		--expected-failures "$here/$1-$3.yml" -o "$tmp/$1-$3" >"$tmp/$1-$3.txt" 2>&1
	"$packages/node" "$here/judge.mjs" "$3, $1" "$tmp/$1-$3" "$here/$1-$3.yml" $? "$4"
}

# client REVISION: our client against the servers of the suite, and one run's verdict.
client() {
	if "$packages/node" "$packages/node_modules/.bin/conformance" client --command "$tmp/client" --requirements "$1" --timeout 120000 \
		--expected-failures "$here/client-$1.yml" >"$tmp/client-$1.txt" 2>&1; then
		echo "PASS conformance $1, client: $(grep -c '^✓' "$tmp/client-$1.txt") scenarios, $(grep -c '^✓ auth/' "$tmp/client-$1.txt") of them on logins"
	else
		echo "FAIL conformance $1, client"
		sed -n '/SUITE SUMMARY/,$p' "$tmp/client-$1.txt"
		return 1
	fi
}

suite serve-pi "$real" 2025-11-25 44 &
runs=$!
suite serve-pi "$real" 2026-07-28 110 &
runs="$runs $!"
suite fixtures "$fixtures" 2025-11-25 81 &
runs="$runs $!"
suite fixtures "$fixtures" 2026-07-28 194 &
runs="$runs $!"
{ client 2025-11-25 && client 2026-07-28; } & # each starts all its clients at once
runs="$runs $!"
failed=0
for pid in $runs; do
	wait "$pid" || failed=1
done
exit $failed
