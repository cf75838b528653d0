"""Sizes for what has symbolic ones: both versions are refined with the same sizes and then compared like any other.

Only the sizes are chosen here; jaxlib's shape refinement makes the static modules, of the original and of what it was
converted to alike, so a lowering that takes its bounds from the wrong dim is refined into one that differs. Sizes of 0
are among them wherever the original may have them; one that has no place there for what it reads is not refined at all,
which is told as a failure of the lowering and not as sizes that do not fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import python_integers
from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.bind import bind_module, fits, instances
from hlo_lower.ir.shapes.expressions import evaluate
from hlo_lower.ir.shapes.given_sizes import SizesError
from hlo_lower.ir.shapes.specification import Specification, specification_of
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMPARISONS
from hlo_lower.verify.read.meanings import INTEGERS
from hlo_lower.verify.read.program import Op, Program, ValueId, location_of, ops_within

Array = NDArray[Any]

DENSE = 1 << 11
"""Sizes up to which each is looked at; then some of each magnitude, and what lies beside the module's constants."""

ORDER = {"less": -1, "equal": 0, "greater": 1}


def outcomes_of_sizes(
    module: mlir.RawModule, specification: Specification, usual: Mapping[str, int]
) -> Iterator[tuple[str, list[dict[str, int]]]]:
    """For each outcome of a comparison of sizes its name, and sizes that have it, those of few elements first.

    Args:
      module: the module.
      specification: of its arguments.
      usual: sizes that fit it; one of them is changed at a time.
    """
    program = Program(module)
    body = program.entries.get("main") or next(iter(program.entries.values()))
    comparisons = [op for op in ops_within(body.ops) if op.name == names.COMPARE]
    if not comparisons:
        return
    given = _candidates(body.ops)
    found: dict[tuple[Op, str], list[dict[str, int]]] = {}
    for symbol in specification.symbols:
        computed = _Computed(program, specification, body.arguments, [{**usual, symbol: int(n)} for n in given])
        for op in comparisons:
            first, second = (computed.of(value) for value in op.inputs)
            if first is None or second is None:
                continue
            signs = np.broadcast_to(np.sign(python_integers(first) - python_integers(second)), given.shape)
            for outcome, sign in ORDER.items():
                sizes = ({**usual, symbol: int(n)} for n in given[signs == sign])
                found.setdefault((op, outcome), []).extend(sizes)
    for (op, outcome), sizes in found.items():
        if sizes:
            told = f"the compare at {location_of(op.raw)}: {outcome}"
            yield told, sorted(sizes, key=lambda choice: (choice != dict(usual), sum(choice.values())))


def _candidates(ops: Sequence[Op]) -> Array:
    """Sizes that are looked at."""
    found = set(range(1, DENSE))
    found.update(int(2 ** (k / 4)) for k in range(44, 124))
    for op in ops_within(ops):
        value = mlir.constant_value(op.raw) if op.name == names.CONSTANT and op.raw.results else None
        if value is not None and value.size == 1 and value.dtype.kind in "iu":
            number = abs(int(value.reshape(-1)[0]))
            found.update(n + k for n in (number, int(number**0.5), 2 * number) for k in (-1, 0, 1))
    return np.asarray(sorted(n for n in found if 0 < n < 1 << 31))


class _Computed:
    """Integer scalars of a module for many sizes at a time.

    Args:
      program: the module.
      specification: of its arguments.
      arguments: these.
      sizes: the sizes.
    """

    def __init__(
        self,
        program: Program,
        specification: Specification,
        arguments: Sequence[ValueId],
        sizes: Sequence[Mapping[str, int]],
    ) -> None:
        self._program, self._sizes = program, sizes
        self._dims = dict(zip(arguments, specification.dims, strict=False))
        self._known: dict[ValueId, Array | None] = {}

    def of(self, value: ValueId) -> Array | None:
        """What an integer scalar is at each of the sizes; None where it depends on something else."""
        if value not in self._known:
            self._known[value] = None
            maker = self._program.makers[value]
            tensor, dtype = self._program.type_of(value), self._program.dtype_of(value)
            is_one = tensor is not None and tensor.is_static and all(n == 1 for n in tensor.shape)
            if maker is not None and is_one and dtype is not None and dtype.kind in "iub":
                found = self._compute(maker)
                with np.errstate(all="ignore"):
                    self._known[value] = None if found is None else np.asarray(found).astype(dtype)
        return self._known[value]

    def _compute(self, op: Op) -> Array | None:
        if op.name == names.GET_DIMENSION_SIZE:
            return self._size(op)
        if op.name == names.CONSTANT:
            value = mlir.constant_value(op.raw)
            return None if value is None else value.reshape(())
        given = [self.of(v) for v in op.inputs]
        known = [v for v in given if v is not None]
        return None if len(known) < len(given) else compute_integers(op, known)

    def _size(self, op: Op) -> Array | None:
        dims = self._dims.get(op.inputs[0])
        if dims is None:
            return None
        expression = dims[mlir.integer_of(op.raw.attributes["dimension"])]
        place = f"arg{list(self._dims).index(op.inputs[0])}.{mlir.integer_of(op.raw.attributes['dimension'])}"
        try:
            return np.asarray(
                [choice[place] if place in choice else evaluate(expression, choice) for choice in self._sizes]
            )
        except (ValueError, KeyError):
            return None


_AS_IT_IS = frozenset({names.CONVERT, names.RESHAPE, names.BROADCAST_IN_DIM})
"""Ops that give an integer at the same place, perhaps in another type."""


def compute_integers(op: Op, given: Sequence[Array]) -> Array | None:
    """The elementwise result of an integer op; None if the op is not computed here."""
    with np.errstate(all="ignore"):
        if op.name == names.COMPARE:
            return np.asarray(COMPARISONS[mlir.enum_value(op.raw.attributes["comparison_direction"])](*given))
        if op.name == names.SELECT:
            return np.where(*given)
        if op.name in _AS_IT_IS:
            return given[0]
        return np.asarray(INTEGERS[op.name](*given)) if op.name in INTEGERS else None


MODULE_INSTANCES = 2
"""Choices of ordinary sizes that a whole module is run with; then come some at their lower end."""

NAMED, LARGEST_NAMED = 3, 1 << 10
"""Choices of sizes that one of the versions compares something with, and the largest such size."""

LARGEST_RUN = 1 << 12
"""The largest size that is run for an outcome of a comparison of sizes."""

FITTING_TRIED = 8
"""Sizes with an outcome of which one may fit."""


def is_open(module: mlir.RawModule) -> bool:
    """Whether a module has dims without a size, so that sizes that fit the original have to fit it, too."""
    specification = specification_of(module)
    return specification is not None and specification.is_dynamic


def sizes_of_module(
    module: mlir.RawModule,
    inputs: Sequence[Any] | Mapping[str, Any] | None,
    name: str,
    second: mlir.RawModule | None = None,
) -> list[dict[str, int]] | None:
    """The sizes that a module is run with: those of the user's arrays, or a few that fit, some that it or its second
    version names, and some at their lower end; None if it has no dynamic argument.

    Raises:
      InputError: inputs are given by name, are not as many as the arguments, or one of them does not fit.
    """
    specification = specification_of(module)
    if specification is None or not specification.is_dynamic:
        return None
    if inputs is None:
        usual = instances(specification, module, MODULE_INSTANCES)
        named = _sizes_from_comparisons(specification, (module, second or module), usual)
        fitting = islice((sizes for sizes in named if fits(module, specification, sizes)), NAMED)
        every = (*usual, *fitting, *_least(specification, module, usual))
        return [sizes for k, sizes in enumerate(every) if sizes not in every[:k]]
    if isinstance(inputs, Mapping) or len(inputs) != len(specification.dims):
        raise InputError(
            name,
            "give the inputs of a module with symbolic sizes by position, one for each argument",
            next_step="give the sizes too: --bind b=4,s=16",
        )
    shapes = [_fitting_shape(specification, n, value) for n, value in enumerate(inputs)]
    sizes = {f"arg{n}.{i}": size for n, shape in enumerate(shapes) for i, size in enumerate(shape)}
    try:
        bind_module(module, sizes, specification)
    except SizesError as error:
        raise InputError(
            name, f"the inputs do not fit the module: {error.what}", facts=error.facts, next_step=error.next_step
        ) from None
    return [sizes]


def _least(
    specification: Specification, module: mlir.RawModule, usual: Sequence[dict[str, int]]
) -> Iterator[dict[str, int]]:
    """Sizes at their lower end that fit: all of them, and the first of those that differ from usual ones in one.

    A dim that is called by its place may be 0. A name of JAX's is 1 or more, but what is computed of it may be 0.
    """
    if not usual:
        return
    symbols = specification.symbols
    least = 1 if specification.is_given else 0
    alone = ({**usual[0], name: least} for name in symbols)
    for choices in ([dict.fromkeys(symbols, least)], alone):
        yield from islice((s for s in choices if s not in usual and fits(module, specification, s)), 1)


def _sizes_from_comparisons(
    specification: Specification, modules: Sequence[mlir.RawModule], usual: Sequence[dict[str, int]]
) -> Iterator[dict[str, int]]:
    """The usual sizes with one replaced by a constant that the module compares something with: code that treats one
    size differently has to name it."""
    found: dict[int, None] = {}
    for compare in (op for module in modules for op in mlir.find_named(module.operation, (names.COMPARE,))[0]):
        makers = [maker for value in compare.operands if (maker := mlir.producer(value)) is not None]
        for maker in (maker for maker in makers if maker.name == names.CONSTANT):
            value = mlir.constant_value(maker)
            if value is not None and value.shape == () and value.dtype.kind in "iu":
                found[int(value)] = None
    sizes = [size for size in found if 1 <= size <= LARGEST_NAMED]
    every = ({**usual[0], name: size} for size in sizes for name in specification.symbols) if usual else ()
    return (choice for choice in every if choice not in usual)


LARGEST_SIZE = 1 << 30
"""From here on an outcome is not asked for: sizes of twice as much are no `get_dimension_size`, which gives an i32."""


def aimed_sizes(
    modules: Sequence[mlir.RawModule], sizes: Sequence[dict[str, int]]
) -> tuple[list[dict[str, int]], tuple[str, ...]]:
    """Further sizes for what two versions compute of their sizes, and the outcomes that only larger ones have.

    Args:
      modules: the versions.
      sizes: those that are run.
    """
    specification = specification_of(modules[0])
    further: list[dict[str, int]] = []
    untried: dict[str, None] = {}
    if specification is None or not sizes:
        return further, ()
    for module in modules:
        for told, having in outcomes_of_sizes(module, specification, sizes[0]):
            if any(choice in having for choice in (*sizes, *further)):
                continue
            small = [choice for choice in having if max(choice.values()) <= LARGEST_RUN]
            fitting = (choice for choice in small[:FITTING_TRIED] if fits(modules[0], specification, choice))
            chosen = next(fitting, None)
            if chosen is not None:
                further.append(chosen)
            elif not small and max(having[0].values()) < LARGEST_SIZE:
                untried[f"{told} only from {having[0]} on, which was not tried"] = None
    return further, tuple(untried)


def _fitting_shape(specification: Specification, number: int, value: Any) -> tuple[int, ...]:
    """The shape of an input, which has the rank of its argument and the sizes that are known.

    Raises:
      InputError: it has not.
    """
    dims = specification.dims[number] or ()
    try:
        shape = np.shape(value)
    except ValueError as error:
        raise InputError("", f"input {number} is not an array", facts=str(error)) from None
    known = [int(dim) if dim.isdigit() else None for dim in dims]
    if len(shape) != len(known) or any(size not in (None, own) for size, own in zip(known, shape, strict=True)):
        told = f"expected ({', '.join(dims)}), got ({', '.join(map(str, shape))})"
        raise InputError("", f"input {number} does not fit", facts=told)
    return tuple(map(int, shape))
