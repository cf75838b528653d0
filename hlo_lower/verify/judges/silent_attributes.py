"""What an attribute asks or promises, which shows in no result on a CPU; and whether a second version asks for less.

XLA computes all products of one type alike there, believes no flag of a scatter, and takes an algorithm of its own
choice for random bits where none is asked for. A second version that asks for less, or promises what the first one does
not, would be equal, and would not be on another device. So each operation of the second version is compared with the
one of the first that it stands for: the one of the same number (`hlo_lower.verify.read.numbering`) without such
attributes, or the one that the alignment has for it, with all of them (`stands_for`). One that stands for none is held
against each that is left.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.names import CUSTOM_CALL
from hlo_lower.ops.spec import PRODUCTS
from hlo_lower.verify.align.align import (
    Aligner,
    BodyPair,
    Numbered,
    Region,
    aligned_body,
    counterparts,
    number_piece,
    regions_of,
)
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Op, Program, TooLargeError, ops_within

IS_STABLE = "is_stable"
MARK = "mhlo.any_order"
"""Of a sort that is taken as stable and is not."""

PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")
UNIQUE, SORTED = "unique_indices", "indices_are_sorted"
PROMISES = (UNIQUE, SORTED)


Kind = Literal["function", "setting", "request", "promise", "order", "place"]
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


def _sums_as_well(mine: Op, op: Op) -> bool:
    """Whether a product of the highest precision sums in what holds all that the algorithm of another one sums in."""
    sums = mlir.dot_algorithm(mine.raw).get("accumulation_type", "")
    result = str(mlir.tensor_element(op.raw.results[0].type))
    is_highest = (
        "algorithm" not in dict(op.attributes) and min(_precisions(attribute_value(op, "precision_config"))) == 2
    )
    return is_highest and (sums == result or element_type(result).holds(element_type(sums)))


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
        (`hlo_lower.verify.judges.silent_attributes`); "place": on which devices its values lie.
      may_be: whether the second version may have one (behind) where the first one has another.
    """

    kind: Kind
    may_be: Callable[[Told, Told], bool] = _is_same


FUNCTION = Meaning("function")

MEANINGS: Mapping[str, Meaning] = {
    "precision_config": Meaning("request", _is_precise),
    "algorithm": Meaning("request", _is_exact),
    "result_accuracy": Meaning("request", _is_accurate),
    UNIQUE: Meaning("promise", _is_free),  # looked at by itself: `hlo_lower.verify.drive.indices`
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

PLACE = Meaning("place", _is_free)


def meaning_of(op: Op, name: str) -> Meaning:
    """What an attribute of an operation is for."""
    if name in MEANINGS:
        return MEANINGS[name]
    if "." in name and name.endswith(PLACED):
        return PLACE
    return FOREIGN if "." in name and op.name != CUSTOM_CALL else FUNCTION


def is_unshown(op: Op, name: str) -> bool:
    """Whether an attribute has no part in what is computed."""
    return meaning_of(op, name).kind not in ("function", "setting")


def _is_told(op: Op) -> bool:
    """Whether an operation has an attribute whose part in what is computed may not show."""
    return any(meaning_of(op, name).kind not in ("function", "place") for name, _ in op.attributes)


def attribute_value(op: Op, name: str) -> Told:
    """The value of an op's attribute, or None."""
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


Aligned: TypeAlias = Mapping[Op, Sequence[Op]]
"""Operations of the second version, each with those of the first one for which it stands."""


def stands_for(pairs: Sequence[BodyPair]) -> Aligned:
    """What the alignment has of operations that ask or promise something: the same operations, of equal values.

    Their numbers count each attribute. The values that they read are equal by what is assumed, which holds wherever
    all regions are equal; what is assumed of their own results does not count.
    """
    found: dict[Op, list[Op]] = defaultdict(list)
    for pair in pairs:
        sides = aligned_body(pair.first), aligned_body(pair.second)
        if all(any(map(_is_told, ops_within(side.ops))) for side in sides):
            for mine, op in counterparts(pair.first.table, *sides, _is_told):
                found[op] += mine
    return {op: mine for op, mine in found.items() if mine}


def unshown_in(region: Region, aligned: Aligned) -> Unshown:
    """How the pieces of a region differ in what does not show.

    Args:
      region: the region.
      aligned: what the alignment has of operations (`stands_for`).
    """
    own, others = (ops_within(ops) for _, ops in region.sides)
    families = {_family(op) for op in own if _is_told(op)}

    def is_asked(op: Op) -> bool:
        return _is_told(op) or _family(op) in families

    if not any(map(is_asked, others)):
        return Unshown()
    table = Table(is_unshown)
    first, second = (number_piece(table, side, ops) for side, ops in region.sides)
    is_all = all(first.numbers[o.first] == second.numbers[o.second] for o in region.outputs)
    found = counterparts(table, first, second, is_asked)
    pairs = [(aligned.get(op) or mine, op) for mine, op in found]
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
            is_enough = meaning_of(op, name).may_be(attribute_value(own, name), attribute_value(op, name))
            if not is_enough and not (name == "algorithm" and _sums_as_well(own, op)):
                return _reason(op, name, attribute_value(own, name))
    return ""


def _less_of(left: Sequence[Op], op: Op) -> str:
    """The same of one that stands for none: less than any that is left, of its kind."""
    for own in left:
        for name in ASKED if _family(own) == _family(op) else ():
            is_enough = _may_stand(name, attribute_value(own, name), attribute_value(op, name))
            if not is_enough and not (name == "algorithm" and _sums_as_well(own, op)):
                return _reason(op, name, attribute_value(own, name))
    return ""


def _may_stand(name: str, mine: Told, theirs: Told) -> bool:
    """Whether an attribute may be that of an operation that was rewritten, perhaps with its operands exchanged."""
    if name == "precision_config":
        return all(b >= a for a, b in zip(*(sorted(_precisions(one)) for one in (mine, theirs)), strict=False))
    return MEANINGS[name].may_be(mine, theirs)


def _family(op: Op) -> str:
    if op.name == CUSTOM_CALL:
        return f"{op.name} {attribute_value(op, 'call_target_name')}"
    return "product" if op.name in PRODUCTS else op.name


def _more_than(mine: Sequence[Op], op: Op, are_enough: Callable[[Iterable[bool]], bool]) -> tuple[str, ...]:
    """The flags that an operation has and those that it stands for have not."""
    own = [one for one in mine if one.name == op.name]
    kept = [name for name in PROMISES if own and are_enough(str(attribute_value(one, name)) == "true" for one in own)]
    return tuple(name for name in PROMISES if str(attribute_value(op, name)) == "true" and name not in kept)


def _reason(op: Op, name: str, mine: Told) -> str:
    if name == "precision_config":
        theirs, own = (PRECISIONS[min(_precisions(one))] for one in (attribute_value(op, name), mine))
        return f"a product of {theirs} precision in the place of {own}"
    return f"{op.short_name} with {name} = {attribute_value(op, name) or 'none'} in the place of {mine or 'none'}"


# --- orders of sorts ---
#
# Sorts that are not stable: any order of equal elements is right, so that of a stable sort stands for all of them.
#
# XLA gives another one only in rows of more than 16 elements, so what a sort allows is judged as a property of the
# operation. The first version's sorts are taken as stable ones, which is one of the orders that they allow. One of the
# second version that is not stable either is taken so, too, where it stands for such a sort: one of the same operands
# and the same comparator, as a function, or the only ones of their type in a region. Any other one is replaced by what
# it may give as well: the order of equal elements turned round. Where that makes no difference no stability was lost,
# as where no elements are equal, or those that are cannot be told apart.
#
# What such a sort of the first version allows beside the order that it is run in is not known: where one falls into a
# region, a difference may be another order, and the region is not judged (`allows_another`).
#
# What was found to stand for another one is marked, and is looked at again where it falls into a region
# (`freed_order`): the match may rest on values that are not equal.


def make_stable(first: mlir.RawModule, second: mlir.RawModule) -> bool:
    """Take the sorts of two versions as stable ones, in place, as far as that is right; whether any was changed.

    Args:
      first, second: the versions, of one context.
    """
    found = [_unstable(module) for module in (first, second)]
    if not any(found):
        return False
    with mlir.active(first.context):
        free, unclear = (mlir.parse_attribute(text) for text in ("true", "false"))
        for sort in (*found[0], *found[1]):
            sort.attributes[IS_STABLE] = free
        own, others = map(set, found)  # only now: an operation's hash is that of its attributes, too
        by_number, by_region = _counterparts(first, second) if own and others else ({}, {})
        marks: list[tuple[mlir.RawOperation, mlir.RawAttribute]] = []
        turned: list[mlir.RawOperation] = []
        for other in others:
            mine = by_number.get(other) or by_region.get(other, set())
            if mine & own:
                marks += [(other, free if mine <= own or other in by_number else unclear)]
                marks += [(sort, free) for sort in mine & own]
            else:
                turned.append(other)
        matched = {sort for mine in by_number.values() for sort in mine}
        marks += [(sort, free) for sort in own - matched]
        for sort, mark in marks:
            sort.attributes[MARK] = mark
        for sort in turned:
            _turn_round(sort)
    return True


def allows_another(ops: Sequence[Op]) -> bool:
    """Whether a piece of the first version holds a sort that may give another order than it is run in."""
    return bool(_marked_ops(ops))


def freed_order(first: Sequence[Op], second: Sequence[Op]) -> str:
    """Why two pieces are not compared: one that is run in a stable order may take another one; "" else."""
    own, others = _marked_ops(first), _marked_ops(second)
    is_freed = Counter(map(_kind, others)) - Counter(map(_kind, own))
    if is_freed or any(str(sort.attributes[MARK]) == "false" for sort in others):
        return "a sort that is not stable, in the place of none of the first version's"
    return ""


def _marked_ops(ops: Sequence[Op]) -> list[mlir.RawOperation]:
    return [op.raw for op in ops_within(ops) if MARK in op.raw.attributes]


def _unstable(module: mlir.RawModule) -> list[mlir.RawOperation]:
    sorts, _ = mlir.find_named(module.operation, (names.SORT,))
    return [op for op in sorts if IS_STABLE not in op.attributes or str(op.attributes[IS_STABLE]) != "true"]


Standing: TypeAlias = dict[mlir.RawOperation, set[mlir.RawOperation]]


def _counterparts(first: mlir.RawModule, second: mlir.RawModule) -> tuple[Standing, Standing]:
    """The sorts of the first version for which one of the second may stand, all of them taken as stable: those of the
    same number, and those of the same kind in its region."""
    by_number, by_region = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set)
    try:
        programs = Program(first), Program(second)
    except TooLargeError:
        return by_number, by_region
    for name in set(programs[0].entries) & set(programs[1].entries):
        pairs = Aligner(*programs, frozenset(), {}).align(name)
        for pair in pairs:
            own, other = (Numbered(s.program, s.live, s.numbers, s.depth) for s in (pair.first, pair.second))
            for mine, op in counterparts(pair.first.table, own, other, _is_sort):
                if mine:
                    by_number[op.raw].update(one.raw for one in mine)
        for region in regions_of(pairs):
            sorts = [[op.raw for op in ops_within(ops) if _is_sort(op)] for _, ops in region.sides]
            for sort in sorts[1]:
                by_region[sort].update(one for one in sorts[0] if _kind(one) == _kind(sort))
    return by_number, by_region


def _is_sort(op: Op) -> bool:
    return op.name == names.SORT


def _kind(sort: mlir.RawOperation) -> Hashable:
    """The same for sorts of the same types along the same dim."""
    dim = str(sort.attributes["dimension"]) if "dimension" in sort.attributes else ""
    return tuple(str(value.type) for value in sort.operands), dim


def _turn_round(sort: mlir.RawOperation) -> None:
    """Let a stable sort leave equal elements in the opposite order: it sorts the rows turned round."""
    shape = mlir.tensor_shape(sort.operands[0].type)
    dim = mlir.integer_of(sort.attributes["dimension"]) if "dimension" in sort.attributes else -1
    dimensions = {"dimensions": mlir.dense_i64([dim % len(shape)])}
    for place, value in enumerate(sort.operands):
        where = {"location": sort.location, "insertion_point": mlir.insert_before(sort)}
        turned = mlir.create_operation(names.REVERSE, [value], [value.type], dimensions, **where)
        sort.operands[place] = turned.results[0]
