#!/usr/bin/env bash
# Set everything up from a bare Python 3.11 and run the main job: export a decoder step, report its scatters, convert it
# without them, and verify that nothing changed. What it makes lies in out/.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hlo_lower needs Python 3.11 or newer; set PYTHON" >&2; exit 2; }

[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -e .

mkdir -p out
say() { printf '\n$ %s\n' "$*"; "${@/#hlo-lower/.venv/bin/hlo-lower}"; }
say hlo-lower export models/llama.py:decode -o out/decode.mlir
say hlo-lower report out/decode.mlir
say hlo-lower convert out/decode.mlir -o out/decode_lowered.mlir
say hlo-lower verify out/decode.mlir out/decode_lowered.mlir
