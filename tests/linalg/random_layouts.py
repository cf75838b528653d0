"""Random programs of what moves elements, elementwise ops and products, over dims of which many are 1."""

from math import prod

import jax.numpy as jnp
import numpy as np
from jax import lax

SIZES = (1, 2, 3)
SPECIAL = np.array([0.0, -0.0, 1.0, -2.0, 3.5, np.inf, -np.inf, np.nan, 1e-3, -1e4], np.float32)


class Layouts:
    """A random function of three arrays of floats.

    Attributes:
      given: its arguments.
    """

    def __init__(self, rng, *, products):
        self.seed, self.products = rng.randrange(1 << 30), products
        numbers = np.random.default_rng(self.seed)
        shapes = [tuple(numbers.choice(SIZES, numbers.integers(1, 4))) for _ in range(3)]
        whole = [numbers.integers(1, 4, shape).astype(np.float32) for shape in shapes]
        self.given = whole if products else [numbers.choice(SPECIAL, shape) for shape in shapes]

    def __call__(self, *given):
        """Twelve steps, each of a value that there is; all values that are left are results."""
        self.numbers, values = np.random.default_rng(self.seed + 1), list(given)
        steps = [self.reshaped, self.turned, self.spread, self.joined, self.joined, self.chosen, self.alone]
        steps += [self.multiplied] * 3 * self.products
        for _ in range(12):
            step = steps[self.numbers.integers(len(steps))]
            values.append(step(values[self.numbers.integers(len(values))], values))
        return values[3:]

    def one_of(self, what):
        """One of several things."""
        return what[int(self.numbers.integers(len(what)))]

    def reshaped(self, x, _):
        """Its elements under another shape: dims joined, one of 1 put in or left out."""
        shape = [n for n in x.shape if n != 1 or self.numbers.random() < 0.5] or [1]
        if len(shape) > 1 and self.numbers.random() < 0.5:
            k = int(self.numbers.integers(len(shape) - 1))
            shape[k : k + 2] = [shape[k] * shape[k + 1]]
        for _ in range(int(self.numbers.integers(3))):
            shape.insert(int(self.numbers.integers(len(shape) + 1)), 1)
        shape = [m for n in shape for m in ((2, 3) if n == 6 and self.numbers.random() < 0.5 else (n,))]
        return x.reshape(shape if prod(shape) == x.size else -1)

    def turned(self, x, _):
        """Its dims in another order, or in one and then in another."""
        for _ in range(int(self.one_of((1, 2)))):
            x = x.transpose(self.numbers.permutation(x.ndim))
        return x

    def spread(self, x, _):
        """Broadcast along a new dim, and along those of 1."""
        dims = sorted(self.numbers.choice(x.ndim + 1, x.ndim, replace=False).tolist())
        shape = [int(self.one_of(SIZES)) for _ in range(x.ndim + 1)]
        for own, dim in zip(x.shape, dims, strict=True):
            shape[dim] = own if own != 1 else shape[dim]
        return lax.broadcast_in_dim(x, shape, dims) if prod(shape) < 500 else x

    def other(self, x, values):
        """A value or a number of the shape of one."""
        alike = [value for value in values if value.shape == x.shape]
        kind = int(self.numbers.integers(3))
        number = jnp.full(x.shape, float(self.one_of((0.0, -0.0, 1.0, 2.0, -np.inf))), jnp.float32)
        if kind == 0 or (self.products and not alike):
            return number if not self.products else jnp.full(x.shape, 1.0, jnp.float32)
        small = [value for value in values if value.ndim <= x.ndim and value.size == 1]
        return jnp.broadcast_to(self.one_of(small).reshape(()), x.shape) if kind == 1 and small else self.one_of(alike)

    def joined(self, x, values):
        """An op of two values, in either order."""
        pair = [x, self.other(x, values)]
        left, right = pair if self.numbers.random() < 0.5 else pair[::-1]
        op = self.one_of(
            (lax.add, lax.max, lax.min, lax.sub) if self.products else (lax.add, lax.mul, lax.max, lax.min)
        )
        return op(left, right) if not self.products else jnp.clip(op(left, right), -50, 50)

    def chosen(self, x, values):
        """x where it compares with another value, which stands elsewhere; or a predicate that is negated."""
        other = self.other(x, values)
        test = self.one_of((lax.lt, lax.le, lax.gt, lax.ge))(x, other)
        test = ~test if self.numbers.random() < 0.3 else test
        return jnp.where(test, other, x) if self.numbers.random() < 0.5 else jnp.where(test, x, other)

    def alone(self, x, _):
        """An op of one value."""
        return self.one_of((lax.neg, lax.abs, lambda v: v.astype(jnp.bfloat16).astype(jnp.float32), jnp.sign))(x)

    def multiplied(self, x, values):
        """A product over some dims of equal size, some of them batches; of few, and so small, numbers."""
        y = self.one_of(values)
        x = self.reshaped(x, values) if self.numbers.random() < 0.5 else x
        y = self.reshaped(y, values) if self.numbers.random() < 0.5 else self.reshaped(x, values)
        pairs, used = [], set()
        for k, n in enumerate(x.shape):
            free = [d for d, m in enumerate(y.shape) if m == n and d not in used]
            if free and self.numbers.random() < 0.7:
                pairs.append((k, self.one_of(free)))
                used.add(pairs[-1][1])
        count = int(self.numbers.integers(len(pairs) + 1))
        summed, batch = (tuple(zip(*part, strict=True)) or ((), ()) for part in (pairs[:count], pairs[count:]))
        if x.size * y.size > 400:
            return x
        made = lax.dot_general(x, y, (summed, batch))
        return jnp.clip(made, -50, 50)
