"""Scatters that a target takes as they are: by combiner, element type, form, and what is proved of them.

What a target takes must also be right there. Kernels differ most in what they do out of bounds: some drop the window as
XLA does, some write elsewhere in memory; so `in_bounds` is "proved" unless a file says otherwise.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.errors import InputError

COMBINERS = ("assign", "add", "sub", "mul", "min", "max", "and", "or", "xor")
"""What the region may do, as a record's combiner says it."""

FORMS = ("any", "rows", "points")
"""What the dimension numbers may be; see `NativeScatter.form`."""

BOUNDS = ("any", "proved")
"""Where the windows have to lie; see `NativeScatter.in_bounds`."""

UNIQUENESS = ("any", "proved")
"""Whether two windows may meet; see `NativeScatter.unique`."""

OCCASIONS = ("always", "no_lowering", "safe", "loop")
"""When a scatter is kept, or made one that could be; see `NativeScatter.when`."""

KEPT_WORDS = {"form": FORMS, "in_bounds": BOUNDS, "unique": UNIQUENESS, "when": OCCASIONS}
"""The fields that are one of a few words."""


@dataclass(frozen=True)
class NativeScatter:
    """A kind of scatter that a target takes as it is, and gives the right numbers for.

    Attributes:
      combiners: what the region may do ("assign", "add", ...; the words of a record's combiner).
      dtypes: element types of operand and updates; None: all that the target takes.
      index_dtypes: element types of the indices; None: all that the target takes.
      form: "points": an index vector addresses one element; "rows": it addresses the leading dims, in order, and the
        window is all of the others, as in a `scatter_nd`; "any": whatever the dimension numbers say.
      in_bounds: "proved": only where every window is proved to lie inside; "any": the target drops the others as XLA
        does.
      unique: "proved": only where no two windows meet; "any": the target applies them in their order.
      when: "always": it is better than any lowering; "no_lowering": only where the target takes no lowering of it;
        "loop": only where its cheapest form is a loop over its windows, which the target runs faster itself;
        "safe": where nothing costs less, a scatter is made one of rows that are all in bounds (the rule
        `safe_scatter`), whatever its form was and wherever its windows lie.
    """

    combiners: Collection[str] = ("assign",)
    dtypes: Collection[str] | None = None
    index_dtypes: Collection[str] | None = None
    form: str = "any"
    in_bounds: str = "proved"
    unique: str = "proved"
    when: str = "always"

    def __post_init__(self) -> None:
        """Take copies of the collections, and refuse words that do not exist."""
        for name in ("combiners", "dtypes", "index_dtypes"):
            value = getattr(self, name)
            if value is None and name != "combiners":
                continue
            if isinstance(value, str) or not isinstance(value, Collection):
                raise InputError(
                    "", f"{name} is a collection of names, not {short_repr(value)}", next_step="write a set"
                )
            object.__setattr__(self, name, frozenset(cast(Collection[str], value)))
        if unknown := sorted(frozenset(self.combiners).difference(COMBINERS), key=str):
            raise InputError(
                "", f"combiners are {', '.join(COMBINERS)}, not {unknown[0]!r}", next_step="write one of them"
            )
        for name, words in KEPT_WORDS.items():
            if getattr(self, name) not in words:
                told = f"{name} is one of {', '.join(words)}, not {getattr(self, name)!r}"
                raise InputError("", told, next_step=f"write {name}={words[0]!r}")
