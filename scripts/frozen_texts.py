"""Hash what the converter writes, and say what a change of the code changed of it.

    python scripts/frozen_texts.py --write texts.json                 # before a change
    python scripts/frozen_texts.py --compare texts.json               # after it
    python scripts/frozen_texts.py --compare texts.json --only golden,tiled --keep changed/

Four kinds of texts: `lowered` (each module of --corpus for each built-in target), `golden` (each file of tests/golden
with its options, for each target), `raised` (each module of --corpus with composites for named ops) and `tiled` (the
workloads of benchmark/memory_workloads.py at their small sizes, to a quarter of what they need). A refusal counts by
its message without the places of files. --keep writes the texts that changed into a folder.

Exit code 1: a text changed, is new, or is gone.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from absl import app, flags
from benchmark.memory_workloads import WORKLOADS, Workload

import hlo_lower as hl
from hlo_lower.base.errors import HloLowerError
from hlo_lower.base.whole_files import write_whole

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from rule_examples import GOLDEN, SCATTERS, Example

_CORPUS = flags.DEFINE_string("corpus", "../shared/corpus/modules", "A folder of modules.")
_ONLY = flags.DEFINE_list("only", [], "Kinds of texts; by default all.")
_WRITE = flags.DEFINE_string("write", None, "Write the hashes to this file.")
_COMPARE = flags.DEFINE_string("compare", None, "Compare with the hashes in this file.")
_KEEP = flags.DEFINE_string("keep", None, "Write the texts that changed into this folder.")
_JOBS = flags.DEFINE_integer("jobs", 2, "Processes.", lower_bound=1)

TARGETS = "stablehlo", "iree", "litert", "coreml", "linalg", "xla"
PLACE = re.compile(r"[^\s()]*/[^\s()]*?\.(?:mlir|py)(?::\d+)*")
"""A file in a message, with its line."""

Writes = Callable[[], str]


def lowered(path: Path, target: str, options: dict[str, Any]) -> str:
    """A module lowered for a target."""
    return hl.lower(path, target=target, **options).text


def raised(path: Path) -> str:
    """A module with composites for its named ops."""
    return hl.raise_named(path).text


def tiled(workload: Workload) -> str:
    """A workload at its small size, tiled to a quarter of what it needs."""
    text = workload.text(workload.small)
    return hl.tile(text, max_temp=max(1, (hl.tile(text, max_temp=1 << 60).before or 4) // 4)).text


def works(corpus: Path) -> Iterator[tuple[str, Writes]]:
    """What there is to write, by name: its kind, then what it is made of."""
    modules = sorted(corpus.rglob("*.mlir"))
    for path in modules:
        name = path.relative_to(corpus).with_suffix("")
        yield from ((f"lowered {name} {target}", partial(lowered, path, target, {})) for target in TARGETS)
        yield f"raised {name}", partial(raised, path)
    for example in (*SCATTERS, Example(GOLDEN / "refused_quantized.mlir")):
        path, options = example.path, example.options
        del options["target"]
        targets = (example.told["target"],) if "target" in example.told else TARGETS
        yield from ((f"golden {path.stem} {target}", partial(lowered, path, target, options)) for target in targets)
    for workload in WORKLOADS.values():
        yield f"tiled {workload.name}", partial(tiled, workload)


def written(work: Writes) -> str:
    """A text, or what was said in its place."""
    try:
        return work()
    except HloLowerError as error:
        return f"{type(error).__name__}: {PLACE.sub('FILE', str(error))}"


def hashed(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What differs between two tables of hashes, a line each."""
    found = [f"changed: {name}" for name in after if name in before and before[name] != after[name]]
    found += [f"new: {name}" for name in after if name not in before]
    return found + [f"gone: {name}" for name in before if name not in after]


def main(_: list[str]) -> None:
    """Write and compare."""
    if not (_WRITE.value or _COMPARE.value):
        raise app.UsageError("--write FILE or --compare FILE")
    known: dict[str, str] = json.loads(Path(_COMPARE.value).read_text()) if _COMPARE.value else {}
    chosen = [(n, w) for n, w in works(Path(_CORPUS.value)) if not _ONLY.value or n.split()[0] in _ONLY.value]
    found: dict[str, str] = {}
    with ProcessPoolExecutor(_JOBS.value) as pool:
        texts = pool.map(written, [work for _, work in chosen], chunksize=8)
        for (name, _), text in zip(chosen, texts, strict=True):
            found[name] = hashed(text)
            if _KEEP.value and known.get(name) != found[name]:
                Path(_KEEP.value).mkdir(parents=True, exist_ok=True)
                file = Path(_KEEP.value) / f"{name.replace('/', '.').replace(' ', '-')}.mlir"
                write_whole(str(file), text.encode())
    if _WRITE.value:
        write_whole(_WRITE.value, (json.dumps(found, indent=0) + "\n").encode())
    if not _COMPARE.value:
        print(f"{len(found)} texts")
        return
    compared = {name: text for name, text in known.items() if not _ONLY.value or name.split()[0] in _ONLY.value}
    told = changes(compared, found)
    print("\n".join([*told, f"{len(found)} texts, {len(told)} of them not as before"]))
    sys.exit(bool(told))


if __name__ == "__main__":
    app.run(main)
