"""Each law of an op says of an element what XLA computes: its terms, evaluated at random places of small tensors."""

import inspect
import re
import types
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("z3")

from evaluated import Evaluated, NotEvaluatedError, bits_of
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.testing.fuzz.case import case_of_seed
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.sensitivity import reference
from hlo_lower.verify.judges.xla_defects import why_xla_errs_in
from hlo_lower.verify.pull import congruence, convolving, elementwise, floats, folding, loops, moving, prover, sorting
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.derive import PULLS, _law
from hlo_lower.verify.pull.prover import Prover
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import CannotRunError, Executable, read_signature

SEEDS = (1, 2, 3, 5, 6, 7, 26)

XLA_IS_NO_JUDGE = (
    "returns the narrow type of a promoting region",
    "builds its bounds in a narrow index type (openxla/xla#48718)",  # it writes beyond its memory: the process may end
)

DRAWS = 5
PLACES = 16
"""Places of a result that are looked at."""

FOLDER = Path(__file__).parent / "operations"
MODULES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.mlir"))}
DYNAMIC = (FOLDER.parent / "dynamic.mlir").read_text()
"""What is looked at at several sizes (`test_sizes.py`)."""
HOW = {"": {"chain": 1}, "written out": {"chain": 32}, "any": {"chain": 1, "order": "any"},
       "finite first": {"chain": 1, "order": "finite first"},
       "reassociated": {"chain": 1, "order": "any", "reassociated": True}}  # fmt: skip
"""Steps of a fold that are written out, the order in which elements are combined, and whether sums are split."""
FOLDS = {"folding": HOW, "windows": HOW, "numbered": ("", "any"),
         "one_hot": ("", "finite first"), "infinities": ("", "finite first"),
         "sorts": ("written out", "any"), "loops": ("written out",), "tiles": ("any", "reassociated"),
         "layers": ("", "any"), "halves": ("", "reassociated")}  # fmt: skip


def drawn(aval, rng):
    """An array in which the ends of the type, 0 and small numbers are frequent."""
    if aval.dtype == np.bool_:
        return rng.integers(0, 2, aval.shape).astype(bool)
    if aval.dtype.kind not in "iu":
        return (rng.integers(-8, 9, aval.shape) / 4).astype(aval.dtype)
    info = np.iinfo(aval.dtype)
    ends = rng.choice(np.array([info.min, info.max, 0, 1, 2, 7], aval.dtype), aval.shape)
    small = rng.integers(-3 if info.min else 0, 6, aval.shape)
    return np.where(rng.random(aval.shape) < 0.3, ends, small).astype(aval.dtype)


def _is_nan(bits, dtype):
    told = np.array(bits, f"u{dtype.itemsize}").view(dtype)
    return told != told


def wrong_elements(
    text, given=(), rounding="unfused", law=_law, run=None, oob="xla", order="row-major", again=False, **how
):
    """Yield the elements of which the laws say something else than XLA, or `run`, computes on drawn or given arguments.

    What is combined in any order may differ in the last bits. With `again` each element was asked for at another place
    before, so that it is found at variables.
    """
    program = Program(mlir.parse_module(text))
    prover = Prover((program, program), law, seconds=60, oob=oob, order=order, **how)
    terms = []
    for value in program.entries["main"].returned:
        for name in ("q", "p") if again else ("p",):
            term = prover.element(0, value, prover.positions.place(name, prover.type_of(0, value)[0]))
        terms.append(term)
    run, avals = run or Executable(text, rounding).run, read_signature(program.raw).arguments
    rng = np.random.default_rng(0)
    for inputs in given or [[drawn(aval, rng) for aval in avals] for _ in range(DRAWS)]:
        evaluated = Evaluated(prover, inputs)
        for number, (expected, term) in enumerate(zip(run(inputs), terms, strict=True)):
            places = list(np.ndindex(*expected.shape))
            for at in [places[k] for k in rng.permutation(len(places))[:PLACES]]:
                dims = enumerate(zip(at, expected.shape, strict=True))
                known, here = evaluated(term, {f"p{d} of {n}": k for d, (k, n) in dims}), expected[at]
                wanted = bool(here) if expected.dtype == bool else bits_of(here, term.size())
                if order != "row-major" and expected.dtype.kind == "f":
                    told = np.array(known, f"u{expected.dtype.itemsize}").view(expected.dtype)
                    known = wanted if np.isclose(told, here, rtol=1e-5, atol=0) else known
                if here != here:  # whatever its bits are
                    known = wanted if expected.dtype.kind == "c" or _is_nan(known, expected.dtype) else known
                if known != wanted:
                    yield number, at, here, known


LONG = {("one_hot", ""): pytest.mark.sweep}
"""What takes long, and is a fold in row-major order as others are."""


@pytest.mark.parametrize(
    ("name", "how"),
    [pytest.param(n, how, marks=LONG.get((n, how), ())) for n in MODULES for how in FOLDS.get(n, ("",))],
)
def test_a_law_says_what_xla_computes(name, how):
    """At every place of the results: folds as folds, written out, and in any order."""
    rounding = "unfused" if name.startswith("floats") else "quick"
    assert list(wrong_elements(MODULES[name], rounding=rounding, **HOW[how])) == []


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_an_extreme_is_nan_where_one_is(op):
    """Of many floats; XLA loses some NaN on CPU, so that NumPy says what is right."""
    body = f"%r = reduce(%x init: %z) applies stablehlo.{op} across dimensions = [1]"
    text = module("%x: 4x40xf32, %z: f32", body)
    program = Program(mlir.parse_module(text))
    prover = Prover((program, program), _law, seconds=60, oob="xla", chain=1, order="any")
    term = prover.element(0, program.entries["main"].returned[0], prover.positions.place("p", (4,)))
    x = np.random.default_rng(0).integers(-8, 9, (4, 40)).astype(np.float32)
    x[1, 7], x[2, 0], x[2, 39] = np.nan, -np.nan, np.inf
    first = np.float32(-3 if op == "maximum" else 3)
    evaluated = Evaluated(prover, [x, first])
    for row, expected in enumerate(getattr(np, op)(getattr(np, op).reduce(x, axis=1), first)):
        told = evaluated(term, {"p0 of 4": row})
        assert np.array_equal(np.uint32(told).view(np.float32), expected, equal_nan=True), row


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(200) if seed not in SEEDS)]
)
def test_a_scatter_is_what_xla_and_the_specification_compute(seed):
    """Scatters of every form of dimension numbers, with indices around every edge, under both policies: by the
    reference, and by XLA, which gives the narrow type of a region that computes in a wider one."""
    case = case_of_seed(seed)
    if len(case.operands) > 1:
        pytest.skip("several accumulators")
    given, text = arguments_of(case, 0), module_text([case])
    judges = [{"oob": oob, "run": lambda _, oob=oob: reference(case, given, oob)} for oob in ("spec", "xla")]
    if why_xla_errs_in(mlir.parse_module(text)) not in XLA_IS_NO_JUDGE:
        judges.append({})
    try:
        for order in ("row-major", "any", "finite first"):
            for judge in judges:
                wrong = wrong_elements(text, [given.all], chain=1, order=order, again=seed % 2 == 0, **judge)
                assert list(wrong) == []
    except (Beyond, CannotRunError, NotEvaluatedError) as reason:
        pytest.skip(f"refused by the law, by XLA, or by the evaluator: {reason}")


def test_each_law_is_tested():
    """Each op of the table stands in one of the modules; of elementwise ops those that are more than a symbol."""
    named = set(re.findall(r"(?:stablehlo|chlo)\.\w+", " ".join([*MODULES.values(), DYNAMIC]))) | {"stablehlo.scatter"}
    symbols = {op for op, law in PULLS.items() if law is elementwise.elementwise}
    assert {op for op in PULLS if op not in named | symbols} == set()


BROKEN = {
    "moving": [
        (moving, "at.positions.reshape(at.place, shape, to)", "[number(0)] * len(to)"),
        (moving, "number(a) + term * number(s)", "number(a) + term"),
        (moving, "extent(n) - number(1) - t", "extent(n) - t"),
        (moving, 'enumerate(integers(at, "permutation"))', 'enumerate(integers(at, "permutation")[::-1])'),
        (moving, "is_one(size) else at.place[dim]\n", "True else at.place[dim]\n"),
        (moving, "at.place[dim] - begin", "at.place[dim]"),
        (moving, "z3.URem(term, number(step)) == 0, ", ""),
        (moving, "term - number(low) for", "term + number(low) for"),
    ],
    "slices": [
        (moving, "room = [extent(n) - number(m) for", "room = [extent(n) for"),
        (moving, "t - a) for t, a", "t) for t, a"),
        (moving, "[(a, t) for a, t, m in", "[(a, t + 1) for a, t, m in"),
    ],
    "read_back": [
        (moving, "if all(a.eq(b) for a, b in zip(begins, starts, strict=True)):", "if begins:"),
        (moving, " and is_like(maker.inputs[0], shape):", ":"),
        (moving, "at.value(maker.inputs[0], at.place)", "at.operand(0)"),
        (moving, "if maker.name in AT_THEIR_PLACE and all", "if all"),
    ],
    "gathering": [
        (moving, "extent(size) - extent(sizes[dim])", "extent(size)"),
        (moving, "batch[axis - (numbers.index_vector_dim < axis)]", "batch[0]"),
        (moving, "[*at.place[:batch], *at.place[dim:end]]", "[*at.place[:batch], *at.place[dim:end]][::-1]"),
    ],
    "bits": [
        (elementwise, "terms[::-1]", "terms"),
        (elementwise, "chosen_at(pieces, at", "chosen_at(pieces[:1], at"),
        (elementwise, "(yield at.operand(0, at.place[:-1]))", "(yield at.operand(0, [number(0)]))"),
        (floats, "term ^ magnitude, term)", "-term, term)"),
    ],
    "floats": [
        (elementwise, "at.operand(1), at.operand(2)))", "at.operand(1), at.operand(1)))"),
        (elementwise, '"multiply", [args[0], args[0]]', '"add", [args[0], args[0]]'),
        (floats, 'return self.float("add", [args[0], self.negate(args[1], element)], element)', "return args[0]"),
        (floats, "z3.Extract(element.bits - 1, element.bits - 1, term) == 1, -", "z3.BoolVal(False), -"),
        (floats, 'in ("maximum", "minimum") and args[0].eq(args[1]):', 'in ("maximum", "minimum"):'),
    ],
    "folding": [
        (folding, "iter(at.place[len(batching[0]) :])", "iter(at.place)"),
        (folding, "inner[d] if term is None else term", "number(0) if term is None else term"),
    ],
    "windows": [
        (folding, "outer * number(a)", "outer"),
        (folding, "inner * number(b)", "inner"),
        (folding, " - number(low) for", " for"),
        (folding, "undilate(moved, shape, holes)", "undilate(moved, shape, (1,) * len(shape))"),
        (folding, "asks = here.value(value, place), here.value(outside, ())", "asks = (here.value(value, place),) * 2"),
    ],
    "convolutions": [
        (convolving, "row = group * number(given[numbers.input_batch] // batches) + row", "row = row"),
        (convolving, "row = group * number(given[numbers.input_batch] // batches)", "row = group * number(batches)"),
        (convolving, "// max(groups, batches)", "// groups"),
    ],
    "folding, any": [
        (folding, "return at.numbers.compute(single, [first[0]", "return at.numbers.compute(\"add\", [first[0]"),
        (folding, "choose(test, new, unit)", "new"),
        (folding, "found if is_or else z3.simplify(z3.Not(found))", "found"),
        (folding, "choice[0], varying[0]), found, unit)", "choice[0], varying[0]), unit, found)"),
        (folding, "[begin[0], found]", "[unit, found]"),
        (folding, "return choose(*again, unit)", "return unit"),
        (folding, "unit.eq(first) or not _may_be_repeated(single, at.element, first)", "unit.eq(first)"),
    ],
    "numbered, any": [
        (folding, "yes = _substitute(yes, so_far, first)", "yes = _substitute(yes, so_far, so_far)"),
    ],
    "halves, reassociated": [
        (folding, "compute(single, [begin, found], F32)", "compute(single, [found, found], F32)"),
        (folding, "new = at.numbers.widen(new, at.element)", "new = at.numbers.widen(begin[0], at.element)"),
        (folding, "choose(*choice, unit), bound, [changed]", "choice[1], bound, [changed]"),
    ],
    "numbered": [
        (folding, "dim not in found and _is_below(at, told, sizes[dim])", "dim not in found"),
        (folding, "found[dim] = told", "found[dim] = number(0)"),
    ],
    "one_hot, finite first": [
        (folding, "z3.simplify(z3.And(test, other == one))", "test"),
        (folding, "given = choose(test, other, literal(-0.0, element))", "given = other"),
        (folding, "return choose(some, found, zero)", "return choose(some, zero, found)"),
    ],
    "infinities, finite first": [
        (folding, "literal(np.inf, element), literal(-np.inf, element)):", "literal(np.inf, element),):"),
        (folding, "z3.Or(its_nan, term == infinity)", "term == infinity"),
    ],
    "sorts, any": [
        (sorting, "z3.And(z3.Not(behind), stood)", "z3.Not(behind)"),
        (sorting, "order.comes(numbers[0], numbers[1])", "order.comes(numbers[1], numbers[0])"),
        (sorting, "before is None else before.place_of(row)", "before is None else row"),
        (sorting, "for place in (other, own)]", "for place in (own, other)]"),
        (sorting, "(inner, theirs, mine)", "(inner, mine, theirs)"),
        (sorting, '"GT", first[0], second[0]', '"LT", first[0], second[0]'),
        (sorting, "number(1), number(0)), bound", "number(0), number(1)), bound"),
        (folding, "greatest(at, own, z3.simplify(rank == place)", "greatest(at, own, z3.simplify(rank != place)"),
        (folding, "which == other)", "z3.BoolVal(True))"),
        (folding, "if numbers is not None and numbers[1].eq(bound[0]):", "if numbers is not None:"),
    ],
    "sorts, written out": [
        (sorting, "from given.before(at, back, front)", "from given.before(at, front, back)"),
        (sorting, "range(last, 0, -1)", "range(last, 1, -1)"),
        (sorting, "terms[at.result] for terms in rows", "terms[0] for terms in rows"),
    ],
    "tiles, reassociated": [
        (folding, "[at.numbers.compute(single, [first[0], found]", "[at.numbers.compute(single, [found] * 2"),
        (folding, " and not has_variable(term.arg(0), *bound):", ":"),
        (folding, "at.numbers.compute(single, [term, other], element)", "other"),
        (folding, "choose(after.arg(0), *sides)", "choose(after.arg(0), *sides[::-1])"),
        (folding, "return step, z3.BoolVal(True) if is_always", "return step + 1, z3.BoolVal(True) if is_always"),
        (folding, "for k in reversed(range(total)) if", "for k in range(total) if"),
    ],
    "loops, written out": [
        (loops, "choose(test, found, (yield value))", "choose(test, (yield value), found)"),
        (loops, "tests.append(test)", "tests.insert(0, test)"),
    ],
    "control": [
        (loops, "reversed(range(len(bodies)))", "range(len(bodies))"),
        (loops, "return count.begin + resize(", "return count.begin + 1 + resize("),
        (loops, "z3.simplify(count.begin + resize(which", "z3.simplify(count.begin + 1 + resize(which"),
        (congruence, "zip(body.arguments, args, strict=True)}", "zip(body.arguments, args[::-1], strict=True)}"),
    ],
}  # fmt: skip
"""Laws broken in one place, by the module that shows it."""


@pytest.mark.parametrize(
    ("name", "module", "old", "new"), [(k, *what) for k, whats in BROKEN.items() for what in whats]
)
def test_a_broken_law_is_seen(name, module, old, new, monkeypatch):
    """What it says of an element is not what XLA computes, or it says nothing that can be computed."""
    source = inspect.getsource(module)
    assert source.count(old) == 1, source.count(old)
    fake = types.ModuleType(module.__name__)
    exec(compile(source.replace(old, new), module.__file__, "exec"), fake.__dict__)
    monkeypatch.setattr(prover, "Arithmetic", getattr(fake, "Arithmetic", prover.Arithmetic))
    for user in (folding, loops, sorting):
        for own in (user.__dict__.keys() & fake.__dict__.keys()) - {"__name__", "__file__", "__spec__", "__doc__"}:
            if getattr(fake.__dict__[own], "__module__", "") == module.__name__ and user is not module:
                monkeypatch.setattr(user, own, fake.__dict__[own])

    def law(at):
        real = PULLS.get(at.op.name, congruence.same_function)
        return getattr(fake, real.__name__, real)(at) if real.__module__ == module.__name__ else real(at)

    name, _, how = name.partition(", ")
    rounding = "unfused" if name.startswith("floats") else "quick"
    with suppress(NotEvaluatedError):
        assert next(wrong_elements(MODULES[name], rounding=rounding, law=law, **HOW[how]), None)
