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
      choices: the values of a text; empty where it is not text, or any.
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


def _axis(meaning: str = "the axis") -> AttributeOfOp:
    return AttributeOfOp("axis", int, meaning)


def _axes(meaning: str) -> AttributeOfOp:
    return AttributeOfOp("axes", int, meaning, several=True)


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
    "the normalized value is multiplied by nothing, by the operand, or by one plus the operand",
    default="plain",
    choices=("none", "plain", "one_plus"),
)

_EMPTY_ROWS = _choice("empty_rows", "the result of a row that holds only -inf", "nan", "zero")

_ACCUMULATE = AttributeOfOp("accumulate", str, "the element type of the computation, if it is another one", default="")

_NEGATIVE = _choice(
    "negative", "whether a position below 0 is out of bounds or counts from the end", "outside", "from_end"
)


def _outside(meaning: str, *choices: str) -> AttributeOfOp:
    """What becomes of positions that are out of bounds, after those below 0 are counted from the end."""
    return _choice("outside", f"positions out of bounds {meaning}", *choices)


_FILLED = "move to the nearest, or give NaN (integers: the lowest number, unsigned: the largest)"

_VARIANCE = _epsilon("to the variance, under the root")

_ACCUMULATED = tuple(
    OpInVocabulary(
        name,
        "x",
        f"result i is {of} of x up to and including i",
        (_axis(), _flag("reverse", "start at the end")),
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
        (_axes("the summed axes"), _flag("keepdims", "keep them with size 1"), _ACCUMULATE),
    ),
    OpInVocabulary(
        "layer_norm",
        "x, [weight], [bias]",
        "(x - mean) / sqrt(mean((x - mean)**2) + epsilon) * weight + bias",
        (_axes("axes of mean and variance"), _VARIANCE, _WEIGHT),
    ),
    OpInVocabulary(
        "rms_norm",
        "x, [weight]",
        "x / sqrt(mean(x**2) + epsilon) * weight",
        (_axes("axes of the mean"), _epsilon("to the mean of squares, under the root"), _WEIGHT),
    ),
    OpInVocabulary(
        "group_norm",
        "x, [weight], [bias]",
        "layer_norm over groups of channels and all axes except the batch's",
        (
            AttributeOfOp("num_groups", int, "number of groups of channels"),
            _VARIANCE,
            AttributeOfOp("channel_axis", int, "the axis of channels"),
        ),
    ),
    OpInVocabulary(
        "batch_norm",
        "x, [weight], [bias], mean, variance",
        "(x - mean) / sqrt(variance + epsilon) * weight + bias with mean and variance given, as in inference",
        (_VARIANCE, AttributeOfOp("channel_axis", int, "the axis of channels")),
    ),
    OpInVocabulary(
        "l2_norm",
        "x",
        "x / sqrt(sum(x**2)); epsilon keeps the root away from 0",
        (
            _axes("axes of the sum"),
            AttributeOfOp("epsilon", float, "keeps the root away from 0", default=0.0),
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
        (_choice("approximate", "PyTorch's name of the form", "none", "tanh"),),
    ),
    OpInVocabulary("silu", "x", "x / (1 + exp(-x))"),
    OpInVocabulary("relu", "x", "max(x, 0)"),
    OpInVocabulary("relu6", "x", "min(max(x, 0), 6)"),
    OpInVocabulary("hard_swish", "x", "x * min(max(x + 3, 0), 6) / 6"),
    OpInVocabulary(
        "rope",
        "x, cos, sin",
        "turns each pair of the last axis by an angle: (a, b) becomes (a*cos - b*sin, b*cos + a*sin); "
        "rotation: the complex cos + i*sin instead of both tables",
        (
            AttributeOfOp(
                "pairs",
                str,
                "the pair: i and i + size/2, 2i and 2i + 1, or read at 2i and 2i + 1 and written at i and i + size/2",
                choices=("halves", "interleaved", "interleaved_to_halves"),
            ),
            _axes("axes of the tables, without those of size 1 and the last"),
            AttributeOfOp("size", int, "how many elements turn, from the first on; 0: all", default=0),
        ),
        or_takes="x, rotation",
    ),
    OpInVocabulary(
        "attention",
        "query, key, value, [mask], [bias], [causal_mask]",
        "softmax(scale * query @ key^T, masked) @ value, for each batch and head",
        (
            AttributeOfOp("scale", float, "factor of the scores", default=1.0),
            _flag("causal", "no position sees a later one: k of the layout is at most q, both counted from 0"),
            _choice(
                "mask",
                "the operand `mask`: absent, true where a position is seen, or added to the scores",
                *("none", "boolean", "additive"),
            ),
            _flag("mask_hides", "the boolean mask is true where a position is hidden"),
            AttributeOfOp("layout", str, "axes of query, key, value, masks and result, as in an einsum", default=""),
            _choice("empty_rows", "the result of a row that sees nothing", "nan", "zero"),
            AttributeOfOp("softcap", float, "c in c * tanh(scores / c); 0: none", default=0.0),
            AttributeOfOp(
                "window", int, "how many positions a query sees, counted back from its own; 0: all", default=0
            ),
        ),
    ),
    OpInVocabulary(
        "top_k",
        "x",
        "the k largest and their positions",
        (
            AttributeOfOp("k", int, "number of elements"),
            _axis(),
            AttributeOfOp("largest", bool, "the largest, or the smallest", default=True),
            _choice("gives", "which of the two it returns", "both", "values", "positions"),
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
            _axis("the new axis"),
            _NEGATIVE,
            _outside(f"give zeros, {_FILLED}", "zero", "clamp", "fill"),
        ),
    ),
    OpInVocabulary(
        "embedding_lookup",
        "table, positions",
        "table[positions]: rows of the table, the row's axis last",
        (_NEGATIVE, _outside(f"{_FILLED}, or give zeros", "clamp", "fill", "zero")),
    ),
    *_ACCUMULATED,
    OpInVocabulary(
        "take_along_axis",
        "x, positions",
        "x at the positions, whose other axes are those of x; positions without the axis give one element each",
        (_axis(), _NEGATIVE, _outside(_FILLED, "clamp", "fill")),
    ),
    OpInVocabulary("dropout", "x", "x itself: dropout in inference, left in the module"),
    OpInVocabulary(
        "linear",
        "x, weight, bias",
        "x @ weight + bias; the axes that the weight adds come after those of x that stay, and are the bias's",
        (_flag("transposed", "the summed axes of the weight come last, as in PyTorch"),),
    ),
    OpInVocabulary("swiglu", "gate, up", "silu(gate) * up"),
    OpInVocabulary(
        "kv_cache_update",
        "cache, new, position",
        "the cache with the new rows from the position on; `new` without the axis is one row",
        (
            _axis("the axis of positions"),
            _choice(
                "position_of",
                "the operand `position` holds the position of the first new row, of each new row, "
                "or of the first new row of each entry of axis 0",
                *("first", "rows", "batch"),
            ),
            _NEGATIVE,
            _outside("move the rows to where they fit, or drop them", "clamp", "drop"),
        ),
    ),
)

BY_NAME: Final = {op.name: op for op in NAMED_OPS}
