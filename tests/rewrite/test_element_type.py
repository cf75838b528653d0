"""Element types that a target refuses: each op on a carrier gives the bits of native XLA; what is wrong is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from element_type_programs import (
    BINARY,
    all_of,
    conversions,
    edges,
    exported,
    floats,
    long_programs,
    on_32_bits,
    only_xor,
    pairs,
    programs,
    run,
    same_bits,
    taking_nowhere_else,
    target_taking,
    to,
    wide_programs,
    wrong,
)

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.errors import EXIT_OK
from hlo_lower.ir.reader import read
from hlo_lower.lowering.types.carried import carrier, halves, on_carriers, written_ops
from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.exactness import TABLE, How
from hlo_lower.lowering.types.storage import as_given
from hlo_lower.verify.run import exported_from_module

BIT_OPS = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
EVERY = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "bf16", "f16", "f32", "f64")
NARROW = {"uint8": "ui8", "int8": "i8", "uint16": "ui16", "int16": "i16", "uint32": "ui32"}
NAMES = {**NARROW, "uint64": "ui64", "bfloat16": "bf16", "float16": "f16"}
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bfloat16", "float16", "float32")

RING = ("add", "multiply", "compare lt", "divide", "reduce add", "clamp")
CASES = {
    "uint8": (("i1", "i32"), BIT_OPS, (*RING, "remainder", "not", "dot_general")),
    "int8": (("i1", "i32"), (), (*RING, "abs", "shift_right_logical", "popcnt")),
    "uint32": (("i1", "i32"), BIT_OPS, (*RING, "remainder", "minimum", "reduce maximum", "dynamic_slice")),
    "bfloat16": (("i1", "i32", "f32"), (), (*RING, "floor", "select", "dot_general")),
}
"""Of each type some ops, for every run of the tests; all of them are behind the sweep marker."""

MORE = [
    ("uint8", ("i1", "i32"), BIT_OPS),
    ("int8", ("i1", "i32"), ()),
    ("uint32", ("i1", "i32"), BIT_OPS),
    ("uint8", ("i1", "i32"), ()),
    ("uint8", ("i1", "i8", "i32"), ("shift_right_logical",)),
    ("int8", ("i1", "i32"), BIT_OPS),
    ("int8", ("i1", "i16", "i32"), ("xor",)),
    ("uint16", ("i1", "i32"), ()),
    ("int16", ("i1", "i32"), BIT_OPS),
    ("uint32", ("i1", "i32"), ()),
    ("uint32", ("i1", "i64"), ()),
    ("uint64", ("i1", "i64", "i32"), ()),
    ("float16", ("i1", "i32", "f32"), ()),
    ("bfloat16", ("i1", "i32", "f32"), ()),
]


def operands(dtype):
    """All pairs of a type of 8 bits; of others the edges and random ones."""
    if jnp.issubdtype(dtype, jnp.floating):
        return floats(jnp.dtype(dtype))
    return pairs(dtype) if np.dtype(dtype).itemsize == 1 else edges(dtype)


def attacked(dtype, taken, without, wanted=()):
    """The programs of a type, the module of all of them and that for a target that refuses the type."""
    found = {name: op for name, op in programs(jnp.dtype(dtype)).items() if name not in without}
    found = {name: op for name, op in found.items() if name in wanted or not wanted}
    for name in ("argmax", "sort") if "and" in without or "i32" not in taken else ():  # bodies with predicates
        found.pop(name, None)
    given = operands(dtype)
    source = exported(all_of(found), *given)
    target = target_taking(*taken, without=without)
    return found, source, hl.lower(source, target=target), given


def assert_same(dtype, taken, without, wanted=()):
    """Nothing is refused any more, and every result has the bits of XLA's own."""
    found, source, lowered, given = attacked(dtype, taken, without, wanted)
    assert set(found) >= set(wanted)
    assert [str(one.reason) for one in lowered.refused if NAMES[dtype] in str(one.reason)] == []
    assert wrong(found, source, lowered, *given) == {}


@pytest.mark.parametrize("dtype", CASES)
def test_ops_give_the_bits_of_native_xla(dtype):
    """Of types of 8 bits for all pairs of numbers, of wider ones at the edges and at random."""
    assert_same(dtype, *CASES[dtype])


@pytest.mark.sweep
@pytest.mark.parametrize(("dtype", "taken", "without"), MORE, ids=str)
def test_every_op_gives_the_bits_of_native_xla(dtype, taken, without):
    """The same for all ops, and where the target takes other integers or other bit operations."""
    assert_same(dtype, taken, without)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_functions_of_all_numbers_of_sixteen_bits(dtype):
    """Every bit pattern of bf16 and f16, with random ones beside."""
    found = programs(jnp.dtype(dtype))
    every = np.arange(1 << 16).astype(np.uint16)
    given = tuple(bits.view(jnp.dtype(dtype)) for bits in (every, np.random.default_rng(1).permutation(every)))
    source = exported(all_of(found), *given)
    lowered = hl.lower(source, target=target_taking("i1", "i32", "f32"))
    assert wrong(found, source, lowered, *given) == {}


def assert_converted(dtype, others):
    """Conversions from a type and to it are right where the target has no room for it."""
    target = taking_nowhere_else(*(name for name in EVERY if name != NAMES[dtype]))
    found = conversions([other for other in others if other != dtype])
    for given, programs_of in [(operands(dtype), found), *((some(o), {o: to(dtype)}) for o in others if o != dtype)]:
        source = exported(all_of(programs_of), *given)
        lowered = hl.lower(source, target=target)
        assert lowered.refused == ()
        before, after = run(source, *given), run(exported_from_module(lowered.as_given), *given)
        for name, expected, result in zip(programs_of, before, after, strict=True):
            assert same_bits(expected, result).all(), (dtype, name)


def some(dtype):
    """Numbers of a type, those at the edges of integers among floats."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return (np.array([True, False]),) * 2 if dtype == "bool" else operands(dtype)
    near = np.array([0.5, 127.6, 128, 255.5, 256, -128.5, -129, 65536, 2**31, 2**31 + 256, 2**32 - 256, 2**32, 1e20])
    with np.errstate(all="ignore"):
        found = np.concatenate([near, -near, [np.nan, np.inf, -np.inf], np.linspace(-5e9, 5e9, 999)]).astype(dtype)
    return found, found


@pytest.mark.parametrize("dtype", ["uint32"])
def test_conversions_are_right(dtype):
    """To other types and from them: floats are cut and held to the range as XLA does."""
    assert_converted(dtype, ("int8", "int64", "float32", "bfloat16"))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", NARROW)
def test_conversions_between_all_types_are_right(dtype):
    """Between each type of integers and every other type."""
    assert_converted(dtype, DTYPES)


@pytest.mark.parametrize(
    ("dtype", "without"), [("uint64", ()), pytest.param("int64", ("and", "or"), marks=pytest.mark.sweep)]
)
def test_integers_of_64_bits_on_their_halves(dtype, without):
    """Sums, products, order, shifts by what is known, conversions and moves of pairs of 32 bits."""
    found = {name: op for name, op in wide_programs(dtype).items() if name not in without}
    given = edges(dtype, 500)
    source = exported(all_of(found), *given)
    lowered = hl.lower(source, target=on_32_bits(without))
    assert [str(one.reason) for one in lowered.refused] == []
    assert wrong(found, source, lowered, *given) == {}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8"])
def test_bit_operations_by_sums(dtype):
    """Where the target has only `xor`."""
    found = {name: op for name, op in programs(jnp.dtype(dtype)).items() if name in ("and", "or", "xor")}
    given = operands(dtype)
    source = exported(all_of(found), *given)
    lowered = hl.lower(source, target=only_xor())
    assert lowered.refused == ()
    assert wrong(found, source, lowered, *given) == {}


SHORT = ("divide", "remainder by 7", "shift_left", "reduce add", "reduce minimum", "gather", "pad", "to float32")


@pytest.mark.parametrize(
    ("dtype", "wanted", "without"),
    [
        ("int64", SHORT, ()),
        pytest.param("int64", (), (), marks=pytest.mark.sweep),
        pytest.param("uint64", (), (), marks=pytest.mark.sweep),
        pytest.param("int64", (), ("while",), marks=pytest.mark.sweep),
    ],
)
def test_what_takes_many_ops_on_halves(dtype, wanted, without):
    """Quotients by long division, shifts by each bit of what is not known, reductions, indices, floats: bit for bit."""
    found = {name: op for name, op in long_programs(dtype).items() if name in wanted or not wanted}
    given = edges(dtype, 500)
    source = exported(all_of(found), *given)
    lowered = hl.lower(source, target=on_32_bits(without, ("f32", "f64")))
    assert [str(one.reason) for one in lowered.refused] == []
    assert wrong(found, source, lowered, *given) == {}


@pytest.mark.parametrize("op", ["divide", "remainder"])
def test_divisors_that_differ_in_their_upper_halves_are_no_small_constant(op):
    """Their lower halves are one small number, which alone is not the divisor."""
    x = np.array([10**12 + 7, 10**15 + 3, 77, (1 << 40) + 9], np.uint64)
    divisors = np.array([5, 5 + (1 << 32), 5, 5 + (1 << 33)], np.uint64)
    source = exported(lambda x: (BINARY[op](x, jnp.asarray(divisors)),), x)
    assert wrong([op], source, hl.lower(source, target=on_32_bits()), x) == {}


@pytest.mark.sweep
@pytest.mark.parametrize("given", ["float32", "float64", "bfloat16", "float16"])
def test_floats_become_halves(given):
    """Each float, cut, or the nearest end of the type, and 0 of NaN, as XLA on a CPU gives."""
    dtype, rng = jnp.dtype(given), np.random.default_rng(0)
    ends = [2.0**k + e for k in (31, 32, 40, 53, 62, 63, 64) for e in (-(2.0**30), -1, 0, 1, 2048)]
    ends = [sign * end for end in [*ends, 0.5, 1.5, 1e30, np.inf, np.nan] for sign in (1, -1)]
    with np.errstate(all="ignore"):
        x = np.concatenate([ends, rng.standard_normal(2000) * 2.0 ** rng.integers(0, 66, 2000)]).astype(dtype)
    found = conversions(("int64", "uint64"))
    source = exported(all_of(found), x, x)
    lowered = hl.lower(source, target=on_32_bits((), {"f32", "f64", hl_name(given)}))
    assert lowered.refused == ()
    assert wrong(found, source, lowered, x, x) == {}


def hl_name(dtype):
    """The name of a float type in a module."""
    return {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}[dtype]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint64", "int64"])
def test_halves_become_floats_rounded_once(dtype):
    """Numbers half way between two floats of each size, and those beside them."""
    odd = [(m << 1 | 1) << k for k in range(40) for m in (1, 3, (1 << 23) + 1, (1 << 24) - 1, 12345678)]
    x = np.array([(n + e) % (1 << 64) for n in odd for e in (-1, 0, 1)], np.uint64).view(dtype)
    found = conversions(("float32", "float64"))
    source = exported(all_of(found), x, x)
    lowered = hl.lower(source, target=on_32_bits((), ("f32", "f64")))
    assert lowered.refused == ()
    assert wrong(found, source, lowered, x, x) == {}


def test_a_shift_by_what_is_not_known_goes_by_powers_of_two():
    """A power of integers is left."""
    x = np.zeros(3, np.uint64)
    source = exported(jax.lax.shift_left, x, x)
    lowered = hl.lower(source, target=on_32_bits())
    assert lowered.refused == ()
    assert hl.verify(source, lowered).ok
    power = TWICE.replace("OP", "power").replace("ui32", "ui64")
    assert [one.op for one in hl.lower(power, target=on_32_bits()).refused] == ["stablehlo.power"]


# --- wrong on purpose ---

BROKEN = {
    "the sign bit is not flipped": ("uint32", carrier.Carrying, "flip", lambda self, value: value),
    "nothing is put back into the range": ("int8", carrier.Carrying, "settle", lambda self, value, element: value),
    "a signed quotient": ("uint32", written_ops, "unsigned_divide", lambda c, _, xd: c.do("divide", *xd)),
    "a half with its sign": ("uint32", written_ops, "half_of", lambda c, x: c.do("divide", x, 2)),
    "extended by the sign bit": ("int8", written_ops, "_by_zeros", lambda c, carrier, x: x),
    "extended by zeros": ("uint8", written_ops, "_by_sign", lambda c, carrier, x: x),
    "an index that is not clamped": ("uint32", on_carriers, "clamped_index", lambda c, x, carrier: x),
    "a sum without its carry": ("uint64", halves, "_one_where", lambda c, p, like: c.number(0, like)),
    "lower halves with a sign": ("uint64", halves, "_is_below", lambda c, x, y: c.holds(x, "LT", y)),
    "a digit in another place": ("uint64", halves, "_in_place", lambda c, x, place: (x, c.number(0, x))),
    "a rest that is not taken away": ("uint64", halves, "subtract", lambda c, x, y: x),
    "lost bits do not count": ("int64", halves, "right", lambda c, x, k: c.number(0, x)),
    "no sign bit where both have one": ("int32", carrier.Carrying, "choose", lambda self, p, x, y: y),
    "sums that are not rounded": ("bfloat16", carrier.Carrying, "rounded", lambda self, value, of: value),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("how", BROKEN)
def test_what_is_wrong_differs(how, monkeypatch):
    """Each thing that makes a form exact is needed: without it some op gives other bits."""
    dtype, owner, name, instead = BROKEN[how]
    monkeypatch.setattr(owner, name, instead)
    table = {"unsigned_divide": ("ON_SIGNED", "stablehlo.divide")}
    if name in table:
        kept, op = table[name]
        monkeypatch.setitem(getattr(written_ops, kept), op, instead)
    wanted = {
        "flip": ("minimum", "compare lt"),
        "settle": ("a sum compared",),
        "unsigned_divide": ("divide",),
        "half_of": ("divide",),
        "_by_zeros": ("shift_right_logical",),
        "_by_sign": ("shift_right_arithmetic",),
        "clamped_index": ("dynamic_slice",),
        "_one_where": ("add",),
        "_is_below": ("subtract",),
        "_in_place": ("reduce add",),
        "subtract": ("divide",),
        "right": ("to float32",),
        "choose": ("and", "or"),
        "rounded": ("reduce add",),
    }[name]
    every = {**programs(jnp.dtype(dtype)), "to float32": to("float32"), "a sum compared": lambda x, y: x + y < x}
    found = {name: every[name] for name in wanted}
    given = operands(dtype)
    source = exported(all_of(found), *given)
    without = ("shift_right_logical",) if name == "half_of" else ()
    target = only_xor() if name == "choose" else target_taking("i1", "i32", "f32", without=without)
    target = on_32_bits((), ("f32",)) if name == "right" else target
    lowered = hl.lower(source, target=target)
    assert set(wrong(found, source, lowered, *given)) == set(wanted)


NUMPY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32"])
def test_the_table_holds_of_integers_in_numpy(dtype):
    """What the table says that an op needs makes it exact, computed without any of this project's code."""
    x, y = edges(dtype, 20_000)
    bits = x.dtype.itemsize * 8
    signed = np.dtype(f"int{bits}")
    for name, op in NUMPY.items():
        entry, expected = TABLE[f"stablehlo.{name}"], op(x, y)
        wide = op(x.astype(np.int64), y.astype(np.int64))
        settled = wide.astype(dtype) if entry.on(Form.WIDER) is How.SETTLED else wide
        assert entry.on(Form.WIDER) in (How.SAME, How.SETTLED)
        assert np.array_equal(settled, expected.astype(np.int64)), name
        if x.dtype.kind == "u":
            flip = signed.type(np.iinfo(signed).min if entry.on(Form.SIGNED) is How.FLIPPED else 0)
            carried = op(x.view(signed) ^ flip, y.view(signed) ^ flip) ^ flip
            assert np.array_equal(carried.view(dtype), expected), name


# --- storage ---

LOOP = """func.func public @main(%x: tensor<5xui32>) -> (tensor<5xui32>, tensor<5xi1>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %0, %y = %x) : tensor<i32>, tensor<5xui32> cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %1 : tensor<i32>
    %z = func.call @double(%y) : (tensor<5xui32>) -> tensor<5xui32>
    stablehlo.return %j, %z : tensor<i32>, tensor<5xui32>
  }
  %c = stablehlo.compare LT, %r#1, %x : (tensor<5xui32>, tensor<5xui32>) -> tensor<5xi1>
  return %r#1, %c : tensor<5xui32>, tensor<5xi1>
}
func.func private @double(%x: tensor<5xui32>) -> tensor<5xui32> {
  %y = stablehlo.add %x, %x : tensor<5xui32>
  return %y : tensor<5xui32>
}
"""
NO_UNSIGNED = taking_nowhere_else("i1", "i32", "f32")


def test_what_a_target_has_no_room_for_is_stored_in_another_type():
    """Loops, calls and the signature change, and the change is told; the module is the same function of the bits."""
    lowered = hl.lower(LOOP, target=NO_UNSIGNED)
    assert "ui32" not in lowered.text
    surveyed = survey(read(LOOP), options=hl.Options(NO_UNSIGNED)).notes
    assert [note.rpartition(": ")[2] for note in surveyed] == [note.rpartition(": ")[2] for note in lowered.notes]
    assert lowered.refused == ()
    assert "hlo_lower.carried" not in lowered.text
    told = "argument 0 of @main, ui32, as i32: the same bits"
    assert f"stored: {told}" in lowered.notes
    x = np.array([0, 1, 2**29, 2**31, 2**32 - 1], np.uint32)
    results = (run(exported_from_module(text), x) for text in (LOOP, lowered.as_given))
    assert all(same_bits(*pair).all() for pair in zip(*results, strict=True))
    assert as_given(LOOP, lowered.stablehlo, NO_UNSIGNED).count("bitcast_convert") == 2


TWICE = """func.func public @main(%x: tensor<5xui32>) -> tensor<5xui32> {
  %y = stablehlo.OP %x, %x : tensor<5xui32>
  return %y : tensor<5xui32>
}
"""


def test_texts_of_two_signatures_are_verified_for_the_target_alone():
    """The second version as a file: its arguments are known to be the first one's bits; for others it differs."""
    text = TWICE.replace("OP", "add")
    lowered = hl.lower(text, target=NO_UNSIGNED)
    assert hl.verify(text, lowered.text, target=NO_UNSIGNED, runs=1).exit_code == EXIT_OK
    assert "type (tensor<5xui32>)" in hl.verify(text, lowered.text, level="regions").lines()[0]
    wrong_one = lowered.text.replace("stablehlo.add", "stablehlo.subtract")
    assert not hl.verify(text, wrong_one, target=NO_UNSIGNED, runs=1).ok


def test_a_function_is_called_as_before_through_jit():
    """The arguments are JAX's, whatever the module stores them in."""
    smallest = hl.jit(lambda x: jnp.minimum(x, 7).astype(jnp.uint32) - 1, target=NO_UNSIGNED)
    assert smallest(np.array([0, 9, 3], np.uint32)).tolist() == [2**32 - 1, 6, 2]


def test_an_op_that_has_no_form_keeps_its_types_and_is_all_that_is_refused():
    """Around it stand casts; the rest of the module is stored."""
    text = TWICE.replace("OP", "power")
    lowered = hl.lower(text, target=NO_UNSIGNED)
    assert {(one.op, one.count) for one in lowered.refused} == {("", 3)}
    assert lowered.text.count("stablehlo.power") == 1
    assert hl.verify(text, lowered, accept_runs=True, runs=1).ok


PREDICATES = """func.func public @main(%p: tensor<4xi1>, %q: tensor<i1>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<i1>) {
  %s = stablehlo.select %p, %x, %x : tensor<4xi1>, tensor<4xf32>
  %w = stablehlo.while(%k = %q) : tensor<i1>
  cond {
    stablehlo.return %k : tensor<i1>
  } do {
    %n = stablehlo.xor %k, %k : tensor<i1>
    stablehlo.return %n : tensor<i1>
  }
  return %s, %w : tensor<4xf32>, tensor<i1>
}
"""


@pytest.mark.parametrize(
    "refusing", [{"refused_dtypes": {"i1": "none"}}, {"op_dtypes": {"stablehlo.select": ["f32", "i32"]}}], ids=str
)
def test_a_predicate_is_of_i1_whatever_a_target_refuses(refusing):
    """A select or a loop whose predicate is refused is left and told, not built of another type, which is no module."""
    lowered = hl.lower(PREDICATES, target=hl.Target("npu", **refusing))
    assert "stablehlo.select" in {one.op for one in lowered.refused} or "" in {one.op for one in lowered.refused}
    assert any(note.startswith("left: stablehlo.select") for note in lowered.notes)
    assert lowered.text.count("tensor<4xi1>") == PREDICATES.count("tensor<4xi1>")


# --- the engine, options, the survey ---


def test_a_rule_may_build_what_is_lowered_later():
    """A scatter of ui8 whose rule computes on ui8 is lowered for a target that computes on i32 alone."""
    source = exported(
        lambda x, i, u: x.at[i].max(u), np.zeros(9, np.uint8), np.zeros(3, np.int32), np.zeros(3, np.uint8)
    )
    ops = {"stablehlo.while": "none", "stablehlo.scatter": "lowered"}
    taken = {op: ["i1", "i32"] for op in TABLE if op not in ("stablehlo.convert", "stablehlo.reshape")}
    lowered = hl.lower(source, target=hl.Target("npu", refused=ops, op_dtypes=taken))
    assert lowered.refused == ()
    assert hl.verify(source, lowered).ok
    unlike = {**taken, "stablehlo.maximum": ["f32"], "stablehlo.compare": ["f32"]}
    with pytest.raises(hl.NotLoweredError):
        hl.lower(source, target=hl.Target("npu", refused=ops, op_dtypes=unlike))


ADD = """func.func public @main(%x: tensor<4xDTYPE>) -> tensor<4xDTYPE> {
  %c = stablehlo.constant dense<1.5> : tensor<DTYPE>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<DTYPE>) -> tensor<4xDTYPE>
  %y = stablehlo.add %x, %b : tensor<4xDTYPE>
  return %y : tensor<4xDTYPE>
}
"""


@pytest.mark.parametrize(
    ("dtype", "option", "keywords"),
    [("bf16", "--widen bf16=f32", {"widen": "bf16=f32"}), ("f64", "--demote-f64", {"demote_f64": True})],
)
def test_numbers_change_only_where_that_is_asked_for(dtype, option, keywords):
    """The survey names the option; with it the type is gone, the signature too, and all of it is told."""
    text, target = ADD.replace("DTYPE", dtype), taking_nowhere_else("i1", "i32", "f32")
    lowered = hl.lower(text, target=target)
    assert dtype in lowered.text
    assert {one.remedy for one in survey(read(text), options=hl.Options(target)).refused} == {option}
    lowered = hl.lower(text, target=target, **keywords)
    assert lowered.refused == ()
    assert dtype not in lowered.text
    told = f"numbers change: result 0 of @main is f32, was {dtype}"
    assert [note for note in lowered.notes if "argument" not in note] == [
        "numbers change, as asked for: 4 tensors of floats of another precision",
        told,
    ]
    verdict = hl.verify(text, lowered)
    assert verdict.ok
    assert verdict.plain.reason == "its numbers change, as asked for"


def test_bits_of_floats_do_not_become_others():
    """A module that looks at them has no form of another precision."""
    text = """func.func public @main(%x: tensor<4xbf16>) -> tensor<4xi16> {
  %r = stablehlo.bitcast_convert %x : (tensor<4xbf16>) -> tensor<4xi16>
  return %r : tensor<4xi16>
}
"""
    with pytest.raises(hl.NotLoweredError, match="looks at the bits"):
        hl.lower(text, widen="bf16=f32")
    with pytest.raises(hl.InputError, match="widen"):
        hl.Options(widen="bf16=f16")


def test_sums_are_rounded_once_where_their_order_is_free():
    """Then a target that takes only bodies of one op takes them."""
    x = np.zeros((3, 5), jnp.bfloat16)
    source = exported(lambda x: jax.lax.reduce(x, jnp.bfloat16(0), jax.lax.add, (1,)), x)
    target = target_taking("f32", "i1")
    counts = [
        hl.lower(source, target=target, float_mode=mode).text.count("convert") for mode in ("exact", "reassociate")
    ]
    assert counts[0] == counts[1] + 2
