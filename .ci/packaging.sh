#!/usr/bin/env bash
# What users find beside the program is what tools of others expect: the registry's
# server.json, the .mcpb bundle, the systemd units, the Dockerfile and the compose files.
#
#   .ci/packaging.sh PATH/TO/marchwarden
#
# Schemas and parsers come from the package registries, by pinned versions. It says
# what it skips, and takes some 20 s.
set -euo pipefail
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export npm_config_loglevel=error

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "skipped: $*"; }

# module PATH VERSION: the folder of a module, in the module cache; never in our go.mod.
mkdir "$scratch/modules"
printf 'module scratch\n\ngo 1.26\n' >"$scratch/modules/go.mod"
module() {
  (cd "$scratch/modules" && GOFLAGS=-mod=mod go mod download -json "$1@$2" 2>/dev/null) | sed -nE 's/^\t"Dir": "(.*)",?$/\1/p'
}

echo "bundle for this platform"
platform=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
mkdir "$scratch/dist" "$scratch/again" "$scratch/bundle" "$scratch/home"
OUT=$scratch/dist mcpb/build.sh "$platform=$binary"
go run ./mcpb/_pack "$scratch/again" "$platform=$binary" >/dev/null
cmp "$scratch"/dist/*.mcpb "$scratch"/again/*.mcpb || fail "two bundles of the same program differ"
unzip -q "$scratch"/dist/*.mcpb -d "$scratch/bundle"
# As a host starts it that was told nothing: every optional value is there, and empty.
requests='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"packaging","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
{ printf '%s\n' "$requests"; sleep 1; } | env -i HOME="$scratch/home" PATH="$PATH" MARCHWARDEN_LIBRARY= MARCHWARDEN_ONLINE=false MARCHWARDEN_MODEL= \
  ANTHROPIC_API_KEY= OPENAI_API_KEY= TAVILY_API_KEY= BRAVE_API_KEY= "$scratch/bundle/server/marchwarden" serve pi >"$scratch/said" 2>"$scratch/errors" ||
  fail "the program of the bundle does not serve: $(cat "$scratch/errors")"
grep -q '"name":"research"' "$scratch/said" || fail "the program of the bundle lists no tool research: $(cat "$scratch/said")"
echo "the program of the bundle lists its tool"

echo "server.json and compose.yaml by their schemas"
registry=$(module github.com/modelcontextprotocol/registry v1.8.6) || true
compose=$(module github.com/compose-spec/compose-go/v2 v2.16.2) || true
ajv() { # SPEC SCHEMA DATA
  npx -y -p ajv-cli@5.0.0 -p ajv-formats@3.0.1 ajv validate --spec="$1" -c ajv-formats --strict=false -s "$2" -d "$3"
}
if ! command -v npx >/dev/null; then
  skip "schemas, there is no npx"
else
  if [ -n "$registry" ]; then
    ajv draft7 "$registry/internal/validators/schemas/2025-12-11.json" "$root/server.json"
    ajv draft7 "$registry/internal/validators/schemas/2025-12-11.json" "$scratch/dist/server.json"
  else
    skip "server.json, the registry's schema cannot be had"
  fi
  if [ -n "$compose" ]; then
    ajv draft2020 "$compose/schema/compose-spec.json" "$root/compose.yaml"
  else
    skip "compose.yaml, the schema cannot be had"
  fi
fi
if docker compose version >/dev/null 2>&1; then
  cp compose.yaml "$scratch/compose.yaml"
  echo MARCHWARDEN_HTTP_TOKEN=0123456789abcdef >"$scratch/.env"
  docker compose -f "$scratch/compose.yaml" --profile far-web config -q
else
  skip "docker compose config, there is no docker compose"
fi

echo "Dockerfile"
mkdir "$scratch/dockerfile"
cat >"$scratch/dockerfile/go.mod" <<'X'
module scratch

go 1.26

require github.com/moby/buildkit v0.34.1
X
cat >"$scratch/dockerfile/main.go" <<'X'
package main

import (
	"fmt"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	code := 0
	warn := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		fmt.Println(rule+":", message)
		code = 1
	}})
	f, err := os.Open(os.Args[1])
	if err == nil {
		var r *parser.Result
		if r, err = parser.Parse(f); err == nil {
			_, _, err = instructions.Parse(r.AST, warn)
		}
	}
	if err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}
X
if (cd "$scratch/dockerfile" && GOFLAGS=-mod=mod go build -o lint . >"$scratch/errors" 2>&1); then
  "$scratch/dockerfile/lint" Dockerfile || fail "BuildKit does not like the Dockerfile"
  echo "BuildKit reads it without a warning"
else
  skip "reading the Dockerfile as BuildKit does: $(tail -n 1 "$scratch/errors")"
fi
# What .dockerignore lets through must be enough: every package, and every embedded file.
mkdir "$scratch/context"
# shellcheck disable=SC2046 # names without spaces
tar -c --exclude='*_test.go' --exclude=testdata --exclude=.env $(sed -n 's/^!//p' .dockerignore | sed 's/^\*\.go$/'"$(echo ./*.go | sed 's/[\/&]/\\&/g')"'/') | tar -x -C "$scratch/context"
(cd "$scratch/context" && go list -deps ./cmd/marchwarden >/dev/null) || fail "the image lacks something that the program is built from"
if docker info >/dev/null 2>&1; then
  docker build -q --target http . >/dev/null
else
  skip "building the image, there is no docker daemon"
fi

echo "systemd units"
if command -v systemd-analyze >/dev/null; then
  for unit in marchwarden marchwarden-hub marchwarden-worker; do
    sed "s#/usr/local/bin/marchwarden#$binary#" "deploy/$unit.service" >"$scratch/$unit.service"
    said=$(systemd-analyze verify "$scratch/$unit.service" 2>&1) || fail "systemd-analyze verify: $said"
    [ -z "$said" ] || fail "systemd-analyze verify: $said"
    if score=$(systemd-analyze security --offline=true --threshold=20 --no-pager "$scratch/$unit.service" 2>&1); then
      printf '%s\n' "$score" | tail -n 1
    else
      fail "$unit is less confined than it was: $(printf '%s\n' "$score" | tail -n 1)"
    fi
  done
else
  skip "the systemd units, there is no systemd-analyze"
fi

echo "manual pages"
"$binary" man "$scratch/man" || fail "the manual pages cannot be written"
if command -v mandoc >/dev/null; then
  for page in "$scratch"/man/*; do
    mandoc -T lint -W error "$page" >"$scratch/lint" || fail "$(cat "$scratch/lint")"
  done
elif command -v groff >/dev/null; then
  for page in "$scratch"/man/*; do
    said=$(groff -K utf8 -man -ww -z "$page" 2>&1) && [ -z "$said" ] || fail "$page: $said"
  done
else
  skip "the manual pages, there is neither mandoc nor groff"
fi

echo "configurations for hosts"
for host in claude-code claude-desktop vscode cursor codex gemini-cli; do
  "$binary" mcp config "$host" 2>/dev/null | grep -qF "$binary" || fail "the configuration for $host does not name the program"
done

echo "PASS: packaging"
