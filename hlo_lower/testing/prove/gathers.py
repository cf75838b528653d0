"""The family of gathers: the same small extents, for targets that take fewer and fewer of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from hlo_lower.base.registry import Rule
from hlo_lower.facts.gather.facts import GatherStrategy, TakenGather
from hlo_lower.ops.names import CONCATENATE, DYNAMIC_SLICE, GATHER, REDUCE, SCATTER
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.prove.proof_case import ProofCase, op_case

_REFUSED = {SCATTER: "lowered", GATHER: "not taken"}

_CLAMPS_NOT = Target("clamps_not", refused={SCATTER: "lowered"}, gather="in_bounds")

TARGETS: Mapping[GatherStrategy, Target] = {
    GatherStrategy.EMPTY: Target("no_gather", refused=_REFUSED),
    GatherStrategy.FEW: Target("no_sums", refused={**_REFUSED, REDUCE: "not taken"}),
    GatherStrategy.SHORT_AXIS: Target("no_slices", refused={**_REFUSED, DYNAMIC_SLICE: "not taken"}),
    GatherStrategy.MANY: Target(
        "no_unroll",
        refused={**_REFUSED, CONCATENATE: "not taken", REDUCE: "not taken"},
    ),
}
"""For each form of a gather a target that leaves it as the only one."""


@dataclass(frozen=True)
class GatherShape:
    """The shapes and dimension numbers of a gather; positions stand first, the index vector last.

    Attributes:
      operand: its shape.
      window: the slice sizes.
      collapsed: dims of extent 1 that the result lacks.
      indexed: the operand dims of the components.
      positions: the shape of the indices without the index vector.
      is_batched: whether dim 0 of the operand is a batching dim.
    """

    operand: tuple[int, ...]
    window: tuple[int, ...]
    collapsed: tuple[int, ...]
    indexed: tuple[int, ...]
    positions: tuple[int, ...]
    is_batched: bool = False

    @property
    def offsets(self) -> tuple[int, ...]:
        """The extents of the window that the result has."""
        gone = {*self.collapsed, *((0,) if self.is_batched else ())}
        return tuple(w for d, w in enumerate(self.window) if d not in gone)

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices' shape."""
        return (*self.positions, len(self.indexed))

    @property
    def numbers(self) -> str:
        """The dimension numbers."""
        batching, first = [0] if self.is_batched else [], len(self.positions)
        fields = {
            "offset_dims": [first + k for k in range(len(self.offsets))],
            "collapsed_slice_dims": list(self.collapsed),
            "operand_batching_dims": batching,
            "start_indices_batching_dims": batching,
            "start_index_map": list(self.indexed),
            "index_vector_dim": first,
        }
        return f"#stablehlo.gather<{', '.join(f'{name} = {value}' for name, value in fields.items())}>"


def shapes() -> Iterator[GatherShape]:
    """Every gather of the family."""
    counts = ((), (0,), (1,), (2,), (3,))
    for size, count in product((1, 2, 3), counts):
        yield GatherShape((size,), (1,), (0,), (0,), count)
        yield from (GatherShape((size,), (w,), (), (0,), count) for w in range(size + 1))
    for (rows, columns), count in product(((2, 3), (3, 2), (3, 3), (1, 2)), counts):
        yield GatherShape((rows, columns), (1, columns), (0,), (0,), count)
        yield GatherShape((rows, columns), (1, 1), (0, 1), (0, 1), count)
        yield GatherShape((rows, columns), (1, 1), (0, 1), (1, 0), count)
        yield GatherShape((rows, columns), (1, 2), (), (0, 1), count)
        yield GatherShape((rows, columns), (1, columns - 1), (0,), (0,), count)
    for batches, size in product((1, 2, 3), (1, 2, 3)):
        yield GatherShape((batches, size), (1, 1), (1,), (1,), (batches,), is_batched=True)


def gather_cases(rule: Rule) -> Iterator[ProofCase]:
    """Every case that a rule for gathers may take."""
    [*forms] = rule.constraints.get("strategy", [GatherStrategy.MANY])
    is_not_taken = TakenGather.NOT in rule.constraints["taken"]
    target = TARGETS[GatherStrategy(forms[0])] if is_not_taken else _CLAMPS_NOT
    if TakenGather.ORDERED in rule.constraints["taken"]:
        target = Target("npu", refused_forms=[RefusedForm.ORDERED_WINDOWS.value])
    is_clamped = TakenGather.WHOLE in rule.constraints["taken"]
    for shape, index, element in product(shapes(), ("i8", "i32", "ui8"), ("f32", "i8", "i1")):
        yield gather_case(shape, index, element, target, is_clamped=is_clamped)


def gather_case(shape: GatherShape, index: str, element: str, target: Target, *, is_clamped: bool) -> ProofCase:
    """The module of a gather.

    Args:
      shape: its shapes.
      index, element: types of the indices and of the operand.
      target: who is to read it.
      is_clamped: whether the module brings the starts into bounds.
    """
    operand, starts = typed(shape.operand, element), typed(shape.indices, index)
    result = typed((*shape.positions, *shape.offsets), element)
    limits = [shape.operand[d] - shape.window[d] for d in shape.indexed]
    low, high = (typed((len(limits),), index), typed((len(limits),), index))
    lines, taken = "", "%i"
    if is_clamped:
        dim = len(shape.positions)
        lines = (
            f"%zero = stablehlo.constant dense<0> : {low}\n%last = stablehlo.constant dense<{limits}> : {high}\n"
            f"%low = stablehlo.broadcast_in_dim %zero, dims = [{dim}] : ({low}) -> {starts}\n"
            f"%high = stablehlo.broadcast_in_dim %last, dims = [{dim}] : ({high}) -> {starts}\n"
            f"%j = stablehlo.clamp %low, %i, %high : {starts}\n"
        )
        taken = "%j"
    sizes = ", ".join(map(str, shape.window))
    lines += (
        f'%r = "stablehlo.gather"(%o, {taken}) <{{dimension_numbers = {shape.numbers}, '
        f"slice_sizes = array<i64: {sizes}>}}> : ({operand}, {starts}) -> {result}"
    )
    told = f"{'x'.join(map(str, shape.operand))}: windows {list(shape.window)} at dims {list(shape.indexed)}"
    name = f"{told}, positions {list(shape.positions)}, {index} {'clamped' if is_clamped else 'runtime'}, {element}"
    return op_case(name, f"%o: {operand}, %i: {starts}", result, lines, target)
