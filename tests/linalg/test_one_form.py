"""One form of linalg for one meaning, whoever wrote it."""

import random
import re

import jax
import numpy as np
import pytest
from open_spellings import OPEN_GROUPS
from random_images import Images
from random_layouts import Layouts
from random_open import OpenProgram
from spellings import GROUPS
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.linalg.one_form import inline_small, one_form
from hlo_lower.verify import run
from hlo_lower.verify.run import Executable


def source_of(arguments, spelled):
    """A spelling as a module of StableHLO; of open sizes without what JAX asserts of them."""
    if not callable(spelled):
        body, more = spelled if isinstance(spelled, tuple) else (spelled, "")
        return module(arguments, body, more=more)
    names = iter("abcdef")
    kinds = re.findall(r": (\S+)x([a-z]+\d+)(?:,|$)", re.sub(r"\?", lambda _: next(names), arguments))
    given = [(sizes.replace("x", ", "), mlir.dtype_of(element)) for sizes, element in kinds]
    if "?" in arguments:
        return exported(spelled, given)
    shapes = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(sizes), element) for sizes, element in given]
    return jax.jit(spelled, keep_unused=True).lower(*shapes).as_text()


def exported(function, given):
    """A function for arguments of these sizes, some of them letters, and types."""
    scope = jax.export.SymbolicScope()
    shapes = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(one, scope=scope), element) for one, element in given]
    graph = read(jax.export.export(jax.jit(function))(*shapes).mlir_module())
    return re.sub(r".*@shape_assertion.*\n", "", str(graph.module))


def in_linalg(source, **options):
    """The functions of a module in linalg and their maps, without what only its writer says."""
    text = hl.lower(source, target="linalg", **options).text
    return re.sub(r'\((\S+) \{jax\.result_info = "[^"]*"\}\)', r"\1", re.sub(r"module .*", "module {", text))


def but_of_old_jax(names, failing, why):
    """Cases, of which one fails on the releases before 0.10."""
    mark = pytest.mark.xfail(jax.__version_info__ < (0, 10), reason=why, strict=True)
    return [pytest.param(name, marks=mark if name == failing else ()) for name in names]


ONE_OF_TWO = "JAX 0.9 writes a product of which one factor has a dim of extent 1 of its own"

STRIDES = "the jaxlib of JAX 0.9 writes `strides` that its own verifier rejects"


@pytest.mark.parametrize("name", but_of_old_jax(GROUPS, "scores of one sequence", ONE_OF_TWO))
def test_a_meaning_has_one_form(name):
    """What the writers spell is different modules, and the same text in linalg, letter by letter."""
    arguments, spelled = GROUPS[name]
    sources = {writer: source_of(arguments, one) for writer, one in spelled.items()}
    texts = {writer: in_linalg(source) for writer, source in sources.items()}
    first = next(iter(texts.values()))
    assert {writer: text for writer, text in texts.items() if text != first} == {}, first


@pytest.mark.parametrize("name", but_of_old_jax(OPEN_GROUPS, "convolution, channels last", STRIDES))
def test_a_meaning_has_one_form_in_open_sizes(name):
    """Letter by letter, as for known ones."""
    arguments, spelled = OPEN_GROUPS[name]
    sources = {writer: source_of(arguments, one) for writer, one in spelled.items()}
    texts = {writer: in_linalg(source) for writer, source in sources.items()}
    first = next(iter(texts.values()))
    assert {writer: text for writer, text in texts.items() if text != first} == {}, first


@pytest.mark.few(2)
@pytest.mark.parametrize("name", OPEN_GROUPS)
def test_open_sizes_compute_what_they_did(name):
    """On XLA at some size, NaN and zeros of both signs among the numbers; of products whole ones."""
    arguments, spelled = OPEN_GROUPS[name]
    for one in spelled.values():
        graph = read(source_of(arguments, one))
        before = to_text(graph)
        inline_small(graph)
        one_form(graph)
        shapes = [value.shape for value in graph.main.body.arguments]
        sizes = {f"arg{k}.{d}": 3 for k, shape in enumerate(shapes) for d, size in enumerate(shape) if size is None}
        rows = [hl.bind(text, sizes) for text in (before, to_text(graph))]
        rng = np.random.default_rng(0)
        more = [] if "linear" in name else [np.nan, np.inf]
        given = [some(rng, value, more=more) for value in rows[0].main.body.arguments]
        expected, actual = (Executable(to_text(row), "exact").run(given)[0] for row in rows)
        assert np.array_equal(expected, actual, equal_nan=True)


def some(rng, value, *, more):
    """Whole numbers, zeros of both signs, and more; truth values."""
    if value.element_type == "i1":
        return rng.integers(0, 2, value.static_shape).astype(bool)
    return rng.choice(np.float32([-3, -1, -0.0, 0.0, 1, 2, 5, *more]), value.static_shape)


def both(program):
    """What a random program gives as it was written, and in its one form; and whether that is another text."""
    graph = read(jax.jit(program, keep_unused=True).lower(*program.given).as_text())
    before = to_text(graph)
    one_form(graph)
    after = to_text(graph)
    return [Executable(text, "exact").run(program.given) for text in (before, after)], before != after


@pytest.mark.few(2)
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_random_programs_compute_what_they_did(seed, products):
    """NaN, infinities and zeros of both signs included; where there are products, of whole numbers."""
    rng = random.Random(seed)
    for _ in range(6):
        program = Layouts(rng, products=products)
        (expected, actual), is_other = both(program)
        assert is_other
        for one, other in zip(expected, actual, strict=True):
            assert np.array_equal(one, other, equal_nan=True), program.seed
            assert products or np.array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(one)]), (
                program.seed
            )


ZERO = "%z = constant 0.0 : 4xf32; "
NEAR_MISSES = {  # what only looks like one of the forms: other numbers of NaN, of zeros, or of what is rounded
    "x > 0 ? x : 0": ZERO + "%p = compare GT, %x, %z; %r = select %p, %x, %z",
    "x >= 0 ? x : 0": ZERO + "%p = compare GE, %x, %z; %r = select %p, %x, %z",
    "x < 0 ? 0 : x": ZERO + "%p = compare LT, %x, %z; %r = select %p, %z, %x",
    "x <= 0 ? -0 : x": ZERO + "%n = constant -0.0 : 4xf32; %p = compare LE, %x, %z; %r = select %p, %n, %x",
    "x + 0": ZERO + "%r = add %x, %z",
    "x - -0": "%n = constant -0.0 : 4xf32; %r = subtract %x, %n",
    "max(min(x, -0), 0)": ZERO + "%n = constant -0.0 : 4xf32; %m = minimum %x, %n; %r = maximum %m, %z",
    "max(min(x, 1), 2)": "%a = constant 1.0 : 4xf32; %b = constant 2.0 : 4xf32; "
    "%m = minimum %x, %a; %r = maximum %m, %b",
    "x rounded": "%h = convert %x -> 4xbf16; %r = convert %h -> 4xf32",
    "1 / (exp(x) + 1)": "%o = constant 1.0 : 4xf32; %e = exponential %x; %s = add %e, %o; %r = divide %o, %s",
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_is_another_function_stays(name):
    """No op of it goes, and none becomes a maximum or a logistic: XLA itself drops x + 0, so the ops are counted."""
    graph = read(module("%x: 4xf32", NEAR_MISSES[name]))
    before = names_in(graph)
    one_form(graph)
    assert names_in(graph) == before


def test_a_product_of_what_is_cut_otherwise_stays():
    """Both factors are reshaped to 12, of 2 x 6 and of 3 x 4: no dims of theirs are summed with each other."""
    text = module(
        "%a: 5x2x6xf32, %b: 3x4x7xf32",
        "%x = reshape %a -> 5x12xf32; %y = reshape %b -> 12x7xf32; "
        "%r = dot_general %x, %y, contracting_dims = [1] x [0] -> 5x7xf32",
    )
    graph = read(text)
    one_form(graph)
    assert names_in(graph) == names_in(read(text))
    given = [np.arange(60, dtype=np.float32).reshape(5, 2, 6), np.arange(84, dtype=np.float32).reshape(3, 4, 7)]
    [found] = Executable(to_text(graph), "exact").run(given)
    assert np.array_equal(found, given[0].reshape(5, 12) @ given[1].reshape(12, 7))


def names_in(graph):
    """The ops of a module, by name."""
    return sorted(node.name for node in graph.main.body.nodes)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(40))
def test_random_images_compute_what_they_did(seed):
    """Convolutions, reductions, windows and pads of whole numbers, whose sums no order changes."""
    run._made_once.cache_clear()  # a process may have 65,530 maps of memory, and each of these has hundreds
    program = Images(random.Random(seed))
    (expected, actual), _ = both(program)
    for one, other in zip(expected, actual, strict=True):
        assert np.array_equal(one, other), program.seed


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_of_open_sizes_compute_what_they_did(seed):
    """Of whole numbers, in the one form and bound to sizes after it, which may be 1 or equal."""
    run._made_once.cache_clear()
    rng = random.Random(seed)
    for _ in range(4):
        assert_same_when_bound(OpenProgram(rng), {"a": rng.choice((1, 2, 3, 4)), "b": rng.choice((1, 2, 5))})


def assert_same_when_bound(program, sizes):
    """What a program of open sizes gives for some, as it was written and in its one form."""
    graph = read(exported(program, [(spec, np.float32) for spec in program.specs]))
    before = to_text(graph)
    inline_small(graph)
    one_form(graph)
    bound = {f"arg{k}.{n}": sizes[one] for k, n, one in opened(program.specs) if one in sizes}
    given = program.given(sizes)
    rows = [Executable(to_text(hl.bind(text, bound)), "exact").run(given) for text in (before, to_text(graph))]
    for one, other in zip(*rows, strict=True):
        assert np.array_equal(one, other), program.seed


def opened(specs):
    """Each size of arguments: its argument, its dim, and what it is."""
    return [(k, n, one) for k, spec in enumerate(specs) for n, one in enumerate(spec.split(", "))]


BOUNDED = "tensor<?x8xf32, #stablehlo.bounds<4, ?>>"
BOUNDED_CLIP = f"""func.func public @main(%x: {BOUNDED}) -> {BOUNDED} {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.constant dense<6.0> : tensor<f32>
  %r = stablehlo.clamp %z, %x, %y : (tensor<f32>, {BOUNDED}, tensor<f32>) -> {BOUNDED}
  return %r : {BOUNDED}
}}"""


def test_a_bounded_dim_is_an_open_one():
    """No type names a bound, which is StableHLO's, and the report says how many did."""
    lowered = hl.lower(BOUNDED_CLIP, target="linalg")
    arguments, spelled = OPEN_GROUPS["clip"]
    assert in_linalg(BOUNDED_CLIP) == in_linalg(module(arguments, spelled["jnp"]))
    assert "stablehlo.bounds" in dict(lowered.linalg.removed)
