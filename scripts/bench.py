"""Measure hlo_lower: the classes of scatter of language models, native, lowered and as a loop, under XLA, IREE and
LiteRT; conversion time and its growth; and the time and memory of a whole decode step.

    python scripts/bench.py --json bench.json --png bench.png     # everything that can run here, about half an hour
    python scripts/bench.py --only xla --only iree --classes decode,paged
    python scripts/bench.py --only xla --classes bincount --prefer one_hot_dot,sorted_segments   # rule beside rule
    python scripts/bench.py --only iree --only litert --prefer every       # every right form, and chosen / best
    python scripts/bench.py --only convert --layers 80
    python scripts/bench.py --scale small                         # tiny sizes: whether it works, not how fast it is

Candidates of one table run interleaved in one process, their order turning from round to round; a figure is the
median over the rounds, its spread the lowest and the highest round. Donated buffers go back in as the next input. IREE
needs the extra `iree`, LiteRT the extra `litert`, the chart the extra `bench`; what is not there prints `not measured`.

Exit code 1: a version gave another result than native scatter under XLA, and was not timed. What IREE or LiteRT
refuses, or gets wrong, is an entry of its table.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
from absl import app, flags
from benchmark import conversion, decoder, in_children, on_xla, table
from benchmark.classes import Case, suite
from benchmark.on_iree import ON_IREE
from benchmark.on_litert import ON_LITERT
from benchmark.outcome import Outcome
from benchmark.plot import write_plot
from benchmark.sizes import SCALES, Sizes
from benchmark.timing import CLOCK, CLOCKS, Timing, figures_of
from benchmark.versions import Prepared

import hlo_lower as hl

IN_CHILDREN = {"iree": ON_IREE, "litert": ON_LITERT}
TABLES = ("convert", "growth", "step", "memory", "xla", *IN_CHILDREN)
CLASSES = tuple(case.name for case in suite(SCALES["small"]))

_ONLY = flags.DEFINE_multi_enum("only", None, TABLES, "Tables to measure; repeat the flag for more. All by default.")
_SCALE = flags.DEFINE_enum("scale", "full", list(SCALES), "Sizes; small ones show that the command works.")
_CLASSES = flags.DEFINE_list(
    "classes", None, f"Classes of the xla, iree and litert tables, of {', '.join(CLASSES)}. All."
)
_PREFER = flags.DEFINE_list(
    "prefer", [], "Rules; each is one more candidate, taken wherever it is right: last_writer. every: all."
)
_TARGET = flags.DEFINE_string("target", None, "Target of the lowered versions: by default the one named as the table.")
_LAYERS = flags.DEFINE_integer("layers", None, "Decoder layers that are converted and stepped: 80.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds of each measurement.", lower_bound=7)
_CLOCK = flags.DEFINE_enum("clock", "wall", list(CLOCKS), "What is timed; processor: on a machine that others use.")
_BUDGET = flags.DEFINE_float("budget", 10, "Seconds that all rounds of one candidate of a class may take.", 0.01)
_LIMIT = flags.DEFINE_float(
    "limit", 180, "Seconds that IREE or LiteRT may take to compile a version or to call it once.", 1
)
_STEPS = flags.DEFINE_integer("steps", 20, "Steps timed together in a round of the step table.", lower_bound=1)
_CACHE = flags.DEFINE_list("cache", None, "Heads, length and head width of the step table's cache: 32,4096,128.")
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")
_PNG = flags.DEFINE_string("png", None, "Draw the ratios of the classes into this file.")


def measure_convert(sizes: Sizes) -> list[dict[str, Any]]:
    """Conversion without verification, raising, and listing ops for it, against jaxlib's parse and print."""
    text = conversion.decoder_text(_LAYERS.value or sizes.layers)
    row = conversion.conversion(text, _ROUNDS.value, sizes.sample)
    rows = [(row.what, row.jaxlib, row.hlo_lower)]
    show(table.comparison_lines("conversion without verification", "jaxlib parse + print", "hl.lower", rows))
    how = text, _ROUNDS.value, sizes.sample
    raised = [(f"raise {row.kilobytes:,.0f} kB", *conversion.raising(*how))]
    show(table.comparison_lines("named ops as composites", "jaxlib parse + print", "hl.raise_named", raised))
    listed = [(f"list {row.kilobytes:,.0f} kB", *conversion.listing(*how))]
    show(table.comparison_lines("its ops listed, to find alike layers", "jaxlib parse + print", "list", listed))
    return comparison_figures([*rows, *raised, *listed])


def measure_growth(sizes: Sizes) -> list[dict[str, Any]]:
    """Conversion of a synthetic module at three lengths."""
    rows = conversion.growth(sizes, 3)
    show(conversion.growth_lines(rows))
    return [
        {
            "operations": row.operations,
            "scatters": row.scatters,
            "kilobytes": row.kilobytes,
            "jaxlib": figures_of(row.jaxlib),
            "hlo_lower": figures_of(row.hlo_lower),
            "microseconds_per_operation": row.microseconds_per_operation,
        }
        for row in rows
    ]


def measure_step(sizes: Sizes) -> list[dict[str, Any]]:
    """Donated steps, native beside lowered."""
    rounds = decoder.Rounds(_ROUNDS.value, _STEPS.value, sizes.sample)
    steps = decoder.step_table(cache_of(sizes), _LAYERS.value or sizes.layers, rounds)
    rows = [(step.what, step.native, step.lowered) for step in steps]
    show(table.comparison_lines("donated step under jax.jit", "native scatter", "lowered", rows))
    return comparison_figures(rows)


def measure_memory(sizes: Sizes) -> list[dict[str, Any]]:
    """Memory of compiled steps."""
    rows = decoder.memory_table(cache_of(sizes))
    show(decoder.memory_lines(rows))
    return [asdict(row) for row in rows]


def measure_xla(cases: Sequence[Case], sizes: Sizes) -> Iterator[Outcome]:
    """The classes under XLA, on the CPU and on a GPU if there is one."""
    devices = on_xla.devices()
    for device in devices:
        show(table.class_title(f"XLA {device.platform} ({device.device_kind}, {os.cpu_count()} cores)"))
        for case in cases:
            outcome = on_xla.measure(
                Prepared(case, preferred(), _TARGET.value or "xla"),
                device,
                rounds=_ROUNDS.value,
                budget=_BUDGET.value,
                sample=sizes.sample,
            )
            show(table.class_lines(outcome))
            yield outcome
    if len(devices) == 1:
        show([f"classes on XLA gpu: {table.NOT_MEASURED}: this JAX has no GPU"])


def measure_in_children(name: str, cases: Sequence[Case], sizes: Sizes) -> Iterator[Outcome]:
    """The classes on a consumer that runs in child processes, if it is installed."""
    on = IN_CHILDREN[name]
    if not on.installed():
        show([f"classes on {on.title}: {table.NOT_MEASURED}: the extra `{on.consumer.extra}` is not installed"])
        return
    show(table.class_title(f"{on.title}, version {on.installed()}"))
    for case in cases:
        outcome = in_children.measure(
            Prepared(case, preferred(), _TARGET.value or name),
            on,
            rounds=_ROUNDS.value,
            budget=_BUDGET.value,
            sample=sizes.sample,
            limit=_LIMIT.value,
        )
        show(table.class_lines(outcome))
        yield outcome


def comparison_figures(rows: Sequence[tuple[str, Timing, Timing]]) -> list[dict[str, Any]]:
    """A table of comparisons for a JSON file."""
    return [
        {
            "what": what,
            "baseline": figures_of(baseline),
            "candidate": figures_of(candidate),
            "ratio": candidate.median / baseline.median,
        }
        for what, baseline, candidate in rows
    ]


def cache_of(sizes: Sizes) -> tuple[int, int, int]:
    """Heads, length and width of the step table's cache."""
    if _CACHE.value is None:
        return sizes.heads, sizes.length, sizes.width
    try:
        heads, length, width = (int(size) for size in _CACHE.value)
    except ValueError:
        raise app.UsageError(f"--cache {','.join(_CACHE.value)}: three numbers, such as 32,4096,128") from None
    return heads, length, width


def preferred() -> list[str]:
    """The rules that are candidates beside what is chosen."""
    return [rule.name for rule in hl.rules()] if _PREFER.value == ["every"] else _PREFER.value


def cases_of(sizes: Sizes) -> list[Case]:
    """The classes that are asked for."""
    wanted = CLASSES if _CLASSES.value is None else _CLASSES.value
    if unknown := [name for name in wanted if name not in CLASSES]:
        raise app.UsageError(f"--classes: no class {unknown[0]}; there are {', '.join(CLASSES)}")
    return [case for case in suite(sizes) if case.name in wanted]


def machine() -> dict[str, Any]:
    """What the figures belong to."""
    return {
        "hlo_lower": hl.__version__,
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        **{name: on.installed() or table.NOT_MEASURED for name, on in IN_CHILDREN.items()},
        "python": platform.python_version(),
        "devices": [f"{d.platform} {d.device_kind}" for d in on_xla.devices()],
        "machine": platform.machine(),
        "cpu_count": os.cpu_count(),
        "load_before": os.getloadavg()[0],
    }


def show(lines: Sequence[str] | Iterator[str]) -> None:
    """Print lines as soon as they are there: a run takes a while."""
    print("\n".join(lines), flush=True)


def check_outputs() -> None:
    """Find out before an hour of measuring that its results could not be written."""
    for flag, path in (("--json", _JSON.value), ("--png", _PNG.value)):
        if path and not os.access(Path(path).absolute().parent, os.W_OK):
            raise app.UsageError(f"{flag} {path}: its folder does not exist or cannot be written to")
    if _PNG.value and find_spec("matplotlib") is None:
        raise app.UsageError("--png needs matplotlib: install the extra `bench`")


def caption(figures: dict[str, Any]) -> str:
    """What stands below the chart."""
    on = figures["machine"]
    return (
        f"medians of up to {figures['rounds']} interleaved rounds, {figures['scale']} sizes, jax {on['jax']}, IREE"
        f" {on['iree']}, {on['cpu_count']} cores, load {on['load_before']:.1f}"
    )


def main(argv: Sequence[str]) -> int:
    """Measure the tables asked for, print them, and write them as JSON and as a chart if asked to."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    os.environ[CLOCK] = _CLOCK.value
    on_xla.dispatch_in_line()
    sizes = SCALES[_SCALE.value]
    tables, cases = _ONLY.value or TABLES, cases_of(sizes)
    cache_of(sizes)
    if unknown := set(preferred()) - {rule.name for rule in hl.rules()}:
        raise app.UsageError(f"--prefer: no rule {min(unknown)}; `hlo-lower rules` lists them")
    check_outputs()
    rounds, start = _ROUNDS.value, time.perf_counter()
    figures: dict[str, Any] = {
        "machine": machine(),
        "scale": _SCALE.value,
        "sizes": asdict(sizes),
        "rounds": rounds,
        "budget": _BUDGET.value,
        "clock": _CLOCK.value,
    }
    described = ", ".join(figures["machine"]["devices"])
    how = f"medians of {rounds} interleaved rounds (lowest to highest), {_CLOCK.value} time"
    show([f"jax {jax.__version__}, {described}, {how}"])
    small: dict[str, Callable[[Sizes], list[dict[str, Any]]]] = {
        "convert": measure_convert,
        "growth": measure_growth,
        "step": measure_step,
        "memory": measure_memory,
    }
    figures |= {name: measure(sizes) for name, measure in small.items() if name in tables}
    outcomes: list[Outcome] = []
    for name in ("xla", *IN_CHILDREN):
        if name in tables:
            found = list(measure_xla(cases, sizes) if name == "xla" else measure_in_children(name, cases, sizes))
            figures[name] = [outcome.figures() for outcome in found] or table.NOT_MEASURED
            outcomes += found
    if outcomes:
        show(table.legend(cases))
    figures |= {"seconds": time.perf_counter() - start, "load_after": os.getloadavg()[0]}
    if _JSON.value:
        Path(_JSON.value).write_text(json.dumps(figures, indent=2) + "\n")
    if _PNG.value and outcomes:
        write_plot(Path(_PNG.value), outcomes, caption(figures))
    return int(any(e.wrong for o in outcomes if o.consumer.startswith("XLA") for e in o.entries))


if __name__ == "__main__":
    app.run(main)
