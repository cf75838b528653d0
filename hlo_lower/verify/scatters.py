"""Level one: each scatter alone, converted alone, through all index regimes, before three oracles.

The oracles are XLA on the original cut-out, StableHLO's reference interpreter in a child process, and our NumPy
reference. Each is left out, with the reason, where it is known to be wrong (TRAPS 46) or speaks of the other policy:

- under oob="xla" the interpreter judges only runs without overhanging windows, on which the policies agree;
- under oob="spec" XLA judges only those.

All runs are compared bit for bit against the converted cut-out compiled for it (`run.COMPILER_OPTIONS`), except that
transcendental functions and complex products, which XLA, the interpreter and NumPy each round in their own way, are
compared within a bound. XLA at its default level is compared too, within a bound that grows with the number of updates
to one element.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower import mlir
from hlo_lower.errors import HloLowerError
from hlo_lower.scatter.reference import Hits, ScatterNumbers, count_hits, scatter
from hlo_lower.verify.compare import Difference, epsilon, first_difference, first_difference_beyond, is_inexact
from hlo_lower.verify.cutout import MAX_CALL_SITES, Cutout, Leaf, ModuleIndex, Place, cut_out, function_of
from hlo_lower.verify.inputs import (
    REGIMES,
    SPECIAL_VALUES,
    Column,
    Turn,
    draw_leaves,
    ordinary,
    probe,
    turns_of,
    with_special_values,
)
from hlo_lower.verify.instances import instances_of
from hlo_lower.verify.interpreted import MAX_INTERPRETED, Interpreted
from hlo_lower.verify.interpreter import Interpreter, InterpreterError
from hlo_lower.verify.region import UnsupportedRegionError, check_region, combine_of, rounds_correctly
from hlo_lower.verify.run import CannotRunError, Executable, compile_all
from hlo_lower.verify.verdict import Regime, ScatterVerdict
from hlo_lower.verify.xla_aborts import why_xla_aborts
from hlo_lower.verify.xla_errors import why_xla_errs

Array = NDArray[Any]
Policy = Literal["xla", "spec"]

MAX_POSITIONS = 20_000
"""Scatter positions up to which the reference, a Python loop, judges."""

MAX_INTERPRETED_ALWAYS = 1 << 12
"""Elements up to which it judges every regime; larger scatters, a second each and more, only `INTERPRETED_REGIMES`."""

INTERPRETED_REGIMES = ("first and last", "overhanging", "mixed")

DEFAULT_LEVEL_UNITS = 4
"""Machine epsilons per update to an element that XLA's default level may differ by."""


@dataclass
class Group:
    """Cut-outs with the same text: verified once."""

    cutout: Cutout
    places: list[Place] = field(default_factory=list[Place])
    leaves: list[tuple[Leaf, ...]] = field(default_factory=list[tuple[Leaf, ...]])
    """The leaves of the indices of each of them."""
    notes: list[str] = field(default_factory=list[str])
    """What was not cut out."""


def group_cutouts(index: ModuleIndex) -> tuple[list[Group], list[ScatterVerdict]]:
    """All cut-outs of a module, alike ones together, and the scatters that cannot be cut out."""
    groups: dict[str, Group] = {}
    refused: list[ScatterVerdict] = []
    for number in range(1, len(index.scatters) + 1):
        place = index.place(number)
        try:
            for cutout in cut_out(index, number):
                group = groups.setdefault(cutout.text, Group(cutout))
                group.leaves.append(cutout.leaves[: cutout.index_leaves])
                if place not in group.places:
                    group.places.append(place)
                    group.notes.extend(_calls_left_out(index, number))
        except ValueError as error:
            refused.append(ScatterVerdict((place,), "refused", reason=str(error)))
    return list(groups.values()), refused


def _calls_left_out(index: ModuleIndex, number: int) -> list[str]:
    """Whether there are more ways to a scatter's function than are cut out."""
    if len(index.call_paths(function_of(index.scatters[number - 1]))) <= MAX_CALL_SITES:
        return []
    return [f"call sites of {index.place(number)} beyond the first {MAX_CALL_SITES}"]


def verify_group(
    group: Group,
    convert: Callable[[str], str],
    oob: Policy,
    seed: int,
    interpreter: Interpreter,
    *,
    reassociated: bool = False,
) -> ScatterVerdict:
    """Verify one cut-out; where it may be reassociated, float sums and products within a bound."""
    places, notes = tuple(group.places), tuple(dict.fromkeys(group.notes))
    try:
        cases = [
            (_Case(instance.cutout, instance.converted, oob, interpreter, reassociated=reassociated), instance.sizes)
            for instance in instances_of(group.cutout, convert(group.cutout.text))
        ]
    except (HloLowerError, CannotRunError) as error:
        return ScatterVerdict(places, "refused", reason=str(error))
    regimes: list[Regime] = []
    excluded = dict.fromkeys(notes)
    judged: set[str] = set()
    for case, sizes in cases:
        difference, refusal = _run_regimes(case, seed, sizes, regimes)
        excluded.update(dict.fromkeys(case.excluded.values()))
        if refusal:
            return ScatterVerdict(places, "refused", tuple(regimes), reason=refusal)
        if difference:
            return ScatterVerdict(places, "differs", tuple(regimes), tuple(excluded), difference=difference)
    judged.update(judge for regime in regimes for judge in regime.judges)
    if not judged:
        reason = "no oracle could judge it"
        return ScatterVerdict(places, "not judged", tuple(regimes), tuple(excluded), reason=reason)
    return ScatterVerdict(places, "equal", tuple(regimes), tuple(excluded))


def _run_regimes(case: "_Case", seed: int, sizes: str, regimes: list[Regime]) -> tuple[str, str]:
    """Run all regimes and add them to the list: "" or what differs, and "" or why it cannot be run."""
    for number, name in enumerate(REGIMES):
        try:
            regime, difference = case.run_turns(name, [seed, number])
        except CannotRunError as error:
            return "", str(error)
        regimes.append(replace(regime, sizes=sizes))
        if difference:
            return f"{name}{f' at {sizes}' if sizes else ''}: {difference}", ""
    return "", ""


class _Case:
    """A cut-out with everything that is compiled for it."""

    def __init__(
        self, cutout: Cutout, converted: str, oob: Policy, interpreter: Interpreter, *, reassociated: bool = False
    ) -> None:
        self._cutout = cutout
        self._oob: Policy = oob
        self._interpreter = interpreter
        self.excluded: dict[str, str] = {}
        index = ModuleIndex(mlir.parse_module(cutout.text, mlir.make_context()))
        self._index = index  # the operations live as long as their module
        self._scatter = index.scatters[0]
        self._functions = index.functions
        self._read_types()
        self._converted_text = converted
        self._aborts = why_xla_aborts(index.module) or _why_aborts(converted) or _why_aborts(cutout.indices_text)
        self._converted, self._converted_default = self._compile_converted()
        self._native = self._compile_native()
        self._unfused: tuple[Executable, Executable] | None = None
        self._indices = self._interpreted(cutout.indices_text) or Executable(cutout.indices_text, "exact")
        self._rounds_correctly = rounds_correctly(self._scatter, self._functions)
        self._in_any_order = reassociated and _sums_or_multiplies(self._scatter)
        self._interpretable = self._may_interpret()
        self._referable = self._may_refer()
        self._fed: list[list[int]] | None = None
        elements = sum(prod(a.shape) for a in self._converted.arguments)
        self._may_interpret_converted = (
            self._rounds_correctly
            and "stablehlo.scatter" not in converted
            and not self._index_type.startswith("ui")
            and elements <= MAX_INTERPRETED
        )

    def _read_types(self) -> None:
        op, n = self._scatter, self._cutout.arity
        numbers = mlir.scatter_dimension_numbers(op)
        self._numbers = ScatterNumbers(
            tuple(numbers.update_window_dims),
            tuple(numbers.inserted_window_dims),
            tuple(numbers.input_batching_dims),
            tuple(numbers.scatter_indices_batching_dims),
            tuple(numbers.scattered_dims_to_operand_dims),
            int(numbers.index_vector_dim),
        )
        self._operand_shape = _shape(op.operands[0])
        self._updates_shape = _shape(op.operands[n + 1])
        self._index_type = mlir.tensor_element_name(op.operands[n].type)
        self._operand_types = [mlir.tensor_element_name(v.type) for v in list(op.operands)[:n]]
        self._region_types = [mlir.tensor_element_name(a.type) for a in list(op.regions[0].blocks[0].arguments)[:n]]
        self._elements = prod(self._operand_shape) + prod(self._updates_shape)
        self._positions = prod(
            size for d, size in enumerate(self._updates_shape) if d not in self._numbers.update_window_dims
        )

    # --- who may judge ---

    def _interpreted(self, text: str) -> Interpreted | None:
        """What runs a module where XLA must not even compile the cut-out: the interpreter."""
        return Interpreted(text, self._interpreter, self._aborts) if self._aborts else None

    def _compile_converted(self) -> tuple[Executable | Interpreted, Executable | Interpreted]:
        text = self._converted_text
        interpreted = self._interpreted(text)
        if interpreted is not None:
            return interpreted, interpreted
        exact, default = compile_all([(text, "exact"), (text, "default")])
        return exact, default

    def _compile_native(self) -> tuple[Executable, Executable] | None:
        reason = f"is no judge: {self._aborts}" if self._aborts else why_xla_errs(self._index, self._scatter)
        if reason:
            self.excluded["xla"] = f"XLA: {reason}"
            return None
        try:
            exact, default = compile_all([(self._cutout.text, "exact"), (self._cutout.text, "default")])
            return exact, default
        except CannotRunError as error:
            self.excluded["xla"] = f"XLA: {error}"
            return None

    def _may_interpret(self) -> bool:
        numbers, reason = self._numbers, ""
        scatter_dims = [d for d in range(len(self._updates_shape)) if d not in numbers.update_window_dims]
        if self._index_type.startswith("ui"):
            reason = "reads unsigned indices as signed"
        elif self._positions > 1 and any(w < s for w in numbers.update_window_dims for s in scatter_dims):
            if any(self._updates_shape[d] > 1 for d in numbers.update_window_dims):
                reason = "goes by update index where window dims precede scatter dims (TRAPS 45)"
        elif self._elements > MAX_INTERPRETED:
            reason = f"more than {MAX_INTERPRETED} elements"
        if reason:
            self.excluded["interpreter"] = f"interpreter: {reason}"
        return not reason

    def _may_refer(self) -> bool:
        if self._positions > MAX_POSITIONS:
            self.excluded["reference"] = f"reference: more than {MAX_POSITIONS} positions"
            return False
        try:
            check_region(self._scatter, self._functions)
        except UnsupportedRegionError as error:
            self.excluded["reference"] = f"reference: {error}"
            return False
        return True

    # --- one regime ---

    def run_turns(self, regime: str, seed: Sequence[int]) -> tuple[Regime, str]:
        """Run one regime as often as it takes to see its places; the second part is "" or what differs."""
        runs: list[Regime] = []
        difference = ""
        for number in range(turns_of(regime, self._positions, self._elements)):
            rng = np.random.default_rng([*seed, number] if number else seed)
            found, difference = self.run(rng, regime, Turn(number, np.random.default_rng(seed)))
            runs.append(found)
            if difference:
                break
        told = Regime(
            regime,
            inside=sum(r.inside for r in runs),
            overhanging=sum(r.overhanging for r in runs),
            outside=sum(r.outside for r in runs),
            most=max(r.most for r in runs),
            judges=tuple(dict.fromkeys(judge for r in runs for judge in r.judges)),
        )
        return told, difference

    def run(self, rng: np.random.Generator, regime: str, turn: Turn) -> tuple[Regime, str]:
        """Run a regime once."""
        arguments, indices = self._arguments(rng, regime, turn)
        hits = count_hits(self._operand_shape, indices, self._updates_shape, self._numbers)
        judges: list[str] = []
        expectations = self._expectations(regime, turn, arguments, indices, hits)
        is_run = bool(expectations) or not self._aborts  # the interpreter takes long, and XLA may refuse to run
        actual = self._converted.run(arguments) if is_run else []
        for judge, expected in expectations:
            judges.append(judge)
            found = self._compare(judge, expected, actual, arguments, indices)
            if found is not None:
                return self._told(regime, hits, judges), f"{judge} says {found}"
        found = self._differs_at_default(arguments, indices, hits)
        if not found and regime in SPECIAL_VALUES:
            found = self._differs_interpreted(arguments, indices, dict(expectations).get("reference"))
        return self._told(regime, hits, judges), found

    def _compare(
        self, judge: str, expected: list[Array], actual: list[Array], arguments: list[Array], indices: Array
    ) -> Difference | None:
        if self._in_any_order or (judge != "XLA" and not self._rounds_correctly):
            return self._beyond_bound(expected, actual, arguments, indices)
        found = first_difference(expected, actual)
        if found is None or judge != "XLA" or not self._operand_shape:
            return found
        # A second look without fusion, which may contract a multiply and an add on one side only.
        if self._unfused is None:
            self._unfused = Executable(self._cutout.text, "unfused"), Executable(self._converted_text, "unfused")
        native, converted = self._unfused
        return first_difference(native.run(arguments), converted.run(arguments))

    def _beyond_bound(
        self, expected: list[Array], actual: list[Array], arguments: list[Array], indices: Array
    ) -> Difference | None:
        """The first element beyond its bound: units for each of its own updates, of its own terms' magnitudes."""
        if first_difference(expected, actual) is None:
            return None
        n = self._cutout.arity
        writes = self._summed(np.zeros(self._operand_shape), indices, np.ones(self._updates_shape))
        bounds: list[Array] = []
        for operand, update, result in zip(arguments[:n], arguments[n : 2 * n], expected, strict=True):
            size = self._summed(_magnitudes(operand), indices, _magnitudes(update))
            size = np.maximum(size, _magnitudes(result))
            unit = epsilon(result.dtype) if is_inexact(result) else 0.0
            bounds.append(DEFAULT_LEVEL_UNITS * (1 + writes) * unit * size)
        return first_difference_beyond(expected, actual, bounds)

    def _summed(self, operand: Array, indices: Array, updates: Array) -> Array:
        """The scatter of f64 operand and updates that adds, under the policy."""
        dtypes = [np.dtype(np.float64)]
        found = scatter([operand], indices, [updates], self._numbers, _added, dtypes, oob=self._oob)
        return np.asarray(found[0])

    @staticmethod
    def _told(name: str, hits: Hits, judges: Sequence[str]) -> Regime:
        return Regime(name, hits.inside, hits.overhanging, hits.outside, hits.most, tuple(judges))

    def _arguments(self, rng: np.random.Generator, regime: str, turn: Turn) -> tuple[list[Array], Array]:
        """All arguments of the cut-out, and the indices that they give."""
        n = self._cutout.arity
        structs = [(tuple(a.shape), np.dtype(a.dtype)) for a in self._converted.arguments]
        tensors = [ordinary(rng, shape, dtype) for shape, dtype in structs[: 2 * n]]
        if regime in SPECIAL_VALUES:
            tensors = [with_special_values(rng, t) for t in tensors]
        for i, dims in enumerate(self._cutout.same_along):
            tensors[n + i] = _same_along(tensors[n + i], dims)
        index_structs = structs[2 * n : 2 * n + self._cutout.index_leaves]
        if self._fed is None:
            zeros = [np.zeros(shape, dtype) for shape, dtype in index_structs]
            self._fed = probe(self._compute_indices, zeros, self._numbers.index_vector_dim)
        leaves = draw_leaves(rng, regime, index_structs, self._fed, columns_of(self._scatter), turn)
        captured = [ordinary(rng, shape, dtype) for shape, dtype in structs[2 * n + self._cutout.index_leaves :]]
        return [*tensors, *leaves, *captured], self._compute_indices(leaves)

    def _compute_indices(self, leaves: list[Array]) -> Array:
        return self._indices.run(leaves)[0]

    def _expectations(
        self, regime: str, turn: Turn, arguments: list[Array], indices: Array, hits: Hits
    ) -> "list[tuple[str, list[Array]]]":
        n = self._cutout.arity
        found: list[tuple[str, list[Array]]] = []
        policies_agree = hits.overhanging == 0
        if self._native is not None:
            if self._oob == "xla" or policies_agree:
                found.append(("XLA", self._native[0].run(arguments)))
            else:
                self.excluded["xla windows"] = "XLA: drops whole windows, not judged where one overhangs"
        if self._referable:
            combine = combine_of(self._scatter, self._functions)
            dtypes = [mlir.dtype_of(t) for t in self._region_types]
            known = [t for t in dtypes if t is not None]
            try:
                expected = scatter(
                    arguments[:n], indices, arguments[n : 2 * n], self._numbers, combine, known, oob=self._oob
                )
                found.append(("reference", expected))
            except UnsupportedRegionError as error:
                self.excluded["reference"] = f"reference: {error}"
        is_rare = regime in INTERPRETED_REGIMES and turn.number == 0
        if self._interpretable and (self._elements <= MAX_INTERPRETED_ALWAYS or is_rare):
            if self._oob == "spec" or policies_agree:
                try:
                    found.append(("interpreter", self._interpreter.run(self._cutout.text, arguments)))
                except InterpreterError as error:
                    self._interpretable = False
                    self.excluded["interpreter"] = f"interpreter: {error}"
            else:
                self.excluded["interpreter windows"] = (
                    "interpreter: drops elements, not judged where a window overhangs"
                )
        return found

    def _differs_at_default(self, arguments: list[Array], indices: Array, hits: Hits) -> str:
        """Compare XLA with XLA at its default level, within the bound."""
        if self._native is None or (self._oob == "spec" and hits.overhanging):
            return ""
        expected, actual = self._native[1].run(arguments), self._converted_default.run(arguments)
        found = self._beyond_bound(expected, actual, arguments, indices)
        return "" if found is None else f"XLA at its default level says {found}"

    def _differs_interpreted(self, arguments: list[Array], indices: Array, expected: list[Array] | None) -> str:
        """Compare the converted cut-out under the interpreter with the reference.

        XLA runs `x + 0.0` as `x`, even where bits are compared, and so hides a lowering that loses the sign of zeros
        (TRAPS 20, 46). The interpreter does not.
        """
        if expected is None or not self._may_interpret_converted:
            return ""
        try:
            actual = self._interpreter.run(self._converted_text, arguments)
        except InterpreterError as error:
            self._may_interpret_converted = False
            self.excluded["converted"] = f"interpreter, on the lowered scatter: {error}"
            return ""
        found = first_difference(expected, actual)
        if found is not None and self._in_any_order:
            found = self._beyond_bound(expected, actual, arguments, indices)
        return "" if found is None else f"the interpreter, on the lowered scatter, differs from the reference: {found}"


def _added(currents: list[Array], values: list[Array]) -> list[Array]:
    return [currents[0] + values[0]]


def _magnitudes(array: Array) -> Array:
    """The magnitudes in f64; 0 where they are not finite: an infinity or a NaN is compared as it is."""
    with np.errstate(all="ignore"):
        found: Array = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return np.where(np.isfinite(found), found, 0.0)


def _why_aborts(text: str) -> str:
    return why_xla_aborts(mlir.parse_module(text, mlir.make_context()))


def _sums_or_multiplies(scatter_op: mlir.RawOperation) -> bool:
    """Whether a region's results are sums, differences or products: what reassociation may round otherwise."""
    operations = scatter_op.regions[0].blocks[0].operations
    makers = ["" if mlir.is_block_argument(v) else v.owner.name for v in operations[len(operations) - 1].operands]
    return any(name in ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply") for name in makers)


def _same_along(tensor: Array, dims: frozenset[int]) -> Array:
    """The first element of a tensor along some dims, everywhere along them; nothing of an empty one."""
    first = tuple(slice(0, 1) if d in dims else slice(None) for d in range(tensor.ndim))
    return np.ascontiguousarray(np.broadcast_to(tensor[first], tensor.shape)) if dims else tensor


def columns_of(scatter_op: mlir.RawOperation) -> list[Column]:
    """The components of a scatter's index vector: the operand dim's size and the window's extent there."""
    numbers = mlir.scatter_dimension_numbers(scatter_op)
    shape, updates = _shape(scatter_op.operands[0]), _shape(scatter_op.operands[len(scatter_op.results) + 1])
    skipped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(len(shape)) if d not in skipped]
    extents = {d: updates[u] for d, u in zip(kept, map(int, numbers.update_window_dims), strict=True)}
    return [Column(shape[d], extents.get(d, 1)) for d in map(int, numbers.scattered_dims_to_operand_dims)]


def _shape(value: mlir.RawValue) -> tuple[int, ...]:
    return tuple(int(size or 0) for size in mlir.tensor_shape(value.type))
