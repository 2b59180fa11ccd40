#!/usr/bin/env bash
# Writes the licences of what is linked into the program, each text once, to
# cmd/marchwarden/notices.txt.gz. 'marchwarden licenses' prints them. A test says when
# they are out of date.
set -euo pipefail
cd "$(dirname "$0")/.."
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT

# The modules of all systems that releases are for, beside Go itself and the models.
for system in linux darwin windows; do
  GOOS=$system CGO_ENABLED=0 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/marchwarden
done | sort -u >"$texts/modules"
{
  echo "go 1 $(go env GOROOT)"
  cat "$texts/modules"
} | while read -r path version dir; do
  for file in "$dir"/*; do
    case $(basename "$file" | tr '[:upper:]' '[:lower:]') in
      license* | licence* | copying* | notice* | unlicense* | patents*) ;;
      *) continue ;;
    esac
    sum=$(sha256sum <"$file" | cut -c1-16)
    tr -d '\r' <"$file" >"$texts/$sum.text"
    echo "$path $version" >>"$texts/$sum.names"
  done
done
{
  echo "The program contains the following, under the licences below them."
  for names in "$texts"/*.names; do
    printf '\n%s\n' "$(sort -u "$names" | sed 's/^/= /')"
    printf '\n'
    cat "${names%.names}.text"
  done | cat -s
  cat <<'END'

= all-MiniLM-L6-v2, the sentence model, by sentence-transformers (Apache License 2.0)
= PDFium, which reads PDFs, by the PDFium authors (BSD 3-Clause and Apache License 2.0)
END
} | gzip -9n >cmd/marchwarden/notices.txt.gz
ls -l cmd/marchwarden/notices.txt.gz
