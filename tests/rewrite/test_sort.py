"""Sorts for targets that refuse them: the stable order, bit for bit as XLA's, by every strategy."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rewrites import assert_same as same
from rewrites import swept
from rule_examples import TARGETS, target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.change import Outcome
from hlo_lower.facts.sort.sort_facts import SortStrategy, stages_of
from hlo_lower.lowering import sort as lowering

TARGET = target("npu", "sort")
ONE_KEY = target("one_key", refused_forms=["sort by another order", "sort of several downwards"])
OWN = TARGETS["own_top_k"]
BARE, WITHOUT_BITS = target("bare", "sort", "gather"), target("plain_floats", "sort", "bitcast_convert")
RANKS, NETWORK, LOOPED = SortStrategy.RANKS, SortStrategy.NETWORK, SortStrategy.LOOPED_NETWORK
ROUNDS = (SortStrategy.ROUNDS, SortStrategy.LOOPED_ROUNDS)
STRATEGIES = (RANKS, NETWORK, LOOPED, *ROUNDS)


def floats(shape, dtype="float32", seed=0):
    """Few different numbers, so that there are ties; zeros of both signs, infinities, NaN of both signs."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, shape).astype(dtype)
    special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, np.nan], values.dtype)
    places = rng.permutation(values.size)[: special.size]
    values.reshape(-1)[places] = special[: places.size]
    return values


def integers(shape, dtype, seed=0):
    """Few different numbers and the ends of the type."""
    values = np.random.default_rng(seed).integers(0, 3, shape).astype(dtype)
    if dtype != "bool":
        values.reshape(-1)[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return values


def exported(function, *arguments):
    """A module in which jnp.sort and its like stand in place."""
    with jax.enable_x64(True):
        return hl.export(function, *arguments)


def assert_same(source, *arguments, npu=TARGET):
    """Lowered it gives the same bits, and nothing is sorted any more."""
    lowered = hl.lower(source, target=npu)
    assert "stablehlo.sort" not in lowered.text
    same(source, lowered, *arguments)
    return lowered


def many_sorts(f32, bf16, f64, i8, ui32, i64, truths, c64):
    """Sorts of all kinds of types: one key and several, up and down, along each dim, something going along or not."""
    sort = jax.lax.sort
    return (
        sort(f32, dimension=0),
        sort((bf16, i8), dimension=0, num_keys=1),
        sort((truths, f64, i8), dimension=1, num_keys=2),
        sort((i8, ui32, f32), dimension=1, num_keys=2),
        jnp.argsort(f32, axis=1, descending=True),
        jnp.argsort(i64, axis=0),
        sort(ui32, dimension=1),
        sort((i64, truths), dimension=0, num_keys=1),
        sort((c64, f32.astype(jnp.float8_e4m3fn)), dimension=0, num_keys=1),
    )


def every_type(shape=(5, 3)):
    """What `many_sorts` sorts."""
    return (
        *(floats(shape, dtype) for dtype in ("float32", jnp.bfloat16, "float64")),
        *(integers(shape, dtype) for dtype in ("int8", "uint32", "int64", "bool")),
        np.stack([floats(shape, seed=1), floats(shape, seed=2)], axis=-1).view("complex64")[..., 0],
    )


EVERY_TYPE = [(RANKS, TARGET), (RANKS, BARE), (NETWORK, TARGET), (NETWORK, BARE), (LOOPED, TARGET)]


@pytest.mark.parametrize(("strategy", "npu"), swept(EVERY_TYPE, *EVERY_TYPE[::3], EVERY_TYPE[4]))
def test_every_element_type(strategy, npu, only):
    """Keys are compared as the comparator says, ties stay in order, elements keep their bits; also without a gather."""
    only(strategy)
    arguments = every_type()
    lowered = assert_same(exported(many_sorts, *arguments), *arguments, npu=npu)
    assert {re.search(r"\((\w+)\)$", note)[1] for note in lowered.notes} == {f"sort_to_{strategy.value}"}


LESS, MORE, SAME, NEXT = (f"compare {c}" for c in ("LT, %a, %b", "GT, %a, %b", "EQ, %a, %b", "GT, %c, %d"))
COMPARATORS = (
    f"%r = {MORE}",
    f"%r = {NEXT}",
    "%r = compare LT, %b, %a",
    f"%p = {LESS}; %q = {SAME}; %s = {NEXT}; %t = and %q, %s; %r = or %p, %t",
    f"%p = {MORE}; %q = {SAME}; %s = compare LT, %c, %d; %r = select %q, %s, %p",
)
ORDERS = module(
    f"%x: {of([40], 'i32')}, %y: {of([40], 'i32')}",
    "\n".join(
        f"%o{k}, %u{k} = sort(%x, %y) <dimension = 0 : i64, is_stable = true> {{%a, %b, %c, %d: {text}; return %r}}"
        for k, text in enumerate(COMPARATORS)
    ),
    ", ".join(f"%o{k}, %u{k}" for k in range(len(COMPARATORS))),
)
"""Sorts of two operands: down, by the second one alone, with the arguments exchanged, by both."""


@pytest.mark.parametrize("which", ["types", "orders"])
@pytest.mark.parametrize(
    ("strategy", "npu"), [(SortStrategy.STABLE_SORTS, ONE_KEY), (SortStrategy.TOP_K, OWN)], ids=lambda v: str(v)
)
def test_sorts_by_one_key_after_the_other(which, strategy, npu, only):
    """For a target that sorts by its first operand, stably and upwards, or has a top_k: what is left are such ops."""
    only(strategy)
    if which == "types":
        arguments = every_type()
        source = exported(many_sorts, *arguments)
    else:
        source, arguments = ORDERS, (integers((40,), "int32"), integers((40,), "int32", seed=1))
    lowered = hl.lower(source, target=npu)
    assert not lowered.refused
    same(source, lowered, *arguments)
    assert {re.search(r"\((\w+)\)$", note)[1] for note in lowered.notes} == {f"sort_to_{strategy.value}"}


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_positions_among_the_keys_decide_by_their_direction(direction, only):
    """Of equal keys the one that stood last comes first where the positions go down; a key behind them says nothing."""
    only(SortStrategy.TOP_K)
    tied = "%p = compare LT, %a, %b; %q = compare EQ, %a, %b; %s = compare {}, %c, %d; %t = and %q, %s; %r = or %p, %t"
    source = module(
        "%x: 40xi32",
        f"%i = iota dim = 0 : 40xi32; %s, %o = sort(%x, %i) <dimension = 0 : i64, is_stable = true> "
        f"{{%a, %b, %c, %d: {tied.format(direction)}; return %r}}",
        "%s, %o",
    )
    lowered = hl.lower(source, target=OWN)
    assert lowered.text.count("chlo.top_k(") == (1 if direction == "LT" else 2)
    same(source, lowered, integers((40,), "int32"))


@pytest.mark.parametrize("strategy", swept(STRATEGIES, RANKS, *ROUNDS))
def test_only_the_rows_that_are_read_are_found(strategy, only):
    """Slices of a sort, of `jnp.sort` in a function of its own, and `top_k`: no tensor of the sorted shape is left."""
    only(strategy)
    x = floats((2, 11))

    def first(x):
        return jnp.sort(x)[1:, :3], jnp.argsort(x)[:, :2], jax.lax.top_k(x, 3), jax.lax.sort((x, -x))[1][:, :1]

    lowered = assert_same(exported(first, x), x)
    assert not re.search("call @(arg)?sort", lowered.text)
    assert lowered.notes[-1].endswith(f"(sort_to_{strategy.value})")


NUMBERS = {
    "an iota": lambda: jax.lax.broadcasted_iota("int32", (2, 11), 1),
    "broadcast": lambda: jnp.broadcast_to(jnp.arange(11, dtype="int32"), (2, 11)),
    "of another type": lambda: jnp.broadcast_to(jnp.arange(11, dtype="uint8")[None], (2, 11)).astype("int64"),
    "of a sum": lambda: jnp.arange(22, dtype="int32").reshape(2, 11) - 11 * jnp.arange(2, dtype="int32")[:, None],
}
OTHERS = {
    "from 1 on": lambda: jax.lax.broadcasted_iota("int32", (2, 11), 1) + 1,
    "along the other dim": lambda: jax.lax.broadcasted_iota("int32", (2, 11), 0),
    "downwards": lambda: jnp.broadcast_to(jnp.arange(11, dtype="int32")[::-1], (2, 11)),
    "of both": lambda: jnp.arange(22, dtype="int32").reshape(2, 11),
}


@pytest.mark.parametrize("numbers", [*NUMBERS, *OTHERS])
def test_positions_are_read_of_no_operand(numbers, only):
    """What holds the positions along the sorted dim, however it is written, is the order itself."""
    only(SortStrategy.ROUNDS)
    x, made = floats((2, 11)), (NUMBERS | OTHERS)[numbers]
    source = exported(lambda x: jax.lax.sort((x, made()), dimension=1, num_keys=1)[1][:, :3], x)
    assert ("stablehlo.gather" in assert_same(source, x).text) == (numbers in OTHERS)


def test_positions_that_wrap_around_are_none(only):
    """Of 300 rows i8 does not hold each one's number, also where they are converted to a type that would."""
    only(SortStrategy.ROUNDS)
    x = floats((1, 300))
    made = lambda: jnp.arange(300, dtype="int32").astype("int8").astype("int32")[None]  # noqa: E731
    source = exported(lambda x: jax.lax.sort((x, made()), dimension=1, num_keys=1)[1][:, :3], x)
    assert "stablehlo.gather" in assert_same(source, x).text


def test_rows_from_the_middle(only):
    """The median of an odd number of rows is one row of them."""
    only(RANKS)
    x = floats((5, 2))
    lowered = assert_same(exported(lambda x: jax.lax.slice(jax.lax.sort(x, dimension=0), (2, 0), (3, 2)), x), x)
    assert "tensor<1x1x5x2xi32>" in lowered.text


def test_without_bits_canonical_floats_are_compared_as_they_are():
    """A target that bitcasts no floats gets JAX's comparator as NaN first, then by `<`; raw total orders are left."""
    x = floats((3, 9))
    source = exported(lambda x: (jnp.sort(x), jnp.argsort(x, axis=0, descending=True)), x)
    assert_same(source, x, npu=WITHOUT_BITS)
    left = hl.lower(sorting(), target=WITHOUT_BITS)
    assert "stablehlo.sort" in left.text
    assert "NaN of any sign needs their bits" in left.notes[0]


@pytest.mark.parametrize("strategy", ROUNDS)
def test_rounds_without_bits(strategy, only):
    """What fills the place of a row that is gone may be a key, infinity."""
    only(strategy)
    x = np.array([np.inf, 1, np.nan, np.inf, -np.inf, np.nan], np.float32)
    source = exported(lambda x: jax.lax.slice(jnp.argsort(x, descending=False), (0,), (5,)), x)
    assert_same(source, x, npu=WITHOUT_BITS)


def test_merge_exchange_sorts_any_number_of_rows():
    """All sequences of zeros and ones are sorted for few rows, and so are permutations of many."""
    for rows in (*range(2, 20), 31, 64, 100, 257):
        values = (np.arange(1 << min(rows, 10))[:, None] >> np.arange(rows)) & 1
        if rows > 10:
            values = np.stack([np.random.default_rng(seed).permutation(rows) for seed in range(20)])
        for stage in stages_of(rows):
            i = np.arange(rows - stage.distance)
            i = i[(i & stage.block != 0) == stage.is_odd]
            low, high = values[:, i], values[:, i + stage.distance]
            values[:, i], values[:, i + stage.distance] = np.minimum(low, high), np.maximum(low, high)
        assert (np.diff(values, axis=1) >= 0).all(), rows


def sorting(comparison="LT, %a, %b, TOTALORDER", dim="dimension = 0 : i64, ", shape=(6,), element="f32", then=""):
    """A sort whose comparator is a line."""
    x = of(shape, element)
    text = f"%s = sort(%x) <{dim}is_stable = true> {{%a, %b: %r = compare {comparison}; return %r}}\n{then}"
    return module(f"%x: {x}", text, "%p" if then else "%s")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (sorting("LT, %a, %b, FLOAT"), Code.COMPARATOR_NOT_READ),
        (sorting("LE, %a, %b, TOTALORDER"), Code.COMPARATOR_NOT_READ),
        (sorting(shape="?"), Code.NEEDS_SIZES),
        (sorting(shape=[2000000000]), Code.MORE_THAN_I32),
        (sorting(element="f8E4M3FN"), Code.KEY_NOT_READ),
    ],
    ids=["by floats", "no strict order", "open", "long", "of a float of 8 bits"],
)
def test_what_is_not_read_is_left_and_told_why(text, why):
    """No order, a dynamic shape, a type without total order of its bits, more than i32 counts."""
    lowered = hl.lower(text, target=TARGET)
    assert "stablehlo.sort" in lowered.text
    [change] = lowered.changes
    assert (change.outcome, change.op, change.why) == (Outcome.LEFT, "stablehlo.sort", why())
    assert lowered.notes == (str(change),)


def test_a_target_that_takes_it_gets_the_module_as_it_is():
    """Nothing is changed or told, and a function that sorts is not inlined."""
    lowered = hl.lower(hl.export(lambda x: jnp.sort(x)[:2], jnp.zeros(6)))
    assert (lowered.notes, "call @sort" in lowered.text) == ((), True)


def test_a_sort_that_names_no_dim_sorts_along_the_last_one():
    """As the specification has it; a row alone is given back, whatever the comparator says."""
    lowered = assert_same(sorting(dim="", shape=(2, 5)), floats((2, 5)))
    assert "(sort_to_ranks)" in lowered.notes[0]
    alone = hl.lower(sorting("GT, %a, %b, TOTALORDER", dim="", shape=(4, 1)), target=TARGET)
    assert "stablehlo." not in alone.text
    assert alone.notes[0].endswith("the operands (sort_to_operands)")


def test_the_forms_are_tried_by_their_costs():
    """Few rows by pairs, many by the network, in a loop where there is one; a few rows read of many in rounds."""
    lowered = {rows: hl.lower(sorting(shape=[rows]), target=TARGET) for rows in (8, 250, 5000, 70000)}
    assert "(sort_to_ranks)" in lowered[8].notes[0]
    assert "(sort_to_network)" in lowered[250].notes[0]
    lines = {rows: one.text.count("\n") for rows, one in lowered.items()}
    assert lines[250] > 300
    assert lines[5000] < lines[70000] < 130
    flat = hl.lower(sorting(shape=[1000]), target=target("flat", "sort", "while"))
    assert "(sort_to_network)" in flat.notes[0]
    encoded = target("npu", "sort", legalize=True)  # until jax 0.10 a top_k is exported as a custom call
    top = hl.lower(hl.export(lambda x: jax.lax.top_k(x, 2), jnp.zeros(5000)), target=encoded)
    assert "(sort_to_rounds)" in top.notes[-1]


@pytest.mark.parametrize("rows", swept([5, 40], 5))
def test_it_is_verified(rows, judged_by_runs):
    """The region is judged equal by XLA; the interpreter, which knows no total order, is left out."""
    text = sorting(shape=[rows])
    verdict = hl.verify(text, hl.lower(text, target=TARGET), level="regions")
    assert verdict.ok
    assert [region.judges for region in verdict.regions] == [("XLA",)]


@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize("strategy", swept(STRATEGIES, RANKS))
def test_ties_in_another_order_do_not_verify(strategy, only, monkeypatch):
    """A wrong lowering on purpose: positions that go down make it unstable."""
    only(strategy)
    source = hl.export(lambda x, y: [v[:2] for v in jax.lax.sort((x, y), num_keys=1)], jnp.zeros(6, int), jnp.zeros(6))
    down = property(lambda op: [*(key.is_ascending for key in op.keys), False])
    monkeypatch.setattr(lowering.SortLowering, "ascending", down)
    verdict = hl.verify(source, hl.lower(source, target=TARGET), level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_upwards", lambda _op, key, _is_ascending: key), ("sort_rows", lambda b, key, rest, **_: [key, *rest])],
)
def test_a_wrong_sort_by_one_key_is_found(name, wrong, only, monkeypatch):
    """Keys that go down taken as they are, and rows left as they stand."""
    only(SortStrategy.STABLE_SORTS)
    monkeypatch.setattr(lowering, name, wrong)
    lowered, values = hl.lower(ORDERS, target=ONE_KEY), (integers((40,), "int32"), integers((40,), "int32", seed=1))
    with pytest.raises(AssertionError):
        same(ORDERS, lowered, *values)


def test_a_sharding_of_the_slice_goes_over():
    """Where only slices are replaced, what stood on them stands on what replaces them."""
    cut = sorting(then='%p = slice %s [0:2] {mhlo.sharding = "{replicated}"}')
    lowered = hl.lower(cut, target=TARGET).text
    assert 'mhlo.sharding = "{replicated}"' in lowered
    assert "stablehlo.sort" not in lowered


def top_k(k=2, element="f32", returned="%v, %i", *, encoded=False):
    """A top_k of which some results are returned, as chlo or as older JAX and torch_xla export it."""
    x, given = f"3x9x{element}", f"(3x{k}x{element}, 3x{k}xi32)"
    call = f"chlo.top_k(%x, k = {k}) : {x} -> {given}"
    if encoded:
        call = f"custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = {k} : i64}}}} -> {given}"
    return module(f"%x: {x}", f"%v, %i = {call}", returned)


@pytest.mark.parametrize("legalize", [False, True])
def test_a_top_k_is_lowered_where_sorts_are_refused(legalize):
    """Ties, zeros of both signs and NaN of both signs stand as XLA has them; with `legalize` nothing else is told."""
    lowered = hl.lower(top_k(7), target=target("npu", "sort", legalize=legalize))
    assert len(lowered.notes) == 2
    assert "top_k" not in lowered.text
    x = floats((3, 9))
    for shift in range(3):
        same(top_k(7), lowered, np.roll(x, shift, axis=0))


def test_an_encoded_top_k_is_lowered_where_sorts_are_refused():
    """What the target takes whole it becomes, what it refuses is ranks."""
    text = top_k(7, encoded=True)
    lowered = hl.lower(text, target=target("npu", "sort", legalize=True))
    assert "(sort_to_ranks)" in lowered.notes[-1]
    same(top_k(7), lowered, floats((3, 9)))
    whole = {"ops": ["func.func", "func.return"], "composites": ["chlo.top_k"]}
    assert "chlo.top_k" in hl.lower(text, target=target("npu", "sort", legalize=True, **whole)).text


IN_F32 = target("npu", "sort", composites=["chlo.top_k"], op_dtypes={"chlo.top_k": ["f32", "i32"]})


@pytest.mark.parametrize("is_composite", [False, True])
def test_a_top_k_of_bf16_is_one_of_f32_where_the_target_takes_that(is_composite):
    """Also as a composite of that name. It is derived; the least ones are seen to differ."""
    text = top_k(element="bf16")
    if is_composite:
        made = "composite_attributes = {k = 2 : i64}, decomposition = @f"
        signature = "(tensor<3x9xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>)"
        body = text.replace("public @main", "private @f").removeprefix("module {").removesuffix("}")
        call = f'%v, %i = "stablehlo.composite"(%x) {{name = "chlo.top_k", {made}}} : {signature}'
        text = "\n".join(call if "chlo.top_k" in line else line for line in text.splitlines()) + body
    lowered = hl.lower(text, target=IN_F32)
    assert lowered.refused == ()
    assert "xf32>" in "".join(line for line in lowered.text.splitlines() if "chlo.top_k" in line)
    assert {region.how for region in hl.verify(text, lowered).regions} == {"derived"}
    call = next(line for line in lowered.text.splitlines() if "chlo.top_k" in line)
    least = call.replace("top_k(%0", "top_k(%least")
    assert not hl.verify(
        text, lowered.text.replace(call, f"%least = stablehlo.negate %0 : tensor<3x9xf32>\n{least}")
    ).ok
    same(text, lowered, floats((3, 9)).astype(jnp.bfloat16))


def test_a_top_k_of_f16_is_one_of_integers():
    """Each NaN keeps its place in the order, which f32 does not give; another flip of the bits is seen."""
    text = top_k(element="f16")
    lowered = hl.lower(text, target=IN_F32)
    assert "tensor<3x9xi32> ->" in next(line for line in lowered.text.splitlines() if "chlo.top_k" in line)
    assert {region.how for region in hl.verify(text, lowered).regions} == {"derived"}
    bits = np.random.default_rng(0).integers(0, 1 << 16, (6, 3, 9), np.uint16)
    for given in bits:
        same(text, lowered, given.view(np.float16))
    for right, wrong in (("32767", "32766"), ("32767", "-1"), ("compare LE", "compare LT"), ("xor", "maximum")):
        assert not hl.verify(text, re.sub(right.replace(" ", " +"), wrong, lowered.text, count=1)).ok


@pytest.mark.parametrize("attributes", ["", "composite_attributes = {k = 3 : i64}, "])
def test_a_composite_that_does_not_say_the_size_of_its_top_k_is_called(attributes):
    """What it means its decomposition says, where the target does not take it as it is."""
    signature = "(tensor<3x9xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>)"
    call = f'%v, %i = "stablehlo.composite"(%x) {{name = "chlo.top_k", {attributes}decomposition = @f}} : {signature}'
    text = top_k(element="bf16")
    text = "\n".join(call if "chlo.top_k" in line else line for line in text.splitlines())
    text += top_k(element="bf16").replace("public @main", "private @f")
    lowered = hl.lower(text, target="litert")
    assert lowered.refused == ()
    assert "call @f" in lowered.text
    same(text, lowered, floats((3, 9)).astype(jnp.bfloat16))


WHOLE = target("npu", "sort", composites=["chlo.top_k"])


@pytest.mark.parametrize(
    ("text", "npu", "is_left"),
    [
        (top_k(), WHOLE, True),
        (top_k(returned="%i"), WHOLE, True),
        (top_k(returned="%v"), WHOLE, False),  # which a converter makes a sort of
        (top_k(), WITHOUT_BITS, True),  # its order is one of bits
        (top_k(element="i32"), WITHOUT_BITS, False),
        (top_k(), target("npu"), True),  # sorts are taken
    ],
)
def test_a_top_k_that_the_target_takes_stays(text, npu, is_left):
    """One that it takes whole, unless only values are read; and one that nothing could be made of."""
    lowered = hl.lower(text, target=npu)
    assert ("chlo.top_k" in lowered.text) is is_left
    assert "stablehlo.sort" not in lowered.text
