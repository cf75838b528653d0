#!/usr/bin/env bash
# Set up what the tests need; run lint, types, the build of the site, and tests. Arguments go to pytest: scripts/check.sh -m sweep
# JAX=0.8.3 scripts/check.sh does the same on another release of jax, in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # else each process that the tests start compiles the package again

python=${PYTHON:-python3.11}
command -v "$python" >/dev/null || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hlo_lower needs Python 3.11 or newer; set PYTHON" >&2; exit 2; }

venv=.venv${JAX:+-jax-$JAX}
extras=test,iree,prove
[ -n "${JAX:-}" ] || extras+=,docs
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e ".[$extras]" ${JAX:+"jax==$JAX" "jaxlib==$JAX"}

"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
if [ -z "${JAX:-}" ]; then # types and the site are those of the newest jax; each takes one core, so they run side by side
  "$venv/bin/python" scripts/build_docs.py &
  site=$!
  "$venv/bin/pyright" --pythonpath "$venv/bin/python" || { wait; exit 1; }
  wait "$site" # a warning of the build fails here
fi
"$venv/bin/python" -m pytest -n 2 --dist worksteal "$@"
