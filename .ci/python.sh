#!/usr/bin/env bash
# Makes a Python environment with the official MCP SDK, and tools that read what we
# export, in the folder given and prints the folder of its programs, to be put before
# PATH. Where that cannot be done it prints nothing, and says why on standard error:
# the tests with Python are skipped then.
set -euo pipefail
dir=$1
requirements=$(dirname "$0")/../examples/python-researcher/requirements.txt
skip() {
  echo "skipped: tests of the Python researcher, $1" >&2
  exit 0
}
command -v python3 >/dev/null || skip "there is no python3"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
python3 -m venv "$dir" >"$log" 2>&1 || skip "python3 cannot make an environment: $(tail -n 1 "$log")"
"$dir/bin/python3" -m pip install --quiet --disable-pip-version-check -r "$requirements" >"$log" 2>&1 ||
  skip "the MCP SDK could not be installed: $(tail -n 1 "$log")"
"$dir/bin/python3" -c "import mcp" || skip "the MCP SDK does not load"
# What others read bundles and bibliographies with; each is tried if it is there.
"$dir/bin/python3" -m pip install --quiet --disable-pip-version-check bagit==1.9.0 bibtexparser==2.1.0 pybtex==0.26.1 >"$log" 2>&1 ||
  echo "skipped: bundles and bibliographies in other people's tools, which could not be installed: $(tail -n 1 "$log")" >&2
echo "$dir/bin"
