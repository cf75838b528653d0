"""One fuzzed scatter as plain data, and how it is drawn."""

from dataclasses import dataclass

from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.draw import Draw, Replayed, Seeded
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES
from hlo_lower.testing.fuzz.families import FAMILIES, draw_region
from hlo_lower.testing.fuzz.layouts import LAYOUTS, draw_form
from hlo_lower.testing.fuzz.update_computations import UpdateComputation
from hlo_lower.verify.drive.input_roles import REGIMES

ARGUMENT_SETS = 4
"""Sets of arguments that each scatter is run with."""

IMPOSSIBLE = {
    (subset, "no_op"): "a region that returns the current value writes nothing, so the subset is Empty"
    for subset in LAYOUTS
    if subset != "Empty"
}
"""Cells that no scatter is in, and why."""

CELLS = tuple((subset, family) for family in FAMILIES for subset in LAYOUTS if (subset, family) not in IMPOSSIBLE)
"""Every other cell, a kind of subset and a combiner family, the simplest first."""

_MISSED = ("Rows", "Tile")
"""Subsets whose sketches turn out as another one in a third of the cases, which are therefore drawn more often."""

STRATA = (*CELLS, *CELLS, *(cell for cell in CELLS if cell[0] in _MISSED))
"""The cells that consecutive seeds are meant for, in turn."""

_CONVERSIONS = {"i8": ("i32", "i64"), "i16": ("i32",), "i32": ("i64",), "ui8": ("i32", "ui32"), "ui32": ("i64",)}

_BITING = ("overhanging", "duplicates", "all equal", "mixed", "one past the end", "negative", "far out")
"""Regimes in which something is dropped or written twice."""


@dataclass(frozen=True)
class Case:
    """A legal scatter and the arguments that it is run with.

    Attributes:
      name: what tells it from others: "seed 17".
      intended: the subset and the combiner family that it was drawn for.
      form: shapes, dimension numbers and index columns.
      operands: element type of each operand.
      region: the update computation.
      index_type: the type that the index columns are computed in.
      converted: the type that they are converted to, or "".
      regimes: for each set of arguments the regime of `verify.index_regimes` that its indices are drawn from.
      values: seed of the arguments.
    """

    name: str
    intended: tuple[str, str]
    form: CaseForm
    operands: tuple[str, ...]
    region: UpdateComputation
    index_type: str
    converted: str
    regimes: tuple[str, ...]
    values: int

    @property
    def is_direct(self) -> bool:
        """Whether the index tensor is one runtime argument as it stands."""
        as_is = all(c.kind == "data" and not c.treatment and not c.offset for c in self.form.columns)
        return as_is and bool(self.form.columns) and not self.converted

    @property
    def final_index_type(self) -> str:
        """The element type of the scatter's indices."""
        return self.converted or self.index_type


def draw_case(draw: Draw, name: str = "drawn", cell: tuple[str, str] | None = None) -> Case:
    """A case, meant for a cell if one is given."""
    subset, family = cell or draw.choice(CELLS)
    index_type = draw.choice(INDEX_TYPES) if draw.chance(50) else draw.choice(INDEX_TYPES[:2])
    form = draw_form(draw, subset, index_type)
    operands, region = draw_region(draw, family)
    converted = ""
    if form.columns and index_type in _CONVERSIONS and draw.chance(12):
        converted = draw.choice(_CONVERSIONS[index_type])
    regimes = tuple(draw.choice((*REGIMES, *_BITING)) for _ in range(ARGUMENT_SETS))
    return Case(name, (subset, family), form, operands, region, index_type, converted, regimes, draw.integer(0, 999))


def case_of_seed(seed: int) -> Case:
    """The case of a seed; consecutive seeds go through all cells."""
    return recorded_case(seed)[0]


def seed_of(name: str) -> int:
    """The seed of a case that was made of one."""
    return int(name.removeprefix("seed "))


def recorded_case(seed: int) -> tuple[Case, tuple[int, ...]]:
    """The same, with the choices that made it."""
    source = Seeded(seed)
    case = draw_case(Draw(source), f"seed {seed}", STRATA[seed % len(STRATA)])
    return case, tuple(source.record)


def replayed_case(choices: list[int], case: Case) -> tuple[Case, tuple[int, ...]]:
    """What other choices make of a case's cell, and those of the choices that were used."""
    source = Replayed(choices)
    found = draw_case(Draw(source), case.name, case.intended)
    return found, tuple(source.record)
