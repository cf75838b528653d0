"""What an attribute asks or promises, which shows in no result on a CPU; and whether a second version asks for less.

XLA computes all products of one type alike there, believes no flag of a scatter, and takes an algorithm of its own
choice for random bits where none is asked for. A second version that asks for less, or promises what the first one does
not, would be equal, and would not be on another device. So each operation of the second version is compared with the
one of the first that it stands for: the one of the same number (`hlo_lower.verify.read.numbering`) without such
attributes.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.counterparts import counterparts, numbered
from hlo_lower.verify.drive.stable_sorts import IS_STABLE, MARK
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Op, ops_within

PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")
UNIQUE, SORTED = "unique_indices", "indices_are_sorted"
PROMISES = (UNIQUE, SORTED)

_PRODUCTS = ("dot_general", "dot", "convolution", "dynamic_conv", "einsum")
_KINDS = {f"stablehlo.{name}": "product" for name in _PRODUCTS}
CUSTOM_CALL = "stablehlo.custom_call"

Kind = Literal["function", "setting", "request", "promise", "order"]
Told: TypeAlias = Hashable | None
"""An attribute; None where an operation has none of that name."""


def _precisions(told: Told) -> list[int]:
    """The precision of each operand; that of one by default, for both."""
    return [PRECISIONS.index(name) for name in re.findall(r"DEFAULT|HIGHEST|HIGH", str(told or ""))] or [0, 0]


def _is_precise(mine: Told, theirs: Told) -> bool:
    pairs = zip(_precisions(mine), _precisions(theirs), strict=False)
    return all(theirs >= mine for mine, theirs in pairs)


def _is_accurate(mine: Told, theirs: Told) -> bool:
    """Whether an accuracy is at least another one: the highest there is, or smaller tolerances of the same kinds."""
    own, other = str(mine or ""), str(theirs or "")
    if own == other or "HIGHEST" in other or "TOLERANCE" not in own + other:
        return "HIGHEST" not in own or "HIGHEST" in other
    bounds = [dict(re.findall(r"(atol|rtol|ulps) = ([^,>]+)", text)) for text in (own, other)]
    is_tolerance = all("TOLERANCE" in text for text in (own, other)) and bounds[0].keys() == bounds[1].keys()
    return is_tolerance and all(float(bounds[1][name]) <= float(bound) for name, bound in bounds[0].items())


def _is_exact(mine: Told, theirs: Told) -> bool:
    """Whether an algorithm of a product is another one, or that one with more of its steps."""
    own, other = (re.sub(r"allow_imprecise\w+ = false", "", str(told or "")) for told in (mine, theirs))
    steps = [
        int(found[1]) if (found := re.search(r"primitive_operations = (\d+)", text)) else 0 for text in (own, other)
    ]
    own, other = (re.sub(r"num_primitive\w+ = \d+", "", text) for text in (own, other))
    return steps[1] >= steps[0] and other in (own, re.sub(r"allow_imprecise\w+ = true", "", own))


def _is_part(mine: Told, theirs: Told) -> bool:
    """Whether a list of dims says of no dim what another one does not."""
    own, other = (set(re.findall(r"\d+", str(told or "").partition(":")[2])) for told in (mine, theirs))
    return other <= own


def _is_same(mine: Told, theirs: Told) -> bool:
    return str(mine) == str(theirs)


def _is_free(mine: Told, theirs: Told) -> bool:
    return True


@dataclass(frozen=True)
class Meaning:
    """What an attribute of an operation is for.

    Attributes:
      kind: "function": what is computed depends on it; "setting": so it does, which a CPU need not show; "request": how
        well; "promise": it is about what the operation is given; "order": that of equal rows
        (`hlo_lower.verify.drive.stable_sorts`).
      may_be: whether the second version may have one (behind) where the first one has another.
    """

    kind: Kind
    may_be: Callable[[Told, Told], bool] = _is_same


FUNCTION = Meaning("function")

MEANINGS: Mapping[str, Meaning] = {
    "precision_config": Meaning("request", _is_precise),
    "algorithm": Meaning("request", _is_exact),
    "result_accuracy": Meaning("request", _is_accurate),
    UNIQUE: Meaning("promise", _is_free),  # looked at by itself: `hlo_lower.verify.read.index_promises`
    SORTED: Meaning("promise", _is_free),
    **dict.fromkeys(("rng_algorithm", "backend_config", "mhlo.backend_config", "api_version"), Meaning("setting")),
    "known_expanding_dimensions": Meaning("promise", _is_part),
    "known_nonexpanding_dimensions": Meaning("promise", _is_part),
    IS_STABLE: Meaning("order", _is_free),
    MARK: Meaning("order", _is_free),
    **dict.fromkeys(
        (
            *("all_gather_dim", "base_dilations", "batch_dims", "batch_group_count"),
            *("broadcast_dimensions", "broadcast_sizes", "call_target_name", "called_computations", "channel_handle"),
            *("compare_type", "comparison_direction", "composite_attributes", "concat_dimension", "decomposition"),
            *("dim", "dimension", "dimension_numbers", "dimensions", "dot_dimension_numbers", "edge_padding_high"),
            *("edge_padding_low", "einsum_config", "epsilon", "exponent_bits", "feature_group_count", "feature_index"),
            *("fft_length", "fft_type", "has_side_effect", "index", "infeed_config", "interior_padding"),
            *("iota_dimension", "is_host_transfer", "layout", "left_side", "lhs_dilation", "limit_indices", "lower"),
            *("mantissa_bits", "name", "operand_layouts", "outfeed_config", "output_operand_aliases", "padding"),
            *("permutation", "replica_groups", "result_layouts", "rhs_dilation", "rng_distribution"),
            *("scatter_dimension", "scatter_dimension_numbers", "slice_sizes", "source_target_pairs", "split_count"),
            *("split_dimension", "start_indices", "strides", "transpose_a", "unit_diagonal", "value", "version"),
            *("window_dilations", "window_dimensions", "window_reversal", "window_strides"),
        ),
        FUNCTION,
    ),
}
"""Every attribute of every operation of StableHLO."""

ASKED = tuple(name for name, meaning in MEANINGS.items() if meaning.kind in ("setting", "request"))

FOREIGN = Meaning("request")
"""An attribute of another dialect, on an operation that is no call: what a compiler makes of it is not known."""

PLACED = "sharding"
"""How an attribute ends that says on which devices a value lies, not what it is."""


def meaning_of(op: Op, name: str) -> Meaning:
    """What an attribute of an operation is for."""
    if name in MEANINGS:
        return MEANINGS[name]
    is_foreign = "." in name and not name.endswith(PLACED) and op.name != CUSTOM_CALL
    return FOREIGN if is_foreign else FUNCTION


def is_unshown(op: Op, name: str) -> bool:
    """Whether an attribute has no part in what is computed."""
    return meaning_of(op, name).kind not in ("function", "setting")


def _is_told(op: Op) -> bool:
    """Whether an operation has an attribute whose part in what is computed may not show."""
    return any(meaning_of(op, name).kind != "function" for name, _ in op.attributes)


def told(op: Op, name: str) -> Told:
    """An attribute of an operation."""
    return next((value for key, value in op.attributes if key == name), None)


@dataclass(frozen=True)
class Unshown:
    """How two pieces differ in what does not show.

    Attributes:
      less: why the second one may be worse elsewhere: it asks for less; "" where it does not.
      promised: its operations that promise what those that they stand for do not, each with the flags.
      is_all: whether that is all the difference.
    """

    less: str = ""
    promised: tuple[tuple[Op, tuple[str, ...]], ...] = ()
    is_all: bool = False


def unshown_in(region: Region) -> Unshown:
    """How the pieces of a region differ in what does not show."""
    own, others = (ops_within(ops) for _, ops in region.sides)
    families = {_family(op) for op in own if _is_told(op)}

    def is_asked(op: Op) -> bool:
        return _is_told(op) or _family(op) in families

    if not any(map(is_asked, others)):
        return Unshown()
    table = Table(is_unshown)
    first, second = (numbered(table, side, ops) for side, ops in region.sides)
    is_all = all(first.numbers[o.first] == second.numbers[o.second] for o in region.outputs)
    pairs = list(counterparts(table, first, second, is_asked))
    matched = {op for mine, _ in pairs for op in mine}
    rewritten = [op for op in own if is_asked(op) and op not in matched]
    left = rewritten or [op for op in own if is_asked(op)]
    less = next(filter(None, (_less_than(mine, op) if mine else _less_of(left, op) for mine, op in pairs)), "")
    more = [(op, _more_than(mine, op, any) if mine else _more_than(rewritten, op, all)) for mine, op in pairs]
    return Unshown(less, tuple((op, flags) for op, flags in more if flags), is_all)


def _less_than(mine: Sequence[Op], op: Op) -> str:
    """What an operation asks for less than those that it stands for."""
    for own in mine:
        for name in sorted({name for one in (own, op) for name, _ in one.attributes if is_unshown(one, name)}):
            if not meaning_of(op, name).may_be(told(own, name), told(op, name)):
                return _reason(op, name, told(own, name))
    return ""


def _less_of(left: Sequence[Op], op: Op) -> str:
    """The same of one that stands for none: less than any that is left, of its kind."""
    for own in left:
        for name in ASKED if _family(own) == _family(op) else ():
            if not _may_stand(name, told(own, name), told(op, name)):
                return _reason(op, name, told(own, name))
    return ""


def _may_stand(name: str, mine: Told, theirs: Told) -> bool:
    """Whether an attribute may be that of an operation that was rewritten, perhaps with its operands exchanged."""
    if name == "precision_config":
        return all(b >= a for a, b in zip(*(sorted(_precisions(one)) for one in (mine, theirs)), strict=False))
    return MEANINGS[name].may_be(mine, theirs)


def _family(op: Op) -> str:
    return f"{op.name} {told(op, 'call_target_name')}" if op.name == CUSTOM_CALL else _KINDS.get(op.name, op.name)


def _more_than(mine: Sequence[Op], op: Op, are_enough: Callable[[Iterable[bool]], bool]) -> tuple[str, ...]:
    """The flags that an operation has and those that it stands for have not."""
    own = [one for one in mine if one.name == op.name]
    kept = [name for name in PROMISES if own and are_enough(str(told(one, name)) == "true" for one in own)]
    return tuple(name for name in PROMISES if str(told(op, name)) == "true" and name not in kept)


def _reason(op: Op, name: str, mine: Told) -> str:
    if name == "precision_config":
        theirs, own = (PRECISIONS[min(_precisions(one))] for one in (told(op, name), mine))
        return f"a product of {theirs} precision in the place of {own}"
    return f"{op.short_name} with {name} = {told(op, name) or 'none'} in the place of {mine or 'none'}"
