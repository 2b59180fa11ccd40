#!/usr/bin/env bash
# The long form of the tests that do what disks, kernels and other processes do:
# SIGKILL at every system call of a research that is about a file or a connection,
# power loss at many of them, ENOSPC, EIO, EROFS and EMFILE at every write, disks
# that are really full or read-only, eight processes on one home, and whatever else
# has a long form. The everyday run of the tests takes a sample of all of it, and a
# larger one where MARCHWARDEN_TEST_FULL is 1.
#
# It needs Linux on amd64, where the tests trace the program themselves; elsewhere
# they kill at moments instead, and say so. Mounts need root, and are skipped with a
# word without it.
#
#   .ci/torture.sh                     everything
#   .ci/torture.sh TestKillAnywhere    only that; the argument is a -run of go test
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 MARCHWARDEN_TEST_FULL=torture

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
commands=./cmd/marchwarden
program=${1:-'TestKillAnywhere|TestFaultAnywhere|TestRealFaults|TestManyProcesses|TestTwoGoOnAtOnce|TestDurabilityCost'}

say "the program: $program"
go test -count=1 -timeout 3h -v -run "$program" "$commands"
if [ $# -gt 0 ]; then
  exit
fi

say "the packages whose tests have a long form"
mapfile -t long < <(grep -rl --include='*_test.go' '"torture"' internal serve investigate 2>/dev/null | xargs -r -n 1 dirname | sort -u | sed 's,^,./,')
if [ ${#long[@]} -gt 0 ]; then
  go test -count=1 -timeout 1h -v "${long[@]}" | grep -E '^(---|===|ok|FAIL|PASS|panic)|_test.go' | grep -v '=== RUN'
fi

say "what a durable step costs"
go test -run '^$' -bench Durable ./internal/trace ./internal/blob/dir

say "nothing broke"
