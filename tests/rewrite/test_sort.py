"""Sorts for targets that refuse them: the stable order, bit for bit as XLA's, by every strategy."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rewrites import assert_same as same
from rewrites import main, swept
from rule_examples import target

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.change import Outcome
from hlo_lower.facts.sort.sort_facts import SortStrategy, sort_strategies, stages_of

TARGET = target("npu", "sort")
BARE, WITHOUT_BITS = target("bare", "sort", "gather"), target("plain_floats", "sort", "bitcast_convert")
NETWORKS = (SortStrategy.NETWORK, SortStrategy.LOOPED_NETWORK)
ROUNDS = (SortStrategy.ROUNDS, SortStrategy.LOOPED_ROUNDS)
STRATEGIES = (SortStrategy.RANKS, *NETWORKS, *ROUNDS)
X = "tensor<6xf32>"


@pytest.fixture
def only(monkeypatch):
    """Takes a strategy that is to be the only one."""

    def choose(strategy):
        def chosen(*args, **kwargs):
            return [facts for facts in sort_strategies(*args, **kwargs) if facts.strategy is strategy]

        monkeypatch.setattr("hlo_lower.lowering.sort.sort_strategies", chosen)

    return choose


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
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, shape).astype(dtype)
    if dtype != "bool":
        values.reshape(-1)[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return values


def exported(function, *arguments):
    """A module in which jnp.sort and its like stand in place."""
    with jax.enable_x64(True):
        return hl.export(function, *arguments)


def assert_same(source, lowered, *arguments):
    """Both give the same bits, and nothing is sorted any more."""
    assert "stablehlo.sort" not in lowered.text
    same(source, lowered, *arguments)


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


@pytest.mark.parametrize(
    ("strategy", "npu"),
    swept(
        [
            (s, npu)
            for s in (SortStrategy.RANKS, *NETWORKS)
            for npu in (TARGET, BARE)
            if npu is TARGET or s not in NETWORKS[1:]
        ],
        *((SortStrategy.RANKS, TARGET), (SortStrategy.NETWORK, BARE), (SortStrategy.LOOPED_NETWORK, TARGET)),
    ),
)
def test_every_element_type(strategy, npu, only):
    """Keys are compared as the comparator says, ties stay in order, elements keep their bits; also without a gather."""
    only(strategy)
    shape = (5, 3)
    arguments = (
        *(floats(shape, dtype) for dtype in ("float32", jnp.bfloat16, "float64")),
        *(integers(shape, dtype) for dtype in ("int8", "uint32", "int64", "bool")),
        np.stack([floats(shape, seed=1), floats(shape, seed=2)], axis=-1).view("complex64")[..., 0],
    )
    source = exported(many_sorts, *arguments)
    lowered = hl.lower(source, target=npu)
    assert {re.search(r"\((\w+)\)$", note)[1] for note in lowered.notes} == {f"sort_to_{strategy.value}"}
    assert_same(source, lowered, *arguments)


@pytest.mark.parametrize("strategy", swept(STRATEGIES, SortStrategy.RANKS, *ROUNDS))
def test_only_the_rows_that_are_read_are_found(strategy, only):
    """Slices of a sort, of `jnp.sort` in a function of its own, and `top_k`: no tensor of the sorted shape is left."""
    only(strategy)
    x = floats((2, 11))

    def first(x):
        return jnp.sort(x)[1:, :3], jnp.argsort(x)[:, :2], jax.lax.top_k(x, 3), jax.lax.sort((x, -x))[1][:, :1]

    source = exported(first, x)
    lowered = hl.lower(source, target=TARGET)
    assert not re.search("call @(arg)?sort", lowered.text)
    assert lowered.notes[-1].endswith(f"(sort_to_{strategy.value})")
    assert_same(source, lowered, x)


def test_rows_from_the_middle(only):
    """The median of an odd number of rows is one row of them."""
    only(SortStrategy.RANKS)
    x = floats((5, 2))
    source = exported(lambda x: jax.lax.slice(jax.lax.sort(x, dimension=0), (2, 0), (3, 2)), x)
    lowered = hl.lower(source, target=TARGET)
    assert "tensor<1x1x5x2xi32>" in lowered.text
    assert_same(source, lowered, x)


def test_without_bits_canonical_floats_are_compared_as_they_are():
    """A target that bitcasts no floats gets JAX's comparator as NaN first, then by `<`; raw total orders are left."""
    x = floats((3, 9))
    source = exported(lambda x: (jnp.sort(x), jnp.argsort(x, axis=0, descending=True)), x)
    assert_same(source, hl.lower(source, target=WITHOUT_BITS), x)
    left = hl.lower(module_of(), target=WITHOUT_BITS)
    assert "stablehlo.sort" in left.text
    assert "a float is in order by its bits only" in left.notes[0]


@pytest.mark.parametrize("strategy", ROUNDS)
def test_rounds_without_bits(strategy, only):
    """What fills the place of a row that is gone may be a key, infinity."""
    only(strategy)
    x = np.array([np.inf, 1, np.nan, np.inf, -np.inf, np.nan], np.float32)
    source = exported(lambda x: jax.lax.slice(jnp.argsort(x, descending=False), (0,), (5,)), x)
    assert_same(source, hl.lower(source, target=WITHOUT_BITS), x)


@pytest.mark.parametrize("rows", [*range(2, 20), 31, 64, 100, 257])
def test_merge_exchange_sorts_any_number_of_rows(rows):
    """All sequences of zeros and ones are sorted for few rows, and so are permutations of many."""
    if rows <= 10:
        values = (np.arange(1 << rows)[:, None] >> np.arange(rows)) & 1
    else:
        values = np.stack([np.random.default_rng(seed).permutation(rows) for seed in range(20)])
    for stage in stages_of(rows):
        i = np.arange(rows - stage.distance)
        i = i[(i & stage.block != 0) == stage.is_odd]
        low, high = values[:, i], values[:, i + stage.distance]
        values[:, i], values[:, i + stage.distance] = np.minimum(low, high), np.maximum(low, high)
    assert (np.diff(values, axis=1) >= 0).all()


def module_of(compared="compare LT, %a, %b, TOTALORDER", dim=0, shape="6", stable="true"):
    """A sort of f32 whose comparator is a line."""
    x = f"tensor<{shape}xf32>"
    body = f"""%s = "stablehlo.sort"(%x) <{{dimension = {dim} : i64, is_stable = {stable}}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.{compared} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }}) : ({x}) -> {x}"""
    return main(f"%x: {x}", body, f"%s : {x}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (module_of("compare LT, %a, %b, FLOAT"), Code.COMPARATOR_NOT_READ),
        (module_of("compare LE, %a, %b, TOTALORDER"), Code.COMPARATOR_NOT_READ),
        (module_of(shape="?"), Code.NEEDS_SIZES),
        (module_of(shape="2000000000"), Code.MORE_THAN_I32),
        (module_of().replace("f32", "f8E4M3FN"), Code.KEY_NOT_READ),
    ],
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
    source = hl.export(lambda x: jnp.sort(x)[:2], jnp.zeros(6))
    lowered = hl.lower(source)
    assert lowered.notes == ()
    assert "call @sort" in lowered.text


def test_a_sort_that_names_no_dim_sorts_along_the_last_one():
    """As the specification has it."""
    text = module_of(shape="2x5").replace("dimension = 0 : i64, ", "")
    lowered = hl.lower(text, target=TARGET)
    assert "(sort_to_ranks)" in lowered.notes[0]
    same(text, lowered, floats((2, 5)))


def test_a_row_alone_is_in_order():
    """It is given back, whatever the comparator says; nothing is built."""
    lowered = hl.lower(module_of("compare GT, %a, %b, TOTALORDER", dim=1, shape="4x1"), target=TARGET)
    assert [line for line in lowered.text.splitlines() if "stablehlo." in line] == []
    assert lowered.notes[0].endswith("the operands (sort_to_operands)")


def test_long_axes_are_sorted_in_a_loop_where_there_is_one():
    """The text does not grow with the rows; a target without loops gets the network, however long."""
    lines = {}
    for rows in (200, 5000, 70000):
        text = module_of(shape=str(rows))
        lines[rows] = hl.lower(text, target=TARGET).text.count("\n")
    assert lines[200] > 300
    assert lines[5000] < lines[70000] < 130
    flat = target("flat", "sort", "while")
    lowered = hl.lower(module_of(shape="5000"), target=flat)
    assert "(sort_to_network)" in lowered.notes[0]


@pytest.mark.parametrize("shape", ["5", pytest.param("40", marks=pytest.mark.sweep)])
def test_it_is_verified(shape, judged_by_runs):
    """The region is judged equal by XLA; the interpreter, which knows no total order, is left out."""
    text = module_of(shape=shape)
    verdict = hl.verify(text, hl.lower(text, target=TARGET), level="regions")
    assert verdict.ok
    assert [region.judges for region in verdict.regions] == [("XLA",)]


@pytest.mark.parametrize("strategy", swept(STRATEGIES, SortStrategy.RANKS))
def test_ties_in_another_order_do_not_verify(strategy, only, monkeypatch):
    """A wrong lowering on purpose: positions that go down make it unstable."""
    only(strategy)
    source = hl.export(lambda x, y: [v[:2] for v in jax.lax.sort((x, y), num_keys=1)], jnp.zeros(6, int), jnp.zeros(6))
    monkeypatch.setattr(
        "hlo_lower.lowering.sort.SortLowering.ascending",
        property(lambda op: [*(key.is_ascending for key in op.keys), False]),
    )
    verdict = hl.verify(source, hl.lower(source, target=TARGET), level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]


def test_a_sharding_of_the_slice_goes_over():
    """Where only slices are replaced, what stood on them stands on what replaces them."""
    cut = f'%p = stablehlo.slice %s [0:2] {{mhlo.sharding = "{{replicated}}"}} : ({X}) -> tensor<2xf32>'
    text = module_of().replace(f"return %s : {X}", f"{cut} return %p : tensor<2xf32>")
    lowered = hl.lower(text.replace(f"-> ({X}) {{", "-> tensor<2xf32> {", 1), target=TARGET).text
    assert 'mhlo.sharding = "{replicated}"' in lowered
    assert "stablehlo.sort" not in lowered


def test_the_forms_are_tried_by_their_costs():
    """Few rows by pairs, many by the network; a few rows read of many in rounds."""
    rules = {rows: hl.lower(module_of(shape=str(rows)), target=TARGET).notes[0] for rows in (8, 250)}
    assert "(sort_to_ranks)" in rules[8]
    assert "(sort_to_network)" in rules[250]
    encoded = target("npu", "sort", legalize=True)  # until jax 0.10 a top_k is exported as a custom call
    top = hl.lower(hl.export(lambda x: jax.lax.top_k(x, 2), jnp.zeros(5000)), target=encoded)
    assert "(sort_to_rounds)" in top.notes[-1]


def top_k(k=2, element="f32", returned=("v", "i"), *, encoded=False):
    """A top_k of which some results are returned, as chlo or as older JAX and torch_xla export it."""
    types = {"v": f"tensor<3x{k}x{element}>", "i": f"tensor<3x{k}xi32>"}
    x, given = f"tensor<3x9x{element}>", f"({types['v']}, {types['i']})"
    call = f"chlo.top_k(%x, k = {k}) : {x} -> {given}"
    if encoded:
        call = f"stablehlo.custom_call @mhlo.topk(%x) {{mhlo.attributes = {{k = {k} : i64}}}} : ({x}) -> {given}"
    values, kinds = ", ".join(f"%{name}" for name in returned), ", ".join(types[name] for name in returned)
    return main(f"%x: {x}", f"%v, %i = {call}", f"{values} : {kinds}")


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


WHOLE = {"composites": ["chlo.top_k"]}


@pytest.mark.parametrize(
    ("text", "npu", "is_left"),
    [
        (top_k(), target("npu", "sort", **WHOLE), True),
        (top_k(returned="i"), target("npu", "sort", **WHOLE), True),
        (top_k(returned="v"), target("npu", "sort", **WHOLE), False),  # which a converter makes a sort of
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
