"""Forms of ops that a target may not take although it takes the op and its element types."""

from enum import Enum


class RefusedForm(Enum):
    """A form, as a target's `refused_forms` names it.

    INFINITE: a constant with an infinity among its numbers, which a writer may put down as the largest float.
    TOTAL_ORDER: a comparison of floats by TOTALORDER.
    """

    INFINITE = "constant Inf"
    TOTAL_ORDER = "compare TOTALORDER"


REFUSED_FORMS = tuple(form.value for form in RefusedForm)
"""The words."""
