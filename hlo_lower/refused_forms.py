"""Forms of ops that a target may not take although it takes the op and its element types."""

from enum import Enum


class RefusedForm(Enum):
    """A form, as a target's `refused_forms` names it.

    INFINITE: a constant with an infinity among its numbers, which a writer may put down as the largest float.
    TOTAL_ORDER: a comparison of floats by TOTALORDER.
    STARTS: a loop that begins with constants, where a converter may take for known too long what it carries, or that
      carries a value twice.
    TWICE: a branch of a `case` that reads a value from around it twice, which a converter may take for two arguments of
      one name.
    INNER: a `case` or `if` within a loop or another one, in which a consumer may mix up what the branches read.
    LOOP: a loop whose regions are not one call each; where the target refuses `while`, what stays of them is written in
      calls, and taken.
    """

    INFINITE = "constant Inf"
    TOTAL_ORDER = "compare TOTALORDER"
    INNER = "case within a loop or branch"
    LOOP = "while not of calls"
    STARTS = "while from constants"
    TWICE = "case reading a value twice"


REFUSED_FORMS = tuple(form.value for form in RefusedForm)
"""The words."""
