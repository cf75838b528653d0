"""The registry of subset rules: for each op its axes, and where an attribute depends on the piece, how one is built.

    @subset_rules.axes("stablehlo.transpose")
    def transpose(node: Node) -> Sequence[AxisLink] | Boundary: ...

    @subset_rules.piece("stablehlo.iota")
    def iota_piece(build: Builder, cut: Cut) -> Sequence[Value]: ...

One rule for an op. An op without a rule is a boundary: it is computed as a whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from hlo_lower.base.errors import RegistryError
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, Boundary, Cut, OpAxes

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

        def register(rule: AxesRule) -> AxesRule:
            for name in names:
                _add(self.by_axes, name, rule)
            return rule

        return register

    def piece(self, *names: str) -> Callable[[PieceRule], PieceRule]:
        """Register how pieces of ops are built.

        Raises:
          RegistryError: one of them has a rule.
        """

        def register(rule: PieceRule) -> PieceRule:
            for name in names:
                _add(self.by_piece, name, rule)
            return rule

        return register

    def of(self, node: Node) -> OpAxes | Boundary:
        """The axes of an op, or why it has none."""
        rule = self.by_axes.get(node.name)
        if rule is None:
            return Boundary(f"{node.name} has no subset rule")
        values = (*node.operands, *node.results)
        if not all(value.is_static for value in values):
            return Boundary(f"{node.name} has a dynamic shape")
        if captured_values(*node.blocks):
            return Boundary(f"a region of {node.name} takes values from around it")
        found = rule(node)
        return found if isinstance(found, Boundary) else OpAxes(tuple(found))

    def built(self, build: Builder, cut: Cut) -> tuple[Value, ...]:
        """A piece of an op: what its rule builds, or the same op on pieces."""
        rule = self.by_piece.get(cut.node.name)
        return tuple(rule(build, cut) if rule is not None else cut.same(build))

    def copy(self) -> "SubsetRules":
        """The same rules, to which others can be added."""
        return SubsetRules(dict(self.by_axes), dict(self.by_piece))


def _add(rules: dict[str, AnyRule], name: str, rule: AnyRule) -> None:
    if name in rules:
        raise RegistryError(f"{name} has a subset rule: {rules[name].__qualname__}, and {rule.__qualname__}")
    rules[name] = rule


subset_rules = SubsetRules()
"""The rules of `hlo_lower.ops.axes.all_rules`."""
