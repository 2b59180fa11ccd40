#!/usr/bin/env bash
# `marchwarden version` must start in under 50 ms more than an empty Go program.
# The best of twenty is taken of each, so that a busy machine does not matter.
set -euo pipefail
bin=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'package main\nfunc main() {}\n' >"$dir/main.go"
go build -o "$dir/empty" "$dir/main.go"
best() {
  local low=999999999 t0 t1
  for _ in $(seq 20); do
    t0=$(date +%s%N)
    "$@" >/dev/null
    t1=$(date +%s%N)
    [ $((t1 - t0)) -lt "$low" ] && low=$((t1 - t0))
  done
  echo $((low / 1000))
}
empty=$(best "$dir/empty")
ours=$(HOME=$dir best "$bin" version)
echo "empty program ${empty} µs, marchwarden version ${ours} µs"
[ $((ours - empty)) -lt 50000 ] || { echo "FAIL: start-up costs over 50 ms"; exit 1; }
