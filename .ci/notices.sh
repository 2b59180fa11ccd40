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
  printf '\n= all-MiniLM-L6-v2, the sentence model, by sentence-transformers (Apache License 2.0)\n\n'
  cat internal/embed/bert/NOTICE
  printf '\n= The reader, which picks answers, made for this project from all-MiniLM-L6-v2\n\n'
  cat internal/reader/NOTICE
  # The module that brings PDFium has no text of its licence.
  cat <<'END'

= PDFium, which reads PDFs, by the PDFium authors (BSD 3-Clause and Apache License 2.0)

Copyright 2014 The PDFium Authors

Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are
met:

   * Redistributions of source code must retain the above copyright
notice, this list of conditions and the following disclaimer.
   * Redistributions in binary form must reproduce the above
copyright notice, this list of conditions and the following disclaimer
in the documentation and/or other materials provided with the
distribution.
   * Neither the name of Google Inc. nor the names of its
contributors may be used to endorse or promote products derived from
this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS
"AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT
LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR
A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT
OWNER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT
LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE,
DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY
THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT
(INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE
OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
END
} | gzip -9n >cmd/marchwarden/notices.txt.gz
ls -l cmd/marchwarden/notices.txt.gz
