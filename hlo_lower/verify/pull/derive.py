"""Derive that two modules are equal, at one symbolic position of each output."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ELEMENTWISE
from hlo_lower.verify.pull import congruence, convolving, dynamic, elementwise, folding, loops, moving, sorting
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.laws import LAWS
from hlo_lower.verify.pull.models import inputs_of
from hlo_lower.verify.pull.parts import terms_anew
from hlo_lower.verify.pull.prover import At, Order, Prover, Pull
from hlo_lower.verify.pull.shapes import sizes_of
from hlo_lower.verify.pull.sizes import is_empty, is_same
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Term
from hlo_lower.verify.pull.validity import Valid, is_dynamic, valid
from hlo_lower.verify.pull.work import LETTER, Work
from hlo_lower.verify.read.program import Op, Program, TooLargeError

FEW: Mapping[str, Callable[[At], Pull]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), elementwise.elementwise),
    names.SELECT: elementwise.select,
    names.IOTA: elementwise.iota,
    names.CONSTANT: elementwise.constant,
    names.BITCAST_CONVERT: elementwise.bitcast_convert,
    names.OPTIMIZATION_BARRIER: elementwise.barrier,
    names.RESHAPE: moving.reshape,
    names.BROADCAST_IN_DIM: moving.broadcast_in_dim,
    names.TRANSPOSE: moving.transpose,
    names.SLICE: moving.slice_,
    names.REVERSE: moving.reverse,
    names.CONCATENATE: moving.concatenate,
    names.PAD: moving.pad,
    names.DYNAMIC_SLICE: moving.dynamic_slice,
    names.DYNAMIC_UPDATE_SLICE: moving.dynamic_update_slice,
    names.GATHER: moving.gather,
    names.TORCH_INDEX_SELECT: moving.torch_index_select,
    names.GET_DIMENSION_SIZE: dynamic.get_dimension_size,
    names.DYNAMIC_IOTA: elementwise.iota,
    names.DYNAMIC_BROADCAST_IN_DIM: moving.broadcast_in_dim,
    names.DYNAMIC_RESHAPE: moving.reshape,
    names.REAL_DYNAMIC_SLICE: dynamic.real_dynamic_slice,
    names.DYNAMIC_PAD: dynamic.dynamic_pad,
    names.DYNAMIC_GATHER: dynamic.dynamic_gather,
    names.MAP: congruence.map_,
    names.CASE: loops.branches,
    names.IF: loops.branches,
}
"""The laws of ops that make an element of a few others."""

MANY: Mapping[str, Callable[[At], Pull]] = {
    names.REDUCE: folding.reduce,
    names.REDUCE_WINDOW: folding.reduce_window,
    names.DOT_GENERAL: folding.dot_general,
    names.CONVOLUTION: convolving.convolution,
    names.SCATTER: folding.scatter,
    names.SORT: sorting.sort,
    "chlo.top_k": sorting.top_k,
    names.CUSTOM_CALL: congruence.custom_call,
    names.WHILE: loops.while_,
}
"""The laws of ops that make an element of many others."""

PULLS = {**FEW, **MANY}
"""The law of each op; any other op is a function of its operands."""

ATTEMPTS: tuple[tuple[int, Order], ...] = ((1, "row-major"), (32, "row-major"), (1, "any"), (1, "finite first"))
"""Steps of a fold that are written out, and the order in which elements are combined: first so few steps that loops and
scatters are folds on both sides, then more, then sums as such, at last those that a product of 0 and 1 may make."""

ALL_ATTEMPTS = 1.1
"""So many times the seconds of one attempt all of them may take: none was seen to succeed behind one without an end."""

FOLDING = {law.name for law in LAWS.values() if law.kind == "folds"}
"""Laws that say another thing where other steps are written out."""

NOTHING: Mapping[int, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Derivation:
    """What was found.

    Attributes:
      status: "derived": the modules are equal for all inputs; "open": that was not found.
      laws: names of the laws that it rests on, beside the definitions of the ops.
      reason: why it is open.
      questions: how many were put to z3.
      seconds: what it took, counted (`work`).
      inputs: of an open one arguments for which the terms of an output differ, where all that is uninterpreted, as
        functions on floats are, is what a model says. They need not differ when they are run.
      from_cache: whether an earlier verification found it.
    """

    status: Literal["derived", "open"]
    laws: tuple[str, ...] = ()
    reason: str = ""
    questions: int = 0
    seconds: float = 0.0
    inputs: tuple[NDArray[Any], ...] = ()
    from_cache: bool = False

    def __bool__(self) -> bool:
        """Whether it is derived."""
        return self.status == "derived"


@terms_anew()  # around it, so that all that is made within is gone before the context of its terms is
def derive(
    before: str,
    after: str,
    *,
    seconds: float = 4.0,
    oob: Literal["xla", "spec"] = "xla",
    within: Mapping[int, tuple[int, int]] = NOTHING,
    ordered: Mapping[int, int] = NOTHING,
    one_nan: Collection[int] = (),
    trust_flags: bool = False,
    reassociated: bool = False,
) -> Derivation:
    """Derive that two modules compute the same for all arguments.

    Args:
      before, after: texts of two modules with a function @main of one signature. Of symbolic sizes it is for all sizes.
      seconds: counted in steps (`work`), for each of `ATTEMPTS`; all of them take `ALL_ATTEMPTS` times as long.
      oob: what a scatter of either module does out of bounds: see `hlo_lower.lower`.
      within: the least and the greatest value of arguments of integers, by place.
      ordered: a dim along which an argument of integers holds each number below the dim's size once, by place.
      one_nan: arguments of floats that hold no NaN but the positive quiet one, by place.
      trust_flags: whether `unique_indices` of the first module's scatters, outside of loops and branches, holds.
      reassociated: whether sums of floats may be in any order: what is rounded otherwise is equal, too.
    """
    work = Work()
    work.add(LETTER * (len(before) + len(after)))
    context = mlir.shared_context(len(before) + len(after))
    try:
        programs = Program(mlir.parse_module(before, context)), Program(mlir.parse_module(after, context))
    except TooLargeError as error:
        return Derivation("open", reason=str(error))
    found, known = Derivation("open"), None
    if any(map(is_dynamic, programs)):
        try:
            known = _valid(programs, seconds, oob)
        except (Beyond, z3.Z3Exception, RecursionError) as error:
            return Derivation("open", reason=_describe_error(error), seconds=work.seconds)
    attempts = sorted(ATTEMPTS, key=lambda attempt: attempt[1] != "any") if reassociated else list(ATTEMPTS)
    while attempts:
        chain, order = attempts.pop(0)
        if order == "finite first" and "dot_general" not in found.reason:
            continue
        # A promise is of the places that are asked for. In one order large terms are alike sooner, and what stands
        # within others may be met in another order on each side.
        shares, orders = not trust_flags, reassociated and order == "any"
        while True:
            left = ALL_ATTEMPTS * seconds - work.seconds
            prover = Prover(
                programs,
                _law,
                seconds=seconds if known is not None else max(min(seconds, left), 0.0),
                oob=oob,
                chain=chain,
                order=order,
                trust_flags=trust_flags,
                reassociated=reassociated and order == "any",
                shares=shares,
                orders=orders,
                sizes=None if known is None else _sizes,
                assumptions=() if known is None else known.assumptions,
                work=work,
            )
            prover.invariant |= set[Op]() if known is None else known.invariant
            for place, ends in within.items():
                prover.bound_argument(place, *ends)
            for place, dim in ordered.items():
                prover.order_argument(place, dim)
            for place in one_nan:
                prover.know_one_nan(place)
            reason = _open(prover)
            found = Derivation(
                "open" if reason else "derived",
                tuple(sorted(prover.used)),
                reason,
                prover.questions,
                work.seconds,
                found.inputs or (_inputs(prover) if reason else ()),
            )
            if found or "no time" in reason or not (prover.has_ordered or prover.has_shared):
                break
            shares, orders = shares and prover.has_ordered, False  # some is seen at the places themselves alone
        if work.seconds > ALL_ATTEMPTS * seconds:  # much is tried in vain
            break
        if "no time" in found.reason and not prover.is_pulled and chain == 1:  # the others have as much to pull
            break
        may_say_more = prover.has_closed or prover.used.keys() & FOLDING
        if found or not (may_say_more or any(word in reason for word in ("while", "loop", "time"))):
            break
        if prover.has_sort and attempts and attempts[0][0] > 1:  # ranks show more than each comparison, and sooner
            attempts.append(attempts.pop(0))
    return found


def _valid(programs: tuple[Program, Program], seconds: float, oob: str) -> Valid:
    """What is known of two modules of dynamic shapes."""

    def make(assumptions: Sequence[Term]) -> Prover:
        return Prover(programs, _law, seconds=seconds, oob=oob, chain=1, sizes=_sizes, assumptions=assumptions)

    return valid(make)


def _sizes(at: At) -> Sequence[Sequence[Term]]:
    return sizes_of(at).results


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, Beyond) else f"{type(error).__name__}: {str(error)[:80]}"


def _inputs(prover: Prover) -> tuple[NDArray[Any], ...]:
    """The arguments by which the last question was answered."""
    if prover.is_open:
        return ()
    try:
        types = [prover.type_of(0, value) for value in prover.programs[0].entries["main"].arguments]
    except Beyond:  # an argument that nothing reads
        return ()
    return () if prover.model is None else inputs_of(prover.model, types)


def _law(at: At) -> Pull:
    law = FEW.get(at.op.name)
    return law(at) if law is not None else _at_variables(at)


def _at_variables(at: At) -> Pull:
    """What is asked for at a second place is found at variables, and the place is written in.

    Each layer of a model asks for the one before it at several places. Of n layers the first would be asked for at a
    number of places that grows as a power of n.
    """
    value = at.op.results[at.result]
    if at.prover.shares and at.frame.asked[value] > 1:
        variables = at.prover.variables_of(at)
        if not all(a.eq(b) for a, b in zip(variables, at.place, strict=True)):
            try:
                found = yield at.value(value, variables)
            except Beyond as reason:
                if "time" in str(reason):
                    raise
            else:
                at.prover.has_shared = True
                return at.prover.written_in(at, found, variables, at.place)
    return (yield from MANY.get(at.op.name, congruence.same_function)(at))


def _may_be_one(first: mlir.TensorType | None, second: mlir.TensorType | None) -> bool:
    """Whether arguments of these types may hold the same: a dim that is not static may be any."""
    if first is None or second is None:
        return first is second
    if first.element_name != second.element_name or len(first.shape) != len(second.shape):
        return False
    return all(a == b or None in (a, b) for a, b in zip(first.shape, second.shape, strict=True))


def _open(prover: Prover) -> str:
    """Why the outputs were not shown to be equal; "" where they were."""
    try:
        mains = [program.entries["main"] for program in prover.programs]
        taken, ends = [main.arguments for main in mains], [main.returned for main in mains]
        if len(taken[0]) != len(taken[1]) or len(ends[0]) != len(ends[1]):
            return "a different number of arguments or results"
        if not all(map(_may_be_one, *(map(prover.programs[k].type_of, taken[k]) for k in (0, 1)))):
            return "arguments of different types"
        for first, second in zip(*ends, strict=True):
            types = [prover.type_of_function(side, value) for side, value in enumerate((first, second))]
            shapes = [shape for shape, _ in types]
            is_one_shape = len(shapes[0]) == len(shapes[1]) and all(map(is_same, *shapes))
            if types[0][1] != types[1][1] or not is_one_shape:
                return "results of different types"
            if is_empty(types[0][0]):
                continue
            place = prover.positions.place("p", types[0][0])
            prover.is_pulled = False
            terms = [prover.element(side, value, place) for side, value in enumerate((first, second))]
            prover.is_pulled = True
            found = prover.same_results(terms[0], terms[1], types[0][1], place, types[0][0])
            if found is None:
                return "the solver needs too long"
            if not found:
                return prover.told_apart(terms)
        if not loops.all_end(prover):
            return "a loop that may not end"
    except (Beyond, z3.Z3Exception, RecursionError) as error:
        return _describe_error(error)
    return ""
