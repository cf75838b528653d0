"""Alignment: what both modules have is matched, and each change is a region of its own, cut out as a module."""

import numpy as np
import pytest
from two_programs import aligned, names, programs, regions
from untyped_mlir import module

from hlo_lower.verify import verify
from hlo_lower.verify.align import align, corrections
from hlo_lower.verify.align.align import Aligner, Side
from hlo_lower.verify.align.corrections import values_apart
from hlo_lower.verify.align.piece import module_of, pieces_of
from hlo_lower.verify.judges.judge import Terms
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.regions import RegionJudge
from hlo_lower.verify.run import CannotRunError, Executable

BOTH = "%a: 8xf32, %b: 8xf32"
CHAIN = "%x = add %a, %b; %y = multiply %x, %b; %z = maximum %y, %a; %r = subtract %z, %x"
LOOP = """%s = constant 0 : i32
%r:3 = while(%k = %s, %x = %a, %y = %b) cond { %n = constant 4 : i32; %p = compare LT, %k, %n; return %p } do {
  %one = constant 1 : i32; %next = add %k, %one; %t = subtract %x, %y; return %next, %t, %y }"""


def changed(body, *changes, returned="%r", after=None):
    """A module and the same with changes of its text, or another result."""
    text = body
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return module(BOTH, body, returned), module(BOTH, text, after or returned)


def test_two_changes_are_two_regions():
    """Changes with matched operations between them are judged each alone; only what is returned has a name."""
    texts = changed(CHAIN, ("multiply", "divide"), ("subtract", "power"))
    found = [names(region) for region in regions(*texts)]
    assert sorted(found) == [(["multiply"], ["divide"]), (["subtract"], ["power"])]
    [pair] = aligned(*texts)
    assert sorted(a.root for a in pair.assumptions) == ["", "result 0"]


def chain(*writes):
    """Six writes into one cache, each at its own place."""
    lines = ["%z = constant 0 : i32", "%t0 = tanh %a"]
    for k in range(6):
        lines += [f"%i{k} = slice %i [{k}:{k + 1}]; %u{k} = slice %u [{k}:{k + 1}]"]
        lines += [*(write.format(k=k) for write in writes), f"%t{k + 1} = tanh %r{k}"]
    return module("%a: 8xf32, %i: 6xi32, %u: 6xf32", "\n".join(lines), "%t6")


def test_each_rewritten_scatter_of_a_chain_is_a_small_region():
    """In a chain of scatters into one cache each is a region of one scatter and one update of a slice."""
    before = chain("%r{k} = scatter(%t{k}, %i{k}, %u{k}) <window=[0], to=[0]> {{assign}}")
    after = chain("%s{k} = reshape %i{k} -> i32", "%r{k} = dynamic_update_slice %t{k}, %u{k}, %s{k}")
    found = [names(region) for region in regions(before, after)]
    small = ["scatter"], ["reshape", "dynamic_update_slice"]
    assert (len(found), found.count(small)) == (6, 6)


def test_of_a_chain_that_is_read_in_parts_each_scatter_is_a_small_region():
    """Nothing is read beside the parts, and many are read alike: each write is the one end of what it is made of."""
    writes = "%r{k} = scatter(%t{k}, %i{k}, %u{k}) <window=[0], to=[0]> {{assign}}", "%t{k} = abs %r{j}"
    others = "%s{k} = reshape %i{k} -> i32", "%r{k} = dynamic_update_slice %t{k}, %u{k}, %s{k}", "%t{k} = abs %r{j}"
    texts = list[str]()
    for *own, link in (writes, others):
        lines = ["%t0 = tanh %a"]
        for k in range(6):
            lines += [f"%i{k} = slice %i [{k}:{k + 1}]; %u{k} = slice %u [{k}:{k + 1}]"]
            lines += [link.format(k=k, j=k - 1)] if k else []
            lines += [one.format(k=k) for one in own]
            lines += [f"%p{k}_{n} = slice %r{k} [{n}:{n + 1}]; %q{k}_{n} = sine %p{k}_{n}" for n in range(4)]
        parts = ", ".join(f"%q{k}_{n}" for k in range(6) for n in range(4))
        lines.append(f"%r = concatenate {parts}, dim = 0")
        texts.append(module("%a: 8xf32, %i: 6xi32, %u: 6xf32", "\n".join(lines)))
    found = [names(region) for region in regions(*texts)]
    assert found == [(["scatter"], ["reshape", "dynamic_update_slice"])] * 6


def test_a_result_that_nobody_reads_is_no_end(monkeypatch):
    """A loop that computes a second value as well, and nobody reads that, stands for the op of the first one."""
    ends, right = [], align._ends_alike
    monkeypatch.setattr(align, "_ends_alike", lambda *given: ends.append(right(*given)) or ends[-1])
    one = "%s{k} = cosine %t{k}"
    two = """%s{k}:3 = while(%i = %z, %x = %t{k}, %y = %t{k}) cond {{ %p = compare LT, %i, %o; return %p }} do {{
      %j = add %i, %o; %u = cosine %x; %v = abs %y; return %j, %u, %v }}"""
    texts = list[str]()
    for own, read in ((one, "%s{k}"), (two, "%s{k}#1")):
        lines = ["%z = constant 0 : i32; %o = constant 1 : i32"]
        lines += [f"%t{k} = slice %a [{8 * k}:{8 * k + 8}]; {own.format(k=k)}" for k in range(3)]
        for k in range(3):
            lines += [
                f"%p{k}_{n} = slice {read.format(k=k)} [{n}:{n + 1}]; %q{k}_{n} = sine %p{k}_{n}" for n in range(4)
            ]
        parts = ", ".join(f"%q{k}_{n}" for k in range(3) for n in range(4))
        texts.append(module("%a: 24xf32", "\n".join([*lines, f"%r = concatenate {parts}, dim = 0"])))
    found = [names(region) for region in regions(*texts)]
    assert found == [(["cosine"], ["while"])] * 3
    assert any(ends), "found by a guess alone"


def test_a_changed_body_is_a_region_within_its_loop():
    """The loop's two bodies are aligned with equal arguments, and the place says which body it is."""
    [region] = regions(*changed(LOOP, ("subtract", "maximum"), returned="%r#1"))
    assert names(region) == (["subtract"], ["maximum"])
    assert region.where == "main > while 1 body 1"
    turns = changed(LOOP, ("constant 4", "constant 5"), returned="%r#1")  # a constant of the condition
    assert [region.where for region in regions(*turns)] == ["main > while 1 body 0"]


CARRIED = """%z = constant 0 : i32
%w:3 = while(%k = %z, %x = %a, %y = START) cond { %n = constant 4 : i32; %p = compare LT, %k, %n; return %p } do {
  %one = constant 1 : i32; %next = add %k, %one; %t = subtract %x, %y; return %next, %t, %y }"""
CHOSEN = """%p = slice %i [0:1]; %q = reshape %p -> i32; %z = constant 0.0 : 8xf32; %t = tanh %a
%s = scatter(%t, %i, %u) <window=[0], to=[0]> {assign}
%r = case(%q) { %m = maximum %s, %z; return %m } { return %s } { return %z }"""
WRITTEN = "%s = scatter(%t, %i, %u) <window=[0], to=[0]> {assign}"
UPDATED = "%d = dynamic_update_slice %t, %u, %q; %s = reshape %d -> 8xf32"


def test_what_a_loop_reads_and_a_branch_captures_is_aligned_before_them():
    """A loop that carries a copy of what the other one carries, and branches of what is written otherwise."""
    twice = CARRIED.replace("%w:3", "%f = reshape %a -> 1x8xf32; %g = reshape %f -> 8xf32\n%w:3").replace("START", "%g")
    found = regions(*(module(BOTH, body, "%w#1") for body in (CARRIED.replace("START", "%a"), twice)))
    assert [(region.where, names(region)) for region in found] == [("main", ([], ["reshape", "reshape"]))]
    given = "%a: 8xf32, %i: 1xi32, %u: 1xf32"
    found = regions(module(given, CHOSEN), module(given, CHOSEN.replace(WRITTEN, UPDATED)))
    assert [(region.where, names(region)[0]) for region in found] == [("main", ["scatter"])]


TWICE = """%x = maximum %a, %b; %p = power %x, %a; {again}%q = multiply {x}, %b
%c = slice %g [0:1]; %i = reshape %c -> i32; %o = case(%i) {{ {inside}%d = power {z}, %b; return %d }} {{ return %b }}
%r = subtract %p, %q; %s = subtract %r, %o"""
LARGER = "%t{0} = compare GT, %a, %b; %{0} = select %t{0}, %a, %b; "


def written_twice(larger=LARGER):
    """A maximum that three operations read, one of them in a branch, and one choice for each of these."""
    before = TWICE.format(again="", x="%x", inside="", z="%x")
    after = TWICE.format(again=larger.format("y"), x="%y", inside=larger.format("z"), z="%z")
    after = after.replace("%x = maximum %a, %b; ", larger.format("x"))
    return [module(f"{BOTH}, %g: 1xi32", text, "%s") for text in (before, after)]


def test_what_one_version_computes_twice_is_one_region():
    """Where a value is equal to one of the other version, so is another that is computed alike, in a branch, too."""
    [region] = regions(*written_twice())
    assert names(region) == (["maximum"], ["compare", "select"])
    [pair, inner] = aligned(*written_twice())
    assert [len(side.alike) for side in (pair.first, pair.second, inner.second)] == [0, 1, 1]


def test_what_is_computed_alike_is_not_taken_for_what_a_region_is_given():
    """Each of three equal values stands for the others: if the one is wrong all are, and that is told."""
    texts = written_twice(LARGER.replace("GT", "LT"))
    assert verify(*texts, level="regions").differs
    [region] = regions(*texts)
    assert names(region) == (["maximum"], ["compare", "select"])
    [output] = region.outputs
    programs = region.pair.first.program, region.pair.second.program
    judge = RegionJudge(*programs, Terms(), None, None, None)  # type: ignore[arg-type]
    judge.pairs = [region.pair]
    assert len(judge._read_alike([(output.first, output.second)])) == 2


BRANCHES = """%v = add %q, %k; %w = add %z, %k; %o:2 = case(%q) { %m = maximum %a, %b; return %m, %a } { return %b, %b }
%s = multiply %v, %w"""
CHANGED = """%p = compare GT, %i, %j; %q = select %p, %i, %j; %t = compare LT, %i, %j; %z = select %t, %i, %j
"""


def test_a_branch_whose_results_were_taken_as_equal_before_what_it_reads_is_aligned_within():
    """Its results are returned, and its operand has several likely counterparts; then it is one operation again."""
    before = "%q = maximum %i, %j; %z = minimum %i, %j\n" + BRANCHES
    after = CHANGED + BRANCHES.replace("%m = maximum %a, %b", "%g = compare GT, %a, %b; %m = select %g, %a, %b")
    given = f"{BOTH}, %i: i32, %j: i32, %k: i32"
    found = regions(*(module(given, body, "%o#0, %o#1, %s") for body in (before, after)))
    inner = [names(region) for region in found if region.where == "main > case 1 body 0"]
    assert inner == [(["maximum"], ["compare", "select"])]
    assert all("case" not in made for region in found for made in names(region))


def test_a_loop_is_numbered_anew_only_where_what_it_reads_has_changed(monkeypatch):
    """Each equality that is assumed gives what follows other numbers, and a body has many operations."""
    right, seen = Table._results, list[str]()
    monkeypatch.setattr(Table, "_results", lambda *given: seen.append(given[2].name) or right(*given))
    table = Table()
    [program] = programs(module(BOTH, LOOP, "%r#1"))
    sides = [Side(program, program.entries["main"], 0, {}, table) for _ in range(3)]
    assert seen.count("stablehlo.while") == 1
    [loop] = [op for op in sides[0].live if op.name == "stablehlo.while"]
    assert sides[0].own_numbers(loop) == sides[2].own_numbers(loop)
    sides[0].numbers[loop.inputs[1]] = -1
    assert sides[0].own_numbers(loop) != sides[2].own_numbers(loop)


@pytest.mark.parametrize("order", [("%t = {1} %b", "%s = {0} %a"), ("%s = {0} %a", "%t = {1} %b")])
def test_of_several_counterparts_the_one_is_taken_that_is_of_the_same_values(order):
    """Both are read alike, and stand in either order."""
    read = "%one = constant 1.0 : 8xf32; %p = add %s, %one; %q = add %t, %one; %m = tanh %p; %n = tanh %q"
    lines = [read, read.replace("%p = add %s, %one; %q = add %t, %one", "%q = add %t, %one; %p = add %s, %one")]
    first = module(BOTH, f"%s = sine %a; %t = cosine %b; {lines[0]}", "%m, %n")
    second = module(BOTH, f"{'; '.join(order).format('exponential', 'log')}; {lines['{1}' in order[0]]}", "%m, %n")
    found = sorted(names(region) for region in regions(first, second) if names(region)[0] != ["tanh"])
    assert found == [(["cosine"], ["log"]), (["sine"], ["exponential"])]


ONE, OTHER = (
    f"%two = constant 2.0 : 8xf32; %s = {first} %x, %two; %t = {second} %s, %two; %r = add %t, %x"
    for first, second in (("add", "subtract"), ("subtract", "add"))
)
"""2 x, in two ways."""


def told(before: str, after: str) -> set[tuple[int, int]]:
    """The values that are apart, by the places of the operations that make them."""
    first, second = programs(*(module("%x: 8xf32", body) for body in (before, after)))
    makers = [(first.makers[x], second.makers[y]) for x, y in values_apart(first, second, "main")]
    return {(one.order, other.order) for one, other in makers if one is not None and other is not None}


def test_of_several_counterparts_the_one_is_taken_that_a_value_is_computed_from():
    """A power of 1 is its base, and not that of another layer, however the layers are ordered."""
    start = "%two = constant 2.0 : 4xf32; %one = constant 1.0 : 4xf32; %x0 = tanh %x; %x1 = sine %x0"
    powers = "\n".join(
        f"%p{k} = power %x{k}, %one; %m{k} = multiply %two, %p{k}; %e{k} = exponential %m{k}" for k in (0, 1)
    )
    bases = "\n".join(f"%m{k} = multiply %two, %x{k}; %e{k} = exponential %m{k}" for k in (1, 0))
    texts = [module("%x: 4xf32", f"{start}\n{body}\n%r = subtract %e0, %e1") for body in (powers, bases)]
    found = [region for region in regions(*texts) if names(region) == (["power"], [])]
    assert len(found) == 2
    assert [[r.pair.second.numbers[o.second] for o in r.outputs] for r in found] == [r.inputs for r in found]


def test_values_that_differ_are_apart():
    """x + 2 is not x - 2, and what is rounded otherwise is not apart: x + 2 - 2 and x - 2 + 2."""
    assert (1, 1) in told(ONE, OTHER)
    assert (2, 2) not in told(ONE, OTHER)


@pytest.mark.parametrize("wrong", ["%t, %two", "%s, %x"])
def test_nothing_is_said_of_functions_that_differ(wrong):
    """Their difference is looked for where it is."""
    assert told(ONE, OTHER.replace("%r = add %t, %x", f"%r = add {wrong}")) == set()


VECTOR = np.arange(8, dtype=np.float32)
AB = "%a: 8xf32, %b: 8xf32"


def ran(text, *values):
    """The results of a piece."""
    return Executable(text, "exact").run(list(values))


def test_what_is_watched_comes_behind_the_outputs_of_the_first_piece_alone():
    """A value within the first piece is returned too, and the second piece keeps its results."""
    [region] = regions(module(AB, "%n = add %a, %b; %r = maximum %n, %n"), module(AB, "", "%a"))
    inner = next(op for op in region.first if op.short_name == "add")
    number = region.pair.first.numbers[inner.results[0]]
    found = pieces_of(region, [number])
    assert found.seen == (number,)
    given = [VECTOR] * len(region.inputs)
    result, watched = ran(found.first, *given)
    np.testing.assert_array_equal(watched, VECTOR + VECTOR)
    np.testing.assert_array_equal(result, watched)
    assert len(ran(found.second, *given)) == 1


def whole(body):
    """A module's body with all of its operations, as the piece that returns what it returns."""
    [program] = programs(module(AB, body, "%r", 'sdy.mesh @mesh = <["x"=2]>'))
    side = Side(program, program.entries["main"], 0, {}, Table())
    given = side.body.arguments
    numbers = dict(enumerate(side.numbers[v] for v in given))
    return module_of(program, side.live, numbers, side.numbers, side.roots, [program.types[v] for v in given])


SHARDED = """%n = add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
%h = sdy.sharding_constraint %n <@mesh, [{"x"}]> : tensor<8xf32>
%r = negate %h {mhlo.sharding = "{devices=[2]0,1}"}"""


def test_shardings_are_taken_out():
    """Where values lie does not matter to what they are: a piece says nothing of it, and runs on one device."""
    text = whole(SHARDED)
    assert "sharding" not in text
    assert "sdy." not in text
    np.testing.assert_array_equal(ran(text, VECTOR, VECTOR)[0], -(VECTOR + VECTOR))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            """%h = slice %a [0:4]; %r = "stablehlo.all_gather"(%h) <{all_gather_dim = 0 : i64, replica_groups =
            dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>""",
            id="a collective",
        ),
        pytest.param(
            "%p = partition_id : ui32; %q = convert %p -> f32; %r = broadcast_in_dim %q, dims = [] -> 8xf32",
            id="its number",
        ),
        pytest.param(
            """%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%s: tensor<4xf32>) { %t = stablehlo.negate %s : tensor<4xf32>
            sdy.return %t : tensor<4xf32> } : (tensor<8xf32>) -> tensor<8xf32>""".replace("\n", " "),
            id="a manual computation",
        ),
    ],
)
def test_what_is_written_for_one_of_several_devices_is_refused(body):
    """Without its devices such a piece has no meaning, and it is not cut out as if it had one."""
    with pytest.raises(CannotRunError, match="written for one of several devices"):
        whole(body)


@pytest.mark.filterwarnings("error")
def test_what_is_sought_of_a_complex_value_is_its_real_part():
    """Without a word on standard error: what the user sees is the verdict."""
    np.testing.assert_array_equal(corrections._cast(np.asarray([1 + 2j]), np.dtype(np.float32)), [1.0])
    np.testing.assert_array_equal(corrections._cast(np.asarray([1.5]), np.dtype(np.int32)), [1])


OF_TABLE = "%c = constant [13, 15] : 2xi32; %k = slice %c [0:1]; %j = negate %i; %r = add %j, %k"
OF_NUMBER = "%c = constant 13 : 1xi32; %n = constant 0 : 1xi32; %j = subtract %n, %i; %r = add %c, %j"


@pytest.mark.parametrize(("name", "is_taken"), [("slice", False), ("negate", True)])
def test_what_depends_on_no_input_is_not_taken_for_what_does(name, is_taken):
    """A number of a table is not an index, of the same type, that is computed."""
    first, second = programs(*(module("%i: 1xi32", lines) for lines in (OF_TABLE, OF_NUMBER)))
    x, y = (
        next(value for value, op in enumerate(program.makers) if op is not None and op.short_name == made)
        for program, made in ((first, name), (second, "subtract"))
    )
    assert [x in first.varying, y in second.varying] == [is_taken, True]
    [pair] = Aligner(first, second, frozenset(), {x: y}).align("main")
    assert ((x, y) in {(each.first, each.second) for each in pair.assumptions}) == is_taken


REMAINDERS = """%z = constant 0 : 8xi32; %d = constant 3 : 8xi32; {x}; {y}
%p = compare NE, %a, %z; %q = compare NE, %b, %z; %s = and %p, %m; %t = add %b, %d; %u = select %q, %t, %b"""


def test_an_operand_is_sought_where_what_reads_it_has_its_counterpart():
    """Of two remainders one is read by a comparison that is matched: it is not the other one's, which is not."""
    before = {name: f"%{made} = remainder %{name}, %d" for name, made in ("xa", "yb")}
    after = {
        name: f"%{made}q = divide %{name}, %d; %{made}m = multiply %{made}q, %d; %{made} = subtract %{name}, %{made}m"
        for name, made in ("xa", "yb")
    }
    arguments = "%x: 8xi32, %y: 8xi32, %m: 8xi1"
    texts = (module(arguments, REMAINDERS.format(**ways), "%s, %u") for ways in (before, after))
    assert (
        sorted(names(region) for region in regions(*texts)) == [(["remainder"], ["divide", "multiply", "subtract"])] * 2
    )
