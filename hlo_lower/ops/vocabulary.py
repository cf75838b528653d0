"""The named ops: what each one is called in a composite (`hl.rms_norm`), what it takes, and what its attributes mean.

This table is what `hl.named` checks a name and attributes against, what a recogniser writes, and what a target spells
in its own way. It holds no pattern: an op is defined here in a line, and recognised elsewhere.
"""

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "hl."
"""What a composite's name starts with."""

VERSION: Final = 1
"""Of the composites: it is raised where an attribute changes its meaning."""


@dataclass(frozen=True)
class AttributeOfOp:
    """One attribute of a named op.

    Attributes:
      name: as it stands in `composite_attributes`.
      type: float, int, bool or str; a tuple of int where `several`.
      meaning: in a few words, with the unit where there is one.
      default: what it is where it is left out; None where it must be given.
      choices: the values of a text; empty where it is no text, or any.
      several: it is a list of whole numbers.
    """

    name: str
    type: type
    meaning: str
    default: float | int | bool | str | None = None
    choices: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True)
class OpInVocabulary:
    """A named op.

    Attributes:
      name: without the prefix.
      takes: its operands, in order; those in brackets may be left out.
      or_takes: another list of operands that it may have; "" where there is none.
      definition: what it computes, in a line.
      attributes: what is fixed when the module is written.
    """

    name: str
    takes: str
    definition: str
    attributes: tuple[AttributeOfOp, ...] = ()
    or_takes: str = ""


def _axis(meaning: str = "along which") -> AttributeOfOp:
    return AttributeOfOp("axis", int, f"{meaning}, from 0")


def _axes(meaning: str) -> AttributeOfOp:
    return AttributeOfOp("axes", int, f"{meaning}, from 0, ascending", several=True)


def _flag(name: str, meaning: str) -> AttributeOfOp:
    """True or False, False where it is left out."""
    return AttributeOfOp(name, bool, meaning, default=False)


def _epsilon(where: str) -> AttributeOfOp:
    return AttributeOfOp("epsilon", float, f"added {where}")


def _choice(name: str, meaning: str, *choices: str) -> AttributeOfOp:
    """A text, the first choice where it is left out."""
    return AttributeOfOp(name, str, meaning, default=choices[0], choices=choices)


_WEIGHT = AttributeOfOp(
    "weight",
    str,
    "what the normalized value is multiplied by: nothing, the operand, or one plus the operand",
    default="plain",
    choices=("none", "plain", "one_plus"),
)

_EMPTY_ROWS = _choice("empty_rows", "what a row of nothing but -inf gives", "nan", "zero")

_ACCUMULATE = AttributeOfOp(
    "accumulate", str, "the element type that it is computed in, where that is another", default=""
)

_NEGATIVE = _choice("negative", "what a position below 0 is: counted from the end, or outside", "outside", "from_end")


def _outside(meaning: str, *choices: str) -> AttributeOfOp:
    """What becomes of positions that are out of bounds, after those below 0 are counted from the end."""
    return _choice("outside", f"positions out of bounds: {meaning}", *choices)


_FILLED = "moved to the nearest, or give NaN (integers: the lowest number, unsigned the largest)"

_VARIANCE = _epsilon("to the variance, below the root")

_ACCUMULATED = tuple(
    OpInVocabulary(
        name,
        "x",
        f"result i is {of} of the elements of x up to and including i, along the axis",
        (_axis(), _flag("reverse", "from the end on")),
    )
    for name, of in (
        ("cumsum", "the sum"),
        ("cumprod", "the product"),
        ("cummax", "the maximum"),
        ("cummin", "the minimum"),
        ("cumlogsumexp", "the logsumexp"),
    )
)

NAMED_OPS: Final = (
    OpInVocabulary(
        "softmax",
        "x, [where]",
        "exp(x - m) / sum(exp(x - m)), m the maximum of the same row; where `where` is false, x is -inf",
        (_axis(), _EMPTY_ROWS, _ACCUMULATE),
    ),
    OpInVocabulary(
        "log_softmax", "x", "x - m - log(sum(exp(x - m))), m the maximum of the same row", (_axis(), _ACCUMULATE)
    ),
    OpInVocabulary(
        "logsumexp",
        "x",
        "log(sum(exp(x - m))) + m",
        (_axes("that are summed"), _flag("keepdims", "they stay with size 1"), _ACCUMULATE),
    ),
    OpInVocabulary(
        "layer_norm",
        "x, [weight], [bias]",
        "(x - mean) / sqrt(mean((x - mean)**2) + epsilon) * weight + bias",
        (_axes("of mean and variance"), _VARIANCE, _WEIGHT),
    ),
    OpInVocabulary(
        "rms_norm",
        "x, [weight]",
        "x / sqrt(mean(x**2) + epsilon) * weight",
        (_axes("of the mean"), _epsilon("to the mean of squares, below the root"), _WEIGHT),
    ),
    OpInVocabulary(
        "group_norm",
        "x, [weight], [bias]",
        "layer_norm over groups of channels and all axes but the batch's",
        (
            AttributeOfOp("num_groups", int, "into which the channels are parted"),
            _VARIANCE,
            AttributeOfOp("channel_axis", int, "the axis of channels, from 0"),
        ),
    ),
    OpInVocabulary(
        "batch_norm",
        "x, [weight], [bias], mean, variance",
        "(x - mean) / sqrt(variance + epsilon) * weight + bias with mean and variance given, as in inference",
        (_VARIANCE, AttributeOfOp("channel_axis", int, "the axis of channels, from 0")),
    ),
    OpInVocabulary(
        "l2_norm",
        "x",
        "x / sqrt(sum(x**2)), held away from 0 by epsilon",
        (
            _axes("of the sum"),
            AttributeOfOp("epsilon", float, "by which the root is held away from 0", default=0.0),
            _choice(
                "guard",
                "sqrt(sum), sqrt(sum + epsilon), sqrt(max(sum, epsilon)), max(sqrt(sum), epsilon), sqrt(sum) + epsilon",
                *("none", "add_inside", "max_inside", "max_outside", "add_outside"),
            ),
        ),
    ),
    OpInVocabulary(
        "gelu",
        "x",
        "x * P(X <= x), X standard normal; tanh: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))",
        (_choice("approximate", "as PyTorch calls it", "none", "tanh"),),
    ),
    OpInVocabulary("silu", "x", "x / (1 + exp(-x))"),
    OpInVocabulary("relu", "x", "max(x, 0)"),
    OpInVocabulary("relu6", "x", "min(max(x, 0), 6)"),
    OpInVocabulary("hard_swish", "x", "x * min(max(x + 3, 0), 6) / 6"),
    OpInVocabulary(
        "rope",
        "x, cos, sin",
        "pairs of the last axis turned by an angle each: (a, b) to (a*cos - b*sin, b*cos + a*sin); "
        "rotation: the complex cos + i*sin in the place of both tables",
        (
            AttributeOfOp(
                "pairs",
                str,
                "which elements are a pair: i and i + size/2, or 2i and 2i + 1, or these, written as i and i + size/2",
                choices=("halves", "interleaved", "interleaved_to_halves"),
            ),
            _axes("along which the tables run, their axes of 1 and the last left out"),
            AttributeOfOp("size", int, "how many elements are turned, from the first on; 0: all", default=0),
        ),
        or_takes="x, rotation",
    ),
    OpInVocabulary(
        "attention",
        "query, key, value, [mask], [bias], [causal_mask]",
        "softmax(scale * query @ key^T, masked) @ value, for each batch and head",
        (
            AttributeOfOp("scale", float, "of the scores", default=1.0),
            _flag("causal", "no position sees a later one: k of the layout is at most q, both counted from the first"),
            _choice(
                "mask",
                "what the operand mask is: none, true where it is seen, or added to the scores",
                *("none", "boolean", "additive"),
            ),
            _flag("mask_hides", "a boolean mask is true where a position is hidden"),
            AttributeOfOp("layout", str, "axes of query, key, value, masks and result, as in an einsum", default=""),
            _choice("empty_rows", "what a row that sees nothing gives", "nan", "zero"),
            AttributeOfOp("softcap", float, "c in c * tanh(scores / c); 0: none", default=0.0),
            AttributeOfOp("window", int, "how many positions back are seen, itself among them; 0: all", default=0),
        ),
    ),
    OpInVocabulary(
        "top_k",
        "x",
        "the k largest and their positions",
        (
            AttributeOfOp("k", int, "how many"),
            _axis(),
            AttributeOfOp("largest", bool, "else the smallest", default=True),
            _choice("gives", "which of the two are results", "both", "values", "positions"),
        ),
    ),
    OpInVocabulary("argmax", "x", "position of the first maximum", (_axis(),)),
    OpInVocabulary("argmin", "x", "position of the first minimum", (_axis(),)),
    OpInVocabulary(
        "one_hot",
        "positions",
        "1 where the new axis' position is the operand's, else 0",
        (
            AttributeOfOp("depth", int, "size of the new axis"),
            _axis("the new one"),
            _NEGATIVE,
            _outside(f"give zeros, are {_FILLED}", "zero", "clamp", "fill"),
        ),
    ),
    OpInVocabulary(
        "embedding_lookup",
        "table, positions",
        "rows of the table: table[positions], the row's axis last",
        (_NEGATIVE, _outside(f"are {_FILLED}, or zeros", "clamp", "fill", "zero")),
    ),
    *_ACCUMULATED,
    OpInVocabulary(
        "take_along_axis",
        "x, positions",
        "x at the positions, whose other axes are x's; positions without the axis are of one element each",
        (_axis(), _NEGATIVE, _outside(f"are {_FILLED}", "clamp", "fill")),
    ),
    OpInVocabulary("dropout", "x", "x itself: dropout of inference, left in the module"),
    OpInVocabulary(
        "linear",
        "x, weight, bias",
        "x @ weight + bias; the axes that the weight adds are the bias', behind those of x that stay",
        (_flag("transposed", "the weight has the axes that are summed behind the others, as PyTorch keeps it"),),
    ),
    OpInVocabulary("swiglu", "gate, up", "silu(gate) * up"),
    OpInVocabulary(
        "kv_cache_update",
        "cache, new, position",
        "the cache with the new rows from the position on; new without the axis is one row",
        (
            _axis("of positions"),
            _choice(
                "position_of",
                "whose the position is: that of the first new row, of each new row, "
                "or for each entry of axis 0 that of its first",
                *("first", "rows", "batch"),
            ),
            _NEGATIVE,
            _outside("the rows are moved to where they fit, or dropped", "clamp", "drop"),
        ),
    ),
)

BY_NAME: Final = {op.name: op for op in NAMED_OPS}
