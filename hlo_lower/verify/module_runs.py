"""Level two: the whole module, both versions through `jax.jit` on the same inputs.

Compared bit for bit, both compiled for it (`run.COMPILER_OPTIONS`); then, where that is asked for (level "full"), once
at XLA's default level, each element within the bound of its own rounding (`noise`): XLA fuses the two versions
differently and so rounds differently, and compiling both there takes twice as long as all the rest.
The runs say something about a scatter only if its updates reach a result: where they cannot, by data flow, or where the
outputs are mostly NaN, the verdict says `not exercised`.

A module that is partitioned over several devices is compared bit for bit as the same program on one device: a
partitioner may sum a scatter's updates device by device, and so round differently. Then both versions run on all
devices, in a child process where this one has too few, within the same bounds. Where part of the module
is written for one of the devices (`shard_map`), there is no program on one device, and all runs are on all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.vectors import OPEN, calls_for_vectors
from hlo_lower.verify.bounds.compare import Difference, first_difference, nan_share, only_signs_of_zeros
from hlo_lower.verify.bounds.matrices import definite, definite_inputs
from hlo_lower.verify.bounds.rounding_bounds import LARGE, OwnBounds
from hlo_lower.verify.bounds.rounding_bounds import RUNS as DISTURBED
from hlo_lower.verify.drive.driven_runs import VALUES
from hlo_lower.verify.drive.input_roles import Column, argument_columns, ordinary, other_integers, starts_in
from hlo_lower.verify.effort import Assumed, Effort
from hlo_lower.verify.judges.devices import (
    Runnable,
    TookTooLongError,
    compile_anywhere,
    cost_of,
    devices_of,
    executable,
    piece_executable,
)
from hlo_lower.verify.judges.xla_defects import why_no_judge, why_xla_aborts, why_xla_errs_in
from hlo_lower.verify.read.partitions import on_one_device
from hlo_lower.verify.read.program import Body, Program, position_of, scatters_of, scatters_on_path
from hlo_lower.verify.run import (
    FUSED,
    CannotRunError,
    Rounding,
    Signature,
    are_op_by_op,
    entry_function,
    module_over_budget,
    parse_or_refuse,
    read_signature,
    rounding_in_steps,
)
from hlo_lower.verify.verdict import ModuleVerdict

Array = NDArray[Any]

RUN_REGIMES = ("in range", "first and last", "mixed")
"""What the index arguments of the first, second and third run are drawn from; further runs repeat these."""

EDGES = range(11, 41, 3)
"""Numbers of further runs of a small module, in which integers are wide, and of the starts of scatters every second one
lies beyond an edge: what XLA makes of neighbours, of which each is right alone, shows there."""

SMALL = 1 << 20
"""Elements that the operations of a small module give."""

FEW = 64
"""Starts beyond the edges that are drawn for certain."""

MOSTLY_NAN = 0.5


@dataclass(frozen=True)
class Drives:
    """What the arguments of an entry point are driven by.

    Attributes:
      columns: for each argument that reaches the starts of windows, the columns that it may feed.
      may_overhang: whether some window is wider than 1 where it is indexed, so that the two policies may differ.
      definite: the arguments that become matrices which are factored as positive definite ones.
    """

    columns: Mapping[int, tuple[Column, ...]]
    may_overhang: bool
    definite: frozenset[int] = frozenset()


STARTS = "each start of a reduction added once (XLA may add one that is not an identity several times)"
"""Beside how two versions were compared that have such a reduction (`xla_defects.TREE`)."""


def drives_of(program: Program) -> Drives:
    """What the arguments of a module's entry point are driven by.

    Raises:
      CannotRunError: it has no public function.
    """
    body = _entry(program)
    columns = argument_columns(program, body)
    places = {argument: place for place, argument in enumerate(body.arguments)}
    definite_ones = frozenset(places[value] for value in definite_inputs(program, body.ops, places))
    return Drives(columns, any(column.window > 1 for found in columns.values() for column in found), definite_ones)


def _entry(program: Program) -> Body:
    return program.entries[mlir.symbol_name(entry_function(program.raw).attributes["sym_name"])]


def verify_module(
    before: str,
    after: str,
    assumed: Assumed,
    effort: Effort,
    memory_budget: int | None = None,
) -> ModuleVerdict:
    """Run both versions.

    Args:
      before, after: the two versions.
      assumed: what they mean and promise; where sums were reassociated each element is compared within the bound of its
        own rounding.
      effort: the user's arguments, or the seed and number of those that are drawn; who is told of each step.
      memory_budget: bytes of arguments and results up to which the module is run; None for no limit.

    Raises:
      InputError: the user's inputs do not fit the signature.
    """
    try:
        program = Program(mlir.parse_module(before))
        drives = drives_of(program)
        signature = read_signature(program.raw)
        changed = _changed_signature(signature, after)
        if changed is not None:
            return ModuleVerdict("differs", difference=changed)
        if _calls_for_other_vectors(program, after):
            return ModuleVerdict("not run", reason=f"{OPEN}, and a result depends on them")
        if assumed.oob == "spec" and drives.may_overhang:
            reason = "XLA drops whole windows, so under oob=spec it is not a judge of windows that may overhang"
            return ModuleVerdict("not run", reason=reason)
        versions = program.raw, mlir.parse_module(after)
        for module in versions:
            reason, other = why_no_judge(module), why_xla_aborts(module) or _why_not_the_same_twice(module)
            if reason or other:
                return ModuleVerdict("not run", reason=reason or f"XLA is not a judge: {other}")
        count = devices_of(before)
        needed_bytes = signature.bytes * count  # the arguments are given whole to each device
        if memory_budget is not None and needed_bytes > memory_budget:
            needed = f"{needed_bytes / 2**30:.1f} GiB of arguments and results"
            needed += f" on {count} devices" if count > 1 else ""
            return ModuleVerdict(
                "not run", reason=f"{needed}, more than {memory_budget / 2**30:.1f} (--verify full runs it)"
            )
        chosen = arguments_from_inputs(effort.inputs, signature, program.raw) if effort.inputs is not None else None
        work = _work(program.raw)
        most = effort.runs if memory_budget is None else min(effort.runs, VALUES // max(DISTURBED * work, 1))
        numbers = range(max(most, 1))
        sets = [chosen] if chosen is not None else [draw(signature, drives, effort.seed, k) for k in numbers]
        if chosen is None and drives.columns and work <= SMALL and most > 1:
            edges = [draw(signature, drives, effort.seed, k) for k in EDGES]
        else:
            edges = []
    except CannotRunError as error:
        return ModuleVerdict("not run", reason=str(error))
    try:
        at_default = memory_budget is None or count > 1
        compared = _Comparison(before, after, program, count, assumed, effort, at_default=at_default, work=work)
        rounding = rounding_in_steps(versions)
        found = compared.run(sets, edges, rounding)
        is_told = found.status == "equal" and rounding == "in order"
        return replace(found, how=f"{found.how}, {STARTS}") if is_told else found
    except TookTooLongError as error:
        return ModuleVerdict("not run", reason=str(error))
    except CannotRunError as error:
        reason = _why_not_run(before, sets[0], "exact")
        if reason:
            return ModuleVerdict("not run", reason=reason)
        return ModuleVerdict("differs", difference=_cannot_run(error))


def _calls_for_other_vectors(program: Program, after: str) -> bool:
    """Whether vectors that a result depends on are computed otherwise by the second version."""
    calls = calls_for_vectors(_entry(program))
    if not calls:
        return False
    other = Program(mlir.parse_module(after))
    return calls != calls_for_vectors(_entry(other))


def _why_not_the_same_twice(module: mlir.RawModule) -> str:
    """Why two runs of one module differ, "" where they do not."""
    draws = mlir.any_operation(module.operation, lambda op: op.name == names.RNG)
    return "stablehlo.rng draws other numbers in each run" if draws else ""


def _why_not_run(source: str, arguments: list[Array], rounding: Rounding) -> str:
    """Why a version does not run, "" if it does."""
    try:
        executable(source, rounding).run(arguments)
    except CannotRunError as error:
        return str(error)
    return ""


def _changed_signature(signature: Signature, after: str) -> Difference | None:
    try:
        other = read_signature(mlir.parse_module(after))
    except CannotRunError as error:
        return _cannot_run(error)
    for what in ("arguments", "results"):
        mine, theirs = getattr(signature, what), getattr(other, what)
        if len(mine) != len(theirs):
            return Difference(0, (), f"{len(mine)} {what}", f"{len(theirs)} {what}", 1, "signature")
        for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                told = (f"{what}: {s.dtype}{list(s.shape)}" for s in (a, b))
                return Difference(number, (), next(told), next(told), 1, "signature")
    return None


def _cannot_run(error: CannotRunError) -> Difference:
    """The first version runs and the second one does not."""
    return Difference(0, (), "a module that runs", str(error), 1, "the second version does not run")


def _work(module: mlir.RawModule) -> int:
    """How many elements the operations of a module give, each counted once."""
    tensors = (mlir.read_tensor_type(v.type) for op in mlir.operations_within(module.operation) for v in op.results)
    return sum(prod(int(n or 0) for n in tensor.shape) for tensor in tensors if tensor is not None)


def _compile(texts: Sequence[str], rounding: Rounding) -> list[Runnable]:
    return compile_anywhere([(text, rounding) for text in texts])


class BothVersions:
    """Two versions that are run on the same arguments: fused until they differ, then op by op.

    Args:
      texts: the first version, and the second, which may have more results.
      in_steps: how they are compiled op by op.
      may_fuse: whether two that agree are to be known soon; else they are op by op from the start.

    Raises:
      CannotRunError: one of them cannot be compiled.
    """

    def __init__(self, texts: Sequence[str], in_steps: Rounding, *, may_fuse: bool) -> None:
        self._texts, self._is_fused = texts, may_fuse
        self._in_steps: Rounding = in_steps
        self._first, self._second = _compile(texts, FUSED[in_steps] if may_fuse else in_steps)

    @property
    def are_op_by_op(self) -> bool:
        """Whether both are compiled as "unfused" by now."""
        return are_op_by_op(self._first, self._second)

    def run(self, arguments: list[Array]) -> tuple[list[Array], list[Array]]:
        """The results of both.

        Raises:
          CannotRunError: one of them does not run.
        """
        first, second = self._first.run(arguments), self._second.run(arguments)
        if not self._is_fused or first_difference(first, second[: len(first)]) is None:
            return first, second
        self._is_fused = False
        self._first, self._second = _compile(self._texts, self._in_steps)
        return self._first.run(arguments), self._second.run(arguments)


class _Comparison:
    """Both versions compiled, and what is run on them."""

    def __init__(
        self,
        before: str,
        after: str,
        program: Program,
        devices: int,
        assumed: Assumed,
        effort: Effort,
        *,
        at_default: bool,
        work: int,
    ) -> None:
        self._reassociated, self._progress = assumed.reassociated, effort.tell
        self._is_large = work >= LARGE
        self._at_default = at_default
        self._before, self._after = before, after
        self._program = program
        self._devices = devices
        self._how = "bit for bit"
        whole = [on_one_device(text) for text in (before, after)] if devices > 1 else [before, after]
        self._is_whole = None not in whole
        self._exact: list[str] = [text for text in whole if text is not None] if self._is_whole else [before, after]
        if not self._is_whole:
            self._how = f"bit for bit on {devices} devices"
        self._bounds = OwnBounds(self._exact[0], work=work)
        self._zeros: list[str] = []

    def run(self, asked: Sequence[list[Array]], edges: Sequence[list[Array]], in_steps: Rounding) -> ModuleVerdict:
        """Bit for bit on all inputs, those beyond the edges too, op by op; then as XLA compiles them."""
        sets = [*asked, *edges]
        steps = len(sets) + 2
        self._progress("module", 0, steps)
        versions = BothVersions(self._exact, in_steps, may_fuse=not self._reassociated)
        expected: list[list[Array]] = []
        unfused: list[Runnable] | None = None
        for number, arguments in enumerate(sets):
            wanted, actual = versions.run(arguments)
            expected.append(wanted)
            found = first_difference(expected[-1], actual)
            if found is not None and only_signs_of_zeros(expected[-1], actual):
                self._zeros = [f"signs of zeros: XLA, which makes x of 0.0 + x, finds others ({found})"]
                found = None
            if found is not None and not versions.are_op_by_op and self._may_look_twice():
                unfused = unfused or _compile(self._exact, "unfused")
                found = first_difference(unfused[0].run(arguments), unfused[1].run(arguments))
            if found is not None and self._reassociated:
                found = self._bounds.difference(expected[-1], actual, arguments)
                self._how = "each element within the bound of its own rounding, because sums may be reassociated"
            elif found is not None and not self._is_whole:
                found = self._bounds.difference(expected[-1], actual, arguments)
                self._how = f"on {self._devices} devices, each element within the bound of its own rounding"
            if found is not None:
                return self._differs(found, number + 1)
            self._progress("module", number + 1, steps)
        rounding = "default" if self._at_default else "quick" if edges else "exact"
        found, not_run = self._with_neighbours(sets, expected, rounding) if rounding != "exact" else (None, [])
        if found is not None:
            return self._differs(found, len(sets))
        self._progress("module", steps - 1, steps)
        nan = _mostly_nan(expected[: len(asked)])
        not_exercised = (*not_run, *self._unreachable(), *nan, *self._bounds.notes, *self._zeros)
        self._progress("module", steps, steps)
        how = f"{self._how}, and {len(edges)} beyond the edges" if edges else self._how
        return ModuleVerdict("equal", len(asked), not_exercised=not_exercised, how=how)

    def _may_look_twice(self) -> bool:
        """Whether both versions can be compiled as "unfused"; see `run.COMPILER_OPTIONS`."""
        if self._is_large and self._reassociated:  # a bound is asked for next, whatever it shows
            return False
        return all(mlir.tensor_shape(scatter.operands[0].type) for scatter in self._program.scatter_numbers)

    def _differs(self, found: Difference, runs: int) -> ModuleVerdict:
        on_path = scatters_on_path(self._program, _entry(self._program), found.result)
        return ModuleVerdict("differs", runs, difference=found, on_path=on_path)

    def _with_neighbours(
        self, sets: Sequence[list[Array]], exact: Sequence[list[Array]], rounding: Rounding
    ) -> tuple[Difference | None, list[str]]:
        """The difference where XLA makes one op of several, as for a user, on all devices of the module; and why that
        was not run.

        It is run on the first arguments, on the last ones, and on all of which indices lie beyond the edges. The first
        version is compiled so only where the second one, simplified, does not give the bits of the first one op by op.
        """
        arguments, native = sets[0], None
        try:
            [lowered] = _compile([self._after], rounding)
            for k in dict.fromkeys((0, *range(len(RUN_REGIMES) - 1, len(sets)))):
                arguments = sets[k]
                actual = lowered.run(arguments)
                if rounding == "quick" and first_difference(exact[k], actual) is None:
                    continue
                native = native or _compile([self._before], rounding)[0]
                expected = native.run(arguments)
                if found := self._bounds.difference(expected, actual, arguments, [exact[k]]):
                    return found, []
        except CannotRunError as error:
            if self._devices == 1:
                raise
            reason = _why_not_run(self._before, arguments, rounding)
            return (None, [f"the module on {self._devices} devices: {reason}"]) if reason else (_cannot_run(error), [])
        if self._devices > 1 and self._is_whole:
            self._how = f"bit for bit on one device, and one on {self._devices} devices within a bound"
        return None, []

    def _unreachable(self) -> list[str]:
        """Scatters from which no returned value depends."""
        body = _entry(self._program)
        paths = (scatters_on_path(self._program, body, k) for k in range(len(body.returned)))
        reached = {place.number for path in paths for place in path}
        numbers = self._program.scatter_numbers.items()
        return [f"{position_of(raw, n)}: no result depends on it" for raw, n in numbers if n not in reached]


def _mostly_nan(expected: Sequence[list[Array]]) -> list[str]:
    return [
        f"result {number}: {share:.0%} of it is NaN"
        for number in range(len(expected[0]))
        if (share := float(np.mean([nan_share(run[number]) for run in expected]))) > MOSTLY_NAN
    ]


def blind(text: str) -> str | None:
    """A module with every scatter replaced by its operand; None where a region promotes, so that the types differ."""
    module = mlir.parse_module(text)
    for scatter in reversed(scatters_of(module)):
        operands = list(scatter.operands)
        for result, operand in zip(scatter.results, operands, strict=False):
            if str(result.type) != str(operand.type):
                return None
            result.replace_all_uses_with(operand)
        scatter.erase()
    return mlir.print_module(module)


# --- inputs ---


def draw(signature: Signature, drives: Drives, seed: int, number: int) -> list[Array]:
    """Seeded arguments of run `number`: index arguments by regime, other integers small or wide, floats normal."""
    rng = np.random.default_rng([seed, number])
    largest = max((size for struct in signature.arguments for size in struct.shape), default=1)
    regime = RUN_REGIMES[number % len(RUN_REGIMES)]
    arrays: list[Array] = []
    for k, struct in enumerate(signature.arguments):
        dtype = np.dtype(struct.dtype)
        columns = drives.columns.get(k)
        if columns and dtype.kind in "iu":
            column = columns[int(rng.integers(len(columns)))]
            starts = starts_in(rng, regime, struct.shape, dtype, column)
            arrays.append(_half_outside(rng, starts, column) if number >= len(RUN_REGIMES) else starts)
        elif dtype.kind in "iu":
            arrays.append(other_integers(rng, number, struct.shape, dtype, largest))
        elif k in drives.definite and dtype.kind == "f":
            arrays.append(definite(rng, struct.shape, dtype))
        else:
            arrays.append(ordinary(rng, struct.shape, dtype))
    return arrays


OUTSIDE = ("all dropped", "negative", "far out")
"""Regimes of starts beyond the edges."""


def _half_outside(rng: np.random.Generator, starts: Array, column: Column) -> Array:
    """Starts of which every second one, drawn anew, lies beyond an edge, and a single one always does."""
    found, first = starts.copy().reshape(-1), int(rng.integers(len(OUTSIDE)))
    for number, place in enumerate(rng.permutation(found.size)[: (found.size + 1) // 2 if found.size < FEW else FEW]):
        found[place] = starts_in(rng, OUTSIDE[(first + number) % len(OUTSIDE)], (), starts.dtype, column)
    return found.reshape(starts.shape)


def arguments_from_inputs(
    inputs: Sequence[Any] | Mapping[str, Any], signature: Signature, module: mlir.RawModule
) -> list[Array]:
    """The user's inputs as arguments, checked against the signature.

    A mapping is keyed by argument name, or by position as "0", "arg0", "arg_0" or "arr_0" (as `numpy.savez` names
    them).

    Raises:
      InputError: one is missing, unknown, or of another shape or type.
    """
    if isinstance(inputs, Mapping):
        arguments = entry_function(module).regions[0].blocks[0].arguments
        called = [mlir.value_name(a) for a in arguments]
        keys = [(name, str(k), f"arg{k}", f"arg_{k}", f"arr_{k}") for k, name in enumerate(called)]
        known = {key for group in keys for key in group if key}
        unknown = [name for name in inputs if name not in known]
        missing = [group[0] or group[2] for group in keys if not any(key in inputs for key in group if key)]
        if unknown or missing:
            told = f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
            raise InputError("", "the inputs do not fit the module's arguments", facts=told)
        given: list[Any] = [next(inputs[key] for key in group if key and key in inputs) for group in keys]
    else:
        given = list(inputs)
    if len(given) != len(signature.arguments):
        raise InputError("", f"{len(given)} inputs for {len(signature.arguments)} arguments")
    arrays: list[Array] = []
    for k, (value, struct) in enumerate(zip(given, signature.arguments, strict=True)):
        try:
            array: Array = np.asarray(value)
        except ValueError as error:
            raise InputError("", f"input {k} is not an array", facts=str(error)) from None
        dtype = np.dtype(struct.dtype)
        if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
            array = array.view(dtype)  # np.savez keeps the bytes of bfloat16, not its name
        if array.shape != struct.shape or array.dtype != dtype:
            told = f"expected {dtype}{list(struct.shape)}, got {array.dtype}{list(array.shape)}"
            raise InputError("", f"input {k} does not fit", facts=told)
        arrays.append(array)
    return arrays


# --- both whole modules ---
#
# Both whole modules, compiled when they are first asked for: what a region's difference means for what is returned.


TRIES = 48
"""Parts of an argument that are tried as zeros, to make a counterexample smaller."""

MINIMISED = 10.0
"""Seconds for that."""


class WholeModules:
    """Two modules of one signature and static shapes.

    Args:
      before, after: their texts.
    """

    def __init__(self, before: str, after: str) -> None:
        self._texts = before, after
        self._versions: tuple[Runnable, Runnable] | None = None
        self._arguments: tuple[Any, ...] = ()
        self._failed = False
        self._bounds = OwnBounds(before)

    def differ(self, name: str, inputs: Mapping[int, Array]) -> bool | None:
        """Whether the two return something else, beyond how far roundings go; None where they cannot be run.

        Args:
          name: the public function.
          inputs: some of its arguments, by place; the others are drawn.
        """
        versions = self._executables(name)
        if versions is None:
            return None
        rng = np.random.default_rng(0)
        arguments = [
            inputs.get(place, ordinary(rng, a.shape, np.dtype(a.dtype))) for place, a in enumerate(self._arguments)
        ]
        try:
            results = [version.run(arguments) for version in versions]
            return self._bounds.difference(results[0], results[1], arguments) is not None
        except CannotRunError:
            return None

    def minimise(self, name: str, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Arguments on which the two modules still differ, with zeros in as many places as possible: whole arguments
        first, then parts of them.

        Args:
          name: the public function.
          inputs: arguments, by place, all of them.
        """
        found = dict(inputs)
        if not self.differ(name, found):
            return found
        until = monotonic() + MINIMISED
        for place, array in inputs.items():
            pending = [(0, array.size)]
            for _ in range(TRIES):
                if not pending or monotonic() > until:
                    break
                start, end = pending.pop()
                tried = found[place].copy()
                tried.reshape(-1)[start:end] = 0
                if self.differ(name, {**found, place: tried}):
                    found[place] = tried
                elif end - start > 1:
                    middle = (start + end) // 2
                    pending += [(middle, end), (start, middle)]
        return found

    def _executables(self, name: str) -> tuple[Runnable, Runnable] | None:
        if self._versions is None and not self._failed:
            try:
                module = mlir.parse_module(self._texts[0])
                if mlir.symbol_name(entry_function(module).attributes["sym_name"]) != name:
                    return None
                if module_over_budget(module) or any(why_xla_errs_in(mlir.parse_module(text)) for text in self._texts):
                    self._failed = True
                    return None
                self._arguments = read_signature(module).arguments
                first, second = map(piece_executable, self._texts)
                self._versions = first, second
            except CannotRunError:
                self._failed = True
        return self._versions


# --- the plain form ---
#
# The module as it was given, run against its plain form: what legalizing and narrowing integers made of it.


LARGEST = 8
"""Integers are drawn below this: what narrowing them assumes holds for those, and sizes and places often are small."""

FAR = (1 << 15, 1 << 20, 1 << 31)
"""Where a result says whether what is assumed held, integers and floats are drawn up to these as well."""


def verify_plain(
    before: str, after: str, *, seed: int, runs: int, memory_budget: int, near: bool, checked: bool = False
) -> ModuleVerdict:
    """Run a module and its plain form on seeded arguments with small integers.

    Args:
      before, after: the two, of one signature.
      seed, runs: of the arguments.
      memory_budget: bytes of arguments and results up to which they are run.
      near: whether custom calls were written out, so that each float is compared within the bound of its own rounding
        and not bit for bit: erf's polynomial is within 4 units of the call's, which are disturbed by 32.
      checked: whether the second one has a result more, which says whether its other results are to be the same: they
        are compared where it is true. Arguments are drawn from wider ranges then, too.
    """
    try:
        modules = [parse_or_refuse(text, name) for text, name in ((before, "before"), (after, "after"))]
        signature, rounding = read_signature(modules[0]), rounding_in_steps(modules)
        if signature.bytes > memory_budget:
            return ModuleVerdict("not run", reason=f"{signature.bytes / 2**30:.1f} GiB of arguments and results")
        versions = BothVersions((before, after), rounding, may_fuse=not near)
        count, is_exact = devices_of(before), True
        own_bounds = OwnBounds(before, seed=seed)
        limits = [LARGEST] * runs + [limit for limit in FAR if checked and cost_of(before).seconds < inf]
        compared = 0
        for k, limit in enumerate(limits):
            rng = np.random.default_rng([seed, k])
            arguments = [_draw(rng, a.shape, np.dtype(a.dtype), limit) for a in signature.arguments]
            expected, actual = versions.run(arguments)
            if checked:
                *actual, held = actual
                if not bool(held):
                    continue
            compared += 1
            difference = first_difference(expected, actual)
            if difference is not None and (near or count > 1):  # no order is defined for a sum over devices
                is_exact, difference = False, own_bounds.difference(expected, actual, arguments)
            if difference is not None:
                return ModuleVerdict("differs", runs=k + 1, difference=difference)
    except CannotRunError as error:
        return ModuleVerdict("not run", reason=str(error))
    how = "each float within the bound of its own rounding" if near or not is_exact else "bit for bit"
    how += f", on {count} devices and on one" if count > 1 else ""
    if checked:
        how += f", where its last result is true, as it was in {compared} of {len(limits)} runs"
        if not compared:
            return ModuleVerdict("not run", reason="its last result was false in every run: nothing is to be compared")
    return ModuleVerdict("equal", runs=compared, how=f"{how}, integers below {max(limits)}")


def _draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], limit: int) -> Array:
    if dtype.kind not in "iu":
        drawn = ordinary(rng, shape, dtype)
        return drawn if limit == LARGEST or dtype.kind != "f" else (drawn * limit).astype(dtype)
    if limit == LARGEST:
        return rng.integers(0, LARGEST, shape).astype(dtype)
    bits = np.iinfo(dtype).bits
    most = min(limit, 1 << min(bits - (dtype.kind == "i"), 31 + (dtype.kind == "u")))
    return rng.integers(0 if dtype.kind == "u" else -most, most, shape).astype(dtype)
