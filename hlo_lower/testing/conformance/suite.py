"""The suite: every combiner on every element type in one form, every form with three combiners, and index types.

Not the whole product: what a kernel gets wrong depends on the form, or on the combiner and its type, so pairs of those
are covered, and not triples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from hlo_lower.base.errors import InputError
from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.index_columns import DrawnColumn
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.update_computations import Expr, UpdateComputation


def _form(
    operand: tuple[int, ...],
    window: tuple[int, ...],
    positions: tuple[int, ...],
    columns: tuple[int, ...],
    *,
    inserted: tuple[int, ...] = (),
    batching: tuple[tuple[int, int], ...] = (),
    index_vector_dim: int | None = None,
    implicit: bool = False,
    window_places: tuple[int, ...] = (),
) -> CaseForm:
    """A form whose index tensor is an argument; the index vector stands last if nothing else is said."""
    ivd = len(positions) if index_vector_dim is None else index_vector_dim
    drawn = tuple(DrawnColumn(dim) for dim in columns)
    return CaseForm(operand, window, inserted, batching, positions, drawn, ivd, implicit, window_places)


FORMS = {
    "rows": _form((9, 4), (1, 4), (6,), (0,), inserted=(0,), window_places=(1,)),
    "points": _form((9,), (1,), (6,), (0,), inserted=(0,)),
    "points_implicit": _form((9,), (1,), (6,), (0,), inserted=(0,), implicit=True),
    "points_vector_first": _form((9,), (1,), (2, 3), (0,), inserted=(0,), index_vector_dim=0),
    "columns": _form((4, 9), (4, 1), (6,), (1,), inserted=(1,), window_places=(0,)),
    "rows_window_first": _form((9, 4), (1, 4), (6,), (0,), inserted=(0,), window_places=(0,)),
    "pairs": _form((4, 5), (1, 1), (6,), (0, 1), inserted=(0, 1)),
    "pairs_swapped": _form((4, 5), (1, 1), (6,), (1, 0), inserted=(0, 1)),
    "runs": _form((12,), (2,), (4,), (0,), window_places=(1,)),
    "tiles": _form((6, 9), (2, 3), (4,), (0, 1), window_places=(1, 2)),
    "batched": _form((3, 9), (1, 1), (3, 4), (1,), inserted=(), batching=((0, 0),), window_places=(2,)),
    "one_window": _form((9, 4), (2, 4), (), (0,), window_places=(0, 1)),
}
"""Forms by name: "runs" and "tiles" have windows that overhang; "one_window" has no scatter dims."""

COMBINERS = {
    "assign": ("f32", "i32", "f16", "bf16", "f64", "i64", "i16", "i8", "ui8", "ui32", "i1"),
    "add": ("f32", "i32", "f16", "bf16", "f64", "i64", "i16", "i8", "ui8", "ui32"),
    "multiply": ("f32", "i32", "i64"),
    "minimum": ("f32", "i32", "i64", "i8", "ui32"),
    "maximum": ("f32", "i32", "i64", "i8", "ui32"),
    "subtract": ("f32", "i32"),
    "and": ("i1", "i32"),
    "or": ("i1", "i32"),
    "xor": ("i32",),
    "affine": ("f32", "i32"),
}
"""Update computations by name, with their element types; "affine" is 3 c - u, which no other combiner is."""

WITH_EVERY_FORM = (("assign", "f32"), ("add", "f32"), ("maximum", "i32"))
INDEX_TYPES = ("i64", "ui32", "i8")
WITH_EVERY_INDEX_TYPE = (("assign", "f32"), ("add", "f32"))


@dataclass(frozen=True)
class SuiteModule:
    """A module of the suite."""

    # form, combiner, element, index_type: what it is
    form: str
    combiner: str
    element: str
    index_type: str
    case: Case  # the scatter

    @property
    def name(self) -> str:
        """ "rows/add/f32/i32": form, combiner, element type, index type."""
        return self.case.name

    @property
    def text(self) -> str:
        """The module, a function @main of operand, updates and indices."""
        return module_text([self.case])


def _module(form: str, combiner: str, element: str, index_type: str = "i32") -> SuiteModule:
    name = "/".join((form, combiner, element, index_type))
    region = UpdateComputation((element,), (_region_result(combiner, element),))
    case = Case(name, ("", combiner), FORMS[form], (element,), region, index_type, "", (), 0)
    return SuiteModule(form, combiner, element, index_type, case)


def _region_result(combiner: str, element: str) -> Expr:
    current, update = Expr("current", element), Expr("update", element)
    if combiner == "assign":
        return update
    if combiner == "affine":
        tripled = Expr("multiply", element, (current, Expr("constant", element, number=3)))
        return Expr("subtract", element, (tripled, update))
    return Expr(combiner, element, (current, update))


def _suite() -> tuple[SuiteModule, ...]:
    wanted = [("rows", combiner, element) for combiner, elements in COMBINERS.items() for element in elements]
    wanted += [(form, *pair) for form in FORMS if form != "rows" for pair in WITH_EVERY_FORM]
    modules = [_module(*names) for names in wanted]
    return (*modules, *(_module("rows", *pair, kind) for kind in INDEX_TYPES for pair in WITH_EVERY_INDEX_TYPE))


SUITE = _suite()
"""All modules, in the order in which they are judged."""


def select_modules(only: Sequence[str]) -> tuple[SuiteModule, ...]:
    """The modules whose name fits one of the patterns ("rows/add/*"), all without patterns; InputError if none fits."""
    found = tuple(m for m in SUITE if not only or any(fnmatch(m.name, pattern) for pattern in only))
    if found:
        return found
    raise InputError(
        "",
        f"no module of the suite fits {', '.join(only)}",
        facts=f"forms: {', '.join(FORMS)}; combiners: {', '.join(COMBINERS)}",
        next_step=f"--only '{SUITE[0].form}/add/*'",
    )
