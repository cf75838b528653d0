"""Named ops of linalg: which there are, that a reader reads what was written, and that generic ops are the same."""

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ops.targets import target_of

SUMMED = {
    "ij,jk->ik": "linalg.matmul",
    "ij,kj->ik": "linalg.matmul indexing_maps",
    "ji,kj->ik": "linalg.matmul indexing_maps",
    "bij,bkj->bik": "linalg.batch_matmul indexing_maps",
    "bhqd,bhkd->bhqk": "linalg.contract",
    "bqhd,bkhd->bhqk": "linalg.contract",
    "bij,jk->bik": "linalg.contract",
    "bi,bi->b": "linalg.contract",
    "ij,j->i": "linalg.matvec",
    "i,j->ij": "linalg.generic",
}
SIZES = dict(zip("ijkbhqd", (4, 5, 3, 2, 3, 4, 5), strict=True))


def convolved(letters, x, kernel, **how):
    """A convolution with axes as XLA names them; the steps of the two spatial axes differ."""

    def function(a, b):
        return jax.lax.conv_general_dilated(a, b, padding="VALID", dimension_numbers=tuple(letters.split()), **how)

    return function, x, kernel


STEPS = {"window_strides": (1, 2), "rhs_dilation": (2, 1)}
CONVOLUTIONS = {
    "linalg.conv_2d_nhwc_hwcf": convolved("NHWC HWIO NHWC", (1, 8, 9, 3), (3, 2, 3, 4), **STEPS),
    "linalg.conv_2d_nchw_fchw": convolved("NCHW OIHW NCHW", (1, 3, 8, 9), (4, 3, 3, 2), **STEPS),
    "linalg.conv_1d_ncw_fcw": convolved("NCW OIW NCW", (2, 3, 9), (4, 3, 3), window_strides=(2,)),
    "linalg.conv_3d_ncdhw_fcdhw": convolved(
        "NCDHW OIDHW NCDHW", (1, 2, 4, 5, 6), (3, 2, 2, 1, 3), window_strides=(1, 2, 3)
    ),
    "linalg.conv_2d_ngchw_gfchw": convolved(
        "NCHW OIHW NCHW", (1, 4, 6, 6), (6, 2, 3, 2), window_strides=(1, 2), feature_group_count=2
    ),
}


def pooled(op, first, x, window, steps, padding="SAME"):
    """A reduction of windows."""
    return lambda a: jax.lax.reduce_window(a, first, op, window, steps, padding), x


STRIDES = (1, 1, 2, 1), (1, 1, 1, 2)
POOLINGS = {
    "linalg.pooling_nhwc_max": pooled(jax.lax.max, -jnp.inf, (1, 8, 9, 3), (1, 3, 2, 1), (1, 1, 2, 1)),
    "linalg.pooling_nchw_max": pooled(jax.lax.max, -jnp.inf, (1, 3, 8, 9), (1, 1, 3, 2), (1, 1, 2, 1)),
    "linalg.pooling_nchw_sum": pooled(jax.lax.add, 0.0, (1, 3, 8, 9), (1, 1, 3, 2), (1, 1, 2, 1)),
    "linalg.pooling_nwc_min": pooled(jax.lax.min, jnp.inf, (2, 9, 3), (1, 3, 1), (1, 2, 1)),
}


def summed(spec):
    """An einsum and the shapes of its operands."""
    operands = spec.split("->")[0].split(",")
    return (lambda a, b: jnp.einsum(spec, a, b), *(tuple(SIZES[letter] for letter in one) for one in operands))


CASES = {spec: (name, *summed(spec)) for spec, name in SUMMED.items()}
CASES |= {name: (name, *case) for name, case in chain(CONVOLUTIONS.items(), POOLINGS.items())}


def both_forms(source):
    """The module in named ops and in generic ones."""
    return [hl.lower(source, target="linalg", linalg_ops=form) for form in ("named", "generic")]


@pytest.fixture(scope="module")
def cases():
    """The module of all cases in both forms, its arguments, and what XLA gives: small whole numbers, of which every
    order gives the same sums."""
    rng = np.random.default_rng(0)
    arguments = [rng.integers(-4, 5, s).astype(np.float32) for _, _, *shapes in CASES.values() for s in shapes]

    def function(*arguments):
        left = iter(arguments)
        return [case[1](*(next(left) for _ in case[2:])) for case in CASES.values()]

    return (
        both_forms(hl.export(function, *arguments)),
        arguments,
        [np.asarray(x) for x in jax.jit(function)(*arguments)],
    )


def read_again(text):
    """A text of linalg read by jaxlib, with regions and maps that the text leaves out."""
    context = mlir.make_context()
    with mlir.active(context):
        empty = mlir.parse_module("module {}", context)
        mlir.run_pass(empty.operation, "builtin.module(stablehlo-legalize-to-linalg)")  # it loads the dialect
        return mlir.parse_module(text, context).operation.get_asm(print_generic_op_form=True)


def without_notes(text):
    """A text without the maps that MLIR notes down beside an op's own, and without empty attributes."""
    return re.sub(r"( attrs = )? \{linalg\.memoized_indexing_maps = \[[^]]*\]\}|arg_attrs = [^\]]*\], ", "", text)


def test_what_has_a_name_is_written_by_it(cases):
    """Products, convolutions and poolings in several orders of axes have their names; an outer product has none."""
    named, generic = (one.text for one in cases[0])
    for name, *_ in CASES.values():
        assert re.search(rf"{name}\b", named), name
    assert named.count("linalg.generic") == 1
    assert set(re.findall(r"linalg\.[a-z]\w*(?= [{i(])", generic)) == {"linalg.generic"}


def test_a_reader_makes_of_the_text_what_was_written(cases):
    """Regions that a name stands for are those that the ops had: text and bytecode are the same module."""
    for one in cases[0]:
        assert without_notes(read_again(one.text)) == without_notes(read_again(one.bytecode()))


def test_a_softmax_is_one_op():
    """A softmax along any axis leaves as `linalg.softmax`, also the composite that `hlo-lower raise` made of it; one of
    other rows' maxima, or of f16, as plain ops, and so does each where generic ops are asked for."""

    def function(x, y):
        far = jnp.exp(x - x.max()) / jnp.exp(x - x.max()).sum(1, keepdims=True)
        return jax.nn.softmax(x, axis=-1), jax.nn.softmax(x, axis=0), far, jax.nn.softmax(y)

    x = np.ones((4, 8), np.float32)
    raised = hl.raise_named(hl.export(jax.nn.softmax, x), target="linalg").text
    assert 'composite "linalg.softmax"' in raised
    for source, axes in ((hl.export(function, x, x.astype(np.float16)), "10"), (raised, "1")):
        named, generic = (one.text for one in both_forms(source))
        assert re.findall(r"linalg\.softmax dimension\((\d)\)", named) == [*axes]
        assert "linalg.softmax dimension" not in generic


SHIFTED = {
    "a softmax": (lambda x: x.max(-1), lambda e: e.sum(-1), 1),
    "a maximum of columns": (lambda x: x.max(0), lambda e: e.sum(-1), 0),
    "a sum of columns": (lambda x: x.max(-1), lambda e: e.sum(0), 0),
    "a product": (lambda x: x.max(-1), lambda e: e.prod(-1), 0),
    "a minimum": (lambda x: x.min(-1), lambda e: e.sum(-1), 0),
    "a maximum of at least 0": (lambda x: x.max(-1, initial=0.0), lambda e: e.sum(-1), 0),
    "a sum from 1": (lambda x: x.max(-1), lambda e: jax.lax.reduce(e, np.float32(1), jax.lax.add, (1,)), 0),
    "a maximum of another": (lambda x: jnp.tanh(x).max(-1), lambda e: e.sum(-1), 0),
    "a sum of another": (lambda x: x.max(-1), lambda e: jnp.tanh(e).sum(-1), 0),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_a_softmax_of_open_sizes_is_one_op(name):
    """What is nearly one is not."""
    most, total, count = SHIFTED[name]
    n = jax.export.symbolic_shape("n")[0]

    def function(x):
        e = jnp.exp(x - most(x)[:, None])
        return e / total(e)[:, None]

    exported = hl.export(function, jax.ShapeDtypeStruct((n, n), np.float32))
    named, generic = (one.text for one in both_forms(exported))
    assert named.count("linalg.softmax dimension(1)") == count
    assert "linalg.softmax" not in generic


def block(x, w, k, v):
    """A norm, and an attention to two keys and values."""
    y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", y, k), -1), v)


BLOCK = [np.random.default_rng(2).normal(size=shape).astype(np.float32) for shape in ((2, 3, 4, 8), (8,))]
BLOCK += [BLOCK[0][:, :, :2], BLOCK[0][:, :, 1:3]]


def test_groups_are_functions_that_keep_what_is_known():
    """A call and its function have name, roles and attributes of a norm and an attention, whose softmax is linalg's;
    an option makes plain ops of them, and so do generic ops."""
    source = hl.export(block, *BLOCK)
    text = hl.lower(source, target="linalg").text
    norm = r'axes = \[3\], epsilon = 9.9\S+ : f64, name = "rms_norm", operands = \["x", "weight"\], weight = "plain"'
    attention = r'layout = "\S+", .*name = "attention", operands = \["query", "key", "value"\], scale = 1'
    for told in (norm, attention):
        assert re.search(rf"call @hl\.\w+\(.*hl\.named = {{.*{told}", text), told
        assert re.search(rf"func private @hl\.\w+\(.*hl\.named = {{.*{told}", text), told
    assert text.count("linalg.softmax") == 1
    for options in ({"linalg_groups": "inlined"}, {"linalg_ops": "generic"}):
        plain = hl.lower(source, target="linalg", **options).text
        assert not re.search(r"hl\.|call", plain)
        assert plain.count("linalg.softmax") == (options != {"linalg_ops": "generic"})


def test_two_functions_that_are_called_alike_have_names_of_their_own():
    """Norms of other shapes are two functions, and a third norm is a call of the first one."""

    def function(x, y, w):
        return [block(one, w, one, one) for one in (x, y, x + 1)]

    text = hl.lower(hl.export(function, BLOCK[0], BLOCK[0][:1], BLOCK[1]), target="linalg").text
    assert re.findall(r"private @(hl\.rms_norm\w*)", text) == ["hl.rms_norm", "hl.rms_norm_1"]
    assert re.findall(r"call @(hl\.rms_norm\w*)", text) == ["hl.rms_norm", "hl.rms_norm_1", "hl.rms_norm"]


@pytest.mark.sweep
def test_functions_and_plain_ops_compute_the_same():
    """On IREE a module has the same results in both, within the rounding of sums."""
    from iree_runs import run_on_iree

    expected = block(*BLOCK)
    for groups in ("outlined", "inlined"):
        [found] = run_on_iree(hl.lower(hl.export(block, *BLOCK), target="linalg", linalg_groups=groups).text, BLOCK)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_kernel_of_another_layout_is_turned():
    """jaxlib's loops over OHWI sum channels outermost, `linalg.conv_2d_nhwc_fhwc` innermost: the kernel becomes HWIO. A
    layout in which neither input nor result has its batch first has no name, and stays generic."""
    texts = []
    for letters, *shapes in (
        ("NHWC OHWI NHWC", (1, 8, 9, 3), (4, 3, 2, 3)),
        ("CHWN IHWO CHWN", (3, 8, 9, 1), (3, 3, 2, 4)),
    ):
        function, *given = convolved(letters, *shapes, window_strides=(1, 1))
        texts.append(both_forms(hl.export(function, *(np.ones(shape, np.float32) for shape in given)))[0].text)
    assert ["linalg.conv_2d_nhwc_hwcf" in text for text in texts] == [True, False]
    assert ["linalg.generic" in text for text in texts] == [False, True]


def test_generic_is_what_mlir_makes_of_named(cases):
    """`--linalg-generalize-named-ops` of the named form is the generic form, letter by letter."""
    from iree_runs import generalized, printed

    named, generic = (one.text for one in cases[0])
    assert without_notes(generalized(named)) == printed(generic)


T = "tensor<4xf32>"
BINARY = f"ins(%a, %b : {T}, {T}) outs(%a : {T})"
QUOTED = """"linalg.elementwise"(%a, %b, %a) <{
    indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
    kind = #linalg.elementwise_kind<add>, operandSegmentSizes = array<i32: 2, 1>}> ({
    ^bb0(%x: f32, %y: f32, %out: f32):
      %sum = arith.addf %x, %y : f32
      linalg.yield %sum : f32
    })"""
FORMS = {  # whether jaxlib reads it, whether IREE does
    f"linalg.map {{ arith.addf }} {BINARY}": (True, True),
    f"linalg.add {BINARY} -> {T}": (True, False),
    f"linalg.elementwise kind=#linalg.elementwise_kind<add> {BINARY} -> {T}": (True, False),
    f"linalg.elementwise <add> {BINARY} -> {T}": (False, True),
    f"{QUOTED} : ({T}, {T}, {T}) -> {T}": (True, True),
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.split(" ")[0])
def test_elementwise_ops_have_one_plain_form_that_both_read(form):
    """A map is read by jaxlib's MLIR and by IREE's; a name only by one of them, or written with its region."""
    from iree_runs import printed

    text = f"func.func @main(%a: {T}, %b: {T}) -> {T} {{ %r = {form} return %r : {T} }}"

    def is_read(reader, *errors):
        try:
            reader(text)
        except errors:
            return False
        return True

    assert (is_read(read_again, ValueError, mlir.PassError), is_read(printed, AssertionError)) == FORMS[form]


CORPUS = sorted((Path(__file__).parents[3] / "shared" / "corpus" / "modules").glob("*/*.mlir"))


@pytest.mark.sweep
@pytest.mark.skipif(not CORPUS, reason="the corpus is not there")
def test_generic_is_what_mlir_makes_of_named_in_the_corpus():
    """So it is in each module that is linalg in the end, a softmax in plain ops in both."""
    from iree_runs import generalized, printed

    plain = replace(target_of("linalg"), named=(), composites=())
    complete, other = 0, []
    for path in CORPUS:
        how = {"target": plain, "linalg_groups": "inlined", "keep_unsupported": True}
        both = [hl.lower(path, linalg_ops=form, **how) for form in ("named", "generic")]
        if both[0].linalg.is_complete:
            complete += 1
            if without_notes(generalized(both[0].text)) != printed(both[1].text):
                other.append(str(path))
    assert complete > 200
    assert other == []


@pytest.mark.sweep
def test_both_forms_give_the_bits_of_xla(cases):
    """On IREE all cases give what XLA gives: strides, dilations and axes are those of the module."""
    from iree_runs import run_on_iree

    both, arguments, expected = cases
    for one in both:
        for name, wanted, found in zip(CASES, expected, run_on_iree(one.text, arguments), strict=True):
            assert np.array_equal(wanted, found), name


@pytest.mark.sweep
def test_a_wrong_step_is_found():
    """The comparison can fail: strides in the place of dilations are other windows."""
    from iree_runs import run_on_iree

    x = np.arange(72, dtype=np.float32).reshape(1, 1, 8, 9)
    right, wrong = (pooled(jax.lax.max, -jnp.inf, x, (1, 1, 3, 2), steps, "VALID")[0] for steps in STRIDES)
    expected, other = right(x), wrong(x)
    text = hl.lower(hl.export(right, x), target="linalg").text
    sizes = ["x".join(map(str, result.shape)) for result in (expected, other)]
    moved = text.replace("dense<[2, 1]>", "dense<[1, 2]>").replace(*sizes)
    assert moved != text
    assert np.array_equal(run_on_iree(text, [x])[0], expected)
    assert not np.array_equal(run_on_iree(moved, [x])[0].ravel()[:20], np.asarray(expected).ravel()[:20])


@pytest.mark.sweep
@pytest.mark.parametrize("axis", [1, 0])
def test_named_and_generic_softmax_have_the_same_bits(axis):
    """IREE computes the op as it computes the plain ops, rows without a finite maximum included."""
    from iree_runs import compiled

    numbers = np.random.default_rng(1).normal(size=(16, 80)).astype(np.float32) * 4
    rows, columns = np.indices(numbers.shape)
    tried = [
        *(numbers, np.where(columns == 3, np.inf, numbers), np.where(rows == 2, -np.inf, numbers)),
        *(np.where(columns == 7, np.nan, numbers), np.where(numbers > 0, np.float32(0.0), np.float32(-0.0))),
    ]
    both = both_forms(hl.export(lambda x: jax.nn.softmax(x, axis=axis), numbers))
    named, generic = (compiled(one.text) for one in both)
    for x in tried:
        found, other = (run([x.astype(np.float32)])[0] for run in (named, generic))
        assert np.array_equal(found, other, equal_nan=True)
        np.testing.assert_allclose(found, jax.nn.softmax(x, axis=axis), rtol=1e-5, atol=1e-7)
