"""What is told about one scatter: the row of every report, and the JSON record."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from hlo_lower.scatter.predicates import Claims


@dataclass(frozen=True)
class Fact:
    """One fact with its proof or, where it could not be proved, the reason.

    Attributes:
      name: the fact ("in_bounds", "unique", "subset", ...).
      value: its value as text ("always", "proved", "Tile", ...).
      lines: gives the steps that prove it, causes first, each with its place ("clamped to [0, 63] at llama.py:88").
    """

    name: str
    value: str
    lines: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)

    @classmethod
    def known(cls, name: str, value: str, *lines: str) -> "Fact":
        """A fact whose evidence is at hand."""
        return cls(name, value, lambda: lines)

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """The steps, put into words when somebody reads them."""
        return self.lines()

    def __reduce__(self) -> tuple[Callable[..., "Fact"], tuple[str, ...]]:
        """Pickle the steps in words: what gives them holds the whole module, which stays in its process."""
        return Fact.known, (self.name, self.value, *self.evidence)

    def to_json(self) -> dict[str, Any]:
        """The fact as plain data."""
        return {"name": self.name, "value": self.value, "evidence": list(self.evidence)}


@dataclass(frozen=True)
class Rejection:
    """A rule that was not chosen, and why."""

    rule: str
    reason: str


@dataclass(frozen=True)
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
      writes: the part that is written, for a reader: "tile [:, :, pos, :] of 1x8x64x16".
      combiner: assign, assign_constant, add, ...; one per operand of a variadic scatter, joined by commas.
      operand_shape, indices_shape, updates_shape: of the first operand, the indices, the first updates; None: dynamic.
      dtype: element types of the operands as MLIR prints them, joined by commas.
      oob: the policy that in_bounds speaks of, "xla" or "spec".
      in_bounds: always, never or unknown.
      bounds: the same for a reader: "proved (clamped)", "guarded: argument pos".
      unique: proved, claimed or unknown.
      rule: the lowering that was chosen, "" where there is none.
      why: why this rule: the facts that select it and what it costs.
      why_not: the rules that were not chosen.
      facts: every fact with its evidence.
      claims: what is claimed of the indices at run time (`hlo_lower.scatter.predicates`); None of a dynamic shape.
    """

    number: int
    file: str
    function: str
    location: str
    scope: str
    kind: str
    subset: str
    writes: str
    combiner: str
    operand_shape: tuple[int | None, ...]
    indices_shape: tuple[int | None, ...]
    updates_shape: tuple[int | None, ...]
    dtype: str
    oob: str
    in_bounds: str
    bounds: str
    unique: str
    rule: str = ""
    why: str = ""
    why_not: tuple[Rejection, ...] = ()
    facts: tuple[Fact, ...] = field(default=())
    claims: Claims | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as plain data for `json.dumps`."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["claims"] = None if self.claims is None else asdict(self.claims)
        plain["facts"] = [fact.to_json() for fact in self.facts]
        plain["why_not"] = [asdict(rejection) for rejection in self.why_not]
        return plain
