"""Programs of Core ML, run op by op as coremltools computes constants.

Core ML itself runs on macOS only. coremltools says of most ops of its language (MIL) what they compute, because it
computes those of constants while it converts; here each op is asked for that, of the values that the ones before it
gave. Ops of which coremltools says nothing are in `OWN`, by its documentation. So a result that is right is right as
far as Core ML computes what coremltools says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np

from hlo_lower.consumers.consumer_outcome import Array, RunsElsewhereError

MOST_OPS = 1_000_000
"""Ops that are computed of a program; one with a longer loop is not run to its end."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a value of a program holds, as coremltools asks for it."""

    val: Any


class Program:
    """A program's function that can be run.

    Args:
      function: coremltools' own.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._number_types: Any = import_module("coremltools.converters.mil.mil").types
        self._left = MOST_OPS

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """Compute the results, by position.

        Args:
          arguments: by position.

        Raises:
          RunsElsewhereError: it takes too long, or nobody says what an op computes.
        """
        self._left = MOST_OPS
        for value, array in zip(self._function.inputs.values(), arguments, strict=True):
            self._give(value, array)
        with np.errstate(all="ignore"):
            self._run_block(self._function)
        return [np.array(value.val) for value in self._function.outputs]

    def _run_block(self, block: Any) -> None:
        for op in block.operations:
            if op.op_type != "const":
                for value, array in zip(op.outputs, self._compute(op), strict=True):
                    self._give(value, array)

    def _compute(self, op: Any) -> Sequence[Any]:
        """The results of an op."""
        self._left -= 1
        if not self._left:
            raise RunsElsewhereError(f"it computes more than {MOST_OPS:,} ops")
        if op.op_type == "while_loop":
            return self._loop(op)
        if op.op_type == "cond":
            block = op.blocks[0 if _truth(op.pred.val) else 1]
            self._run_block(block)
            return [value.val for value in block.outputs]
        own = OWN.get(op.op_type)
        try:
            found = own(_Inputs(op)) if own is not None else op.value_inference()
        except NotImplementedError:
            found = None
        if found is None:
            raise RunsElsewhereError(f"coremltools does not say what {op.op_type} computes")
        return cast(Sequence[Any], found) if isinstance(found, list | tuple) else [found]

    def _loop(self, op: Any) -> list[Any]:
        condition, body = op.blocks
        carried = [value.val for value in op.loop_vars]
        while True:
            for block in op.blocks:
                for value, array in zip(block.inputs, carried, strict=True):
                    self._give(value, array)
            self._run_block(condition)
            if not _truth(condition.outputs[0].val):
                return carried
            self._run_block(body)
            carried = [value.val for value in body.outputs]

    def _give(self, value: Any, array: Any) -> None:
        """Let a value hold an array, of its own type and shape."""
        found = _cast(np.asarray(array), np.dtype(self._number_types.nptype_from_builtin(value.dtype)))
        shape = tuple(value.shape)
        found = found.reshape(shape) if all(isinstance(size, int | np.integer) for size in shape) else found
        value._sym_val = Known(found if found.ndim else found[()])


def _truth(value: Any) -> bool:
    return bool(np.asarray(value).reshape(()))


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers of another type; floats beyond an integer's ends become these, and NaN 0, as XLA has it. Integers wrap
    around, also those of Python, which coremltools makes of sizes."""
    if array.dtype == np.object_:
        array = array.astype(np.int64)
    if array.dtype.kind != "f" or dtype.kind not in "iu":
        return array.astype(dtype)
    ends = np.iinfo(dtype)
    whole = np.nan_to_num(np.trunc(array.astype(np.float64)), nan=0.0, posinf=ends.max, neginf=ends.min)
    return np.clip(whole, ends.min, ends.max).astype(dtype)


# --- ops of which coremltools says nothing, or not enough ---


class _Inputs(Mapping[str, Any]):
    """What an op is given, by name; None where it is given nothing."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def __getitem__(self, name: str) -> Any:
        value = self.op.inputs.get(name)
        return None if value is None else value.val

    def __iter__(self) -> Iterator[str]:
        return iter(self.op.inputs)

    def __len__(self) -> int:
        return len(self.op.inputs)

    def sizes(self, name: str, otherwise: int, rank: int) -> list[int]:
        """Whole numbers, one for each dim."""
        given = self[name]
        return [otherwise] * rank if given is None else [int(size) for size in np.ravel(given)]


Own: TypeAlias = Callable[[_Inputs], Any]


def _within(positions: Array, shape: Sequence[int]) -> None:
    """Check that index vectors name elements: what happens beyond is not said.

    Raises:
      RunsElsewhereError: one does not.
    """
    if positions.size and not ((positions >= 0) & (positions < np.asarray(shape))).all():
        raise RunsElsewhereError("it reads or writes out of bounds")


def _gather_nd(given: _Inputs) -> Array:
    x, indices, batches = given["x"], np.asarray(given["indices"]), int(given["batch_dims"] or 0)
    count = indices.shape[-1]
    _within(indices, x.shape[batches : batches + count])
    grid = np.indices(indices.shape[:-1])[:batches]
    return x[(*grid, *np.moveaxis(indices, -1, 0))]


def _scatter_nd(given: _Inputs) -> Array:
    found, indices, updates = np.array(given["data"]), np.asarray(given["indices"]), given["updates"]
    _within(indices, found.shape[: indices.shape[-1]])
    combine = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.get(
        str(given["mode"])
    )
    for place in np.ndindex(*indices.shape[:-1]):
        at = tuple(indices[place])
        found[at] = updates[place] if combine is None else combine(found[at], updates[place])
    return found


def _argsort(given: _Inputs) -> Array:
    """Of equal numbers the last one first: their order is not said."""
    x, axis = given["x"], int(given["axis"])
    turned = np.flip(x if given["ascending"] else -x.astype(np.float64), axis)
    return x.shape[axis] - 1 - np.argsort(turned, axis=axis, kind="stable")


def _topk(given: _Inputs) -> tuple[Array, Array]:
    """Of equal numbers the first one first."""
    x, axis = given["x"], int(given["axis"])
    order = np.argsort(x if given["ascending"] else -x.astype(np.float64), axis=axis, kind="stable")
    order = np.take(order, np.arange(int(given["k"])), axis=axis)
    return np.take_along_axis(x, order, axis), order


def _padded(x: Array, given: _Inputs, rank: int, value: float = 0.0) -> Array:
    if str(given["pad_type"]) == "valid":
        return x
    if str(given["pad_type"]) != "custom":
        raise RunsElsewhereError(f"it pads as {given['pad_type']}")
    pad = given.sizes("pad", 0, 2 * rank)
    return np.pad(x, [(0, 0), (0, 0), *zip(pad[::2], pad[1::2], strict=True)], constant_values=value)


def _windows(x: Array, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    found = np.lib.stride_tricks.sliding_window_view(x, tuple(sizes), axis=tuple(range(2, 2 + len(sizes))))
    return found[(slice(None), slice(None), *(slice(None, None, stride) for stride in strides))]


def _spread(kernel: Array, steps: Sequence[int]) -> Array:
    """A kernel with zeros between its elements."""
    sizes = [(size - 1) * step + 1 for size, step in zip(kernel.shape[2:], steps, strict=True)]
    found = np.zeros((*kernel.shape[:2], *sizes), kernel.dtype)
    found[(slice(None), slice(None), *(slice(None, None, step) for step in steps))] = kernel
    return found


def _conv(given: _Inputs) -> Array:
    weight = np.asarray(given["weight"])
    rank, groups = weight.ndim - 2, int(given["groups"] or 1)
    kernel = _spread(weight, given.sizes("dilations", 1, rank))
    windows = _windows(_padded(given["x"], given, rank), kernel.shape[2:], given.sizes("strides", 1, rank))
    parts = zip(np.split(windows, groups, axis=1), np.split(kernel, groups), strict=True)
    axes = [1, *range(-rank, 0)]
    found = np.concatenate([np.tensordot(x, k, (axes, axes)) for x, k in parts], axis=-1)
    found = np.moveaxis(found, -1, 1)
    return found if given["bias"] is None else found + np.reshape(given["bias"], (1, -1, *(1,) * rank))


def _conv_transpose(given: _Inputs) -> Array:
    """A convolution of the operand with zeros between its elements by the turned kernel, cut to its size."""
    x, weight = given["x"], np.asarray(given["weight"])
    rank, groups = weight.ndim - 2, int(given["groups"] or 1)
    kernel = _spread(weight, given.sizes("dilations", 1, rank))
    wide = _spread(x, given.sizes("strides", 1, rank))
    wide = np.pad(wide, [(0, 0), (0, 0), *((size - 1, size - 1) for size in kernel.shape[2:])])
    turned = np.flip(kernel, tuple(range(2, 2 + rank)))
    windows = _windows(wide, turned.shape[2:], (1,) * rank)
    parts = zip(np.split(windows, groups, axis=1), np.split(turned, groups), strict=True)
    window_axes = list(range(-rank, 0))
    found = [np.tensordot(part, k, ([1, *window_axes], [0, *window_axes])) for part, k in parts]
    full = np.moveaxis(np.concatenate(found, axis=-1), -1, 1)
    pad = given.sizes("pad", 0, 2 * rank) if str(given["pad_type"]) == "custom" else [0] * 2 * rank
    if given["output_shape"] is None:
        sizes = [full.shape[2 + k] - pad[2 * k] - pad[2 * k + 1] for k in range(rank)]
    else:
        sizes = given.sizes("output_shape", 0, rank)[-rank:]
    lacking = [max(0, pad[2 * k] + size - full.shape[2 + k]) for k, size in enumerate(sizes)]
    full = np.pad(full, [(0, 0), (0, 0), *((0, more) for more in lacking)])
    return full[(slice(None), slice(None), *(slice(pad[2 * k], pad[2 * k] + size) for k, size in enumerate(sizes)))]


def _max_pool(given: _Inputs) -> Array:
    sizes = given.sizes("kernel_sizes", 1, 0)
    x = _padded(given["x"], given, len(sizes), -np.inf)
    return _windows(x, sizes, given.sizes("strides", 1, len(sizes))).max(axis=tuple(range(-len(sizes), 0)))


def _sliding_windows(given: _Inputs) -> Array:
    x, axis, size = given["x"], int(given["axis"]), int(given["size"])
    found = np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, size, axis=axis), -1, axis + 1)
    return found[(slice(None),) * axis + (slice(None, None, int(given["stride"] or 1)),)]


def _attention(given: _Inputs) -> Array:
    """In the operands' type: coremltools divides by a root of f64, in which a fill of -10^9 keeps digits of scores."""
    query, mask = given["query"], given["attn_mask"]
    scores = query @ given["key"].swapaxes(-2, -1) / np.sqrt(query.dtype.type(query.shape[-1]))
    if mask is not None:
        kept = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask
        scores = scores + kept.astype(query.dtype)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ given["value"]


OWN: Mapping[str, Own] = {
    "argsort": _argsort,
    "cast": lambda given: given["x"],  # its result has the type
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "gather_nd": _gather_nd,
    "max_pool": _max_pool,
    "scaled_dot_product_attention": _attention,
    "scatter_nd": _scatter_nd,
    "silu": lambda given: given["x"] / (1 + np.exp(-given["x"])),
    "sliding_windows": _sliding_windows,
    "topk": _topk,
}
"""What these ops compute."""
