"""What tests of rewrites share: modules as text, what two versions give, and cases for the sweep."""

import numpy as np
import pytest

from hlo_lower.verify.run import Executable

slow = pytest.mark.sweep


def swept(cases, *now):
    """Cases, each an argument or a tuple of several, of which only these run by default, the others in the sweep."""
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*own, marks=() if (own if len(own) > 1 else own[0]) in now else slow) for own in several]


def main(takes, body, returned):
    """A module of one function: `main("%x: tensor<4xf32>", "%r = ...", "%r : tensor<4xf32>")`."""
    gives = returned.partition(" : ")[2]
    return f"func.func public @main({takes}) -> ({gives}) {{\n  {body}\n  return {returned}\n}}\n"


def text_of(module):
    """The text of a module: of one that is exported, of a lowered one, or itself."""
    if isinstance(module, str):
        return module
    return module.stablehlo if hasattr(module, "stablehlo") else str(module.mlir_module())


def results(module, *values, rounding="quick"):
    """What XLA gives for a module."""
    return Executable(text_of(module), rounding).run([*values])


def bits(array, *, any_nan):
    """The bits of an array; of NaN, if any is as good as another, those of one."""
    if any_nan and array.dtype.kind not in "iubc":
        is_nan = np.isnan(array.astype(np.float64))
        array = np.where(is_nan, np.full_like(array, np.nan), array)
    return array.dtype, array.shape, array.tobytes()


def assert_same(source, lowered, *values, any_nan=False, rounding="quick"):
    """Both versions give the same bits."""
    for pair in zip(*(results(m, *values, rounding=rounding) for m in (source, lowered)), strict=True):
        expected, found = (bits(array, any_nan=any_nan) for array in pair)
        assert expected == found, pair


def fault(owner, name):
    """A function of monkeypatch that puts a wrong step in place of one, which it is given first."""

    def made(wrong):
        def put(monkeypatch):
            right = getattr(owner, name)
            monkeypatch.setattr(owner, name, lambda *given, **how: wrong(right, *given, **how))

        put.__name__ = wrong.__name__
        return put

    return made
