"""Element types that a target refuses: each op on a carrier gives the bits of native XLA; what is wrong is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from element_type_programs import (
    ARITHMETIC,
    BIT_OPS,
    assert_right,
    conversions,
    edges,
    exported,
    no_bits,
    on_32_bits,
    only_xor,
    operands,
    programs,
    target_taking,
    to,
    wrong,
)
from jax import lax
from rewrites import assert_same, results
from rule_examples import target
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.errors import EXIT_OK
from hlo_lower.ir.reader import read
from hlo_lower.lowering.types.carried import bits, carrier, halves, on_carriers, written_ops
from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.exactness import TABLE, How
from hlo_lower.lowering.types.storage import as_given

EVERY = ("i1", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "bf16", "f16", "f32", "f64")
NARROW = {"uint8": "ui8", "int8": "i8", "uint16": "ui16", "int16": "i16", "uint32": "ui32"}
NAMES = {**NARROW, "uint64": "ui64", "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bfloat16", "float16", "float32")

RING = ("add", "mul", "compare lt", "div", "reduce add", "clamp")
CASES = [
    ("uint8", ("i1", "i32"), BIT_OPS, (*RING, "rem", "bitwise_not", "dot_general")),
    ("int8", ("i1", "i32"), (), (*RING, "abs", "shift_right_logical", "population_count")),
    ("uint32", ("i1", "i32"), BIT_OPS, (*RING, "rem", "min", "reduce max", "dynamic_slice")),
    ("bfloat16", ("i1", "i32", "f32"), (), (*RING, "floor", "select", "dot_general", "convolution")),
]
"""Of each type some ops, for every run of the tests; all of them are behind the sweep marker."""

MORE = [
    *(case[:3] for case in CASES),
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
]


@pytest.mark.parametrize(
    ("dtype", "taken", "without", "wanted"),
    [*CASES, *(pytest.param(*case, (), marks=pytest.mark.sweep) for case in MORE)],
    ids=lambda part: "all" if part == () else str([*part]) if isinstance(part, tuple) else None,
)
def test_ops_give_the_bits_of_native_xla(dtype, taken, without, wanted):
    """Of types of 8 bits for all pairs of numbers, of wider ones at the edges and at random."""
    found = {name: op for name, op in programs(jnp.dtype(dtype)).items() if name not in without}
    if "and" in without or "i32" not in taken:  # bodies with predicates
        found = {name: op for name, op in found.items() if name not in ("argmax", "sort")}
    assert set(found) >= set(wanted)
    found = {name: found[name] for name in wanted or found}
    told, lowered = wrong(found, operands(dtype), target_taking(*taken, without=without))
    assert told == {}
    assert [one.reason for one in lowered.refused if NAMES[dtype] in str(one.reason)] == []


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_functions_of_all_numbers_of_sixteen_bits(dtype):
    """Every bit pattern of bf16 and f16, with random ones beside."""
    every = np.arange(1 << 16).astype(np.uint16)
    given = [bits.view(jnp.dtype(dtype)) for bits in (every, np.random.default_rng(1).permutation(every))]
    assert wrong(programs(jnp.dtype(dtype)), given, target_taking("i1", "i32", "f32"))[0] == {}


def some(dtype):
    """Numbers of a type, those at the edges of integers among floats."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return (np.array([True, False]),) * 2 if dtype == "bool" else operands(dtype)
    near = np.array([0.5, 127.6, 128, 255.5, 256, -128.5, -129, 65536, 2**31, 2**31 + 256, 2**32 - 256, 2**32, 1e20])
    with np.errstate(all="ignore"):
        found = np.concatenate([near, -near, [np.nan, np.inf, -np.inf], np.linspace(-5e9, 5e9, 999)]).astype(dtype)
    return found, found


@pytest.mark.parametrize(
    ("dtype", "others"),
    [
        ("uint32", ("int8", "int64", "float32", "bfloat16")),
        *(pytest.param(dtype, DTYPES, marks=pytest.mark.sweep) for dtype in NARROW),
    ],
)
def test_conversions_are_right(dtype, others):
    """To other types and from them: floats are cut and held to the range as XLA does."""
    others, room = [o for o in others if o != dtype], target("npu", dtypes=[e for e in EVERY if e != NAMES[dtype]])
    assert_right(conversions(others), operands(dtype), room)
    for other in others:
        assert_right({other: to(dtype)}, some(other), room)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8"])
def test_bit_operations_by_sums(dtype):
    """Where the target has only `xor`."""
    assert_right({name: BIT_OPS[name] for name in ("and", "or", "xor")}, operands(dtype), only_xor())


MASKS = {f"and {n}": lambda x, y, n=n: x & x.dtype.type(n) for n in (0, 1, 2, 6, 7, 127)}
MASKS |= {"and all": lambda x, y: x & ~x.dtype.type(0), "not": lambda x, y: ~x, "of a mask": lambda x, y: 15 & y}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint8", "int16"])
def test_bit_operations_bit_by_bit(dtype):
    """Where the target has none on integers: of each pair of 8 bits, of edges and random ones."""
    x, y = (numbers[::5] for numbers in operands(dtype))
    assert_right(MASKS | {name: BIT_OPS[name] for name in ("and", "or", "xor")}, (x, y), no_bits())


def told_of_truths(one, other):
    """Bit operations of two integers that are made of truth values, and then of their results."""
    first, second = (part.astype(np.uint8) for part in (one, other))
    return first & second, first | second, (first ^ second) & np.uint8(1), (first | second) ^ (first & second)


def test_bit_operations_of_truth_values_as_integers():
    """Numbers that are shown to be 0 or 1 are not taken apart; the masks of PyTorch are such."""
    given = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    source = exported(told_of_truths, *given)
    lowered = hl.lower(
        source,
        target=target(
            "npu",
            dtypes=["i1", "i32"],
            op_dtypes={"stablehlo.xor": ["i1"], "stablehlo.and": ["i1"], "stablehlo.or": ["i1"]},
        ),
    )
    assert lowered.refused == ()
    assert not {"stablehlo.reduce", "stablehlo.divide"} & {
        line.split()[2] for line in lowered.text.splitlines() if "=" in line
    }
    for expected, found in zip(told_of_truths(*given), results(lowered.as_given, *given), strict=True):
        np.testing.assert_array_equal(expected, found)
    wide = exported(lambda x: x & np.uint8(1) | np.uint8(3), np.zeros(4, np.uint8))
    assert "reduce" in hl.lower(wide, target=no_bits()).text


def test_divisors_that_differ_in_their_upper_halves_are_no_small_constant():
    """Their lower halves are one small number, which alone is not the divisor."""
    x = np.array([10**12 + 7, 10**15 + 3, 77, (1 << 40) + 9], np.uint64)
    divisors = np.array([5, 5 + (1 << 32), 5, 5 + (1 << 33)], np.uint64)
    by = {name: lambda x, op=ARITHMETIC[name]: op(x, jnp.asarray(divisors)) for name in ("div", "rem")}
    assert_right(by, [x], on_32_bits())


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_floats_become_halves(dtype):
    """Each float, cut, or the nearest end of the type, and 0 of NaN, as XLA on a CPU gives."""
    rng = np.random.default_rng(0)
    ends = [2.0**k + e for k in (31, 32, 40, 53, 62, 63, 64) for e in (-(2.0**30), -1, 0, 1, 2048)]
    ends = [sign * end for end in [*ends, 0.5, 1.5, 1e30, np.inf, np.nan] for sign in (1, -1)]
    with np.errstate(all="ignore"):
        x = np.concatenate([ends, rng.standard_normal(2000) * 2.0 ** rng.integers(0, 66, 2000)])
        x = x.astype(jnp.dtype(dtype))
    assert_right(conversions(("int64", "uint64")), (x, x), on_32_bits((), {"f32", "f64", NAMES[dtype]}))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint64", "int64"])
def test_halves_become_floats_rounded_once(dtype):
    """Numbers half way between two floats of each size, and those beside them."""
    odd = [(m << 1 | 1) << k for k in range(40) for m in (1, 3, (1 << 23) + 1, (1 << 24) - 1, 12345678)]
    x = np.array([(n + e) % (1 << 64) for n in odd for e in (-1, 0, 1)], np.uint64).view(dtype)
    assert_right(conversions(("float32", "float64")), (x, x), on_32_bits((), ("f32", "f64")))


def turned(op, left, right):
    """Bits that are moved to the left, and others that are moved to the right, put together."""

    def function(x, y):
        count = lambda n: np.array(n, x.dtype)  # noqa: E731
        return op(lax.shift_left(x, count(left)), lax.shift_right_logical(y, count(right)))

    return function


@pytest.mark.parametrize("dtype", ["uint32", "uint8"])
@pytest.mark.parametrize("op", [lax.bitwise_or, lax.bitwise_xor])
def test_numbers_without_a_common_bit_are_added(dtype, op):
    """Of one bit less between them no number is known to have none in common, and they are taken apart."""
    bits = np.iinfo(dtype).bits
    ways = {right: turned(op, 5, right) for right in (bits - 6, bits - 5, bits - 4)}
    texts = {n: hl.lower(exported(way, *np.zeros((2, 4), dtype)), target=no_bits()).text for n, way in ways.items()}
    assert [n for n, text in texts.items() if "stablehlo.reduce" in text] == [bits - 6]
    assert_right({f"by {n}": way for n, way in ways.items()}, [x[::5] for x in operands(dtype)], no_bits())


@pytest.mark.parametrize("divisor", [2, 6, 10, 1 << 30, (1 << 31) - 2, 1 << 31, 7])
def test_a_quotient_by_a_number_that_is_known(divisor):
    """By an even one it is that of the halves, and nothing is put right afterwards."""
    by = np.uint32(divisor)
    source = exported(lambda x: lax.div(x, by), np.zeros(4, np.uint32))
    is_half = divisor % 2 == 0 and divisor < 1 << 31
    assert ("stablehlo.multiply" in hl.lower(source, target=NO_SHIFT).text) != is_half
    assert_right({"quotient": lambda x, _: lax.div(x, by)}, operands("uint32"), NO_SHIFT)


def twice(op, of="5xui32"):
    """A module of one op of one value twice."""
    return module(f"%x: {of}", f"%r = {op} %x, %x")


def test_a_shift_by_what_is_not_known_goes_by_powers_of_two():
    """A power of integers is left."""
    source = exported(jax.lax.shift_left, *[np.zeros(3, np.uint64)] * 2)
    lowered = hl.lower(source, target=on_32_bits())
    assert lowered.refused == ()
    assert_same(source, lowered.as_given, *[np.array([1, 33, 63], np.uint64)] * 2)
    power = hl.lower(twice("power", "5xui64"), target=on_32_bits())
    assert [one.op for one in power.refused] == ["stablehlo.power"]


WORD = target_taking("i1", "i32", "f32")
NO_SHIFT = target_taking("i1", "i32", "f32", without=("shift_right_logical",))
CARRYING = carrier.Carrying


def _powers_of_signed(c, count, element):
    return c.build.constant_array(np.array([*(1 << k for k in range(count - 1)), 0]), element)


BROKEN = {
    "the sign bit is not flipped": ("uint32", CARRYING, "flip", lambda self, value: value, "min, compare lt", WORD),
    "nothing is put back into the range": ("int8", CARRYING, "settle", lambda self, x, of: x, "a sum compared", WORD),
    "a signed quotient": ("uint32", written_ops, "unsigned_divide", lambda c, _, xd: c.do("divide", *xd), "div", WORD),
    "a half with its sign": ("uint32", written_ops, "half_of", lambda c, x: c.do("divide", x, 2), "div", NO_SHIFT),
    "extended by the sign": ("int8", written_ops, "_by_zeros", lambda c, carrier, x: x, "shift_right_logical", WORD),
    "extended by zeros": ("uint8", written_ops, "_by_sign", lambda c, carrier, x: x, "shift_right_arithmetic", WORD),
    "an index not clamped": ("uint32", on_carriers, "clamped_index", lambda c, x, of: x, "dynamic_slice", WORD),
    "a sum without its carry": ("uint64", halves, "_one_where", lambda c, p, like: c.number(0, like), "add", WORD),
    "lower halves with a sign": ("uint64", halves, "_is_below", lambda c, x, y: c.holds(x, "LT", y), "sub", WORD),
    "a digit without its upper part": (
        "uint64",
        halves,
        "_divide_half",
        lambda c, x, count: c.number(0, x),
        "reduce add",
        WORD,
    ),
    "a rest that is not taken away": ("uint64", halves, "subtract", lambda c, x, y: x, "div", WORD),
    "lost bits": (
        "int64",
        halves,
        "shift_half_right",
        lambda c, x, k: c.number(0, x),
        "to float32",
        on_32_bits((), ("f32",)),
    ),
    "no sign bit where both have one": ("int32", CARRYING, "choose", lambda self, p, x, y: y, "and, or", only_xor()),
    "a rest with a sign": ("int32", bits, "_rest", lambda c, x, size: c.do("remainder", x, size), "and 7", no_bits()),
    "a sign bit that is no bit": ("int32", CARRYING, "choose", lambda self, p, x, y: y, "xor", no_bits()),
    "a power of two too few": ("uint8", bits, "_powers", _powers_of_signed, "or", no_bits()),
    "sums that are not rounded": ("bfloat16", CARRYING, "round_to_type", lambda self, x, of: x, "reduce add", WORD),
}
"""What makes a form exact, something else in its place, the programs that have to show it, and the target."""


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_wrong_differs(how, monkeypatch):
    """Each thing that makes a form exact is needed: without it some op gives other bits."""
    dtype, owner, name, instead, wanted, npu = BROKEN[how]
    monkeypatch.setattr(owner, name, instead)
    if name == "unsigned_divide":
        monkeypatch.setitem(written_ops.ON_SIGNED, "stablehlo.divide", instead)
    every = {
        **programs(jnp.dtype(dtype)),
        "to float32": to("float32"),
        "a sum compared": lambda x, y: x + y < x,
    } | MASKS
    told, _ = wrong({name: every[name] for name in wanted.split(", ")}, operands(dtype), npu)
    assert set(told) == {*wanted.split(", ")}


@pytest.mark.parametrize("dtype", NARROW)
def test_the_table_holds_of_integers_in_numpy(dtype):
    """What the table says that an op needs makes it exact, computed without any of this project's code."""
    x, y = edges(dtype, 20_000)
    signed = np.dtype(f"int{x.dtype.itemsize * 8}")
    by_name = {f"bitwise_{name}": name for name in ("and", "or", "xor")}
    for name in ("add", "subtract", "multiply", "minimum", "maximum", *by_name):
        entry, op = TABLE[f"stablehlo.{by_name.get(name, name)}"], getattr(np, name)
        wide, expected = op(x.astype(np.int64), y.astype(np.int64)), op(x, y)
        settled = wide.astype(dtype) if entry.on(Form.WIDER) is How.SETTLED else wide
        assert entry.on(Form.WIDER) in (How.SAME, How.SETTLED)
        assert np.array_equal(settled, expected.astype(np.int64)), name
        if x.dtype.kind == "u":
            flip = signed.type(np.iinfo(signed).min if entry.on(Form.SIGNED) is How.FLIPPED else 0)
            carried = op(x.view(signed) ^ flip, y.view(signed) ^ flip) ^ flip
            assert np.array_equal(carried.view(dtype), expected), name


LOOP = module(
    "%x: 5xui32",
    """%0 = constant 0 : i32
  %r:2 = while(%i = %0, %y = %x) cond { %p = compare LT, %i, 3; return %p } do {
    %j = add %i, 1; %z = call @double(%y) -> 5xui32; return %j, %z
  }
  %c = compare LT, %r#1, %x""",
    "%r#1, %c",
    function("private @double", "%x: 5xui32", "%r = add %x, %x"),
)
NO_UNSIGNED = target("npu", dtypes=["i1", "i32", "f32"])


def test_what_a_target_has_no_room_for_is_stored_in_another_type():
    """Loops, calls and the signature change, and the change is told; the module is the same function of the bits, also
    through `hl.jit`, whose arguments are JAX's."""
    lowered = hl.lower(LOOP, target=NO_UNSIGNED)
    assert "ui32" not in lowered.text
    surveyed = survey(read(LOOP), options=hl.Options(NO_UNSIGNED)).notes
    assert [note.rpartition(": ")[2] for note in surveyed] == [note.rpartition(": ")[2] for note in lowered.notes]
    assert lowered.refused == ()
    assert "hlo_lower.carried" not in lowered.text
    assert "stored: argument 0 of @main, ui32, as i32: the same bits" in lowered.notes
    assert_same(LOOP, lowered.as_given, np.array([0, 1, 2**29, 2**31, 2**32 - 1], np.uint32))
    assert as_given(LOOP, lowered.stablehlo, NO_UNSIGNED).count("bitcast_convert") == 2
    smallest = hl.jit(lambda x: jnp.minimum(x, 7).astype(jnp.uint32) - 1, target=NO_UNSIGNED)
    assert smallest(np.array([0, 9, 3], np.uint32)).tolist() == [2**32 - 1, 6, 2]


def test_texts_of_two_signatures_are_verified_for_the_target_alone():
    """The second version as a file: its arguments are known to be the first one's bits; for others it differs."""
    text = twice("add")
    lowered = hl.lower(text, target=NO_UNSIGNED)
    assert hl.verify(text, lowered.text, target=NO_UNSIGNED, runs=1).exit_code == EXIT_OK
    assert "type (tensor<5xui32>)" in hl.verify(text, lowered.text, level="regions").lines()[0]
    wrong_one = lowered.text.replace("stablehlo.add", "stablehlo.subtract")
    assert not hl.verify(text, wrong_one, target=NO_UNSIGNED, runs=1).ok


def test_an_op_that_has_no_form_keeps_its_types_and_is_all_that_is_refused():
    """Around it stand casts; the rest of the module is stored."""
    lowered = hl.lower(twice("power"), target=NO_UNSIGNED)
    assert {(one.op, one.count) for one in lowered.refused} == {("", 3)}
    assert lowered.text.count("stablehlo.power") == 1
    assert_same(twice("power"), lowered.as_given, np.array([0, 1, 3, 2**16, 2**32 - 1], np.uint32))


PREDICATES = module(
    "%p: 4xi1, %q: i1, %x: 4xf32",
    "%s = select %p, %x, %x; %w = while(%k = %q) cond { return %k } do { %n = xor %k, %k; return %n }",
    "%s, %w",
)


@pytest.mark.parametrize(
    "refusing", [{"refused_dtypes": {"i1": "none"}}, {"op_dtypes": {"stablehlo.select": ["f32", "i32"]}}], ids=str
)
def test_a_predicate_is_of_i1_whatever_a_target_refuses(refusing):
    """A select or a loop whose predicate is refused is left and told, not built of another type, which is no module."""
    lowered = hl.lower(PREDICATES, target=hl.Target("npu", **refusing))
    assert {one.op for one in lowered.refused} & {"stablehlo.select", ""}
    assert any(note.startswith("left: stablehlo.select") for note in lowered.notes)
    assert lowered.text.count("tensor<4xi1>") == PREDICATES.count("tensor<4xi1>")


def test_a_rule_may_build_what_is_lowered_later():
    """A scatter of ui8 whose rule computes on ui8 is lowered for a target that computes on i32 alone."""
    given = np.zeros(9, np.uint8), np.zeros(3, np.int32), np.zeros(3, np.uint8)
    source = exported(lambda x, i, u: x.at[i].max(u), *given)
    also = {"bitcast_convert": ["i1", "i32"], "reshape": EVERY}
    lowered = hl.lower(source, target=target_taking("i1", "i32", without=("while",), also=also))
    assert lowered.refused == ()
    assert hl.verify(source, lowered).ok
    unlike = {**also, "maximum": ["f32"], "compare": ["f32"]}
    with pytest.raises(hl.NotLoweredError):
        hl.lower(source, target=target_taking("i1", "i32", without=("while",), also=unlike))


@pytest.mark.parametrize(
    ("dtype", "option", "keywords"),
    [
        ("bf16", "--widen bf16=f32", {"widen": "bf16=f32"}),
        ("f8E4M3FN", "--widen f8E4M3FN=f32", {"widen": "f8E4M3FN=f32"}),
        ("f64", "--demote-f64", {"demote_f64": True}),
    ],
)
def test_numbers_change_only_where_that_is_asked_for(dtype, option, keywords):
    """The survey names the option; with it the type is gone, the signature too, and all of it is told."""
    spread = f"%c = constant 1.5 : {dtype}; %b = broadcast_in_dim %c, dims = [] -> 4x{dtype}"
    text = module(f"%x: 4x{dtype}", f"{spread}; %r = add %x, %b")
    assert dtype in hl.lower(text, target=NO_UNSIGNED).text
    assert {one.remedy for one in survey(read(text), options=hl.Options(NO_UNSIGNED)).refused} == {option}
    lowered = hl.lower(text, target=NO_UNSIGNED, **keywords)
    assert lowered.refused == ()
    assert dtype not in lowered.text
    assert [note for note in lowered.notes if "argument" not in note] == [
        "numbers change, as asked for: 4 tensors of floats of another precision",
        f"numbers change: result 0 of @main is f32, was {dtype}",
    ]
    verdict = hl.verify(text, lowered)
    assert verdict.ok
    assert verdict.plain.reason == "its numbers change, as asked for"


def test_bits_of_floats_do_not_become_others():
    """A module that looks at them has no form of another precision."""
    with pytest.raises(hl.NotLoweredError, match="looks at the bits"):
        hl.lower(module("%x: 4xbf16", "%r = bitcast_convert %x -> 4xi16"), widen="bf16=f32")
    with pytest.raises(hl.InputError, match="widen"):
        hl.Options(widen="bf16=f16")


def test_sums_are_rounded_once_where_their_order_is_free():
    """Then a target that takes only bodies of one op takes them."""
    source = exported(lambda x: jax.lax.reduce(x, jnp.bfloat16(0), jax.lax.add, (1,)), np.zeros((3, 5), jnp.bfloat16))
    texts = [
        hl.lower(source, target=target_taking("f32", "i1"), float_mode=how).text for how in ("exact", "reassociate")
    ]
    assert texts[0].count("convert") == texts[1].count("convert") + 2
