#!/usr/bin/env bash
# The tests of this package against a service that others have written: versitygw, with
# files behind it. It is built from source, which takes a minute and a half of processor
# time the first time.
#
#   internal/blob/s3/testdata/gateway.sh FOLDER    where the program is put
set -euo pipefail
cd "$(dirname "$0")/../../../.."
folder=$(mkdir -p "$1" && cd "$1" && pwd)
if ! GOBIN="$folder" GOFLAGS=-mod=mod CGO_ENABLED=0 go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 >"$folder/install.log" 2>&1; then
  echo "skipped: tests with an S3 gateway, versitygw could not be had: $(tail -n 1 "$folder/install.log")"
  exit 0
fi
MARCHWARDEN_TEST_VERSITYGW="$folder/versitygw" go test -count=1 -run '^TestGateway$' ./internal/blob/s3
