"""Verification: from the text of the two versions alone, so that a bug in the reader cannot hide one in the writer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, TypeAlias

from hlo_lower.errors import HloLowerError
from hlo_lower.mlir import RawModule, make_context, parse_module, print_module
from hlo_lower.shapes import SizesError, bind_module
from hlo_lower.verify.compare import Difference
from hlo_lower.verify.cutout import ModuleIndex
from hlo_lower.verify.gathers import verify_gathers
from hlo_lower.verify.instances import is_open, sizes_of_module
from hlo_lower.verify.interpreter import shared_interpreter
from hlo_lower.verify.module import Drives, drives_of, verify_module
from hlo_lower.verify.plain import verify_plain
from hlo_lower.verify.run import parse_or_refuse
from hlo_lower.verify.scatters import group_cutouts, verify_group
from hlo_lower.verify.verdict import ModuleVerdict, Regime, ScatterVerdict, SecondVersion, Verdict

__all__ = [
    "MEMORY_BUDGET",
    "ModuleVerdict",
    "Progress",
    "Regime",
    "ScatterVerdict",
    "Verdict",
    "verify",
    "verify_plain",
]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told of a stage ("scatters", "module"), how much of it is done, and how much there is."""

MEMORY_BUDGET = 2 << 30
"""Bytes of arguments and results up to which level "auto" runs the whole module."""


def _silent(stage: str, done: int, total: int) -> None:
    """No progress."""


def verify(
    before: str | bytes,
    after: str | bytes,
    *,
    convert: Callable[[str], str],
    rebuild: Callable[[str], str] | None = None,
    oob: Literal["xla", "spec"] = "xla",
    level: Literal["auto", "scatter", "full"] = "auto",
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    seed: int = 0,
    runs: int = 3,
    memory_budget: int = MEMORY_BUDGET,
    reassociated: bool = False,
    gathers: bool = False,
    progress: Progress | None = None,
) -> Verdict:
    """Verify a converted module.

    Args:
      before, after: the two versions, text or bytes.
      convert: lowers the text of a module; it is given each scatter alone.
      rebuild: lowers the whole of the first version as the second one was made, where that differs from `convert`
        (only some of the scatters); it is called where the second version is not run.
      oob: the out-of-bounds policy that it was converted under.
      level: "scatter" is level one alone; "full" runs the module whatever it needs; "auto" runs it within the budget.
      inputs: the module's arguments, by position or by name; by default seeded ones.
      seed, runs: of the seeded inputs.
      memory_budget: bytes for "auto".
      gathers: whether the converter may change gathers: then each that it changes is judged alone, too.
      reassociated: whether float sums may have been put into another order: they are compared within a bound then.
      progress: told how far it is.

    Raises:
      InputError: a version does not parse, or the inputs do not fit.
    """
    start = perf_counter()
    tell = progress or _silent
    first, second = parse_or_refuse(before, "before"), parse_or_refuse(after, "after")
    # From here on as text: what was read is what is run, whatever form it came in.
    before_text, after_text = (_text(source) for source in ((before, first), (after, second)))
    index = ModuleIndex(first)
    groups, refused = group_cutouts(index)
    verdicts = list(refused)
    interpreter = shared_interpreter()
    if groups:
        interpreter.start()
    for number, group in enumerate(groups):
        tell("scatters", number, len(groups))
        verdicts.append(verify_group(group, convert, oob, seed, interpreter, reassociated=reassociated))
    tell("scatters", len(groups), len(groups))
    module = None
    if level != "scatter":

        def run_module(one: str, other: str, own: ModuleIndex, driven: Drives) -> ModuleVerdict:
            return verify_module(
                one,
                other,
                own,
                driven,
                oob=oob,
                inputs=inputs,
                seed=seed,
                runs=runs,
                memory_budget=None if level == "full" else memory_budget,
                reassociated=reassociated,
                progress=tell,
            )

        sizes = sizes_of_module(first, inputs, "before")
        if sizes is None:
            module = run_module(before_text, after_text, index, drives_of(groups))
        else:
            module = _verify_instances(first, second, sizes, run_module)
    judged = verify_gathers(first, convert, seed=seed) if gathers else None
    second_version: SecondVersion = "run"
    is_run = module is not None and module.status != "not run"
    is_rebuilt = _is_rebuilt(rebuild or convert, before_text, after_text)
    if not is_run:
        second_version = "rebuilt" if is_rebuilt else "not examined"
    elif not is_rebuilt:
        second_version = "run, not rebuilt"
    if judged is not None and judged.status == "equal" and not is_rebuilt:
        judged = replace(judged, status="not examined")
    return Verdict(tuple(verdicts), module, perf_counter() - start, second_version, level == "full", gathers=judged)


def _verify_instances(
    first: RawModule,
    second: RawModule,
    sizes: Sequence[Mapping[str, int]],
    run_module: Callable[[str, str, ModuleIndex, Drives], ModuleVerdict],
) -> ModuleVerdict:
    """Run two versions with symbolic sizes, with each choice of them."""
    verdicts: list[ModuleVerdict] = []
    told: list[str] = []
    for chosen in sizes:
        told.append(", ".join(f"{name}={size}" for name, size in chosen.items()))
        try:
            bound = bind_module(first, chosen)
        except SizesError as error:
            return ModuleVerdict("not run", reason=f"at {told[-1]}: {error.what}")
        try:
            other = bind_module(second, chosen)
        except SizesError as error:
            what = f"at {told[-1]}, the second version: {error.what}"
            if is_open(second):
                difference = Difference(0, (), "a module of these sizes", "none", 0, what)
                return ModuleVerdict("differs", difference=difference)
            return ModuleVerdict("not run", reason=f"{what}; --bind gives the sizes that it was converted with")
        index = ModuleIndex(bound)
        groups, _ = group_cutouts(index)
        verdicts.append(run_module(print_module(bound), print_module(other), index, drives_of(groups)))
        if verdicts[-1].status != "equal":
            break
    if not verdicts:
        return ModuleVerdict("not run", reason="no sizes were found that fit it; --bind gives them")
    notes = dict.fromkeys(note for verdict in verdicts for note in verdict.not_exercised)
    last = verdicts[-1]
    return replace(
        last,
        runs=sum(verdict.runs for verdict in verdicts),
        reason=f"at {told[-1]}: {last.reason}" if last.reason else "",
        not_exercised=tuple(notes),
        how=f"{last.how}, at {' and at '.join(told)}",
    )


def _is_rebuilt(rebuild: Callable[[str], str], before: str, after: str) -> bool:
    """Whether the second version is what the converter makes of the first one, locations aside."""
    try:
        texts = [print_module(parse_module(t, make_context())) for t in (rebuild(before), after)]
    except HloLowerError:
        return False
    return texts[0] == texts[1]


def _text(source: tuple[str | bytes, Any]) -> str:
    given, module = source
    return given if isinstance(given, str) else print_module(module, locations=True)
