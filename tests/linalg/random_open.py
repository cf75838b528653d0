"""Random programs of open sizes: reshapes, transposes, broadcasts, reductions, products, convolutions and windows."""

import jax.numpy as jnp
import numpy as np
from jax import lax


class OpenProgram:
    """A random function of values of whole numbers, some of whose sizes are a and b.

    Attributes:
      specs: the shapes of its arguments.
    """

    def __init__(self, rng):
        self.seed = rng.randrange(1 << 30)
        self.specs = [rng.choice(["a, 4, 6", "a, b, 4", "4, a, b, 2", "a, 2, 4, 4", "a, 6, 1, b"]), "a, 4", "4, 6"]

    def given(self, sizes):
        """Arguments for some sizes."""
        numbers = np.random.default_rng(self.seed)
        shapes = [[sizes[one] if one in sizes else int(one) for one in spec.split(", ")] for spec in self.specs]
        return [numbers.integers(-3, 4, shape).astype(np.float32) for shape in shapes]

    def __call__(self, *given):
        """Eight steps, each of a value that there is; the last values are the results."""
        self.numbers, values = np.random.default_rng(self.seed + 1), list(given)
        steps = [self.merged, self.split, self.merged, self.flat, self.turned, self.turned, self.units, self.reduced]
        steps += [self.joined, self.biased, self.spread, self.multiplied, self.multiplied, self.convolved, self.pooled]
        for _ in range(8):
            value = values[max(0, len(values) - int(self.numbers.geometric(0.5)))]
            values.append(jnp.clip(self.one_of(steps)(value, values), -20, 20))
        return values[-3:]

    def one_of(self, what):
        """One of several things."""
        return what[int(self.numbers.integers(len(what)))]

    def merged(self, x, _):
        """Two dims as one, and perhaps as two again."""
        if x.ndim < 2:
            return x
        at = int(self.numbers.integers(x.ndim - 1))
        made = x.reshape(*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
        return made.reshape(x.shape) if self.numbers.random() < 0.3 else jnp.abs(made)

    def split(self, x, _):
        """A dim of 4 or 6 as two."""
        for at, size in enumerate(x.shape):
            if isinstance(size, int) and size in (4, 6):
                return x.reshape(*x.shape[:at], 2, size // 2, *x.shape[at + 1 :])
        return x

    def flat(self, x, _):
        """As rows, or as one row."""
        return x.reshape(-1, x.shape[-1]) if x.ndim > 1 and self.numbers.random() < 0.8 else x.reshape(-1)

    def turned(self, x, _):
        """Its dims in another order."""
        return x.transpose(self.numbers.permutation(x.ndim))

    def units(self, x, _):
        """A dim of one more, or none."""
        if self.numbers.random() < 0.4:
            return x.reshape([size for size in x.shape if not isinstance(size, int) or size != 1])
        return jnp.expand_dims(x, int(self.numbers.integers(x.ndim + 1)))

    def reduced(self, x, _):
        """Over one dim or two, which stay or not."""
        if not x.ndim:
            return x
        axes = tuple(self.numbers.choice(x.ndim, min(x.ndim, int(self.one_of((1, 2)))), replace=False).tolist())
        return self.one_of((jnp.sum, jnp.max))(x, axis=axes, keepdims=bool(self.numbers.integers(2)))

    def joined(self, x, values):
        """With another value of the same sizes, or of sizes that are broadcast to them."""
        alike = [one for one in values if one.shape == x.shape]
        op = self.one_of((jnp.add, jnp.maximum, jnp.subtract))
        if self.numbers.random() < 0.3 and x.ndim:
            return op(x, x.max(-1, keepdims=True))
        return op(self.one_of(alike), x) if self.numbers.random() < 0.5 else op(x, self.one_of(alike))

    def biased(self, x, _):
        """With numbers along a known dim."""
        known = [dim for dim, size in enumerate(x.shape) if isinstance(size, int)]
        if not known:
            return jnp.maximum(x, 0)
        at = self.one_of(known)
        bias = jnp.asarray(self.numbers.integers(-2, 3, x.shape[at]).astype(np.float32))
        return x + lax.broadcast_in_dim(bias, (*x.shape[:at], x.shape[at], *x.shape[at + 1 :]), [at])

    def spread(self, x, _):
        """Along a new dim."""
        at = int(self.numbers.integers(x.ndim + 1))
        size = self.one_of([2, *x.shape])
        made = jnp.broadcast_to(jnp.expand_dims(x, at), (*x.shape[:at], size, *x.shape[at:]))
        return made if x.ndim < 4 else x

    def multiplied(self, x, values):
        """By a matrix, or by another value along a dim that both have."""
        others = [one for one in values if 0 < one.ndim < 4 and x.ndim < 4]
        if not others or not x.ndim:
            return x
        other = self.one_of(others)
        pairs = [(k, n) for k, one in enumerate(x.shape) for n, two in enumerate(other.shape) if one == two]
        if not pairs:
            return x
        k, n = self.one_of(pairs)
        more = [(i, j) for i, j in pairs if i != k and j != n] if self.numbers.random() < 0.5 else []
        batch = ((more[0][0],), (more[0][1],)) if more else ((), ())
        return lax.dot_general(x, other, (((k,), (n,)), batch))

    def convolved(self, x, _):
        """In a layout of images whose batch is open."""
        letters = self.one_of(("NCHW", "NHWC"))
        size = dict(zip(letters, x.shape, strict=False))
        if x.ndim != 4 or not all(isinstance(size[one], int) for one in "CHW"):
            return x
        kernel = self.one_of(("OIHW", "HWIO"))
        extent = {"O": 3, "I": size["C"], "H": 1, "W": min(2, size["W"])}
        weights = self.numbers.integers(-1, 2, [extent[one] for one in kernel]).astype(np.float32)
        around = [(int(self.one_of((0, 1))), int(self.one_of((0, 1)))) for _ in "HW"]
        return lax.conv_general_dilated(x, weights, (1, 1), around, dimension_numbers=(letters, kernel, letters))

    def pooled(self, x, _):
        """Windows along known dims; XLA ends the process where there are none."""
        if not x.ndim:
            return x
        window = [min(2, n) if isinstance(n, int) and self.numbers.random() < 0.6 else 1 for n in x.shape]
        first, op = self.one_of([(0.0, lax.add), (-np.inf, lax.max)])
        return lax.reduce_window(x, np.float32(first), op, window, window, "VALID")
