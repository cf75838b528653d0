"""Causes as data: why a fact holds or does not, why a rule was chosen, refused or not needed.

A cause is a code with the values of its fields, and the place that it speaks of. Analyses, plans and records hold
causes, and whatever decides or counts asks for codes and fields. No sentence stands here: what a person reads is made
of them in `hlo_lower.base.english` alone, and what a program reads is `Cause.to_json` (docs/json-schema.md).

    Code.CLAMPED(0, 63)                             the step "clamped to [0, 63]"
    Code.NOT_BOUNDED(Code.RESULT_OF("gather"))      a cause within a cause
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias, Union

Value: TypeAlias = Union[bool, int, float, str, "Cause", tuple["Value", ...], None]
"""What a field holds."""


class Code(Enum):
    """Every cause: its code, and the names of its fields. `Code.CLAMPED(0, 63)` is a cause."""

    def __init__(self, code: str, *fields: str) -> None:
        self.code = code
        self.fields = fields

    def __call__(self, *values: Value) -> "Cause":
        """A cause of this code, from the values of its fields in their order."""
        return Cause(self, values)

    # Why what looks like a named op is none.
    OTHER_VALUE = "other_value", "what"
    OTHER_AXES = "other_axes", "one", "other"
    OTHER_CONSTANT = "other_constant", "expected"
    NAMED_OP_LACKS = "named_op_lacks", "what"

    # How a range of values was found. What comes from several operands is an `operation`.
    OPERATION = "operation", "op"
    CONSTANT = ("constant",)
    IOTA = "iota", "last"
    CLAMPED = "clamped", "low", "high"
    ASSUMED = "assumed", "low", "high"
    MINIMUM = ("minimum",)
    MAXIMUM = ("maximum",)
    MASKED = ("masked",)
    REMAINDER = "remainder", "divisor"
    ONES = "ones", "most"
    NORMALISED = "normalised", "low", "high"
    SORTED = ("sorted",)
    TOP_K = ("top_k",)
    TOP_K_INDICES = "top_k_indices", "of"
    FOLDED = "folded", "low", "high"
    SUMMED = "summed", "terms", "low", "high"
    SCATTERED = "scattered", "low", "high"
    ADDED = "added", "terms", "low", "high"
    KNOWN_POINTS = ("known_points",)
    COUNTED = "counted", "low", "high"
    KEPT_WITHIN = "kept_within", "low", "high"
    RUNNING_SUM = "running_sum", "most"
    KNOWN_FLOATS = ("known_floats",)
    AT_EACH_CALL = "at_each_call", "calls", "function"
    BRANCHES = "branches", "branches"
    NOT_BOUNDED = "not_bounded", "source"

    # Where a value comes from that is not bounded, or not looked into.
    ARGUMENT = "argument", "number", "function", "name"
    ARGUMENT_OF = "argument_of", "op"
    CARRIED_BY = "carried_by", "op"
    RESULT_OF = "result_of", "op"
    RESULT_OF_CALL = "result_of_call", "function"
    NEVER_CALLED = "never_called", "function"
    TOO_FAR = "too_far", "steps"
    TOO_LARGE = "too_large", "elements"
    TOO_MANY_TERMS = "too_many_terms", "terms"
    OUT_OF_BUDGET = ("out_of_budget",)
    OVERHANGS = ("overhangs",)
    SIZE_AT_RUN_TIME = ("size_at_run_time",)
    NOT_KNOWN = ("not_known",)

    # How the elements of indices were found to differ or to ascend.
    SUM = ("sum",)
    MOVED_UP = "moved_up", "offset"
    SORTED_ALONG = "sorted_along", "dim"
    DISTINCT_OR_WITHIN = "distinct_or_within", "low", "high"
    PICKED = "picked", "count", "of"
    GATHERED_APART = ("gathered_apart",)
    WRITTEN_ONCE = ("written_once",)
    RUNNING_STEPS = "running_steps", "step", "most"
    SLICES_APART = ("slices_apart",)

    # Bounds: whether windows lie inside, and by what.
    PROVED = "proved", "by"
    GUARDED = "guarded", "source"
    ASSUMED_INSIDE = ("assumed_inside",)
    NOTHING_IN_BOUNDS = ("nothing_in_bounds",)
    POLICY = "policy", "oob"
    START_WITHIN = "start_within", "dim", "last", "proved"
    START_ZERO = "start_zero", "dim"
    START_BEYOND = "start_beyond", "dim", "low", "high", "last"
    START_OF_UNKNOWN_SIZE = "start_of_unknown_size", "dim"
    NO_INDEXED_DIM = ("no_indexed_dim",)

    # Which part is written.
    NO_WINDOWS = ("no_windows",)
    ALL_DROPPED = ("all_dropped",)
    ONE_WINDOW = ("one_window",)
    MERGED = "merged", "windows", "into"
    RUN_OF_ROWS = "run_of_rows", "sizes"
    WINDOW_PER_BATCH = ("window_per_batch",)
    SINGLE_ELEMENTS = "single_elements", "windows"
    WHOLE_ROWS = "whole_rows", "windows"
    WINDOWS_OF = "windows_of", "windows", "shape"
    SIZES_AT_RUN_TIME = ("sizes_at_run_time",)
    WITHOUT_SIZES = ("without_sizes",)

    # What the region computes.
    RETURNS_CURRENT = ("returns_current",)
    RETURNS_CONSTANT = ("returns_constant",)
    RETURNS_UPDATE = ("returns_update",)
    OF_UPDATE = ("of_update",)
    OF_CURRENT = ("of_current",)
    COMBINED_BY = "combined_by", "op"
    SUBTRACTED = ("subtracted",)
    COMPUTED_BY = "computed_by", "op"

    # Whether an element is written twice.
    NOTHING_WRITTEN = ("nothing_written",)
    ROWS_OF_RUN = ("rows_of_run",)
    CONSTANTS_DIFFER = ("constants_differ",)
    CONSTANTS_MEET = ("constants_meet",)
    PLACES = "places", "constant", "permutation", "ascending"
    FLAG_TRUSTED = ("flag_trusted",)
    FLAG_CLAIMED = ("flag_claimed",)
    NO_CLAIM = ("no_claim",)

    # What the positions do, and what the forms of many windows cost.
    FORM = "form", "placed_by", "based", "terms", "constant", "moved_up"
    COLUMN = "column", "dim", "form"
    LOOSE = "loose", "position", "reason"
    SAME_PLACE = ("same_place",)
    SEVERAL_DIMS = "several_dims", "dims"
    SECOND_RUN = "second_run", "dim"
    TOO_MANY_WRAPPED = "too_many_wrapped", "most"
    ORDER_WOULD_CHANGE = ("order_would_change",)
    WINDOW_EXTENT = "window_extent", "dim", "extent"
    STRIDE = "stride", "dim", "stride"
    MOVED_UP_TOO_LITTLE = "moved_up_too_little", "dim", "offset", "extent"
    MAY_WRAP = "may_wrap", "dim", "type"
    COSTS = "costs", "strategy", "us"

    # What became of a scatter.
    CHOSEN = "chosen", "drops", "strategy", "place"
    KEPT = "kept", "target", "combiner", "dtype", "last_resort"
    KEPT_AS_FASTER = "kept_as_faster", "combiner", "dtype"
    TAKEN_WHOLE = "taken_whole", "target"
    KEPT_ON_REQUEST = ("kept_on_request",)
    KEPT_UNSUPPORTED = "kept_unsupported", "reason"
    NO_LOWERING = "no_lowering", "target"
    DYNAMIC_SHAPE = "dynamic_shape", "type"
    QUANTIZED = "quantized", "type"
    INDEX_ELEMENTS = ("index_elements",)
    SIDE_EFFECT = "side_effect", "op", "callee"
    UNREDUCED = ("unreduced",)
    HOLDS_KEPT = "holds_kept", "scatter", "location"

    # What became of an operation besides scatters, and why one is left.
    BECAME = "became", "form", "rule", "claim"
    PLACED_ON_ONE_DEVICE = ("placed_on_one_device",)
    RUN_FOR_ALL_DEVICES = ("run_for_all_devices",)
    NO_FORM_TAKEN = "no_form_taken", "target", "nearest"
    LACKS = "lacks", "rule", "causes"
    ON_TYPES = "on_types", "types", "reason"
    NEEDS_SIZES = ("needs_sizes",)
    ONLY_CLAMPED = ("only_clamped",)
    NO_CANONICAL_GATHER = ("no_canonical_gather",)
    COMPARATOR_NOT_READ = ("comparator_not_read",)
    KEY_NOT_READ = ("key_not_read",)
    MORE_THAN_I32 = ("more_than_i32",)
    UNROLLED_TOO_LARGE = "unrolled_too_large", "most"
    TRIPS_NOT_KNOWN = ("trips_not_known",)
    TRIP_WITH_EFFECT = ("trip_with_effect",)
    BRANCH_WITH_EFFECT = ("branch_with_effect",)
    LOOP_IN_BRANCH = "loop_in_branch", "reason"
    NOT_SEEN_TO_BE = "not_seen_to_be", "meaning"
    OTHER_VERSION = "other_version", "version"
    OTHER_ATTRIBUTES = "other_attributes", "names"
    CALLS_UNKNOWN = ("calls_unknown",)
    CALLS_CHECK_OF_SIZE = ("calls_check_of_size",)
    CALLS_PYTHON = ("calls_python",)
    ENCODED_OTHERWISE = "encoded_otherwise", "version"
    NAME_IN_DOUBT = "name_in_doubt", "attribute"
    NOT_UNARY = ("not_unary",)
    NOT_TOP_K = ("not_top_k",)
    TOP_K_OF_SMALLEST = ("top_k_of_smallest",)
    ROUTINE_LEFT = "routine_left", "routine"
    OTHER_ROUNDINGS = ("other_roundings",)

    # Why a rule was not chosen.
    MISSES = "misses", "fact", "value", "accepted"
    NEEDS = "needs", "condition"
    SAID = "said", "text"  # by the rule itself
    LESS_SPECIFIC = "less_specific", "than"
    PREFERRED = "preferred", "rule"
    REFUSES_OPS = "refuses_ops", "target", "ops", "note"
    REFUSES_OP_ON = "refuses_op_on", "target", "op", "dtypes"
    REFUSES_DTYPE = "refuses_dtype", "target", "dtype", "op", "note"


@dataclass(frozen=True, slots=True)
class Cause:
    """A code with the values of its fields.

    Attributes:
      code: what is said.
      values: of the code's fields, in their order.
      at: the place that it speaks of ("llama.py:88"); "" where it has none.
    """

    code: Code
    values: tuple[Value, ...] = ()
    at: str = ""

    def __post_init__(self) -> None:
        """A cause has exactly the fields of its code."""
        assert len(self.values) == len(self.code.fields), f"{self.code} takes {self.code.fields}, not {self.values}"

    def __getitem__(self, field: str) -> Value:
        """The value of a field."""
        return self.values[self.code.fields.index(field)]

    def cause(self, field: str) -> "Cause":
        """The cause that a field holds."""
        value = self[field]
        assert isinstance(value, Cause), f"{field} of {self.code} is {value!r}"
        return value

    def with_(self, field: str, value: Value) -> "Cause":
        """The same cause with another value of a field."""
        number = self.code.fields.index(field)
        return replace(self, values=(*self.values[:number], value, *self.values[number + 1 :]))

    @property
    def kind(self) -> "Cause":
        """The cause without what differs from module to module: of its fields the op and the target alone."""
        if self.code is Code.KEPT_UNSUPPORTED:
            return self.cause("reason").kind
        pairs = zip(self.code.fields, self.values, strict=True)
        return Cause(self.code, tuple(value if name in ("op", "target") else None for name, value in pairs))

    def with_place(self, at: str) -> "Cause":
        """The same cause, at this place."""
        return Cause(self.code, self.values, at)

    def to_json(self) -> dict[str, Any]:
        """The cause as plain data; fields that hold nothing are left out."""
        pairs = zip(self.code.fields, self.values, strict=True)
        told = {name: _plain(value) for name, value in pairs if value is not None}
        return {"code": self.code.code, **told, **({"at": self.at} if self.at else {})}

    def __repr__(self) -> str:
        """ "clamped(low=0, high=63)"."""
        pairs = zip(self.code.fields, self.values, strict=True)
        told = f"{self.code.code}({', '.join(f'{name}={value!r}' for name, value in pairs)})"
        return f"{told} at {self.at}" if self.at else told


def _plain(value: Value) -> Any:
    if isinstance(value, Cause):
        return value.to_json()
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


AS_IT_IS = frozenset({Code.KEPT, Code.KEPT_AS_FASTER})
"""Why a scatter is kept that the target takes."""
