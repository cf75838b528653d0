"""The same scatters and gathers with dims of open size: lowered as such, and proved at each size of the family.

What is proved is the lowered module after jaxlib's own shape refinement, against the module of static shape.
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Literal

from hlo_lower import mlir
from hlo_lower.gather import Taken
from hlo_lower.proving.bodies import BODIES
from hlo_lower.proving.case import Case, scatter_case
from hlo_lower.proving.forms import Form, forms
from hlo_lower.proving.gathers import gather_cases
from hlo_lower.proving.producers import runtime
from hlo_lower.registry import Rule
from hlo_lower.scatter.dynamic import Positions, WindowSizes
from hlo_lower.targets import Target

_TAKES_GATHERS = Target("no_f64", refused={"stablehlo.scatter": "lowered"}, refused_dtypes={"f64": "not there"})

POLICIES: tuple[Literal["xla", "spec"], ...] = ("xla", "spec")


def dynamic_scatter_cases(rule: Rule) -> Iterator[Case]:
    """Every case that a rule for scatters of dynamic shape may take."""
    bodies = [body for body in BODIES if body.combiner in rule.constraints["combiner"] and not body.is_wide]
    is_one = Positions.ONE in rule.constraints.get("positions", frozenset(Positions) - {Positions.ONE})
    opens_windows = WindowSizes.STATIC not in rule.constraints.get("window_sizes", ())
    turn = 0
    for form, index, oob in product(forms(), ("i8", "i32"), POLICIES):
        if (not form.positions) != is_one or form.vector != "last" or (len(form.operand) > 1 and index == "i32"):
            continue
        turn += 1
        body = bodies[turn % len(bodies)]
        case = scatter_case(form, next(runtime(form, index)), body, index, oob, {})
        opened = _opened(case.text, form, index, opens_windows=opens_windows)
        if opened != case.text:
            yield Case(case.text, case.name, oob, {}, indices_text=case.indices_text, dynamic_text=opened)


def _opened(text: str, form: Form, index: str, *, opens_windows: bool) -> str:
    """A module in which the extents of indexed dims, positions and, where asked for, windows are open.

    The types are told apart by their shapes: operands, updates, and indices, which are the only ones of their type.
    """
    operand, updates, indices = (tuple(map(str, shape)) for shape in (form.operand, form.updates, form.indices))
    opened_operand = tuple("?" if opens_windows or d in form.indexed else n for d, n in enumerate(operand))
    first = len(form.positions)
    opened_updates = tuple("?" if d < first or opens_windows else n for d, n in enumerate(updates))
    opened_indices = tuple("?" if d != form.vector_dim else n for d, n in enumerate(indices))
    signature, _, rest = text.partition(" {\n")
    head, _, results = signature.partition(") -> ")
    changed = [
        _replaced(part, opened_operand) if part.lstrip().startswith(("%o", "%p:", "func")) else part
        for part in head.split(", ")
    ]
    changed = [_replaced(part, opened_indices) if part.startswith("%j") else part for part in changed]
    changed = [_replaced(part, opened_updates) if part.startswith(("%up", "%vp")) else part for part in changed]
    results = _replaced(results, opened_operand)
    body, _, types = rest.rpartition("}) : (")
    kinds, _, end = types.partition(") -> ")
    told = kinds.split(", ")
    count = len(told) // 2
    told = [
        _replaced(kind, opened_operand if k < count else opened_indices if k == count else opened_updates)
        for k, kind in enumerate(told)
    ]
    return f"{', '.join(changed)}) -> {results} {{\n{body}}}) : ({', '.join(told)}) -> {_replaced(end, opened_operand)}"


def _replaced(text: str, shape: tuple[str, ...]) -> str:
    """Types in a text with another shape; those of rank 0 stay."""
    return re.sub(r"tensor<(?:\d+x)+(\w+)>", lambda m: f"tensor<{'x'.join((*shape, m[1]))}>", text)


def dynamic_gather_cases(rule: Rule) -> Iterator[Case]:
    """Every case that a rule for gathers of dynamic shape may take: the operand's dims are open."""
    is_left = Taken.WHOLE in rule.constraints["taken"]
    for case in gather_cases(rule):
        options = {"target": _TAKES_GATHERS} if is_left else case.options
        shape = case.text.partition("%o: tensor<")[2].partition(">")[0]
        opened = re.sub(r"\d+x", "?x", shape)
        if is_left == ("clamped" in case.name) and ", f32" in case.name:
            text = case.text.replace(f"%o: tensor<{shape}>", f"%o: tensor<{opened}>")
            text = text.replace(f": (tensor<{shape}>,", f": (tensor<{opened}>,")
            yield Case(case.text, case.name, case.oob, options, dynamic_text=text)


def at_static_sizes(text: str, static: str) -> str:
    """A module of dynamic shape at the sizes that another one has.

    Raises:
      RefinementError: it has no such sizes.
    """
    context = mlir.make_context()
    module, like = (mlir.parse_module(source, context) for source in (text, static))
    main = next(op.operation for op in like.body.operations if _is_main(op.operation))
    types = [str(argument.type) for argument in main.regions[0].blocks[0].arguments]
    return mlir.print_module(mlir.refine_shapes(module, types))


def _is_main(operation: mlir.RawOperation) -> bool:
    return operation.name == "func.func" and mlir.symbol_name(operation.attributes["sym_name"]) == "main"
