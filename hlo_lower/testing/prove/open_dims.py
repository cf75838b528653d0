"""The same scatters and gathers with dims of open size: lowered as such, and proved at each size of the family.

What is proved is the lowered module after jaxlib's own shape refinement, against the module of static shape.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Literal

from hlo_lower.base.registry import Rule
from hlo_lower.facts.gather.facts import TakenGather
from hlo_lower.facts.scatter.dynamic import Positions, WindowSizes
from hlo_lower.ir import mlir
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.drawn_types import OPEN
from hlo_lower.testing.prove.family_forms import BODIES, forms, is_vector_last
from hlo_lower.testing.prove.gathers import gather_cases
from hlo_lower.testing.prove.producers import runtime
from hlo_lower.testing.prove.proof_case import ProofCase, scatter_case

_TAKES_GATHERS = Target("no_f64", refused={SCATTER: "lowered"}, refused_dtypes={"f64": "not there"})

POLICIES: tuple[Literal["xla", "spec"], ...] = ("xla", "spec")


def dynamic_scatter_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for scatters of dynamic shape may take."""
    bodies = [body for body in BODIES if body.combiner in rule.constraints["combiner"] and not body.is_wide]
    is_one = Positions.ONE in rule.constraints.get("positions", frozenset(Positions) - {Positions.ONE})
    opens_windows = WindowSizes.STATIC not in rule.constraints.get("window_sizes", ())
    turn = 0
    for form, index, oob in product(forms(), ("i8", "i32"), POLICIES):
        if (not form.positions) != is_one or not is_vector_last(form) or (len(form.operand) > 1 and index == "i32"):
            continue
        turn += 1
        body = bodies[turn % len(bodies)]
        opened = _opened(form, opens_windows=opens_windows)
        case, lowered = (scatter_case(next(runtime(f, index)), body, index, oob, {}) for f in (form, opened))
        if opened != form:
            yield replace(case, dynamic_text=lowered.text)


def _opened(form: CaseForm, *, opens_windows: bool) -> CaseForm:
    """The form with open extents: all of them, or those of indexed dims that the window has.

    The latter leave what a position reads and writes of known size.
    """
    if opens_windows:
        operand, positions = (OPEN,) * len(form.operand), (OPEN,) * len(form.positions)
        window = tuple(OPEN if d in form.kept else w for d, w in enumerate(form.window))
        return replace(form, operand=operand, window=window, positions=positions)
    opened = {column.dim for column in form.columns} & set(form.kept)
    return replace(form, operand=tuple(OPEN if d in opened else n for d, n in enumerate(form.operand)))


def dynamic_gather_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for gathers of dynamic shape may take: the operand's dims are open."""
    is_left = TakenGather.WHOLE in rule.constraints["taken"]
    for case in gather_cases(rule):
        options = {"target": _TAKES_GATHERS} if is_left else case.options
        shape = case.text.partition("%o: tensor<")[2].partition(">")[0]
        opened = re.sub(r"\d+x", "?x", shape)
        if is_left == ("clamped" in case.name) and ", f32" in case.name:
            text = case.text.replace(f"%o: tensor<{shape}>", f"%o: tensor<{opened}>")
            text = text.replace(f": (tensor<{shape}>,", f": (tensor<{opened}>,")
            yield ProofCase(case.text, case.name, case.oob, options, dynamic_text=text)


def at_static_sizes(text: str, static: str) -> str:
    """A module of dynamic shape at the sizes that another one has.

    Raises:
      RefinementError: it has no such sizes.
    """
    context = mlir.shared_context(len(text))
    module, like = (mlir.parse_module(source, context) for source in (text, static))
    main = next(op.operation for op in like.body.operations if _is_main(op.operation))
    types = [str(argument.type) for argument in main.regions[0].blocks[0].arguments]
    return mlir.print_module(mlir.refine_shapes(module, types))


def _is_main(operation: mlir.RawOperation) -> bool:
    return operation.name == "func.func" and mlir.symbol_name(operation.attributes["sym_name"]) == "main"
