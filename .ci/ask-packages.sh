#!/usr/bin/env bash
# How much of the program one offline question runs: the packages of ours in which it
# runs ten statements or more, with their statements. It fails above the given number, or
# if the question takes more than one process.
#   .ci/ask-packages.sh MOST
set -euo pipefail
cd "$(dirname "$0")/.."
most=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
module=$(go list -m)
CGO_ENABLED=0 go build -cover -coverpkg="$module/..." -o "$scratch/marchwarden" ./cmd/marchwarden
mkdir "$scratch/counts"
GOCOVERDIR="$scratch/counts" MARCHWARDEN_HOME="$scratch/home" \
  "$scratch/marchwarden" ask -q "What are ideal crops for a garden in Utah?" >/dev/null
processes=$(find "$scratch/counts" -name 'covcounters.*' | wc -l)
go tool covdata textfmt -i="$scratch/counts" -o "$scratch/profile"
# A line of a profile is "file:from,to statements times".
awk -v module="$module" -v most="$most" -v processes="$processes" '
  NR > 1 {
    file = substr($1, 1, index($1, ":") - 1)
    sub("/[^/]*$", "", file); sub("^" module "/?", "", file)
    all += $2
    if ($3 > 0) { ran[file] += $2; sum += $2 }
  }
  END {
    for (name in ran) if (ran[name] >= 10) { n++; printf "%6d  %s\n", ran[name], name == "" ? "." : name | "sort -rn" }
    close("sort -rn")
    printf "%d packages, %d of %d statements (%.0f %%), %d process(es)\n", n, sum, all, 100 * sum / all, processes
    if (n > most || processes != 1) { printf "more than %d packages, or more than one process\n", most; exit 1 }
  }' "$scratch/profile"
