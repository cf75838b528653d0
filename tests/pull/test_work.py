"""What a derivation does is counted in steps: neither the clock nor a busy processor changes what is found."""

from time import thread_time

import pytest
from untyped_mlir import module

from hlo_lower.verify.pull import derive, prover

pytest.importorskip("z3")

PAIR = [
    module("%x: 40x30xf32, %i: 7x1xi32", body)
    for body in (
        "%t = transpose %x, dims = [1, 0]; %r = reverse %t, dims = [0]",
        "%t = reverse %x, dims = [1]; %r = transpose %t, dims = [1, 0]",
    )
]


def test_a_slow_processor_finds_the_same(monkeypatch):
    """Time goes by seven times as fast; the steps are the same, but for how z3 numbers its terms."""
    found = derive(*PAIR, seconds=0.02)
    now = prover.thread_time()
    monkeypatch.setattr(prover, "thread_time", lambda: now + 7 * (thread_time() - now))
    again = derive(*PAIR, seconds=0.02)
    assert (found.status, again.status) == ("derived", "derived")
    assert again.seconds == pytest.approx(found.seconds, rel=0.2)


def test_steps_end_a_derivation():
    """The fewer it may take, the sooner it ends, without time for the rest."""
    found = derive(*PAIR, seconds=1e-4)
    assert (found.status, found.reason) == ("open", "no time is left")
