"""Guards of numbers that XLA takes for not negative: products and magnitudes that wrapped around, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.verify.run import Executable

NUMBERS = np.array([0, 2, -3, 5, 46341, 65536, -46341, (1 << 30) + 1, 2**31 - 1, -(2**31)], np.int32)

COMPUTED = {
    "square": (lambda i: i * i, lambda i: i * i),
    "magnitude": (jnp.abs, np.abs),
    "larger": (lambda i: jnp.maximum(jnp.abs(i), i), lambda i: np.maximum(np.abs(i), i)),
    "chosen": (lambda i: jnp.where(i < 5, jnp.abs(i), i * i), lambda i: np.where(i < 5, np.abs(i), i * i)),
    "sum": (lambda i: i * i + i * i, lambda i: i * i + i * i),
}
"""Numbers by JAX and by NumPy, both wrapping."""


def dropping(count):
    """A scatter of ones to one place, of as many updates."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lambda at: lax.scatter_add(
        jnp.zeros(9, jnp.int32), jnp.broadcast_to(at, (count, 1)), jnp.ones(count, jnp.int32), numbers, mode="drop"
    )


def dropped(count):
    """The same in NumPy."""
    return lambda at: np.where(np.arange(9) == at, count, 0)


X = np.array([9, -9, 1, -(2**31)], np.int32)
SHIFTS = {
    "left": (lax.shift_left, lambda s: X << s if 0 <= s < 32 else X * 0),
    "logical": (lax.shift_right_logical, lambda s: (X.view("u4") >> np.uint32(s)).view("i4") if 0 <= s < 32 else X * 0),
    "arithmetic": (lax.shift_right_arithmetic, lambda s: X >> s if 0 <= s < 32 else X >> 31),
}

CASES = {
    "one": (dropping(1), dropped(1), ("stablehlo", "litert", "coreml", "iree")),
    "many": (dropping(40), dropped(40), ("stablehlo", "litert", "coreml", "iree")),
    **{name: (lambda s, f=f: f(X, jnp.broadcast_to(s, (4,))), g, ("coreml",)) for name, (f, g) in SHIFTS.items()},
    "sign": (jnp.sign, np.sign, ("coreml",)),
    "switch": (lambda s: lax.switch(s, [lambda k=k: jnp.int32(k) for k in range(4)]), None, ("coreml", "litert")),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("rounding", ["default", "quick"])
@pytest.mark.parametrize("case", CASES)
def test_guards_hold_of_what_wrapped_around(case, rounding):
    """A dropped update is dropped, and a shift beyond the width gives 0, whatever XLA takes for not negative."""
    program, right, targets = CASES[case]
    for of_jax, of_numpy in COMPUTED.values():
        given = jax.jit(lambda i, f=of_jax: program(f(i))).lower(np.int32(0)).as_text()
        with np.errstate(all="ignore"):
            numbers = of_numpy(NUMBERS).astype(np.int32)
        wanted = [np.clip(n, 0, 3) if right is None else right(n) for n in numbers]
        for target in targets:
            lowered = Executable(hl.lower(given, target=target).stablehlo, rounding)
            assert [lowered.run([i])[0].tolist() for i in NUMBERS] == [np.asarray(w).tolist() for w in wanted], target
