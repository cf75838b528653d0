#!/usr/bin/env bash
# Set up what the tests need and run lint, types and tests. Arguments go to pytest: scripts/check.sh -m sweep
# JAX=0.9.0 scripts/check.sh does the same on another release of jax, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hlo_lower needs Python 3.11 or newer; set PYTHON" >&2; exit 2; }

venv=.venv${JAX:+-jax-$JAX}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[test,iree,prove]' ${JAX:+"jax==$JAX" "jaxlib==$JAX"}

"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
[ -n "${JAX:-}" ] || "$venv/bin/pyright" --pythonpath "$venv/bin/python" # types are those of the newest jax
"$venv/bin/python" -m pytest -n 2 --dist worksteal "$@"
