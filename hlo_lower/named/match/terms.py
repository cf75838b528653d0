"""What a matcher looks at: a value where it is used, with what cannot change it taken off.

Exports write one thing in many ways that are no difference: a call of `@_where`, a product with 1.0, a select whose
predicate is a constant. A `Term` stands for the value beneath. Two values that are the same beneath are the same term,
so matchers compare terms with `is`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.transfer import comparison_of
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node
from hlo_lower.ops import knowledge, names
from hlo_lower.ops.knowledge import NUMPY
from hlo_lower.ops.purity import FUNCTIONS
from hlo_lower.ops.spec import LAYOUT, short

SAME_STEPS = 12
"""Most ops one above the other that are compared to see that two values are computed in the same way."""

STEPS = 200
"""Most calls and ops without effect that are looked through for one term."""


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """A call, and the one around it; an argument of a function is what its call passes."""

    call: mlir.RawOperation
    caller: "Frame | None"


@dataclass(eq=False)
class Term:
    """A value, beneath what does not change it."""

    terms: "Terms"  # the terms of its module
    raw: mlir.RawValue  # the value; where a call gives it, the one inside of the function that is called
    frame: Frame | None  # the call through which it is looked at; None in the function where the match is
    op: str  # the name of the op that makes it, without "stablehlo."; "argument" of an argument
    # the value in the function where the match is that it stands for; None where it is inside of a call only
    surface: mlir.RawValue | None = None
    is_beneath: bool = False  # whether other values are this one, once what does not change them is taken off
    # terms that were seen to be the same, computed once more (`is_same`)
    others: "list[Term]" = field(default_factory=list["Term"])

    def __repr__(self) -> str:
        return f"<{self.op} {self.raw.type}>"

    @cached_property
    def node(self) -> Node:
        """The op that makes it; only of what is not an argument."""
        return Node(self.raw.owner.operation)

    @cached_property
    def operands(self) -> "tuple[Term, ...]":
        """The operands of its op."""
        if self.op == "argument":
            return ()
        return tuple(self.terms.of(operand, self.frame) for operand in self.raw.owner.operation.operands)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Its sizes; a dynamic one is -1."""
        return tuple(-1 if size is None else size for size in mlir.tensor_shape(self.raw.type))

    def integers(self, name: str) -> tuple[int, ...]:
        """The integers of an attribute of its op (`Node.integers`), each attribute read once."""
        attribute = self.raw.owner.operation.attributes[name]
        known = self.terms.integers.get(attribute)
        if known is None:
            known = self.terms.integers[attribute] = mlir.integers_of(attribute)
        return known

    @property
    def element(self) -> str:
        """Its element type as printed."""
        return mlir.tensor_element_name(self.raw.type)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return element_type(self.element).is_float

    @cached_property
    def scalar(self) -> Any:
        """The number that all of its elements are, of its own type, or None: constants and arithmetic on them."""
        return self.terms.scalar_of(self)

    def is_number(self, number: float) -> bool:
        """Whether all of its elements are a number, as its type (or f32, converted to its type) rounds it."""
        found = self.scalar
        return found is not None and is_rounded(found, number)

    def is_same(self, other: "Term") -> bool:
        """Whether another term is this one, or computed once more from the same values in the same way."""
        if self is other:
            return True
        if not self.terms.are_same(self, other, SAME_STEPS):
            return False
        if other not in self.others:
            self.others.append(other)
            other.others.append(self)
        return True

    @property
    def users(self) -> "Iterator[Term]":
        """The first results of the ops that take it, once each, in the function where the match is."""
        return self.terms.users_of(self)

    @property
    def has_several_users(self) -> bool:
        """Whether more than one op takes it; of a value that all layers take that is soon known."""
        return len(list(islice(self.terms.users_of(self, is_counted=True), 2))) > 1

    @property
    def only_user(self) -> "Term | None":
        """The one of which nothing else takes it."""
        found = list(self.users)
        return found[0] if len(found) == 1 else None


def above(term: Term, made_of: Callable[[Term], Iterable[Term]], steps: int) -> Iterator[Term]:
    """A value and what it is made of by `made_of`, the nearest first, each once, at most `steps` of them."""
    pending, seen = [term], set[int]()
    while pending and len(seen) < steps:
        at = pending.pop(0)
        if id(at) not in seen:
            seen.add(id(at))
            yield at
            pending += made_of(at)


def is_rounded(found: Any, number: float) -> bool:
    """Whether a NumPy scalar is a number as its type rounds it, at once or from f32, but not to 0 or infinity."""
    dtype = found.dtype
    if dtype.kind in "iub" or not found or np.isinf(found):
        return bool(found == number)
    with np.errstate(over="ignore"):
        once, twice = np.array(number).astype(dtype), np.array(number).astype(np.float32).astype(dtype)
    return bool(found in (once, twice))


def is_one_number(one: Any, other: Any) -> bool:
    """Whether two NumPy scalars are known, and of one type and the same bits."""
    return one is not None and other is not None and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _inverse_root(x: Any) -> Any:
    return (1 / np.sqrt(x)).astype(x.dtype)


LOGIC = {name.removeprefix("stablehlo."): NUMPY[name] for name in knowledge.LOGIC}
"""Ops on truth values."""

ARITHMETIC = {name.removeprefix("stablehlo."): on for name, on in NUMPY.items() if name not in knowledge.LOGIC}
"""Ops on integers and floats that NumPy computes as StableHLO does."""

_FOLDED = ARITHMETIC | {
    "divide": np.divide,
    "power": np.power,
    "sqrt": np.sqrt,
    "rsqrt": _inverse_root,
    "exponential": np.exp,
    "log": np.log,
    "not": np.logical_not,
}
"""Arithmetic on tensors of rank 0; on integers what cannot differ."""

_MOVED = short(LAYOUT | {names.SLICE, names.DYNAMIC_BROADCAST_IN_DIM})
"""Ops of which a scalar stays what it is."""


Maker: TypeAlias = tuple[mlir.RawOperation | None, str]
"""The op that makes a value, None of an argument; and its name."""


@dataclass(eq=False)
class Terms:
    """The terms of the functions of a module, and of what these call."""

    graph: Graph  # the module
    # integers, splats: what attributes hold, each read once
    integers: dict[mlir.RawAttribute, tuple[int, ...]] = field(default_factory=dict[mlir.RawAttribute, tuple[int, ...]])
    splats: dict[mlir.RawAttribute, Any] = field(default_factory=dict[mlir.RawAttribute, Any])
    # what was found that others ask for, too: by a term, or by a name
    found: dict[Any, Any] = field(default_factory=dict[Any, Any])
    asked: list[mlir.RawValue] = field(default_factory=list[mlir.RawValue])  # values whose users were asked for
    # values that were looked at and are no terms
    probed: list[mlir.RawValue] = field(default_factory=list[mlir.RawValue])
    # ops without results that were seen to take one
    ends: list[mlir.RawOperation] = field(default_factory=list[mlir.RawOperation])
    # the op that makes each value that was asked for, and its name
    makers: dict[mlir.RawValue, Maker] = field(default_factory=dict[mlir.RawValue, Maker])
    # terms of values of the function where the match is, and of those seen through calls
    _here: dict[mlir.RawValue, Term] = field(default_factory=dict[mlir.RawValue, Term])
    _within: dict[tuple[mlir.RawValue, Frame], Term] = field(default_factory=dict[tuple[mlir.RawValue, Frame], Term])
    _frames: dict[tuple[mlir.RawOperation, Frame | None], Frame] = field(
        default_factory=dict[tuple[mlir.RawOperation, Frame | None], Frame]
    )

    def apart(self) -> "Terms":
        """Terms of the same module that remember apart what was asked; what attributes hold is read once for both."""
        return Terms(self.graph, self.integers, self.splats, makers=self.makers)

    def maker(self, raw: mlir.RawValue) -> Maker:
        """The op that makes a value, and its name; None and "argument" of an argument."""
        known = self.makers.get(raw)
        if known is None:
            operation = mlir.producer(raw)
            known = self.makers[raw] = (None, "argument") if operation is None else (operation, operation.name)
        return known

    def of(self, raw: mlir.RawValue, frame: Frame | None = None) -> Term:
        """The term of a value that is looked at through a call."""
        known = self._known_at(raw, frame)
        if known is not None:
            return known
        if frame is None and (name := self.maker(raw)[1]) not in _LOOKED_BENEATH:
            known = self._here[raw] = Term(self, raw, None, name.removeprefix("stablehlo."), raw)
            return known
        passed: list[tuple[mlir.RawValue, Frame | None]] = []
        surface, last = None, (raw, frame)
        at: tuple[mlir.RawValue, Frame | None] | None = (raw, frame)
        term = None
        while at is not None and term is None and len(passed) < STEPS:
            passed.append(at)
            surface = at[0] if at[1] is None else surface
            term = self._known_at(*at)
            if term is None:
                last, at = at, self._beneath(*at)
        if term is None:
            raw, frame = last
            term = Term(self, raw, frame, self.maker(raw)[1].removeprefix("stablehlo."), surface)
        elif term.surface is None:
            term.surface = surface
        for value, place in passed:
            if place is None:
                self._here[value] = term
            else:
                self._within[value, place] = term
        term.is_beneath = term.is_beneath or len(passed) > 1
        return term

    def _known_at(self, raw: mlir.RawValue, frame: Frame | None) -> Term | None:
        return self._here.get(raw) if frame is None else self._within.get((raw, frame))

    def chain_beneath(self, raw: mlir.RawValue) -> list[mlir.RawValue]:
        """A value of the function where the match is, then the values beneath it, step by step."""
        found = [raw]
        at = self._beneath(raw, None)
        while at is not None and len(found) < STEPS:
            found.append(at[0])
            at = self._beneath(*at)
        return found

    def known_term(self, raw: mlir.RawValue) -> Term | None:
        """The term of a value of the function where the match is, if there is one already."""
        return self._here.get(raw)

    @property
    def visited_values(self) -> list[mlir.RawValue]:
        """All values outside of calls that matchers have visited, each with the op that makes it."""
        return [*self._here, *self.probed]

    def _beneath(self, raw: mlir.RawValue, frame: Frame | None) -> tuple[mlir.RawValue, Frame | None] | None:
        """The value that one is, one step beneath; None where it is made by an op that does something."""
        operation, name = self.maker(raw)
        if operation is None:
            return self._call_operand(raw, frame)
        if name == "func.call":
            function = self.graph.functions.get(Node(operation).callee)
            if function is None or not function.has_body:
                return None
            return function.body.terminator.raw.operands[mlir.result_number(raw)], self.frame(operation, frame)
        if name in _IDENTITIES:
            number = _IDENTITIES[name](self, operation, frame)
            return None if number is None else (operation.operands[number], frame)
        return None

    def _call_operand(self, raw: mlir.RawValue, frame: Frame | None) -> tuple[mlir.RawValue, Frame | None] | None:
        """The operand that a call passes for an argument."""
        if frame is None or Block(raw.owner).owner.name != "func.func":
            return None
        return frame.call.operands[mlir.argument_number(raw)], frame.caller

    def frame(self, call: mlir.RawOperation, caller: Frame | None) -> Frame:
        """The frame of a call, or of a composite, in that of its caller."""
        return self._frames.setdefault((call, caller), Frame(call, caller))

    def are_same(self, one: Term, other: Term, steps: int) -> bool:
        """See `Term.is_same`."""
        if one is other:
            return True
        if not steps or one.raw.type != other.raw.type:
            return False
        if one.op != other.op:
            return is_one_number(one.scalar, other.scalar)
        if one.op == "argument":
            return False
        first, second = one.node.raw, other.node.raw
        if first == second or first.name not in FUNCTIONS or len(first.operands) != len(second.operands):
            return False
        if mlir.attribute_key(first) != mlir.attribute_key(second):
            return False
        if len(first.regions) and [str(r) for r in first.regions[0].blocks] != [
            str(r) for r in second.regions[0].blocks
        ]:
            return False
        pairs = zip(one.operands, other.operands, strict=True)
        return all(self.are_same(a, b, steps - 1) for a, b in pairs)

    def users_of(self, term: Term, *, is_counted: bool = False) -> Iterator[Term]:
        """See `Term.users`; what does not change a term is looked through, downwards as well. `is_counted`: only
        their number is looked at, not which they are."""
        seen: set[mlir.RawOperation] = set()
        pending = [] if term.surface is None else [term.surface]
        while pending:
            value = pending.pop()
            if not is_counted:
                self.asked.append(value)
            for use in value.uses:
                user = use.owner.operation
                if user in seen:
                    continue
                seen.add(user)
                results = user.results
                if not len(results):
                    self.ends.append(user)
                    yield Term(self, None, None, user.name)
                    continue
                found = self.of(results[0])
                if found is term:
                    pending.append(results[0])
                else:
                    yield found

    def takers_of(self, raw: mlir.RawValue) -> list[tuple[mlir.RawOperation, Term | None]]:
        """The ops that take a value as it stands, each with the term of its first result, if it has one."""
        self.asked.append(raw)
        takers = [use.owner.operation for use in raw.uses]
        self.ends += [op for op in takers if not len(op.results)]
        return [(op, self.of(op.results[0]) if len(op.results) else None) for op in takers]

    def scalar_of(self, term: Term) -> Any:
        """See `Term.scalar`."""
        op = term.op
        if op == "constant":
            return _splat(term)
        if op in _MOVED:
            return term.operands[0].scalar
        if op == "convert":
            found = term.operands[0].scalar
            dtype = mlir.dtype_of(term.element)
            with np.errstate(all="ignore"):
                return None if found is None or dtype is None else np.asarray(found).astype(dtype)[()]
        if term.shape:  # arithmetic on scalars only: what is a constant is computed before it is broadcast
            return None
        if op == "compare":
            values = [operand.scalar for operand in term.operands]
            return None if None in values else comparison_of(term.node)(*values)
        if op in _FOLDED:
            values = [operand.scalar for operand in term.operands]
            if any(value is None for value in values) or (op in ("divide", "power") and not term.is_float):
                return None
            with np.errstate(all="ignore"):
                return np.asarray(_FOLDED[op](*values)).astype(values[0].dtype if op != "not" else bool)[()]
        return None


def _splat(term: Term) -> Any:
    """The number of a constant that is the same everywhere."""
    raw = term.node.raw
    try:
        attribute = raw.attributes["value"]
    except TypeError:  # the bindings have no class for dense complex elements
        return None
    known = term.terms.splats
    if attribute in known:
        return known[attribute]
    found = None
    if mlir.is_splat(raw):
        value = mlir.dense_value(attribute, term.shape, term.element)
        found = None if value is None or not value.size else value.reshape(-1)[0]
    known[attribute] = found
    return found


def _is(terms: Terms, operation: mlir.RawOperation, frame: Frame | None, number: int, value: float) -> bool:
    """Whether an operand is a constant of a value everywhere; nothing but constants is looked into."""
    raw = operation.operands[number]
    producer, name = terms.maker(raw)
    terms.probed.append(raw)
    while producer is not None and name in (names.BROADCAST_IN_DIM, names.CONVERT):
        below = producer.operands[0]
        terms.probed.append(below)
        producer, name = terms.maker(below)
    if name not in (names.CONSTANT, "func.call"):
        return False
    found = terms.of(raw, frame).scalar
    return found is not None and found.dtype.kind in "fiuV" and bool(found == value)


def _beside(
    value: float, places: tuple[int, ...], terms: Terms, operation: mlir.RawOperation, frame: Frame | None
) -> int | None:
    """The operand beside one that is a number everywhere, which is looked for at these places."""
    return next((1 - n for n in places if _is(terms, operation, frame, n, value)), None)


def _select_operand(terms: Terms, operation: mlir.RawOperation, frame: Frame | None) -> int | None:
    predicate = terms.of(operation.operands[0], frame)
    found = predicate.scalar
    return None if found is None else (1 if found else 2)


def _of_its_own_type(_: Terms, operation: mlir.RawOperation, __: Frame | None) -> int | None:
    return 0 if operation.operands[0].type == operation.results[0].type else None


def _alone(_: Terms, operation: mlir.RawOperation, __: Frame | None) -> int | None:
    return 0 if len(operation.operands) == 1 else None


_IDENTITIES = {
    names.MULTIPLY: partial(_beside, 1, (1, 0)),
    names.DIVIDE: partial(_beside, 1, (1,)),
    names.MAXIMUM: partial(_beside, -np.inf, (0, 1)),
    names.SELECT: _select_operand,
    names.CONVERT: _of_its_own_type,
    names.RESHAPE: _of_its_own_type,
    names.BROADCAST_IN_DIM: _of_its_own_type,
    names.OPTIMIZATION_BARRIER: _alone,
}
"""Ops that may give what they take, and of which operand."""

_LOOKED_BENEATH = frozenset({*_IDENTITIES, "func.call"})
"""Ops beneath which a value may be another one."""
