#!/usr/bin/env bash
# Set up what the tests need and run lint, types and tests. Arguments go to pytest: scripts/check.sh -m sweep
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hlo_lower needs Python 3.11 or newer; set PYTHON" >&2; exit 2; }

[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/pyright --pythonpath .venv/bin/python
.venv/bin/python -m pytest -n 2 --dist worksteal "$@"
