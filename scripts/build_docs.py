"""Build the documents as a site, warnings as errors, without a network. Needs the extra `docs`.

    pip install -e '.[docs]'
    python scripts/build_docs.py                  # then open out/site/index.html
    python scripts/build_docs.py --out FOLDER

The pages are those of docs/, the README, and what is generated: the gallery of rules, the API reference, the notebook's
results, and a page for each file of the repository that a page links to.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from absl import app, flags
from docs_site.assemble import ROOT, assemble

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK

_OUT = flags.DEFINE_string("out", str(ROOT / "out" / "site"), "Folder of the site; what was there is replaced.")


def main(_argv: Sequence[str]) -> int:
    """Gather the pages, build, and say how many there are."""
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        print("the site needs the extra docs: pip install '.[docs]'", file=sys.stderr)
        return EXIT_BAD_INPUT
    out = Path(_OUT.value)
    pages = out.with_name(f"{out.name}-pages")
    for folder in (out, pages):
        shutil.rmtree(folder, ignore_errors=True)
    start = perf_counter()
    rules = assemble(pages)
    gathered = perf_counter()
    failed = build_main(["-W", "--keep-going", "-q", "-d", str(pages / "doctrees"), str(pages), str(out)])
    told = f"{gathered - start:.0f} s to gather, {perf_counter() - gathered:.0f} s to build"
    count = sum(1 for _ in out.rglob("*.html"))
    print(f"{out}: {count} pages, {rules} rules in the gallery, {told}" + (", with warnings" if failed else ""))
    return EXIT_DIFFERS if failed else EXIT_OK


if __name__ == "__main__":
    app.run(main)
