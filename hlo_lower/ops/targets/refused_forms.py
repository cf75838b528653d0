"""Forms of ops that a target may not take although it takes the op and its element types."""

from enum import Enum


class RefusedForm(Enum):
    """A form, as a target's `refused_forms` names it.

    BATCH_GROUPS, FEATURE_GROUPS: of a convolution; the latter of one over three dims.
    DILATED_OPERAND, DILATED_KERNEL: of a convolution, what makes it a transposed or an atrous one; the latter of a
      kernel that is no constant.
    REVERSED_KERNEL: of a convolution, the windows of which are reversed.
    SPREAD: a pad that puts something between elements.
    COMPUTED_PADDING: a pad with a value that is no constant.
    CONTRACTED_APART: a matrix product that contracts several dims, in another order on its right side.
    EMPTY_SUM: a matrix product that sums nothing.
    FOLD: a reduce, or a reduce_window, of any region or of several results, but for the place of a maximum or minimum.
    FOLD_START: a maximum or minimum from a start that is a number.
    ONE_NUMBER: a reduce of what elementwise ops make of constants of one number each.
    ORDERED_WINDOWS: a gather whose windows stand elsewhere than where those of `numpy.take` do.
    REVERSED_APART: a reverse of dims that are no neighbours.
    THREE_WORDS: random bits from a state of three numbers, a key and a counter of 128 bits.
    INFINITE: a constant with an infinity among its numbers, which a writer may put down as the largest float.
    TOTAL_ORDER: a comparison of floats by TOTALORDER.
    STARTS: a loop that begins with constants, where a converter may take for known too long what it carries.
    TWICE: a branch of a `case` that reads a value from around it twice, which a converter may take for two arguments of
      one name.
    INNER: a `case` or `if` within a loop or another one, in which a consumer may mix up what the branches read.
    MANY: a `case` of three branches or more.
    ODD_BELOW_ZERO: a sine or tangent of what may be below 0.
    POWER_BELOW_ZERO: a power of floats whose base may be below 0.
    OVERWRITTEN: a loop that overwrites a value without reading it, where its condition or what comes after it reads it.
    LOOP: a loop whose regions are not one call each; where the target refuses `while`, what stays of them is written in
      calls, and taken.
    """

    BATCH_GROUPS = "convolution in batch groups"
    FEATURE_GROUPS = "convolution of 3 dims in feature groups"
    DILATED_OPERAND = "convolution of a dilated operand"
    DILATED_KERNEL = "convolution by a computed dilated kernel"
    REVERSED_KERNEL = "convolution by a reversed kernel"
    SPREAD = "pad between elements"
    COMPUTED_PADDING = "pad with a computed value"
    CONTRACTED_APART = "dot_general with contracting dims in another order"
    EMPTY_SUM = "dot_general that sums nothing"
    FOLD = "reduce of any region"
    FOLD_START = "reduce to a maximum from a number"
    ONE_NUMBER = "reduce of one number computed"
    ORDERED_WINDOWS = "gather with windows elsewhere"
    REVERSED_APART = "reverse of dims apart"
    THREE_WORDS = "rng_bit_generator from three numbers"
    INFINITE = "constant Inf"
    TOTAL_ORDER = "compare TOTALORDER"
    INNER = "case within a loop or branch"
    MANY = "case of three branches"
    LOOP = "while not of calls"
    ODD_BELOW_ZERO = "sine or tangent below 0"
    POWER_BELOW_ZERO = "power below 0"
    OVERWRITTEN = "while overwriting a value unread"
    STARTS = "while from constants"
    TWICE = "case reading a value twice"


REFUSED_FORMS = tuple(form.value for form in RefusedForm)
"""The words."""
