"""Verify the regions of a function: judge each, widen those that differ, drop assumptions that turn out wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.child import Stopwatch
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Aligner, BodyPair, Plan, Region, Side, regions_of
from hlo_lower.verify.align.corrections import (
    Sought,
    cut,
    depends,
    enclosing,
    values_apart,
    widen_region,
)
from hlo_lower.verify.align.loops import may_not_end, only_on_one_side, values_of, written_out
from hlo_lower.verify.align.piece import Pieces, module_of, pieces_of, types_of
from hlo_lower.verify.drive.driven_runs import VALUES, Run, runs_of
from hlo_lower.verify.drive.input_roles import roles_of
from hlo_lower.verify.effort import PROVE_SECONDS
from hlo_lower.verify.judges.devices import piece_executable, start_child
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.judges.judge import Judgement, Terms, judge, work_of
from hlo_lower.verify.judges.kept import content_of, in_cache, keep
from hlo_lower.verify.judges.silent_attributes import Aligned, Unshown, allows_another, stands_for, unshown_in
from hlo_lower.verify.judges.xla_defects import why_xla_errs_in
from hlo_lower.verify.patience import LateError, patience
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Op, Program, TooLargeError, ValueId, location_of, ops_within
from hlo_lower.verify.region_proofs import TOTAL_SECONDS, RegionProofs
from hlo_lower.verify.region_verdict import SAME_TEXT, RegionVerdict
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

MAX_ALIGNMENTS = 24
"""How often the modules are aligned anew without the assumptions that turned out wrong."""

ALIGNMENT_SECONDS = 100.0
"""After so much work they are not aligned anew."""

WRITTEN_OUT = 20_000
"""Operations of a module up to which loops are read as their trips."""

STEPS = (1, 1, 2, 4, 8, 32, 256)
"""Steps of producers that are taken in at once, one widening after the other."""

PATIENCE = 3
"""Widenings after which it is asked whether the functions have different values there."""

ANCHORS = frozenset({
    names.SCATTER, names.GATHER, names.WHILE, names.SORT, names.DYNAMIC_UPDATE_SLICE, names.CASE,
    names.AND, names.OR, names.XOR, names.SHIFT_LEFT, names.SHIFT_RIGHT_LOGICAL,
})  # fmt: skip
"""Operations whose results are looked for in the second piece, to cut a region that holds several of them."""

WRITING = (names.WHILE, names.DYNAMIC_UPDATE_SLICE)
"""Operations that write a value part by part."""

RUNS_WITH_A_ROUNDING = 8
"""So many runs of a wide region had to differ at the rate of the narrow one before it says much that none does."""

KEPT_LETTERS = 1 << 16
"""Pieces of a region that are longer together are built anew where they are asked for again."""

CUT_BYTES = 1 << 28
"""Bytes of results up to which values are compared to cut a region."""

SHORT = 32
"""Elements of an input up to which it is shown whole."""

NO_RUN_SHOWS = "no run shows it"
BOTH_DIFFER = "the modules differ when they are run, and so do values here that were assumed to be equal"
ANOTHER_ORDER = "a sort of the first version is not stable and may give another order"

OPS_AT_ONCE = 400
"""Operations of both versions for which a whole function has the seconds of a region to be derived; more have more."""

RUNS_OF_SMALL = 24
"""Runs that a piece gets which is not large."""

_Key = tuple[str, str, tuple[tuple[int, range | tuple[int, ...]], ...]]
"""Both pieces of a region, and for each input whose values loops say, by place, these values."""


class WrongAssumptionError(Exception):
    """Values that were taken as equal are not; nothing is known of the modules yet."""

    def __init__(self, pairs: Sequence[tuple[ValueId, ValueId]], verdict: RegionVerdict) -> None:
        super().__init__(pairs, verdict)
        self.pairs, self.verdict = tuple(pairs), verdict


class Elsewhere(Protocol):
    """Judges regions elsewhere, several at a time (`hlo_lower.verify.region_processes`)."""

    def judge_regions(
        self, plan: Plan, pieces: Mapping[int, Pieces]
    ) -> "Mapping[int, RegionVerdict | WrongAssumptionError]":
        """Verdicts on regions of an alignment, by number; regions may be missing."""
        ...


class RegionJudge:
    """Judge the regions of two programs.

    Args:
      first, second: the programs, of one context.
      terms: how.
      interpreter: StableHLO's.
      differs: whether the whole modules differ on some arguments of a function; None where they cannot be run.
      tell: told of each region that is judged: how many are done, and how many there are.
      elsewhere: judges regions, several at a time; None: all are judged here.
      is_told_apart: whether runs of the whole modules have shown that they differ.
    """

    def __init__(
        self,
        first: Program,
        second: Program,
        terms: Terms,
        interpreter: Interpreter,
        differs: Callable[[str, Mapping[int, Array]], bool | None],
        tell: Callable[[int, int], None],
        elsewhere: Elsewhere | None = None,
        is_told_apart: Callable[[], bool] = lambda: False,
    ) -> None:
        self._others, self._is_told_apart = elsewhere, is_told_apart
        self._first, self._second = first, second
        self._terms, self._interpreter = terms, interpreter
        self._differs, self._tell = differs, tell
        self._judged: dict[_Key, Judgement] = {}
        self._unshown: dict[Region, Unshown] = {}
        self._aligned: tuple[list[BodyPair], Aligned] | None = None
        self._apart: dict[str, set[tuple[ValueId, ValueId]]] = {}
        self._written_out = frozenset[int](), frozenset[int]()
        self.pairs: list[BodyPair] = []
        self.promised: list[tuple[Op, tuple[str, ...]]] = []
        self._built: dict[tuple[Region, tuple[Number, ...]], Pieces | CannotRunError] = {}
        self._numbers = first.scatter_numbers
        self._proofs = RegionProofs(terms, self.pieces, interpreter, self._is_apart)

    def verify(self, name: str) -> list[RegionVerdict]:
        """The verdicts on the regions of a public function, alike ones together.

        `pairs` become its aligned bodies, `promised` what the second version promises and the first one does not.
        """
        try:
            return self._verify(name)
        except LateError as late:  # what is known of its bodies is not whole
            self.pairs, self.promised = [], []
            return [RegionVerdict(name, "the module", (), (), status="not judged", reason=str(late))]

    def _verify(self, name: str) -> list[RegionVerdict]:
        dropped: set[tuple[ValueId, ValueId]] = set()
        forced: dict[ValueId, ValueId] = {}
        last: RegionVerdict | None = None
        watch, number = Stopwatch(), 0
        while number < MAX_ALIGNMENTS and (last is None or watch.seconds < ALIGNMENT_SECONDS):
            pairs = Aligner(self._first, self._second, frozenset(dropped), forced).align(name)
            regions = regions_of(pairs)
            self.pairs, self.promised = pairs, []
            self._built.clear()
            if number == 0:
                if regions:
                    self._interpreter.start()
                if any(may_not_end(*side) for region in regions for side in region.sides):
                    start_child()
                regions = self._unrolled(name, regions)
                left = self._without_derivation(name, regions)
                if (whole := self._derived_whole(name, regions, left)) is not None:
                    return [whole]
                while left and (other := self._without_loops(name, left)) is not None:
                    regions, left = other
                while left and (fewer := self._without_guesses(name, left, dropped)) is not None:
                    regions, left, dropped = fewer
                forced = {x: y for region in left for x, y in self._same_values(region)}
            number += 1
            if number == 1 and forced:
                continue
            try:
                if not dropped.issuperset(self._apart.get(name, ())):
                    self._refuse_apart(name, regions)
                plan = Plan(name, self._written_out, frozenset(dropped), tuple(forced.items()))
                found = self._all(name, regions, self._elsewhere(plan, regions))
                self.promised = [one for region in regions for one in self._unshown_in(region).promised]
                return found
            except WrongAssumptionError as wrong:
                dropped |= self._read_alike(wrong.pairs)
                last = wrong.verdict
                if last.difference and self._is_told_apart():  # the verdict on the modules is known
                    return [replace(last, status="not judged", reason=f"{BOTH_DIFFER}: {last.difference}")]
        assert last is not None
        reason = f"{number} assumptions in succession were wrong, then no other was tried"
        return [replace(last, status="not judged", reason=reason)]

    def _read_alike(self, pairs: Iterable[tuple[ValueId, ValueId]]) -> set[tuple[ValueId, ValueId]]:
        """Pairs of values, and of those that were read of the same results, as trips of a loop that is written out are
        alike; and of those that had their numbers as they are computed alike."""
        alike: tuple[dict[ValueId, list[ValueId]], ...] = ({}, {})
        for pair in self.pairs:
            for side, found in zip((pair.first, pair.second), alike, strict=True):
                for value, like in side.alike.items():
                    found.setdefault(like, [like]).append(value)
        told = set[tuple[ValueId, ValueId]]()
        for x, y in pairs:
            read = self._first.read_of_one_result(x), self._second.read_of_one_result(y)
            told.update(zip(*read, strict=True) if len(read[0]) == len(read[1]) else ())
            told.update((v, w) for v in alike[0].get(x, (x,)) for w in alike[1].get(y, (y,)))
        return told

    def _without_derivation(self, name: str, regions: Sequence[Region]) -> list[Region]:
        """The regions that have no derivation."""
        return [region for region in regions if self._derived_verdict(name, region) is None]

    def _without_loops(self, name: str, left: Sequence[Region]) -> tuple[list[Region], list[Region]] | None:
        """The regions, and those left, where the loops that one version alone has in them are read as their trips.

        None, and the programs as they were, where there are no such loops, or less is derived so.
        """

        def is_better(_: list[Region], now: list[Region]) -> bool:
            return _size(now) < _size(left)

        return self._read_without(name, only_on_one_side(left), self._without_derivation, is_better)

    def _without_guesses(
        self, name: str, left: Sequence[Region], dropped: set[tuple[ValueId, ValueId]]
    ) -> tuple[list[Region], list[Region], set[tuple[ValueId, ValueId]]] | None:
        """The regions, those left, and what is dropped, where no equality is assumed that is doubtful and was not
        derived; None where there is no such one, or less is derived so.

        A start that is read at one place in both versions, and clamped in the second one, is taken for the clamped one.
        What reads it is equal; it is not.
        """
        guesses = {(o.first, o.second) for r in left if r.is_doubtful for o in r.outputs if not o.root}
        if not guesses:
            return None
        more = dropped | self._read_alike(guesses)
        self._proofs.begin_again()
        pairs = Aligner(self._first, self._second, frozenset(more), {}).align(name)
        regions = regions_of(pairs)
        now = self._without_derivation(name, regions)
        if _size(now) >= _size(left):
            return None
        self.pairs = pairs
        return regions, now, more

    def _unrolled(self, name: str, regions: Sequence[Region]) -> list[Region]:
        """The regions where loops of the first version alone are read as their trips, if the largest region becomes
        several small ones; the same ones else."""
        more = only_on_one_side(regions)
        if not more[0] or more[1]:
            return list(regions)

        def is_better(found: list[Region], _: list[Region]) -> bool:
            return 2 * _largest(found) < _largest(regions)

        found = self._read_without(name, more, lambda _, regions: list(regions), is_better)
        return list(regions) if found is None else found[0]

    def _read_without(
        self,
        name: str,
        more: tuple[frozenset[int], frozenset[int]],
        left_of: Callable[[str, Sequence[Region]], list[Region]],
        is_better: Callable[[list[Region], list[Region]], bool],
    ) -> tuple[list[Region], list[Region]] | None:
        """The regions, and those left, where some loops are read as their trips; None, and the programs as they were,
        where there are none, or that is not better."""
        if not any(more):
            return None
        before = self._first, self._second, self._written_out, self._apart
        self._apart = {}
        self._written_out = self._written_out[0] | more[0], self._written_out[1] | more[1]
        try:
            self._first = Program(self._first.raw, written_out(self._written_out[0]))
            self._second = Program(self._second.raw, written_out(self._written_out[1]))
            if max(self._first.op_count, self._second.op_count) <= WRITTEN_OUT:
                pairs = Aligner(self._first, self._second, frozenset(), {}).align(name)
                regions = regions_of(pairs)
                now = left_of(name, regions)
                if is_better(regions, now):
                    self.pairs = pairs
                    return regions, now
        except TooLargeError:
            pass
        self._first, self._second, self._written_out, self._apart = before
        return None

    def _elsewhere(self, plan: Plan, regions: Sequence[Region]) -> "Mapping[int, RegionVerdict | WrongAssumptionError]":
        """What became of regions that were judged elsewhere: the first ones of those that are alike, if several."""
        if self._others is None:
            return {}
        firsts: dict[_Key, tuple[int, Pieces]] = {}
        for number, region in enumerate(regions):
            pieces = self.pieces(region)
            if self._proofs.found.get(region) is None and isinstance(pieces, Pieces) and pieces.first != pieces.second:
                firsts.setdefault(self._key(region, pieces), (number, pieces))
        return self._others.judge_regions(plan, dict(firsts.values())) if len(firsts) > 1 else {}

    def _all(
        self,
        name: str,
        regions: Sequence[Region],
        elsewhere: "Mapping[int, RegionVerdict | WrongAssumptionError]",
    ) -> list[RegionVerdict]:
        found: dict[object, RegionVerdict] = {}
        for number, region in enumerate(regions):
            self._tell(number, len(regions))
            key = self._key(region, self.pieces(region))
            alike = found.get(key)
            if alike is not None and not alike.producers and alike.status == "equal":
                numbers = tuple(sorted({*alike.scatters, *self._scatters(region)}))
                found[key] = replace(alike, count=alike.count + 1, scatters=numbers)
                continue
            verdict = elsewhere.get(number) or self.judge_region(name, region)
            if isinstance(verdict, WrongAssumptionError):
                raise verdict
            found[(*key, number) if alike is not None else key] = verdict
        self._tell(len(regions), len(regions))
        return list(found.values())

    # --- one region ---

    def judge_region(self, name: str, region: Region) -> RegionVerdict:
        """The verdict on a region.

        Raises:
          WrongAssumptionError: one of its outputs, which nothing returns, was taken as equal and is not.
        """
        try:
            if self._derived_verdict(name, region) is None:
                patience().deadline.check()
            found = self._judge_by_runs(name, region)
        except LateError as late:
            return self._verdict(name, region, region, Judgement("not judged", reason=str(late), is_late=True))
        less = self._unshown_in(region).less
        if found.status == "differs" and allows_another(region.first):
            found = replace(found, status="not judged", reason=f"{ANOTHER_ORDER}: {found.difference}", difference="")
        elif less and found.status in ("equal", "only run"):
            found = replace(found, status="not judged", reason=f"{NO_RUN_SHOWS}: {less}")
        return replace(found, from_cache=found.from_cache and found.status in ("equal", "differs"))

    def _derived_verdict(self, name: str, region: Region) -> RegionVerdict | None:
        """The verdict on a region that a derivation shows to be equal for all inputs; None if there is none."""
        found = self._proofs.find_derivation(region)
        if found is None:
            return None
        wide, derivation = found
        verdict = replace(self._verdict(name, region, region, Judgement()), how="derived", laws=derivation.laws)
        verdict = replace(verdict, from_cache=derivation.from_cache)
        if wide is region:
            return verdict
        if less := self._unshown_in(wide).less:
            return replace(verdict, status="not judged", how="as it stands", reason=f"{NO_RUN_SHOWS}: {less}")
        count = len({op.raw for op in wide.first}) - len({op.raw for op in region.first})
        return replace(verdict, producers=max(count, 1))

    def _judge_by_runs(self, name: str, region: Region) -> RegionVerdict:
        derived = self._derived_verdict(name, region)
        if derived is not None:
            return derived
        watch, limit = Stopwatch(), patience().of_region
        narrow = judged = self._judge(region)
        verdict = self._verdict(name, region, region, narrow)
        if narrow.status == "equal":
            return _unless_missed(verdict)
        if region.pair.around is not None:
            self._refuse_unchosen(region, narrow, verdict)
        wide, integers_only, step = region, True, len(STEPS) if judged.is_late else 0
        only_run: RegionVerdict | None = None
        is_aimed = True
        while True:
            if patience().deadline.is_over:
                return replace(verdict, status="not judged", reason=patience().deadline.reason, difference="")
            if watch.seconds > limit:
                patience().charge(watch.seconds)
                reason = patience().describe_limit("it and what was tried in vain before it took")
                return replace(verdict, status="not judged", reason=reason, difference="")
            if step >= PATIENCE and self._is_apart(region):
                self._refuse_apart(name, [region])
            steps = STEPS[min(step, len(STEPS) - 1)]
            wider = widen_region(wide, steps, integers_only=integers_only, across=self._terms.is_strict)
            if wider is None and integers_only:
                integers_only, step = False, max(step - 1, 0)
                continue
            if wider is None:
                # What no run of a body reached is not aimed at in runs of the loop around it: those prove nothing.
                wider = None if self._terms.is_strict or only_run is not None else enclosing(wide)
                if wider is None:
                    break
                # What a loop carries cannot be aimed at: that the loops agree does not say that their bodies do there.
                is_aimed = is_aimed and wide.pair.around is not None and wide.pair.around[1].name != names.WHILE
                region, narrow, integers_only, step = wider, self._judge(wider), True, -1
                judged = narrow
            else:
                seen = cut(region, wider)
                judged = self._judge(wider, Sought(region, narrow.failures, wider, seen, self._terms.seed), seen)
            # What is late narrowly is late with a few producers more, and each time costs the limit; and a formula is
            # rounded otherwise than the function that it stands for, whatever produces its inputs.
            is_in_vain = judged.is_late or self._proofs.has_function_alone(wider)
            wide, step = wider, len(STEPS) if is_in_vain else step + 1
            if judged.status == "equal":
                agreed = self._widened_verdict(name, verdict, region, wide, judged, is_aimed=is_aimed)
                if agreed.status == "equal":
                    return agreed
                if is_aimed and judged.not_exercised:
                    return agreed
                only_run = agreed  # with more producers there may be nothing left that could have moved: constants
        if only_run is not None and (judged.status != "differs" or wide.pair.around is not None):
            return only_run
        return self._at_the_arguments(name, verdict, wide, judged)

    def _refuse_unchosen(self, region: Region, narrow: Judgement, verdict: RegionVerdict) -> None:
        """Give an alignment up in which several results of a call in a loop are taken as equal that are not: what reads
        them chooses by its `info`, and may be equal.

        Raises:
          WrongAssumptionError: a region's outputs, which nothing returns, are such results.
        """
        failed = [region.outputs[k] for k in sorted(narrow.outputs)] if narrow.status == "differs" else []
        makers = [region.pair.first.program.makers[o.first] for o in failed]
        is_call = all(op is not None and op.name == names.CUSTOM_CALL and len(op.results) > 1 for op in makers)
        if failed and is_call and not any(o.root for o in failed) and not self._terms.is_strict:
            raise WrongAssumptionError([(o.first, o.second) for o in failed], verdict)

    def _is_apart(self, region: Region) -> bool:
        """Whether values of a function that are taken as equal, and that nothing returns, differ when both run."""
        if region.pair.around is not None or self._terms.is_strict:
            return False
        name = region.pair.where[0]
        if name not in self._apart:
            self._apart[name] = values_apart(self._first, self._second, name)
        return any((o.first, o.second) in self._apart[name] for o in region.outputs if not o.root)

    def _refuse_apart(self, name: str, regions: Sequence[Region]) -> None:
        """Give an alignment up in which values are taken as equal of which it is known that they differ.

        Raises:
          WrongAssumptionError: such values are outputs of a region; all of them are told.
        """
        wrong = next((region for region in regions if self._apart.get(name) and self._is_apart(region)), None)
        if wrong is not None:
            raise WrongAssumptionError(list(self._apart[name]), self._verdict(name, wrong, wrong, Judgement()))

    def _widened_verdict(
        self, name: str, verdict: RegionVerdict, narrow: Region, wide: Region, judged: Judgement, *, is_aimed: bool
    ) -> RegionVerdict:
        """The verdict on a region whose pieces agree together with producers: equal only if the runs were aimed."""
        found = replace(self._verdict(name, wide, wide, judged), first=verdict.first, second=verdict.second)
        count = len({op.raw for op in wide.first}) - len(verdict.first)
        found = replace(found, where=verdict.where, scatters=verdict.scatters, how="widened", producers=max(count, 1))
        if less := self._unshown_in(wide).less:
            return replace(found, status="not judged", reason=f"{NO_RUN_SHOWS}: {less}")
        if judged.judges == SAME_TEXT:
            return found
        if not is_aimed or (wide is not narrow and not _moved(narrow, wide, judged)):
            told = f"narrow failure not reached, {judged.runs} runs: what is computed for it never changed"
            return replace(found, status="only run", reason=told)
        alone = self._judge(narrow)
        if wide is not narrow and alone.failures and alone.is_rounding and not self._terms.reassociated:
            share = len(alone.failures) / alone.runs
            if share * judged.runs < RUNS_WITH_A_ROUNDING:
                told = (
                    f"alone the pieces are rounded otherwise in {share:.0%} of the runs, too few for {judged.runs} runs"
                )
                return replace(found, status="only run", reason=told)
        return _unless_missed(found)

    def _at_the_arguments(self, name: str, verdict: RegionVerdict, wide: Region, judged: Judgement) -> RegionVerdict:
        """A region that begins at the function's arguments and still differs, or cannot be judged."""
        if judged.status == "not judged":
            return replace(verdict, status="not judged", reason=judged.reason, excluded=judged.excluded)
        inputs = self._arguments(wide, judged.failures[0])
        failed = [wide.outputs[k] for k in sorted(judged.outputs)]
        found = replace(verdict, status="differs", difference=judged.difference, runs=judged.runs, inputs=inputs)
        found = replace(found, from_cache=judged.from_cache)
        if wide.pair.around is not None:
            return replace(found, status="not judged", reason=f"what a loop carries may differ: {judged.difference}")
        if self._terms.is_strict and not _begins_at_arguments(wide):
            return replace(found, status="not judged", reason=f"what it reads is not entered: {judged.difference}")
        if any(output.root for output in failed) or self._differs(name, inputs):
            return found
        raise WrongAssumptionError([(o.first, o.second) for o in failed], found)

    def _judge(self, region: Region, sought: Sought | None = None, seen: Sequence[Number] = ()) -> Judgement:
        pieces = self.pieces(region, seen)
        if isinstance(pieces, CannotRunError):
            return Judgement("not judged", reason=str(pieces))
        key = self._key(region, pieces)
        if not seen and (key[0] == key[1] or self._unshown_in(region).is_all):
            return Judgement(judges=SAME_TEXT)
        if key not in self._judged:
            cache = self._terms.cache
            content = content_of(region, pieces, self._terms, sought, self._proofs.known_of(region))
            found = in_cache(cache, content)
            if found is None:
                found = self._judged_by_runs(region, pieces, sought)
                if not self._proofs.is_hurried:
                    keep(cache, content, found)
            self._judged[key] = found
        return self._judged[key]

    def _judged_by_runs(self, region: Region, pieces: Pieces, sought: Sought | None) -> Judgement:
        told = [] if sought is not None else self._proofs.told_apart(region)
        more = self._proofs.runs_of_models(region, sought)
        is_wide = sought is not None  # of a wide region that differs one run is enough
        found = judge(region, pieces, self._terms, self._interpreter, told=told, more=more, stop_at_first=is_wide)
        if self._terms.prove and found.status == "equal":
            self._doubt(region, found)
        return found

    def _unshown_in(self, region: Region) -> Unshown:
        if region not in self._unshown:
            if self._aligned is None or self._aligned[0] is not self.pairs:
                self._aligned = self.pairs, stands_for(self.pairs)
            self._unshown[region] = unshown_in(region, self._aligned[1])
        return self._unshown[region]

    def _is_large(self, region: Region) -> bool:
        """Whether few runs could be made of a region, and its second piece writes values part by part."""
        may_be = not self._terms.is_strict and any(op.name in WRITING for op in region.second)
        return may_be and RUNS_OF_SMALL * max(work_of(*side) for side in region.sides) > VALUES

    def _derived_whole(self, name: str, regions: Sequence[Region], left: Sequence[Region]) -> RegionVerdict | None:
        """The verdict on all regions of @main together, if the whole function is derived: what is assumed between
        regions need not hold then.

        It is tried if few runs could be made of a region, or if most of the function is in regions that were not
        derived, with loops that one version alone has, as a tiled function is.
        """
        is_most = 2 * _size(left) >= self._first.op_count + self._second.op_count and any(only_on_one_side(left))
        is_large = any(map(self._is_large, regions))
        if name != "main" or not left or not (is_large or is_most) or any(map(self._proofs.has_function_alone, left)):
            return None
        more = max(1.0, (self._first.op_count + self._second.op_count) / OPS_AT_ONCE)
        seconds = more * (PROVE_SECONDS if is_large else TOTAL_SECONDS)
        return self._whole(name, regions, seconds)

    def derived_for_all_sizes(self, name: str) -> list[RegionVerdict] | None:
        """The verdict on @main of modules of symbolic sizes that is derived for all of them; none where all operations
        are the same, and None where it was not found.

        `pairs` become its aligned bodies.
        """
        self.pairs = Aligner(self._first, self._second, frozenset(), {}).align(name)
        regions = regions_of(self.pairs)
        seconds = PROVE_SECONDS if self._terms.prove else TOTAL_SECONDS
        whole = self._whole(name, regions, seconds) if regions else None
        return [replace(whole, sizes="all")] if whole is not None else [] if not regions else None

    def _whole(self, name: str, regions: Sequence[Region], seconds: float = PROVE_SECONDS) -> RegionVerdict | None:
        if not self._proofs.may_derive:
            return None
        if any(self._unshown_in(region).less or self._unshown_in(region).promised for region in regions):
            return None
        first, second = (mlir.print_module(program.raw) for program in (self._first, self._second))
        derivation = self._proofs.derivation_of(first, second, seconds=seconds)
        if not derivation:
            return None
        found = [self._verdict(name, region, region, Judgement()) for region in regions]
        return replace(
            found[0],
            where=name,
            how="derived",
            laws=derivation.laws,
            from_cache=derivation.from_cache,
            first=tuple(dict.fromkeys(place for one in found for place in one.first)),
            second=tuple(dict.fromkeys(place for one in found for place in one.second)),
            scatters=tuple(sorted({number for one in found for number in one.scatters})),
        )

    def _doubt(self, region: Region, judged: Judgement) -> None:
        """Note the inputs for which the solver has the pieces differ, though no run shows it."""
        derivation = self._proofs.derivation(region)
        if derivation is None or derivation or not derivation.inputs:
            return
        judged.doubt = derivation.inputs
        judged.reason = "z3 finds a difference that does not show when it is run"
        if not _begins_at_arguments(region):
            told = (" ".join(np.array2string(a, threshold=SHORT).split()) for a in derivation.inputs)
            judged.reason += f"; what the pieces take is {', '.join(told)}"

    def pieces(self, region: Region, seen: Sequence[Number] = ()) -> Pieces | CannotRunError:
        """Both pieces of a region, or why it has none; short ones are kept, and else those of the last region."""
        key = region, tuple(seen)
        if key not in self._built:
            last = next(reversed(self._built.values()), None)
            if isinstance(last, Pieces) and len(last.first) + len(last.second) > KEPT_LETTERS:
                self._built.popitem()
            try:
                self._built[key] = pieces_of(region, seen)
            except CannotRunError as error:
                self._built[key] = error
        return self._built[key]

    @staticmethod
    def _key(region: Region, pieces: Pieces | CannotRunError) -> "_Key":
        """The same for regions that are alike: in their pieces, and in the values that their inputs take in loops. What
        holds for the counter of a short loop need not hold for that of a longer one."""
        if isinstance(pieces, CannotRunError):  # each on its own, told by what judges it
            return str(id(region)), "", ()
        known = values_of(region)
        values = tuple((place, known[n]) for place, n in enumerate(region.inputs) if n in known)
        return pieces.first, pieces.second, values

    def _arguments(self, region: Region, run: Run) -> dict[int, Array]:
        """A run of a region as all arguments of its function, by place; those that it does not read are zeros."""
        side = region.pair.first
        given = dict(zip(region.inputs, run.arguments, strict=True))
        found: dict[int, Array] = {}
        for place, value in enumerate(side.body.arguments):
            tensor, dtype = side.program.type_of(value), side.program.dtype_of(value)
            if side.numbers[value] in given:
                found[place] = given[side.numbers[value]]
            elif tensor is not None and tensor.is_static and dtype is not None:
                found[place] = np.zeros(side.program.shape_of(value), dtype)
        return found

    def _scatters(self, region: Region) -> tuple[int, ...]:
        return tuple(sorted({self._numbers[op.raw] for op in ops_within(region.first) if op.raw in self._numbers}))

    def _verdict(self, name: str, region: Region, wide: Region, judged: Judgement) -> RegionVerdict:
        lay, status, inputs = judged.places, judged.status, dict[int, Array]()
        if status == "equal" and judged.doubt is not None:
            status = "only run"
            inputs = self._arguments(wide, Run("", list(judged.doubt), True)) if _begins_at_arguments(wide) else inputs
        return RegionVerdict(
            name,
            region.where,
            tuple(dict.fromkeys(location_of(op.raw) for op in region.first if op.inputs)),
            tuple(dict.fromkeys(location_of(op.raw) for op in region.second if op.inputs)),
            self._scatters(region),
            status,
            runs=judged.runs,
            judges=judged.judges,
            windows=(lay.inside, lay.overhanging, lay.outside, lay.most),
            excluded=judged.excluded,
            not_exercised=judged.not_exercised,
            difference=judged.difference,
            reason=judged.reason,
            inputs=inputs,
            from_cache=judged.from_cache,
        )

    # --- cutting by values ---

    def _same_values(self, region: Region) -> list[tuple[ValueId, ValueId]]:
        """Values within the two pieces that are the same on some runs: a chain of rewritten operations is cut there."""
        outputs = {o.first for o in region.outputs}
        anchors = [r for op in region.first if op.name in ANCHORS for r in op.results if r not in outputs]
        types = {self._first.types[x] for x in anchors}
        others = [r for op in region.second if op.inputs for r in op.results if self._second.types[r] in types]
        pieces = self.pieces(region) if others else None
        if not others or pieces is None:
            return []
        try:
            pair = region.pair
            seen = [
                self._fingerprints(region, side, ops, values)
                for side, ops, values in ((pair.first, region.first, anchors), (pair.second, region.second, others))
            ]
        except CannotRunError:
            return []
        places = {told: y for y, told in reversed(list(zip(others, seen[1], strict=True)))}
        return [(x, places[told]) for x, told in zip(anchors, seen[0], strict=True) if told in places]

    def _fingerprints(
        self, region: Region, side: Side, ops: Sequence[Op], values: Sequence[ValueId]
    ) -> list[tuple[Any, ...]]:
        """What tells the values of a piece apart: their types, and their contents on a few runs.

        Raises:
          CannotRunError: the piece is not run, so nothing is known of its values.
        """
        roles, types = roles_of(region), types_of(region)
        if may_not_end(side, ops):
            raise CannotRunError("a loop may not end")
        text = module_of(side.program, ops, dict(enumerate(region.inputs)), side.numbers, values, types)
        if reason := why_xla_errs_in(mlir.parse_module(text)):
            raise CannotRunError(reason)
        if sum(prod(role.shape) * role.dtype.itemsize for role in roles.inputs) > CUT_BYTES:
            raise CannotRunError(f"more than {CUT_BYTES} bytes of inputs")
        executable = piece_executable(text, "quick")
        runs = islice((run for run in runs_of(roles, [self._terms.seed], meeting=False) if not run.is_special), 3)
        results = [executable.run(run.arguments) for run in runs]
        return [
            (side.program.types[value], *(np.asarray(found[k]).tobytes() for found in results))
            for k, value in enumerate(values)
        ]


def _size(regions: Sequence[Region]) -> int:
    """The operations of the pieces of regions, those within others included."""
    return sum(len(ops_within(ops)) for region in regions for _, ops in region.sides)


def _largest(regions: Sequence[Region]) -> int:
    """The operations of the largest region."""
    return max((_size([region]) for region in regions), default=0)


def _unless_missed(verdict: RegionVerdict) -> RegionVerdict:
    """A verdict that says "equal" only where the runs had all that the pieces may come out as."""
    if not verdict.not_exercised:
        return verdict
    first, *more = verdict.not_exercised
    told = f"{first}{f' and {len(more)} more' if more else ''}, in {verdict.runs} runs"
    return replace(verdict, status="only run", reason=told)


def _begins_at_arguments(region: Region) -> bool:
    """Whether all that a region takes are arguments of the function: nothing that has an effect makes one of them."""
    side = region.pair.first
    return all(n in side.value_of and side.program.makers[side.value_of[n]] is None for n in region.inputs)


def _moved(narrow: Region, wide: Region, judged: Judgement) -> bool:
    """Whether the runs of a wide region moved what is at the cut: something, and every number that can move.

    A truth value may be what is to be shown, as the mask of the windows inside where all are; it may stay.
    """
    at_cut = cut(narrow, wide)
    if not at_cut or len(judged.seen) < len(at_cut):
        return False
    side = wide.pair.first
    moving = [(n, len(values) > 1) for n, values in zip(at_cut, judged.seen, strict=True) if depends(wide, n)]
    tensors = {n: side.program.type_of(side.value_of[n]) for n, _ in moving}
    numbers = [moved for n, moved in moving if (t := tensors[n]) is None or t.element_name != "i1"]
    return all(numbers) and (not moving or any(moved for _, moved in moving))
