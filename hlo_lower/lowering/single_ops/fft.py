"""`stablehlo.fft` as matrix products: a dense transform of short lengths, steps of short ones for longer lengths.

A complex number is its real and its imaginary part here; the transforms are along the last dim, one after the other.
They are functions of arrays (`hlo_lower.lowering.engine.traced`).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import build_traced
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Numbers, PlainLowering, PlainOp, Whole
from hlo_lower.ops.quirks.transforms import OTHER_LENGTH, SEVERAL_DIMS
from hlo_lower.ops.refused_forms import RefusedForm

Parts = tuple[Array, Array]
Roots = tuple[NDArray[Any], NDArray[Any]]

MOST_DENSE = 64
"""The longest transform that is one matrix product; its matrix has the square of it as elements."""

MOST_CONSTANTS = 1 << 20
"""Elements that a constant of a transform may have."""

rules = RuleList()


@rules.lowers(
    PLAIN,
    named={PlainOp.FFT},
    numbers={Numbers.BOUNDED},
    needs={Whole.WHOLE, RefusedForm.of(OTHER_LENGTH)},
    form="products with matrices of cosines and sines",
)
def fft_to_dot_general(op: PlainLowering) -> Sequence[Value]:
    """Multiply by the matrix of the transform, w^(j k) with w = e^(-2 pi i / n), for each dim.

        n <= 64     X[k] = sum over j of w^(j k) x[j], one matrix product for each part of w and x
        n = p q     x as p rows of q; the transform of the columns; times w^(j k); the transform of the rows
        else        a convolution with w^(j^2 / 2), by transforms of a power of two (Bluestein)

    An inverse one is its conjugate, by n. Of real numbers only the first n / 2 + 1 are made, and back from those the
    others are their conjugates, reversed; of the first one, and of the middle one of an even n, the imaginary part does
    not count. Equal within the rounding of the sums: the error's Euclidean norm is at most the sum of 2 (p + 2) sqrt(p)
    units in the last place, over the factors p of n, times the result's norm. Measured on f32, lengths 1 to 65,536: 2.2
    units at most; XLA's own, 2.5.
    """
    kind = mlir.enum_value(op.node.attribute("fft_type"))
    lengths = tuple(int(n) for n in op.node.integers("fft_length"))
    x = op.node.operand(0)
    if not x.static_shape or 0 in x.static_shape or 0 in lengths:
        raise DoesNotApply("there is nothing to transform")
    if kind == "RFFT":
        return [op.build.complex(build_traced(op.build, _of_real, x, lengths=lengths))]
    if kind == "IRFFT":
        return build_traced(op.build, _to_real, *op.build.parts(x), lengths=lengths)
    return [
        op.build.complex(build_traced(op.build, _along, *op.build.parts(x), lengths=lengths, is_inverse=kind == "IFFT"))
    ]


@rules.lowers(PLAIN, named={PlainOp.FFT}, needs={RefusedForm.of(SEVERAL_DIMS)}, form="an fft of each dim, transposed")
def fft_to_ffts(op: PlainLowering) -> Sequence[Value]:
    """Transform one dim after the other, each as the last one.

        fft %x, type = RFFT, length = [4, 8]   ->   RFFT of the last dim; FFT of the one before, turned
        fft %x, type = IRFFT, length = [4, 8]  ->   IFFT of the one before; IRFFT of the last dim

    Equal, by the definition of the op: the root of each pair of places is the product of a root of each dim. In which
    order floats are rounded the specification leaves open.
    """
    kind, lengths = mlir.enum_value(op.node.attribute("fft_type")), op.node.integers("fft_length")
    value, result = op.node.operand(0), op.node.result()
    rank = len(result.static_shape)
    if kind != "IRFFT":
        value = _fft(op, value, kind, lengths[-1], result)
    for dim in reversed(range(rank - len(lengths), rank - 1)):
        value = _fft_along(op, value, dim, "IFFT" if kind in ("IFFT", "IRFFT") else "FFT")
    return [_fft(op, value, kind, lengths[-1], result) if kind == "IRFFT" else value]


def _fft_along(op: PlainLowering, value: Value, dim: int, kind: str) -> Value:
    """A transform along a dim that is not the last one."""
    order = list(range(len(value.static_shape)))
    order[dim], order[-1] = order[-1], order[dim]
    turned = op.build.transpose(value, order)
    return op.build.transpose(_fft(op, turned, kind, value.static_shape[dim], turned), order)


def _fft(op: PlainLowering, value: Value, kind: str, length: int, like: Value) -> Value:
    """A transform along the last dim, to numbers of another value's element type and last dim."""
    attributes = {
        "fft_type": mlir.parse_attribute(f"#stablehlo<fft_type {kind}>"),
        "fft_length": mlir.dense_i64([length]),
    }
    shape = (*value.static_shape[:-1], like.static_shape[-1])
    return op.build.copy_on(op.node, [value], [mlir.tensor_type(shape, like.element_type)], attributes).result()


def _along(real: Array, imag: Array, *, lengths: Sequence[int], is_inverse: bool = False) -> Parts:
    """Transforms along as many last dims as there are lengths."""
    for dim in range(real.ndim - len(lengths), real.ndim):
        real, imag = _along_one((real, imag), dim, is_inverse=is_inverse)
    return real, imag


def _along_one(x: Parts, dim: int, *, is_inverse: bool) -> Parts:
    moved, length = (jnp.moveaxis(x[0], dim, -1), jnp.moveaxis(x[1], dim, -1)), x[0].shape[dim]
    real, imag = _transform(moved, length, is_inverse=is_inverse)
    if is_inverse:
        real, imag = real * (1.0 / length), imag * (1.0 / length)
    return jnp.moveaxis(real, -1, dim), jnp.moveaxis(imag, -1, dim)


def _of_real(x: Array, *, lengths: Sequence[int]) -> Parts:
    """The last dim first, of which half is made, then the others."""
    found = _first_half(x)
    for dim in range(x.ndim - len(lengths), x.ndim - 1):
        found = _along_one(found, dim, is_inverse=False)
    return found


def _to_real(real: Array, imag: Array, *, lengths: Sequence[int]) -> Array:
    found = real, imag
    for dim in range(real.ndim - len(lengths), real.ndim - 1):
        found = _along_one(found, dim, is_inverse=True)
    return _whole(found, lengths[-1])


# --- along the last dim ---


def _transform(x: Parts, length: int, *, is_inverse: bool) -> Parts:
    if length == 1:
        return x
    rows = next((p for p in range(min(length, MOST_DENSE), 1, -1) if length % p == 0), 0)
    if not rows:
        return _by_chirp(x, length, is_inverse=is_inverse)
    if rows == length:
        matrix = _roots(np.outer(np.arange(length), np.arange(length)), length, is_inverse=is_inverse)
        (a, b), (c, s) = x, matrix
        return _dot(a, c) - _dot(b, s), _dot(a, s) + _dot(b, c)
    batch, columns = x[0].shape[:-1], length // rows
    # j = rows-index * columns + columns-index; first over the rows-index, which becomes the faster one of k.
    split = tuple(jnp.swapaxes(part.reshape((*batch, rows, columns)), -1, -2) for part in x)
    first = _transform((split[0], split[1]), rows, is_inverse=is_inverse)
    twiddles = _roots(np.outer(np.arange(columns), np.arange(rows)), length, is_inverse=is_inverse)
    turned = tuple(jnp.swapaxes(part, -1, -2) for part in _times(first, twiddles))
    second = _transform((turned[0], turned[1]), columns, is_inverse=is_inverse)
    real, imag = (jnp.swapaxes(part, -1, -2).reshape((*batch, length)) for part in second)
    return real, imag


def _by_chirp(x: Parts, length: int, *, is_inverse: bool) -> Parts:
    """A length of no short factor as a convolution of a power of two (Bluestein): 2 j k = j^2 + k^2 - (k - j)^2.

    u[j] = w^(j^2 / 2);   X[k] = u[k] sum over j of (u[j] x[j]) conj(u[k - j])
    """
    size = 1 << (2 * length - 2).bit_length()
    chirp = _roots(np.arange(length) ** 2 % (2 * length), 2 * length, is_inverse=is_inverse)
    other = np.zeros(size, np.complex128)
    other[:length] = chirp[0] - 1j * chirp[1]
    other[size - length + 1 :] = other[length - 1 : 0 : -1]
    known = np.fft.fft(other) / size
    real, imag = (_join(part, _zeros(part, size - length)) for part in _times(x, chirp))
    product = _times(_transform((real, imag), size, is_inverse=False), (known.real, known.imag))
    real, imag = _transform(product, size, is_inverse=True)
    return _times((real[..., :length], imag[..., :length]), chirp)


def _first_half(x: Array) -> Parts:
    length = x.shape[-1]
    half = length // 2 + 1
    if length <= MOST_DENSE:
        matrix = _roots(np.outer(np.arange(length), np.arange(half)), length, is_inverse=False)
        return _dot(x, matrix[0]), _dot(x, matrix[1])
    real, imag = _transform((x, _zeros(x, length)), length, is_inverse=False)
    return real[..., :half], imag[..., :half]


def _whole(x: Parts, length: int) -> Array:
    """The real numbers whose transform begins like this."""
    half = length // 2 + 1
    if x[0].shape[-1] != half:
        raise DoesNotApply("its length is not that of its operand")
    if length <= MOST_DENSE:
        once = np.where((np.arange(half) == 0) | (2 * np.arange(half) == length), 1.0, 2.0)[:, None]
        cosines, sines = _circle(np.outer(np.arange(half), np.arange(length)), length)
        return _dot(x[0], once * cosines / length) + _dot(x[1], 0.0 - once * sines / length)
    mirrored = _mirror(x[0], length, is_odd=False), _mirror(x[1], length, is_odd=True)
    return _transform(mirrored, length, is_inverse=True)[0] * (1.0 / length)


def _mirror(x: Array, length: int, *, is_odd: bool) -> Array:
    """The rest of a transform of real numbers: the same reversed, of imaginary parts with the other sign."""
    half = length // 2 + 1
    rest = lax.rev(x[..., 1 : length - half + 1], (x.ndim - 1,))
    if not is_odd:
        return _join(x, rest)
    middle = [_zeros(x, 1)] if length % 2 == 0 else []
    return _join(_zeros(x, 1), x[..., 1 : half - len(middle)], *middle, -rest)


# --- arithmetic ---


def _roots(powers: NDArray[Any], length: int, *, is_inverse: bool) -> Roots:
    cosines, sines = _circle(powers, length)
    return cosines, sines if is_inverse else 0.0 - sines


def _times(x: Parts, by: Roots) -> Parts:
    """Each number times one of the roots along the last dims."""
    (a, b), (c, s) = x, (_constant(part, x[0]) for part in by)
    return a * c - b * s, a * s + b * c


def _dot(x: Array, matrix: NDArray[Any]) -> Array:
    """The last dim times a matrix: [rows, length] by [length, columns]."""
    rows = x.reshape((-1, x.shape[-1]))
    return jnp.matmul(rows, _constant(matrix, x), precision="highest").reshape((*x.shape[:-1], matrix.shape[1]))


def _constant(values: NDArray[Any], like: Array) -> NDArray[Any]:
    if values.size > MOST_CONSTANTS:
        raise DoesNotApply(f"a constant of {values.size:,} elements")
    return values.astype(like.dtype)


def _zeros(like: Array, length: int) -> Array:
    return lax.full((*like.shape[:-1], length), 0.0, like.dtype)


def _join(*parts: Array) -> Array:
    return lax.concatenate(parts, parts[0].ndim - 1)


def _circle(powers: NDArray[Any], length: int) -> Roots:
    """Cosines and sines of a turn times the powers by the length; those of quarter turns are whole."""
    angles = 2.0 * np.pi * (powers % length) / length
    cosines, sines = (np.where(np.abs(part) < 1e-15, 0.0, part) for part in (np.cos(angles), np.sin(angles)))
    return cosines, sines
