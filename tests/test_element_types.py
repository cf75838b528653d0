"""Element types: each one that StableHLO computes with is declared, as NumPy and ml_dtypes have it."""

import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.base.element_types import ELEMENT_TYPES, Family, element_type, element_type_of, type_range
from hlo_lower.ir import mlir

DECLARED = [e for e in ELEMENT_TYPES.values() if e.name != "index"]
FLOATS = {e.name: e for e in DECLARED if e.is_float}


def is_taken(name):
    """Whether jaxlib's StableHLO has an op on such elements."""
    text = module(f"%x: 2x{name}", f"%r = reshape %x -> 1x2x{name}")
    context = mlir.shared_context(len(text))
    with mlir.active(context):
        try:
            return mlir.parse_module(text, context).operation.verify()
        except Exception:  # whatever the bindings raise: it is refused
            return False


def test_what_stablehlo_computes_with_is_declared():
    """Of integers of all widths, and floats of which jaxlib has a class, those are declared that StableHLO computes."""
    with mlir.active(mlir.shared_context(0)):
        floats = {str(one.get()) for one in mlir.ir.FloatType.__subclasses__()}
    integers = {f"{letters}i{bits}" for letters in ("", "s", "u") for bits in range(1, 129)}
    found = integers | floats | {f"complex<{name}>" for name in floats}
    assert {"bf16", "f8E4M3FN", "f64"} <= found
    assert {e.name for e in DECLARED} == {name for name in found if is_taken(name)}


@pytest.mark.parametrize("name", [e.name for e in DECLARED if e.is_integer and e.bits >= 8])
def test_integers_are_those_of_numpy(name):
    """Width and range of an integer type are those of NumPy's type."""
    declared = element_type(name)
    info = np.iinfo(declared.dtype)
    assert (info.bits, info.min, info.max) == (declared.bits, *type_range(name))
    assert declared.is_signed == (info.min < 0)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_those_of_ml_dtypes(name):
    """Layout, range and precision of a float are those of the type of ml_dtypes; half of the tiniest one is zero."""
    declared = FLOATS[name]
    dtype = declared.dtype or np.dtype(getattr(ml_dtypes, f"float6_{name[2:].lower()}"))
    info = ml_dtypes.finfo(dtype)
    assert (info.bits, info.nmant, info.nexp) == (declared.bits, declared.mantissa, declared.exponent)
    assert (float(info.min), float(info.max)) == (declared.least, declared.most)
    assert (float(info.smallest_normal), float(info.eps)) == (declared.smallest, declared.epsilon)
    if name != "f8E8M0FNU" and declared.dtype is not None:
        kept = np.array([declared.tiniest, declared.tiniest / 2]).astype(dtype).astype(np.float64)
        assert kept.tolist() == [declared.tiniest, 0.0]


def test_a_type_is_found_by_its_name_and_by_its_dtype():
    """The declaration of a dtype is that of its name; others are of another family; integers wrap around in a type."""
    assert all(element_type_of(e.dtype) is element_type(e.name) for e in DECLARED if e.dtype is not None)
    others = element_type("!quant.uniform<i8:f32, 1.0>"), element_type_of(np.dtype(object))
    assert {other.family for other in others} == {Family.OTHER}
    assert type_range("index") == type_range("i64")
    assert type_range("f32") is None
    wraps = [("i8", 200, -56), ("ui8", -1, 255), ("i2", 2, -2), ("i1", 3, 1)]
    assert [element_type(name).wrap(value) for name, value, _ in wraps] == [wrapped for *_, wrapped in wraps]


def test_one_type_holds_another():
    """A float holds integers of as many bits as it has digits, and floats of fewer digits and a smaller range."""
    held = {name: {e.name for e in DECLARED if element_type(name).holds(e)} for name in ("f64", "f32", "f16", "bf16")}
    assert held["f64"] >= {"f32", "f16", "bf16", "i32", "ui32"}
    assert held["f32"] >= {"f16", "bf16", "i16", "ui16"}
    beyond = {
        "f64": {"i64", "ui64", "complex<f32>"},
        "f32": {"f64", "i32", "ui32"},
        "f16": {"bf16", "f32", "i16"},
        "bf16": {"f16", "i16"},
    }
    assert {name: held[name] & names for name, names in beyond.items()} == {key: set() for key in beyond}
