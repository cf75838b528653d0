"""Two versions are run fused, which is compiled sooner, and op by op where they differ so."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import Assumed, module_runs
from hlo_lower.verify.effort import Effort
from hlo_lower.verify.module_runs import BothVersions, verify_module

X = np.arange(4, dtype=np.float32)


class Gives:
    """A version that adds a number."""

    def __init__(self, number):
        self.number = number

    def run(self, arguments):
        """One result."""
        return [arguments[0] + np.float32(self.number)]


@pytest.mark.parametrize(
    ("fused", "may_fuse", "asked", "found"),
    [
        ((1, 1), True, ["fused"], (1, 1)),
        ((1, 3), True, ["fused", "exact"], (2, 2)),
        ((1, 3), False, ["exact"], (2, 2)),
    ],
    ids=["they agree", "they differ", "op by op from the start"],
)
def test_what_differs_when_it_is_fused_is_run_op_by_op(monkeypatch, fused, may_fuse, asked, found):
    """From then on; what agrees is not compiled again."""
    compiled = []

    def compile_both(_, rounding):
        compiled.append(rounding)
        return [Gives(number) for number in (fused if rounding == "fused" else (2, 2))]

    monkeypatch.setattr(module_runs, "_compile", compile_both)
    versions = BothVersions(["", ""], "exact", may_fuse=may_fuse)
    for _ in range(2):
        first, second = versions.run([X])
        assert (first[0][0], second[0][0]) == found
    assert compiled == asked


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("%r = divide %x, 3.0", "%r = multiply %x, 0.333333343"),
        ("%e = exponential %x; %r = log %e", "%r = add %x, 0.0"),
        ("%t = multiply %x, %x; %r = add %t, %x", "%t = add %x, 1.0; %r = multiply %t, %x"),
    ],
    ids=["a quotient as a product", "a logarithm of a power", "a product and a sum"],
)
def test_what_is_rounded_otherwise_differs(first, second):
    """XLA's simplifier makes one of some of them, and would hide that."""
    found = verify_module(*(module("%x: 64xf32", body) for body in (first, second)), Assumed(), Effort())
    assert found.status == "differs"


@pytest.mark.parametrize(
    ("after", "is_asked"), [("%r = negate %s", False), ("%r = divide %s, %c", True)], ids=["moved", "rounded"]
)
def test_what_xla_simplifies_of_the_first_version_is_asked_where_the_second_one_gives_other_bits(
    after, is_asked, monkeypatch
):
    """A quotient by a constant becomes a product, in both versions alike; where the bits are those op by op it is not
    compiled."""
    body = "%c = constant 3.0 : 8xf32; %s = scatter(%x, %i, %u) <inserted=[0], to=[0]> {assign}"
    arguments = "%x: 8xf32, %i: 1xi32, %u: f32"
    first, second = (module(arguments, f"{body}{more}; {after}") for more in ("", "; %unused = negate %x"))
    compiled, real = [], module_runs._compile
    monkeypatch.setattr(module_runs, "_compile", lambda *what: compiled.append(what) or real(*what))
    found = verify_module(first, second, Assumed(), Effort(), 1 << 30)
    assert (found.status, found.how) == ("equal", "bit for bit, and 10 beyond the edges")
    told = [([first, second], "fused"), ([second], "quick"), *([([first], "quick")] if is_asked else [])]
    assert compiled == told
