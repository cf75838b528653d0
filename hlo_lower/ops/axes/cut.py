"""An op's axes, by its rule, and a cut along one: which piece is built, on which pieces of its operands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from hlo_lower.base.errors import RegistryError
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.parts import INDEX, Bindings, DimSubset, Offset, StridedRange, TensorSubset, is_run

THREADED = "threaded"
"""The `combine` of an op whose first operand goes in where its result comes out, piece after piece, in order."""


@dataclass(frozen=True)
class AxisLink:
    """One axis of an op: the dims of operands and results that are cut at the same places.

    Dims of different sizes are cut into as many steps: 2048 tokens and 4 sequences of 512 into at most 4.

    Attributes:
      operands: the dim of each operand that is cut; None: each piece takes the whole operand.
      results: the dim of each result that is cut; None: each piece gives something of the whole shape.
      combine: how what the pieces give becomes the result. "": the pieces are parts of it; an elementwise op ("add"):
        combined by it, from what it leaves alone or from the op's initial value; `THREADED`.
    """

    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]
    combine: str = ""

    def __post_init__(self) -> None:
        is_cut = {dim is not None for dim in self.results}
        assert is_cut == {not self.combine}, "results are cut, all of them, or combined"


@dataclass(frozen=True)
class OpAxes:
    """The axes of an op. Where a dim is in no axis, a part along it is computed from all of the op."""

    axes: tuple[AxisLink, ...]

    def of_result(self, dim: int) -> AxisLink | None:
        """The axis along which dim of the results is cut."""
        return next((axis for axis in self.axes if axis.results and axis.results[0] == dim), None)

    def of_operand(self, number: int, dim: int) -> AxisLink | None:
        """The axis along which dim of an operand is cut."""
        return next((axis for axis in self.axes if axis.operands[number] == dim), None)


@dataclass(frozen=True)
class Boundary:
    """Why an op is not computed piece by piece."""

    reason: str


@dataclass(frozen=True)
class Steps:
    """Some of the steps into which dims are cut: those from an iterator's value on, `size` of `count`.

    Attributes:
      iterator: its name.
      count: all steps.
      size: those of the piece.
      first, grain: where the iterator counts from, and how many steps it counts by.
    """

    iterator: str
    count: int
    size: int
    first: int = 0
    grain: int = 1

    def run(self, length: int) -> StridedRange:
        """The positions of a dim of this length, which `count` divides."""
        unit, left = divmod(length, self.count)
        assert not left, (length, self.count)
        return StridedRange(Offset(self.first * unit, self.iterator, self.grain * unit), self.size * unit)

    def part(self, shape: Sequence[int], dim: int | None) -> TensorSubset:
        """The part of a tensor that is cut along a dim; all of it for None."""
        whole = TensorSubset.full(shape)
        return whole if dim is None else whole.along(dim, self.run(shape[dim]))


@dataclass(frozen=True)
class Cut:
    """What a piece of an op is built from.

    Attributes:
      node: the op.
      axis: the axis along which it is cut.
      steps: the piece.
      operands: the parts of the operands that the axis asks for, materialized.
      bound: what the iterator is.
      taken: the subset of the dim of the results that the piece has, where it is not that of the steps.
    """

    node: Node
    axis: AxisLink
    steps: Steps
    operands: tuple[Value, ...]
    bound: Bindings
    taken: DimSubset | None = None

    def part(self, number: int = 0) -> TensorSubset:
        """The part of a result."""
        shape, dim = self.node.result(number).static_shape, self.axis.results[number]
        if dim is None or self.taken is None:
            return self.steps.part(shape, dim)
        return TensorSubset.full(shape).along(dim, self.taken)

    def along(self, number: int = 0) -> DimSubset:
        """The part of the dim of a result that is cut."""
        dim = self.axis.results[number]
        assert dim is not None
        return self.part(number).axes[dim]

    def types(self) -> list[mlir.RawType]:
        """The types of the pieces of the results."""
        parts = [self.part(number).sizes for number in range(len(self.node.results))]
        elements = [mlir.tensor_element(value.raw.type) for value in self.node.results]
        return [mlir.tensor_type(sizes, element) for sizes, element in zip(parts, elements, strict=True)]

    def start(self, build: Builder, element: str, number: int = 0) -> Value:
        """Where the piece of a result begins along its dim, a run, as a scalar of an element type."""
        run = self.along(number)
        assert is_run(run), run
        value = self.bound.start(build, run.start)
        return value if element == INDEX else build.convert(value, element)

    def same(self, build: Builder, attributes: Mapping[str, mlir.RawAttribute] | None = None) -> tuple[Value, ...]:
        """The same op on the pieces, regions included, with some attributes in the place of its own."""
        return build.copy_on(self.node, self.operands, self.types(), attributes or {}).results


# --- the registry: for each op its axes, and where an attribute depends on the piece, how one is built ---
#
#     @subset_rules.axes("stablehlo.transpose")
#     def transpose(node: Node) -> Sequence[AxisLink] | Boundary: ...
#
#     @subset_rules.piece("stablehlo.iota")
#     def iota_piece(build: Builder, cut: Cut) -> Sequence[Value]: ...
#
# One rule for an op. An op without a rule is a boundary: it is computed as a whole.


AxesRule: TypeAlias = Callable[[Node], Sequence[AxisLink] | Boundary]
PieceRule: TypeAlias = Callable[[Builder, Cut], Sequence[Value]]

AnyRule = TypeVar("AnyRule", bound=Callable[..., object])


@dataclass
class SubsetRules:
    """Subset rules by the name of an op.

    Attributes:
      by_axes: the axes of an op.
      by_piece: how a piece is built, where it is not the same op on pieces.
    """

    by_axes: dict[str, AxesRule] = field(default_factory=dict[str, AxesRule])
    by_piece: dict[str, PieceRule] = field(default_factory=dict[str, PieceRule])

    def axes(self, *names: str) -> Callable[[AxesRule], AxesRule]:
        """Register the axes of ops.

        Raises:
          RegistryError: one of them has a rule.
        """
        return lambda rule: _add_rule(self.by_axes, names, rule)

    def piece(self, *names: str) -> Callable[[PieceRule], PieceRule]:
        """Register how pieces of ops are built.

        Raises:
          RegistryError: one of them has a rule.
        """
        return lambda rule: _add_rule(self.by_piece, names, rule)

    def of(self, node: Node) -> OpAxes | Boundary:
        """The axes of an op, or why it has none."""
        rule = self.by_axes.get(node.name)
        if rule is None:
            return Boundary(f"{node.name} has no subset rule")
        values = (*node.operands, *node.results)
        if not all(value.is_static for value in values):
            return Boundary(f"{node.name} has a dynamic shape")
        if captured_values(*node.blocks):
            return Boundary(f"a region of {node.name} uses values from outside")
        found = rule(node)
        return found if isinstance(found, Boundary) else OpAxes(tuple(found))

    def build_piece(self, build: Builder, cut: Cut) -> tuple[Value, ...]:
        """Build a piece of an op by its rule, or as the same op on pieces."""
        rule = self.by_piece.get(cut.node.name)
        return tuple(rule(build, cut) if rule is not None else cut.same(build))

    def copy(self) -> "SubsetRules":
        """The same rules, to which others can be added."""
        return SubsetRules(dict(self.by_axes), dict(self.by_piece))


def _add_rule(rules: dict[str, AnyRule], names: Sequence[str], rule: AnyRule) -> AnyRule:
    for name in names:
        if name in rules:
            raise RegistryError(f"{name} has a subset rule: {rules[name].__qualname__}, and {rule.__qualname__}")
        rules[name] = rule
    return rule


subset_rules = SubsetRules()
"""The rules of `hlo_lower.ops.axes.op_axes`."""
