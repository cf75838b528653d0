"""Regions that are derived to be equal, by laws or by evaluation for every input: as they stand, or with producers of
their inputs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import BY_ALGORITHM
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.corrections import enclosing, widen_region
from hlo_lower.verify.align.in_order import dim_in_order, is_order
from hlo_lower.verify.align.loops import values_of
from hlo_lower.verify.align.one_nan import computes_what_is_ordered, inputs_with_one_nan
from hlo_lower.verify.align.piece import Pieces, types_of
from hlo_lower.verify.cache import VerdictCache
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.effort import PROVE_SECONDS
from hlo_lower.verify.judges.every_input import Evaluation, evaluate_every_input
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.judges.judge import AimedRuns, Terms
from hlo_lower.verify.judges.without_inputs import with_computed_positions
from hlo_lower.verify.patience import LateError, patience
from hlo_lower.verify.pull import Derivation, derive
from hlo_lower.verify.pull.congruence import SHARDING
from hlo_lower.verify.pull.derive import PULLS
from hlo_lower.verify.pull.solver import is_installed
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Op, Program, ops_within
from hlo_lower.verify.run import CannotRunError

SECONDS = 3.0
"""For each attempt to derive a region, as it stands or with producers of its inputs, as `pull.work` counts them. Of 214
derived regions of 60 modules for IREE the one that took longest took 1.3, all but two less than 0.6; rows that may wrap
around, as LiteRT gets them of a prefill, take 2.2, of which the solver's first question may have a share."""

WIDER_LETTERS = 1 << 17
"""Letters of both pieces up to which producers are taken in: what is longer has no end in that time."""

SHORT_LETTERS = 1 << 14
"""Letters up to which that takes less than to run both functions, which may tell that it is in vain."""

WIDER = ((1, True), (1, True), (2, True), (4, True), (1, False), (4, False), (32, False))
"""Widenings that are tried: how many steps of producers, and whether only those of integers."""

TOTAL_SECONDS = 4.0
"""For a region with all that is tried of it."""

REMEMBERED = 1024
"""Derivations of short pieces that are remembered."""

VAIN_SECONDS = 4.0
"""Spent on regions that were not derived; then further ones have `HURRIED_SECONDS` each, with all that is tried."""

FOR_EACH_DERIVED = 0.1
"""So many more may be spent in vain for each attempt that succeeded: a large module has more of both."""

HURRIED_SECONDS = 0.3

AHEAD = 4
"""Widenings that are looked at for an input in order."""

INDEXED = frozenset({names.SCATTER, names.GATHER, names.DYNAMIC_SLICE, names.DYNAMIC_UPDATE_SLICE, names.CLAMP})
"""Operations of which what a sort has put in order tells something, and what a read is held against."""

NO_TIME = "no time"
"""In the reason of a derivation that ended before its solver was asked."""

EVERY_INPUT = "every input"
"""The law of a derivation by evaluation, and the aim of a run that an evaluation found."""

NO_INPUT = "no input"
"""The law of integers that depend on no input."""

LOOSE = frozenset({"any order", "finite first", "product of 0 and 1", "reassociated", "rounded once"})
"""Laws by which sums of floats are equal that may differ in a run: what has to lie inside does not rest on one."""

Array = NDArray[Any]

Within: TypeAlias = tuple[tuple[int, tuple[int, int]], ...]
"""The least and the greatest value of inputs of integers, by place."""

Ordered: TypeAlias = tuple[tuple[int, int], ...]
"""Inputs of integers that hold each number below the size of a dim once along it, by place, and the dim."""

OneNan: TypeAlias = tuple[int, ...]
"""Inputs of floats whose NaN may be taken for the positive one, by place."""

_Key: TypeAlias = tuple[str, str, Within, Ordered, OneNan]

Found: TypeAlias = tuple[Region, Derivation] | None
"""A region, or it with producers of its inputs, and its derivation; None where none was found."""


@dataclass(frozen=True)
class SolverRuns:
    """A run with inputs of a model, and others behind it.

    Attributes:
      inputs: an array for each input of the region.
      others: what is run then.
    """

    inputs: tuple[Array, ...]
    others: AimedRuns | None

    def next(self, case: Any) -> Iterator[Run]:
        """The runs, told what the watched values were."""
        yield Run("inputs of a model", list(self.inputs), is_special=False)
        if self.others is not None:
            yield from self.others.next(case)


@dataclass
class RegionProofs:
    """Derives regions, each pair of pieces once.

    Attributes:
      terms: how regions are judged.
      pieces_of: the pieces of a region, or why it has none.
      interpreter: StableHLO's.
      is_apart: whether outputs of a region are seen to differ when both functions run.
      found: what was found of the regions that were asked for.
    """

    terms: Terms
    pieces_of: Callable[[Region], Pieces | CannotRunError]
    interpreter: Interpreter
    is_apart: Callable[[Region], bool] = lambda _: False
    found: dict[Region, Found] = field(default_factory=dict[Region, Found])
    _known: dict[_Key, Derivation] = field(default_factory=dict[_Key, Derivation])
    _evaluated: dict[_Key, Evaluation | None] = field(default_factory=dict[_Key, "Evaluation | None"])
    _ranges: dict[tuple[Program, str], Ranges] = field(default_factory=dict[tuple[Program, str], Ranges])
    _hopeless: list[set[Op]] = field(default_factory=list[set[Op]])
    _has_sorts: dict[Program, bool] = field(default_factory=dict[Program, bool])
    _vain: float = 0.0
    _derived: int = 0

    @property
    def may_derive(self) -> bool:
        """Whether regions can be derived: z3 is there."""
        return is_installed()

    @property
    def is_hurried(self) -> bool:
        """Whether so much was spent in vain that less is tried now."""
        return self._vain > VAIN_SECONDS + FOR_EACH_DERIVED * self._derived

    def begin_again(self) -> None:
        """Note that the module is aligned otherwise: what was spent in vain on its regions until now does not count."""
        self._vain = 0.0

    def find_derivation(self, region: Region) -> Found:
        """The region, alone or with producers of its inputs, and its derivation; None if there is none."""
        if not self.may_derive:
            return None
        if region not in self.found:
            cache = self.terms.cache
            try:
                self.found[region] = self._derive(region) if cache is None else self._derive_with_cache(cache, region)
            except LateError:
                return None
        return self.found[region]

    def _derive(self, region: Region) -> Found:
        spent, tried, vain = 0.0, set[_Key](), self._vain
        if self._is_hopeless(region):
            return None
        for wide in chain([region], self._behind_orders(region), _widenings(region)):
            patience().deadline.check()
            if tried and self.has_function_alone(wide):
                continue
            if tried and spent >= (HURRIED_SECONDS if self.is_hurried else TOTAL_SECONDS):
                break
            key = self._key(wide)
            if key in tried:
                continue
            letters = 0 if key is None else len(key[0]) + len(key[1])
            if tried and (letters > WIDER_LETTERS or (letters > SHORT_LETTERS and self.is_apart(region))):
                break
            is_known, found = key in self._known, self.derivation(wide)
            if key is None or found is None:
                break
            tried.add(key)
            every = None if found or wide is not region else self._evaluation(region)
            if every is not None and every.is_equal:
                found = self._keep(key, Derivation("derived", (EVERY_INPUT,)))
            if self._accepts(found):
                self._vain = vain  # what narrower ones took led here
                return wide, found
            if NO_TIME in found.reason:  # with more producers there is no less of it
                self._hopeless.append({*region.first, *region.second})
                break
            spent += 0.0 if is_known else found.seconds
        return None

    def _is_hopeless(self, region: Region) -> bool:
        """Whether most of what is in it was in a region of another alignment for which there was no time."""
        return any(2 * len(ops.intersection((*region.first, *region.second))) > len(ops) for ops in self._hopeless)

    def has_function_alone(self, region: Region) -> bool:
        """Whether a version has a function of which only its name is known, such as log_plus_one or a call of LAPACK,
        and the other has it nowhere: that one has a formula then, and producers of the inputs make it no more equal.
        """
        others = region.pair.second, region.pair.first
        return any(
            {*map(_function_named, ops_within(ops))} - other.program.op_names - {""}
            for other, ops in zip(others, (region.first, region.second), strict=True)
        )

    def _behind_orders(self, region: Region) -> Iterator[Region]:
        """A region that reads or writes at indices, and has no input in order, with producers up to one that is."""
        sides = region.pair.first, region.pair.second
        is_indexed = any(op.name in INDEXED for op in (*region.first, *region.second))
        if not is_indexed or not any(map(self._sorts, {side.program for side in sides})):
            return
        key = self._key(region)
        for wide in islice(_widenings(region), 1, 1 + AHEAD):
            if key is not None and key[3]:
                return
            key = self._key(wide)
            if key is not None and key[3]:
                yield wide

    def _sorts(self, program: Program) -> bool:
        """Whether a program sorts, or is told what another one has sorted."""
        if program not in self._has_sorts:
            self._has_sorts[program] = any(op is not None and is_order(op) for op in program.makers)
        return self._has_sorts[program]

    def _accepts(self, found: Derivation) -> bool:
        """Whether a derivation shows what is asked."""
        return bool(found) and not (self.terms.is_strict and LOOSE.intersection(found.laws))

    def _derive_with_cache(self, cache: VerdictCache, region: Region) -> Found:
        """`find_derivation` with a cache of verdicts.

        A cached derivation of the region or of a wider one counts without another attempt. If the cache says that all
        of them failed before, there is none, because a region that was tested then has a verdict, too. Wider ones are
        made for that only where it says that the region itself was tried in vain.
        """
        key = self._key(region)
        if key is None:
            return None
        found = self._known.get(key) or self._in_cache(key)
        if found is not None and self._accepts(found):
            return region, found
        how = self.terms.prove, self.terms.is_strict
        alone = self._content("alone", key, *how)
        tried: list[_Key] = []
        if cache.find("not derived", alone, bool):
            for wide, key in self._keys(region):
                tried.append(key)
                found = self._known.get(key) or self._in_cache(key)
                if found is not None and self._accepts(found):
                    return wide, found
            if not cache.tries_again and cache.find("not derived", self._content(*tried, *how), bool):
                return None
        found = self._derive(region)
        if not self.is_hurried and (found is None or found[0] is not region):
            cache.keep("not derived", alone, {"attempts": 1})
        if not self.is_hurried and found is None:
            tried = tried or [key for _, key in self._keys(region)]
            cache.keep("not derived", self._content(*tried, *how), {"attempts": len(tried)})
        return found

    def _keys(self, region: Region) -> Iterator[tuple[Region, _Key]]:
        """A region and what is wider, while there are pieces of it, each with what is known by it."""
        for wide in _widenings(region):
            key = self._key(wide)
            if key is None:
                return
            yield wide, key

    def _content(self, *what: object) -> object:
        """What a derivation rests on."""
        return self.terms.oob, self.terms.trust_flags, self.terms.reassociated, what

    def _in_cache(self, key: _Key) -> Derivation | None:
        cache = self.terms.cache
        return None if cache is None else cache.find("derived", self._content(key), _read)

    def _keep(self, key: _Key, found: Derivation) -> Derivation:
        """Keep what was found of two pieces, in the cache if they are derived."""
        self._known[key] = found
        if found and not found.from_cache and self.terms.cache is not None:
            self.terms.cache.keep("derived", self._content(key), {"laws": found.laws})
        return found

    def runs_of_models(self, region: Region, others: AimedRuns | None) -> AimedRuns | None:
        """A run with inputs that tell the outputs of a region apart as far as the solver sees, then others.

        Of integers only: floats of a model are subnormal or huge, and XLA flushes such ones, or sums them in its order.
        """
        types = [mlir.read_tensor_type(raw_type) for raw_type in types_of(region)]
        if not self.may_derive or not all(t is not None and element_type(t.element_name).is_integer for t in types):
            return others
        found = self.derivation(region)
        return SolverRuns(found.inputs, others) if found is not None and found.inputs else others

    def told_apart(self, region: Region) -> list[Run]:
        """A run with inputs that tell the outputs of a region apart, where it was evaluated for every input."""
        every = self._evaluation(region)
        return [Run(EVERY_INPUT, list(every.inputs), is_special=True)] if every is not None and every.inputs else []

    def _evaluation(self, region: Region) -> Evaluation | None:
        key = self._key(region) if self.may_derive else None
        if key is not None and key not in self._evaluated:
            first, second, within, *_ = key
            self._evaluated[key] = evaluate_every_input(first, second, dict(within), self.interpreter)
        return None if key is None else self._evaluated[key]

    def derivation(self, region: Region) -> Derivation | None:
        """Whether the pieces of a region are equal for all inputs that they get; None where it has none."""
        key = self._key(region)
        if key is None:
            return None
        if key not in self._known:
            seconds = PROVE_SECONDS if self.terms.prove else HURRIED_SECONDS if self.is_hurried else SECONDS
            found = self.derivation_of(*key, seconds=seconds)
            self._vain += 0.0 if found else found.seconds
            self._derived += bool(found)
        return self._known[key]

    def derivation_of(
        self,
        first: str,
        second: str,
        within: Within = (),
        ordered: Ordered = (),
        one_nan: OneNan = (),
        *,
        seconds: float = PROVE_SECONDS,
    ) -> Derivation:
        """Whether two modules are equal, as these terms take it, where integers lie within some numbers, or are in some
        order; not behind the deadline of the verification."""
        key = first, second, within, ordered, one_nan
        if key not in self._known:
            try:
                found = self._in_cache(key) or self._derive_texts(key, seconds)
            except LateError as late:
                found = Derivation("open", reason=str(late))
            self._keep(key, found)
        return self._known[key]

    def _derive_texts(self, key: _Key, seconds: float) -> Derivation:
        """Derive two modules, with what depends on none of their inputs as constants where that has to be counted."""
        (first, second, within, ordered, one_nan), terms = key, self.terms
        computed = [with_computed_positions(text, self.interpreter) for text in (first, second)]
        texts = [told or given for told, given in zip(computed, (first, second), strict=True)]
        once = _derive_once if sum(map(len, texts)) <= SHORT_LETTERS else _derive_pieces
        policy = terms.oob, terms.trust_flags, terms.reassociated
        found = once(texts[0], texts[1], within, ordered, one_nan, seconds, *policy)
        return replace(found, laws=tuple(sorted({*found.laws, NO_INPUT}))) if any(computed) else found

    def known_of(self, region: Region) -> object:
        """What is known of the inputs of a region from around it: their least and greatest values, their order, and
        whether a NaN of theirs, or of what it puts in order, may be taken for the positive one."""
        key = self._key(region)
        return () if key is None else (*key[2:], computes_what_is_ordered(region))

    def _key(self, region: Region) -> _Key | None:
        """Both pieces, and the ends of the integers that they are given, where they are known; None without pieces."""
        pieces, known = self.pieces_of(region), values_of(region)
        if isinstance(pieces, CannotRunError):
            return None
        values = ((k, known.get(n)) for k, n in enumerate(region.inputs))
        met = {k: (values[0], values[-1]) for k, values in values if values}  # they ascend
        ends = {k: met.get(k) or self._ends(region, number) for k, number in enumerate(region.inputs)}
        orders = ((k, self._dim_in_order(region, number)) for k, number in enumerate(region.inputs))
        return (
            pieces.first,
            pieces.second,
            tuple((k, told) for k, told in ends.items() if told is not None),
            tuple((k, dim) for k, dim in orders if dim is not None),
            tuple(inputs_with_one_nan(region)),
        )

    def _ends(self, region: Region, number: Number) -> tuple[int, int] | None:
        """Between which numbers integers of an input lie, as what stands before them says; None: any of their type."""
        side = region.pair.first if number in region.pair.first.value_of else region.pair.second
        tensor = side.program.type_of(side.value_of[number])
        everything = None if tensor is None else type_range(tensor.element_name)
        if everything is None or everything == (0, 1):
            return None
        low, high = self._ranges_of(region, side).of(side.value_of[number])
        return None if (low, high) == everything else (int(low), int(high))

    def _ranges_of(self, region: Region, side: Side) -> Ranges:
        key = side.program, region.pair.where[0]
        if key not in self._ranges:
            self._ranges[key] = Ranges(side.program, {}, function=key[1])
        return self._ranges[key]

    def _dim_in_order(self, region: Region, number: Number) -> int | None:
        """The dim along which an input holds each number below the dim's size once; None where none is seen."""
        sides = [side for side in (region.pair.first, region.pair.second) if number in side.value_of]
        found = (dim_in_order(s.program, s.value_of[number], self._ranges_of(region, s).of) for s in sides)
        return next((dim for dim in found if dim is not None), None)


def _derive_pieces(
    first: str,
    second: str,
    within: Within,
    ordered: Ordered,
    one_nan: OneNan,
    seconds: float,
    oob: Literal["xla", "spec"],
    trust_flags: bool,
    reassociated: bool,
) -> Derivation:
    return derive(
        first,
        second,
        seconds=seconds,
        oob=oob,
        within=dict(within),
        ordered=dict(ordered),
        one_nan=one_nan,
        trust_flags=trust_flags,
        reassociated=reassociated,
    )


_derive_once = lru_cache(maxsize=REMEMBERED)(_derive_pieces)
"""Of several modules many have the same pieces. What is found of them does not depend on when they are derived."""


def forget_derivations() -> None:
    """Derive all anew: for tests, which break laws."""
    _derive_once.cache_clear()


def _function_named(op: Op) -> str:
    """The name of a function that equals itself alone as far as a derivation sees: of one that each compiler rounds in
    its own way, of an op without a law, and of what is called; "" of any other op."""
    if op.name == names.CUSTOM_CALL:
        return mlir.call_target(op.raw) if mlir.call_target(op.raw) != SHARDING else ""
    return op.name if op.name in BY_ALGORITHM or op.name not in PULLS else ""


def nowhere(_: Region) -> CannotRunError:
    """No region has pieces here: only texts are derived."""
    return CannotRunError("no regions are judged here")


def _widenings(region: Region) -> Iterator[Region]:
    """A region, it with more and more producers of its inputs, and so the operations around its bodies.

    Producers of integers alone show nothing while one piece alone reads some floats: those are computed within, too.
    """
    around: Region | None = region
    while around is not None:
        yield around
        wide = around
        for steps, integers_only in WIDER:
            wider = None
            if not (integers_only and _reads_other_floats(wide)):
                wider = widen_region(wide, steps, integers_only=integers_only)
            if wider is not None:
                yield (wide := wider)
        around = enclosing(around)


def _reads_other_floats(region: Region) -> bool:
    """Whether one piece alone reads an input that is no integer."""
    first, second = (
        {side.numbers[value] for op in ops_within(ops) for value in op.inputs if value in side.numbers}
        for side, ops in ((region.pair.first, region.first), (region.pair.second, region.second))
    )
    types = dict(zip(region.inputs, map(mlir.read_tensor_type, types_of(region)), strict=True))
    apart = [types[number] for number in region.inputs if number in first ^ second]
    return any(tensor is None or not element_type(tensor.element_name).is_integer for tensor in apart)


def _read(data: Mapping[str, Any]) -> Derivation:
    """The derivation that the cache holds."""
    laws = tuple(data["laws"])
    return Derivation("derived", laws, from_cache=True)
