#!/usr/bin/env bash
# Builds .mcpb bundles, which hosts such as Claude Desktop install by a double click,
# and the server.json for a registry, into dist/.
#
#   mcpb/build.sh                          for all platforms
#   mcpb/build.sh linux/amd64 …            for these
#   mcpb/build.sh linux/amd64=PROGRAM …    of a program that is built already
#
# IMAGE and RELEASE_URL in the environment put other addresses into dist/server.json:
# the image without its tag, and the folder that the bundles are published in.
# The same sources and the same Go give the same bytes. Go is all it needs; with npx
# the bundles are also validated by the official tool.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${OUT:-dist}
version=$(sed -nE 's/^  "version": "([^"]+)",?$/\1/p' server.json)
[ -n "$version" ] || { echo "server.json has no version"; exit 1; }
if [ $# -eq 0 ]; then
  set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
fi

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$out"
packed=()
for platform in "$@"; do
  if [[ $platform == *=* ]]; then
    packed+=("$platform")
    continue
  fi
  os=${platform%/*} arch=${platform#*/}
  echo "building marchwarden $version for $platform"
  CGO_ENABLED=0 GOOS=$os GOARCH=$arch \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$build/$os-$arch" ./cmd/marchwarden
  packed+=("$platform=$build/$os-$arch")
done
go run ./mcpb/_pack ${IMAGE:+-image "$IMAGE"} ${RELEASE_URL:+-release "$RELEASE_URL"} "$out" "${packed[@]}" | tee "$build/sums"

if ! command -v npx >/dev/null; then
  echo "skipped: validating the bundles, there is no npx"
  exit 0
fi
while read -r _ name; do
  mkdir "$build/in"
  unzip -q "$out/$name" manifest.json -d "$build/in"
  for check in "validate $build/in/manifest.json" "info $out/$name"; do
    # shellcheck disable=SC2086 # a command and its argument, neither with spaces
    npx -y @anthropic-ai/mcpb@2.1.2 $check >"$build/said" 2>&1 || { cat "$build/said"; exit 1; }
  done
  echo "valid: $out/$name"
  rm -r "$build/in"
done <"$build/sums"
