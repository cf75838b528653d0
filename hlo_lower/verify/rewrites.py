"""Judge rewrites one by one, while they are made: the value that an op gave, and the one that takes its place.

    %t = stablehlo.transpose %w, dims = [1, 0]             %y = stablehlo.dot_general %x, %w,
    %y = stablehlo.dot_general %x, %t,               ->        contracting_dims = [1] x [1]
        contracting_dims = [1] x [0]

Both are cut out of the module as functions of the values that the new one takes, and of what else the old one reads;
the two are derived to be equal, or judged by runs. So a rewrite is a region of a few ops, wherever it stands and
whatever else is rewritten, and alike ones are judged once. Any cut is sound: a function that is equal for all that it
may be given is equal for what it is given.

What is not judged: that the new value is put in the place of the old one everywhere, and that equal ops are merged.
MLIR does both.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import RESHAPING
from hlo_lower.verify import verify
from hlo_lower.verify.effort import Effort
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.judges.judge import Terms
from hlo_lower.verify.read.program import location_of
from hlo_lower.verify.region_proofs import SECONDS, RegionProofs, nowhere
from hlo_lower.verify.region_verdict import SAME_TEXT, RegionVerdict

DEPTHS = (3, 8, 64)
"""Ops in succession that are cut out at most before what was replaced: few, then more, where few are not derived."""

MOST = 256
"""Ops in succession that are built for one at most."""

LISTED = 64
"""Elements of a constant beyond which it is taken as any value, unless all of them are one number."""

STAYS = frozenset({names.CUSTOM_CALL, names.COMPOSITE})
"""Ops that are never cut out: what they compute stands elsewhere."""

FOLDING = frozenset({names.REDUCE, names.REDUCE_WINDOW})
"""Ops with a region that are cut out."""

MOVED = RESHAPING | {names.CONVERT}
"""Ops whose result is a known constant where their operand is one."""


@dataclass
class Rewrites:
    """The verdicts on rewrites.

    Attributes:
      effort: how far it goes.
    """

    effort: Effort
    _found: dict[tuple[str, str], RegionVerdict] = field(default_factory=dict[tuple[str, str], RegionVerdict])

    def __post_init__(self) -> None:
        terms = Terms(seed=self.effort.seed, cache=self.effort.verdicts)
        self._proofs = RegionProofs(terms, nowhere, shared_interpreter())

    @property
    def verdicts(self) -> tuple[RegionVerdict, ...]:
        """Of all rewrites so far, alike ones together."""
        return tuple(self._found.values())

    def __call__(
        self, before: mlir.RawValue, after: mlir.RawValue, built: Collection[mlir.RawOperation], function: str
    ) -> None:
        """Judge that a value, which still stands in the module, may be replaced by another one.

        Args:
          before, after: the two values.
          built: the ops that were built for the second one.
          function: in which both stand.
        """
        maker = mlir.producer(before)
        assert maker is not None
        verdict, key, tried = None, ("", ""), set[tuple[str, str]]()
        for depth in DEPTHS:
            key = pieces_of(before, after, built, depth)
            if key in self._found:
                self._found[key] = replace(self._found[key], count=self._found[key].count + 1)
                return
            is_asked = key not in tried and self._proofs.may_derive
            if is_asked and (found := self._proofs.derivation_of(*key, seconds=SECONDS)):
                verdict = RegionVerdict("", "", (), (), how="derived", laws=found.laws, from_cache=found.from_cache)
                break
            tried.add(key)
        verdict = verdict or self._run(*key)
        where = (location_of(maker),)
        self._found[key] = replace(verdict, function=function, where=f"{function}, one form", first=where, second=())

    def _run(self, first: str, second: str) -> RegionVerdict:
        """The worst that is found of the regions of two texts."""
        verdict = verify(first, second, level="regions", seed=self.effort.seed, patience=self.effort.patience)
        order = ("differs", "not judged", "only run", "equal")
        regions = sorted(verdict.regions, key=lambda region: order.index(region.status))
        return regions[0] if regions else RegionVerdict("", "", (), (), judges=SAME_TEXT)


def pieces_of(
    before: mlir.RawValue, after: mlir.RawValue, built: Collection[mlir.RawOperation], depth: int
) -> tuple[str, str]:
    """Two values as modules: functions of what the second one is made of, and of what else the first one reads.

    Args:
      before, after: the two values.
      built: the ops that were built for the second one.
      depth: how many ops in succession before the first one are cut out at most.
    """
    new = _Cut(after, lambda op, _: op in built)
    ends = set(new.taken)
    old = _Cut(before, lambda op, steps: steps < depth and _may_be_cut(op), ends)
    taken = list(dict.fromkeys((*new.taken, *old.taken)))
    return _module(before, old.ops, taken), _module(after, new.ops, taken)


def _may_be_cut(op: mlir.RawOperation) -> bool:
    return op.name.startswith("stablehlo.") and op.name not in STAYS and _is_closed(op) and bool(op.operands)


def _is_closed(op: mlir.RawOperation) -> bool:
    """Whether the regions of an op, if it has any, are one block each, of plain ops that read no value from outside."""
    for region in op.regions:
        if len(region.blocks) != 1 or op.name not in FOLDING:
            return False
        inside = set[mlir.RawValue](region.blocks[0].arguments)
        for one in region.blocks[0].operations:
            if len(one.operation.regions) or not inside.issuperset(one.operation.operands):
                return False
            inside |= set(one.operation.results)
    return True


def _is_known(value: mlir.RawValue, steps: int = 3) -> bool:
    """Whether a value is a constant of few elements, or such a one moved or converted: what a rewrite may rest on."""
    op = mlir.producer(value)
    if op is None or (op.name == names.CONSTANT and not mlir.is_splat(op) and prod(_shape(value)) > LISTED):
        return False
    if op.name in (names.CONSTANT, names.IOTA):
        return True
    return op.name in MOVED and steps > 0 and all(_is_known(operand, steps - 1) for operand in op.operands)


def _shape(value: mlir.RawValue) -> tuple[int, ...]:
    return mlir.static_shape(value.type)


class _Cut:
    """The ops that make a value, in order, and what they take.

    Args:
      value: the value.
      is_cut: whether an op is one of them, so many steps before the value; what is known is, too.
      ends: values that are taken as they are.
    """

    def __init__(
        self,
        value: mlir.RawValue,
        is_cut: Callable[[mlir.RawOperation, int], bool],
        ends: Collection[mlir.RawValue] = (),
    ) -> None:
        self.ops: list[mlir.RawOperation] = []
        self.taken: list[mlir.RawValue] = []
        cut: dict[mlir.RawOperation, None] = {}
        level: list[mlir.RawValue] = [value]
        steps = 0
        while level and steps < MOST:
            found = [
                op
                for one, op in ((one, mlir.producer(one)) for one in dict.fromkeys(level))
                if op is not None and op not in cut and one not in ends and (is_cut(op, steps) or _is_known(one))
            ]
            cut |= dict.fromkeys(found)
            level = [operand for op in found for operand in op.operands]
            steps += 1
        self._add(value, cut, set(ends))

    def _add(self, value: mlir.RawValue, cut: Collection[mlir.RawOperation], ends: Collection[mlir.RawValue]) -> None:
        op = mlir.producer(value)
        if value in ends or op is None or op not in cut:
            self.taken += [] if value in self.taken else [value]
        elif op not in self.ops:
            for operand in op.operands:
                self._add(operand, cut, ends)
            self.ops.append(op)


def _module(value: mlir.RawValue, ops: Sequence[mlir.RawOperation], taken: Sequence[mlir.RawValue]) -> str:
    """The module whose function @main takes some values and gives one that ops make of them."""
    context = value.context
    location = mlir.unknown_location(context)
    module = mlir.parse_module("module {}", context)
    main, block = mlir.private_function(module, "main", [one.type for one in taken], location)
    main.attributes["sym_visibility"] = mlir.string_attribute("public")
    inside = dict(zip(taken, block.arguments, strict=True))
    for op in ops:
        copy = mlir.clone_into(op, block, inside)
        inside |= dict(zip(op.results, copy.results, strict=True))
    point = mlir.insert_at_end(block)
    mlir.create_operation("func.return", [inside[value]], [], location=location, insertion_point=point)
    mlir.set_signature(main)
    return mlir.print_module(module)
