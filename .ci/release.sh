#!/usr/bin/env bash
# Builds a release into dist/release: the static program for each platform with its
# manual pages and completions, packages for Debian and Red Hat, a formula for Homebrew,
# a list of what is inside (CycloneDX), and checksums. The same commit gives the same bytes.
#
#   .ci/release.sh                     for all platforms
#   .ci/release.sh linux/amd64 …       for these
#
# The version is the tag of the commit, or VERSION. RELEASE_URL is where the files will
# be published; the formula says so. PACKAGES=none leaves out those for Debian and Red
# Hat. Go, tar, zip and gzip are all it needs.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --dirty 2>/dev/null || echo "0.0.0-$(git rev-parse --short HEAD)")}
version=${version#v}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CGO_ENABLED=0
url=${RELEASE_URL:-https://example.org/marchwarden/$version}
out=$PWD/dist/release
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
rm -rf "$out"
mkdir -p "$out" "$build/common/man" "$build/common/completions"

compile() { # OS ARCH FILE
  GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$3" ./cmd/marchwarden
}

# What is the same everywhere is made by the program of this machine.
compile "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$build/here"
"$build/here" man "$build/common/man" >/dev/null
"$build/here" licenses >"$build/common/NOTICES.txt"
for shell in bash zsh fish powershell; do
  "$build/here" completion "$shell" >"$build/common/completions/marchwarden.$shell"
done
cp LICENSE README.md CHANGELOG.md "$build/common/"
chmod -R u=rwX,go=rX "$build/common"

# archive FOLDER FILE: the files of a folder, in one order, with one time and no owner.
archive() {
  find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  case $2 in
    *.zip) (cd "$(dirname "$1")" && find "$(basename "$1")" -type f | LC_ALL=C sort | TZ=UTC zip -qX "$2" -@) ;;
    *) tar -C "$(dirname "$1")" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$(basename "$1")" | gzip -9n >"$2" ;;
  esac
}

# packages ARCH PROGRAM: for Debian and Red Hat, by nfpm, where the module proxy has it.
packages() {
  sed "s|@ARCH@|$1|g; s|@VERSION@|$version|g; s|@PROGRAM@|$2|g; s|@COMMON@|$build/common|g" deploy/release/nfpm.yaml >"$build/nfpm.yaml"
  for kind in deb rpm; do
    (cd "$build" && GOOS='' GOARCH='' GOFLAGS=-mod=mod go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 package -f nfpm.yaml -p "$kind" -t "$out/") >"$build/nfpm.log" 2>&1 ||
      { echo "skipped: the $kind for $1: $(tail -n 1 "$build/nfpm.log")"; return; }
  done
}

for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/}
  name=marchwarden-$version-$os-$arch
  echo "building $name"
  cp -r "$build/common" "$build/$name"
  program=$build/$name/marchwarden
  [ "$os" != windows ] || program=$program.exe
  compile "$os" "$arch" "$program"
  if [ "$os" = windows ]; then
    archive "$build/$name" "$out/$name.zip"
  else
    archive "$build/$name" "$out/$name.tar.gz"
  fi
  [ "$os" != linux ] || [ "${PACKAGES:-}" = none ] || packages "$arch" "$program"
  rm -r "${build:?}/$name"
done

# What is inside, as CycloneDX has it.
{
  printf '{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"metadata":{"component":{"type":"application","name":"marchwarden","version":"%s"}},"components":[' "$version"
  go version -m "$build/here" | awk -F'\t' '$2 == "dep" {
    printf "%s{\"type\":\"library\",\"name\":\"%s\",\"version\":\"%s\",\"purl\":\"pkg:golang/%s@%s\"}", comma, $3, $4, $3, $4; comma = "," }'
  printf ']}\n'
} >"$out/marchwarden-$version.cdx.json"

sum() { sha256sum "$out/$1" 2>/dev/null | cut -c1-64; }
if [ -e "$out/marchwarden-$version-darwin-arm64.tar.gz" ]; then
  sed "s|@VERSION@|$version|g; s|@URL@|$url|g; s|@DARWIN_ARM64@|$(sum "marchwarden-$version-darwin-arm64.tar.gz")|; s|@DARWIN_AMD64@|$(sum "marchwarden-$version-darwin-amd64.tar.gz")|;
    s|@LINUX_ARM64@|$(sum "marchwarden-$version-linux-arm64.tar.gz")|; s|@LINUX_AMD64@|$(sum "marchwarden-$version-linux-amd64.tar.gz")|" deploy/release/marchwarden.rb >"$out/marchwarden.rb"
fi
(cd "$out" && sha256sum -- * >SHA256SUMS)
cat "$out/SHA256SUMS"
