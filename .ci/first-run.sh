#!/usr/bin/env bash
# The promise of the README, held on the built binary: with an empty home and the
# network cut, the first question is answered with citations, the contradiction in
# the library is reported, a nonsense question is refused, and every result can be
# verified and rerun.
set -euo pipefail
bin=$1
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

cut=()
if unshare -n true 2>/dev/null; then
  cut=(unshare -n)
else
  echo "skipped: the network is not cut, unshare -n is not allowed here"
fi
mw() { env -i HOME="$home" PATH="$PATH" "${cut[@]}" "$bin" "$@"; }

fail() { echo "FAIL: $*"; exit 1; }
field() { sed -nE "s/.*\"$1\": ([0-9.]+).*/\1/p" "$2" | tail -n 1; }

mw ask --json "What are ideal crops for a garden in Utah?" >utah.json 2>/dev/null
citations=$(grep -c '"raw_excerpt"' utah.json)
documents=$(sed -nE 's/^ {6}"locator": "(.*)".*/\1/p' utah.json | sort -u | wc -l)
echo "Utah: $citations excerpts from $documents documents"
[ "$documents" -ge 3 ] || fail "fewer than 3 documents cited"
[ "$citations" -ge 4 ] || fail "fewer than 4 citations"
grep -q '"contradictory_sources"' utah.json || fail "the tomato contradiction is not reported"
grep -qi 'tomato' utah.json || fail "no word of tomatoes"

mw ask --json "What is the airspeed of an unladen blorptang?" >nonsense.json 2>/dev/null
grep -q '"citations": \[\]' nonsense.json || fail "a nonsense question has citations"
grep -q '"source_not_found"' nonsense.json || fail "a nonsense question has no gap"
confidence=$(sed -nE 's/^  "confidence": ([0-9.]+),/\1/p' nonsense.json)
awk -v c="$confidence" 'BEGIN { exit !(c < 0.3) }' || fail "a nonsense question has confidence $confidence"

id=$(sed -nE 's/^  "trace_id": "(.*)".*/\1/p' utah.json)
mw export "$id" -o utah.mwz 2>/dev/null
empty=$(mktemp -d)
env -i HOME="$empty" PATH="$PATH" "${cut[@]}" "$bin" verify utah.mwz >/dev/null || fail "a bundle does not stand in an empty home with the network cut"
[ -z "$(ls -A "$empty")" ] || fail "verifying a bundle left something in the home"
rmdir "$empty"
size=$(stat -c %s utah.mwz)
for at in 100 $((size / 3)) $((size / 2)) $((size - 30)); do
  cp utah.mwz changed.mwz
  printf '\x5a\xa5' | dd of=changed.mwz bs=1 seek="$at" conv=notrunc status=none
  ! mw verify changed.mwz >changed.txt 2>&1 || fail "byte $at of the bundle was changed, and it still stands"
  grep -qE 'data/|txt|json|container' changed.txt || fail "byte $at of the bundle was changed, and no part is named: $(cat changed.txt)"
done
mw check >/dev/null || fail "check finds something wrong"

for result in utah.json nonsense.json; do
  id=$(sed -nE 's/^  "trace_id": "(.*)".*/\1/p' "$result")
  mw verify "$id" >/dev/null || fail "verify $id"
  mw verify "$result" >/dev/null || fail "verify $result"
  mw replay --rerun "$id" >/dev/null || fail "rerun $id"
done
echo "PASS: first run"
