"""What is told about one scatter: the data behind the row of every report, and behind its JSON."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from hlo_lower.base.causes import Cause
from hlo_lower.facts.scatter.predicates import Claims


@dataclass(frozen=True)
class Fact:
    """One fact with its proof or, where it could not be proved, the reason.

    Attributes:
      name: the fact ("in_bounds", "unique", "subset", ...).
      value: its value as text ("always", "proved", "Tile", ...).
      causes: gives what proves it, step by step, causes first, each with its place.

    Example:
      >>> [record] = hl.classify("decode.mlir")
      >>> next(fact.value for fact in record.facts if fact.name == "subset")
      'Tile'
    """

    name: str
    value: str
    causes: Callable[[], tuple[Cause, ...]] = field(default=tuple, repr=False, compare=False)

    @classmethod
    def known(cls, name: str, value: str, *causes: Cause) -> "Fact":
        """A fact whose evidence is already known."""
        return cls(name, value, lambda: causes)

    @cached_property
    def evidence(self) -> tuple[Cause, ...]:
        """The steps; their places are looked up when somebody reads them."""
        return self.causes()

    def __reduce__(self) -> "tuple[Callable[..., Fact], tuple[str | Cause, ...]]":
        """Pickle the steps themselves: what gives them holds the whole module, which stays in its process."""
        return Fact.known, (self.name, self.value, *self.evidence)


@dataclass(frozen=True)
class Rejection:
    """A rule that was not chosen, and why: everything that stands in its way.

    Example:
      >>> [record] = hl.classify("decode.mlir")
      >>> "scatter_to_while" in [rejection.rule for rejection in record.why_not]
      True
    """

    rule: str
    reasons: tuple[Cause, ...]


@dataclass(frozen=True)
class Written:
    """The part that is written.

    Attributes:
      counts: how many windows; of a run of rows their number in each of its dims; none where it is not known.
      index: for each operand dim what is written of it: ":", "3", "0:4", "pos", "i:i+16", and "b" for the coordinate
        of a batch; none where it is not known.

    Example:
      >>> [record] = hl.classify("decode.mlir")
      >>> record.writes.index
      ('i', ':')
    """

    counts: tuple[int, ...] = ()
    index: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class ScatterRecord:
    """One scatter, classified; after lowering also how it was lowered.

    Attributes:
      number: position in program order, from 1.
      file: the module's file as given ("decode.mlir"; "-" for standard input, "<module>" for an object).
      function: the symbol of the function that holds it.
      location: source place, "llama.py:88" from the module's locations or "decode.mlir:125" where it has none.
      scope: names that locate it within the model ("jit(decode)/layer_0/scatter"), or "".
      kind: insert_slice, reduction_add or general.
      subset: Empty, Full, Tile, Point, BatchedTile, Rows, Filter, Points or Windows.
      writes: the part that is written.
      combiner: assign, assign_constant, add, ...; one per operand of a variadic scatter, joined by commas.
      operand_shape, indices_shape, updates_shape: of the first operand, the indices, the first updates; None: dynamic.
      dtype: element types of the operands as MLIR prints them, joined by commas.
      oob: the policy that in_bounds speaks of, "xla" or "spec".
      in_bounds: always, never or unknown.
      bounds: why a guard is needed or none: `PROVED`, `GUARDED`, `NOTHING_IN_BOUNDS`; `NOT_KNOWN` of a scatter that has
        no canonical form.
      unique: proved, claimed or unknown.
      rule: the lowering that was chosen, "" where there is none.
      form: its canonical form in a line; "" where there is none.
      why: `CHOSEN` where there is a rule; why there is none, or why the scatter is kept, elsewhere.
      why_not: the rules that were not chosen.
      facts: every fact with its evidence.
      claims: what is claimed of the indices at run time (`hlo_lower.facts.scatter.predicates`); None of a dynamic
      shape. source: the source file of `location` as the module names it; "" where it names none.

    Example:
      >>> [record] = hl.classify("decode.mlir")
      >>> record
      <ScatterRecord 1 at decode.mlir:2: Tile assign on 8x4xf32 -> guarded_dynamic_update_slice>
    """

    number: int
    file: str
    function: str
    location: str
    scope: str
    kind: str
    subset: str
    writes: Written
    combiner: str
    operand_shape: tuple[int | None, ...]
    indices_shape: tuple[int | None, ...]
    updates_shape: tuple[int | None, ...]
    dtype: str
    oob: str
    in_bounds: str
    bounds: Cause
    unique: str
    rule: str = ""
    form: str = ""
    why: Cause | None = None
    why_not: tuple[Rejection, ...] = ()
    facts: tuple[Fact, ...] = field(default=())
    claims: Claims | None = None
    source: str = ""

    def __repr__(self) -> str:
        sizes = "".join(f"{'?' if size is None else size}x" for size in self.operand_shape)
        what = f"{self.subset} {self.combiner} on {sizes}{self.dtype}"
        return f"<ScatterRecord {self.number} at {self.location}: {what} -> {self.rule or 'no rule'}>"
