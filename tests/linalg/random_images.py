"""Random programs over images: convolutions, reductions, windows and pads among transposes and elementwise ops."""

from itertools import combinations
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import lax
from random_layouts import Layouts

ORDERS = ("NCHW", "NHWC", "NHCW", "CHWN", "WNHC")
KERNELS = ("OIHW", "HWIO", "OHWI", "IOHW", "HIWO")


class Images(Layouts):
    """A random function of two values of four dims, of whole numbers, and kernels that it has within."""

    def __init__(self, rng):
        self.seed, self.products = rng.randrange(1 << 30), True
        numbers = np.random.default_rng(self.seed)
        shapes = [tuple(map(int, numbers.choice((1, 2, 3, 4), 4))) for _ in range(2)]
        self.given = [numbers.integers(-3, 4, shape).astype(np.float32) for shape in shapes]

    def __call__(self, *given):
        """Seven steps, each of a value that there is."""
        self.numbers, values = np.random.default_rng(self.seed + 1), list(given)
        steps = [self.turned, self.turned, self.joined, self.activated, self.padded, self.pooled, self.reduced]
        steps += [self.convolved, self.convolved, self.convolved, self.reshaped]
        for _ in range(7):
            step = self.one_of(steps)
            value = values[max(0, len(values) - 1 - int(self.numbers.geometric(0.5) - 1))]
            made = step(value, values)
            values.append(jnp.clip(made, -50, 50) if self.numbers.random() < 0.5 else jnp.round(made / 8))
        return values[2:]

    def activated(self, x, values):
        """A bias along one dim, and relu."""
        if not x.ndim:
            return x
        dim = int(self.numbers.integers(x.ndim))
        bias = jnp.asarray(self.numbers.integers(-2, 3, x.shape[dim]).astype(np.float32))
        return jnp.maximum(x + lax.broadcast_in_dim(bias, x.shape, [dim]), 0)

    def padded(self, x, values):
        """By 0 or by another number, between elements too, or less than before."""
        low, high, between = (self.numbers.choice(of, x.ndim).tolist() for of in ((0, 0, 1), (0, 0, 2), (0, 0, 0, 1)))
        of = self.one_of((0.0, 0.0, 1.0))
        made = lax.pad(x, np.float32(of), list(zip(low, high, between, strict=True)))
        return made if made.size < 400 else x

    def pooled(self, x, values):
        """Windows, some of all that there is along a dim; XLA ends the process where there is none."""
        if not x.ndim:
            return x
        window = [n if self.numbers.random() < 0.3 else min(n, int(self.one_of((1, 1, 2)))) for n in x.shape]
        steps = [int(self.one_of((1, 1, 2))) for _ in x.shape]
        around = [(int(self.one_of((0, 0, 1))),) * 2 if self.numbers.random() < 0.5 else (0, 0) for _ in x.shape]
        first, op = self.one_of([(0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min)])
        made = lax.reduce_window(
            x, np.float32(first), op, window, steps, around if self.numbers.random() < 0.4 else "VALID"
        )
        return jnp.clip(made, -50, 50)

    def reduced(self, x, values):
        """Over some dims, at once or one after the other, which are kept with an extent of 1 or not."""
        some = [dims for count in range(1, x.ndim + 1) for dims in combinations(range(x.ndim), count)]
        if not some:
            return x
        dims, keep = self.one_of(some), bool(self.numbers.integers(2))
        op = self.one_of([jnp.sum, jnp.max, jnp.min])
        if self.numbers.random() < 0.3:
            x = x.reshape(self.reshaped(x, values).shape)
            dims = (int(self.numbers.integers(x.ndim)),)
        if self.numbers.random() < 0.3:
            for dim in sorted(dims, reverse=True):
                x = op(x, dim, keepdims=keep)
            return x
        return op(x, dims, keepdims=keep)

    def convolved(self, x, values):
        """In some layout, perhaps of groups, between transposes."""
        if x.ndim != 4:
            return x
        kernel, given, made = self.one_of(KERNELS), self.one_of(ORDERS), self.one_of(ORDERS)
        size = dict(zip(given, x.shape, strict=True))
        groups = 2 if size["C"] % 2 == 0 and self.numbers.random() < 0.3 else 1
        extent = {"O": 2 * int(self.one_of((1, 2))), "I": size["C"] // groups, "H": 1, "W": int(self.one_of((1, 2)))}
        weights = self.numbers.integers(-1, 2, [extent[letter] for letter in kernel]).astype(np.float32)
        around = [(int(self.one_of((0, 1))), int(self.one_of((0, 1, 2)))) for _ in "HW"]
        steps = [int(self.one_of((1, 2))) for _ in "HW"]
        options = {"feature_group_count": groups}
        if self.numbers.random() < 0.2:
            options["lhs_dilation"] = (1, 2)
        weights = jnp.asarray(weights) * values[0].reshape(-1)[0]  # so that it is no constant
        if self.numbers.random() < 0.5:
            order = self.numbers.permutation(4)
            weights = weights.transpose(order).transpose(np.argsort(order))
        found = lax.conv_general_dilated(x, weights, steps, around, dimension_numbers=(given, kernel, made), **options)
        return jnp.clip(found, -20, 20) if prod(found.shape) < 400 else x
