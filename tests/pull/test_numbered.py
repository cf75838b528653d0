"""Random scatters of which some index is the number of a batch: the law says of an element what XLA computes."""

import numpy as np
import pytest

pytest.importorskip("z3")

from test_laws import HOW, wrong_elements
from untyped_mlir import module

BODIES = ("assign", "add", "maximum", "%c, %d: %e = subtract %d, %c; return %e")
COMPONENTS = ("number", "number", "wrapped", "moved", "given")
"""What a component of the indices is: a batch's number, it as JAX wraps it, it and a number, or any number."""


def scatter_of(seed):
    """A scatter of points or rows at indices of two or three components, of batches of two or three dims."""
    rng = np.random.default_rng(seed)
    batch = [int(n) for n in rng.integers(1, 4, rng.integers(2, 4))]
    count, window = int(rng.integers(1, 4)), int(rng.integers(0, 2)) * 2
    shape = [int(n) for n in rng.integers(1, 5, count)] + [window] * bool(window)
    body, lines, parts = str(rng.choice(BODIES)), [], []
    one = "x".join(map(str, [*batch, 1, "i32"]))
    for k in range(count):
        kind, dim = str(rng.choice(COMPONENTS)), int(rng.integers(len(batch)))
        lines.append(f"%n{k} = iota dim = {dim} : {one}")
        if kind == "wrapped":
            lines.append(
                f"%p{k} = compare LT, %n{k}, 0; %m{k} = add %n{k}, {shape[k]}; %i{k} = select %p{k}, %m{k}, %n{k}"
            )
        elif kind == "moved":
            lines.append(f"%i{k} = add %n{k}, {int(rng.integers(-1, 2))}")
        elif kind == "given":
            lines.append(f"%i{k} = slice %g [{', '.join([f'0:{n}' for n in batch] + [f'{k}:{k + 1}'])}]")
        parts.append(f"%n{k}" if kind == "number" else f"%i{k}")
    order = [int(n) for n in rng.permutation(count)]
    lines.append(
        f"%at = concatenate {', '.join(parts)}, dim = {len(batch)}" if count > 1 else f"%at = add {parts[0]}, 0"
    )
    numbers = f"inserted={list(range(count))}, to={order}, ivd={len(batch)}"
    numbers += f", window=[{len(batch)}]" if window else ""
    lines.append(f"%r = scatter(%x, %at, %u) <{numbers}> {{{body}}}")
    kinds = [[*shape, "i32"], [*batch, count, "i32"], [*batch, *[window] * bool(window), "i32"]]
    arguments = ", ".join(f"%{n}: {'x'.join(map(str, kind))}" for n, kind in zip("xgu", kinds, strict=True))
    return module(arguments, "\n".join(lines))


@pytest.mark.parametrize("seed", [0, 2, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in (1, *range(3, 150)))])
def test_a_scatter_at_a_number_of_a_batch_is_what_xla_computes(seed):
    """As a fold, written out, and in any order."""
    for how in ("", "written out", "any"):
        assert list(wrong_elements(scatter_of(seed), rounding="quick", **HOW[how])) == []
