"""A target restricts what a scatter is lowered to: candidates are built, and what it refuses is taken back."""

import jax.numpy as jnp
import pytest
from rule_examples import SCATTERS
from untyped_mlir import function
from untyped_mlir import module as in_full

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.base.english import join_phrases
from hlo_lower.base.registry import CompositeLoweringRegistry, RuleList
from hlo_lower.facts.scatter.facts import Drops, InBounds, OutOfBounds, ScatterFacts, Unique
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import sort_rows
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.scatter.many_windows import scatter_to_while
from hlo_lower.lowering.scatter.one_window import one_window
from hlo_lower.ops.subset import Subset

SCATTER = "stablehlo.scatter"
POINT = {
    "subset": {Subset.POINT},
    "combiner": {Combiner.MUL},
    "in_bounds": {InBounds.UNKNOWN},
    "drops": {Drops.WINDOWS},
}


def module(dtype="f32", index="i32", body="assign", windows=None):
    """A point write, or one of several points, with this region."""
    indices, updates = (f"1x{index}", dtype) if windows is None else (f"{windows}x1x{index}", f"{windows}x{dtype}")
    ivd = "" if windows is None else ", ivd=1"
    lines = f"%r = scatter(%o, %i, %u) <inserted=[0], to=[0]{ivd}> {{{body}}}; %t = call @twice(%z) -> {dtype}"
    twice = function("private @twice", f"%x: {dtype}", "%r = add %x, %x")
    return in_full(f"%o: 8x{dtype}, %i: {indices}, %u: {updates}, %z: {dtype}", lines, "%r, %t", twice)


CALL = "%a, %b: %c = call @twice(%a) -> f32; return %c"
OPAQUE = "%a, %b: %c = transpose %a, dims = [] : (f32) -> f32; return %c"


def npu(**says):
    """A target of this name."""
    return hl.Target("npu", **says)


def refusing(op):
    """One that refuses an op of StableHLO."""
    return npu(refused={f"stablehlo.{op}": "no"})


def refused(text, target, **options):
    """The error of lowering for a target."""
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(text, target=target, name="m.mlir", **options)
    assert error.value.exit_code == 3
    return str(error.value).splitlines()


MULTIPLIED, FIVE = module(body="multiply"), module("bf16", windows=5, body="multiply")
NO_UPDATE = {"stablehlo.dynamic_update_slice": "no", "stablehlo.pad": "by which it would be lowered next"}
REFUSED = {
    "element type": (module("bf16"), npu(refused_dtypes={"bf16": "32 bits"}), "needs bf16, which npu rejects: 32 bits"),
    "index type": (module(index="i64"), npu(dtypes={"f32", "i32", "i1"}), "needs i64, which npu rejects"),
    "op on a type": (module(), npu(op_dtypes={"stablehlo.select": {"i32"}}), "select, which npu rejects for f32"),
    "op": (module(), npu(refused=NO_UPDATE), "emits stablehlo.dynamic_update_slice, which npu rejects: no"),
    "op of the region": (MULTIPLIED, refusing("multiply"), "emits stablehlo.multiply, which npu rejects: no"),
    "op of a called function": (module(body=CALL), refusing("add"), "emits stablehlo.add, which npu rejects: no"),
    "map": (module(body=OPAQUE), refusing("map"), "stablehlo.map, which npu rejects: no"),
    "op within a map": (module(body=OPAQUE), refusing("transpose"), "emits stablehlo.transpose, which npu rejects: no"),
    "loop": (module(windows=5, body="multiply"), refusing("while"), "npu rejects: no"),
    "loop on a type": (FIVE, npu(op_dtypes={"stablehlo.while": {"f32", "i32"}}), "while, which npu rejects for bf16"),
}


@pytest.mark.parametrize(("text", "target", "says"), REFUSED.values(), ids=REFUSED)
def test_what_the_target_refuses_is_named(text, target, says):
    """Where no form is legal, the error names the place, the target, and the op or type that it refuses."""
    # With few windows each would get its own ops, and need no loop.
    lines = refused(text, target, prefer=("few_windows=1",))
    assert lines[0].startswith("m.mlir:")
    assert lines[0].endswith("stablehlo.scatter: no lowering for target npu")
    assert "subset=" in lines[1]
    assert says in lines[2]
    assert lines[-1] == "  next:    hlo-lower report --explain 1 m.mlir"


NOT_NEEDED = {
    "update": (module(), refusing("dynamic_update_slice")),  # which is lowered next
    "map": (MULTIPLIED, refusing("map")),  # the region is lifted
    "call": (module(body=CALL), npu(refused={"func.call": "the region is lifted"})),
    "loop": (module(), refusing("while")),
    "multiply": (module(), refusing("multiply")),
    "i64": (module(), npu(refused_dtypes={"i64": "starts are i32"})),
    "compare on starts": (module("bf16"), npu(op_dtypes={"stablehlo.compare": {"i32", "i1"}})),
}


@pytest.mark.parametrize(("text", "target"), NOT_NEEDED.values(), ids=NOT_NEEDED)
def test_what_is_not_needed_may_be_refused(text, target):
    """A target loses no form to an op or a type that the form does not have."""
    assert hl.lower(text, target=target).scatters_left == 0


def sorted_first(op):
    """One window, after a sort that nobody needs."""
    sort_rows(op.build, op.build.constant(0, (1, 1), "i32"), [], by_both=False)
    return one_window(op)


def named(name, lowering):
    """A lowering of another name."""
    function = lambda op: lowering(op)  # noqa: E731
    function.__name__ = name
    return function


def registry_with(lowering):
    """The built-in rules and one that is chosen for the point write."""
    rules = RuleList()
    rules.lowers(SCATTER, **POINT, form="mine")(lowering)
    registry = default_registry()
    registry.extend(rules, origin="mine 1.0")
    return registry


def test_targets_of_one_name_are_not_mixed_up():
    """What was chosen for a target says nothing about another one of the same name."""
    graph = hl.read(module())
    targets = (npu(), refusing("select"), npu(dtypes={"f32"}), npu())
    chosen = [hl.classify(graph, target=target)[0].rule != "" for target in targets]
    assert chosen == [True, False, False, True]


def test_a_refused_scatter_can_be_kept():
    """With keep_unsupported it stays and is counted, and its record says what stood in the way."""
    lowered = hl.lower(module(), target=npu(dtypes={"f32"}), keep_unsupported=True)
    assert (lowered.scatters_left, lowered.unsupported) == (1, 1)
    assert lowered.records[0].why == Code.KEPT_UNSUPPORTED(Code.NO_LOWERING("npu"))
    assert Code.REFUSES_DTYPE("npu", "i32", None, None) in lowered.records[0].why_not[0].reasons
    assert hl.lower(module(), skip=["#1"]).unsupported == 0


def test_two_rules_that_only_a_refused_one_settles():
    """Where a target refuses the rule that is more specific than two others, neither of these is taken: an error."""
    rules = RuleList()
    combiner, subset = {"combiner": {Combiner.MUL}}, {"subset": {Subset.POINT}}
    narrow = {"in_bounds": {InBounds.UNKNOWN}, "drops": {Drops.WINDOWS}, "oob": {OutOfBounds.XLA}}
    common = {**narrow, "unique": {Unique.PROVED}}
    rules.lowers(SCATTER, **combiner, **common)(named("scatter_to_one", one_window))
    rules.lowers(SCATTER, **subset, **common)(named("scatter_to_other", one_window))
    rules.lowers(SCATTER, **combiner, **subset, **common)(named("scatter_to_both", sorted_first))
    registry = CompositeLoweringRegistry({SCATTER: ScatterFacts.domains})
    registry.extend(rules)
    registry.check()
    assert hl.lower(MULTIPLIED, registry=registry).records[0].rule == "both"
    lines = refused(MULTIPLIED, refusing("sort"), registry=registry)
    assert lines[0].endswith("no one rule for target npu")
    assert ("scatter_to_one" in lines[1], "scatter_to_other" in lines[1]) == (True, True)


scatter_to_loop = named("scatter_to_loop", scatter_to_while)


def scatter_to_call(op):
    """A call of a function that the module has."""
    callee = {"callee": mlir.parse_attribute("@twice")}
    update = op.scatter.updates[0]
    op.build.op("func.call", [update], [update.raw.type], callee)
    return one_window(op)


def test_what_was_built_in_a_region_is_looked_at():
    """Where no other rule does either, a plug-in's is told with its place; nothing is left of its work."""
    graph = hl.read(MULTIPLIED)
    before = to_text(graph)
    lines = refused(graph, npu(refused_dtypes={"i1": "no masks"}), registry=registry_with(scatter_to_loop))
    assert lines[0].startswith("m.mlir:")
    [told] = [line for line in lines if "scatter_to_loop" in line]
    assert [words in told for words in ("test_legality.py:", "(mine 1.0)): ", "npu rejects: no masks")] == [True] * 3
    assert to_text(graph) == before


@pytest.mark.parametrize(
    ("lowering", "refused_op"),
    [(scatter_to_loop, "while"), (scatter_to_call, "add"), (named("scatter_to_sorted", sorted_first), "sort")],
)
def test_the_next_best_rule_is_taken(lowering, refused_op):
    """Where a rule built what the target refuses, another one lowers the scatter, and the record says of both why."""
    registry = registry_with(lowering)
    [record] = hl.classify(hl.read(MULTIPLIED), target=npu(), registry=registry)
    assert f"scatter_to_{record.rule}" == lowering.__name__
    lowered = hl.lower(MULTIPLIED, target=refusing(refused_op), registry=registry)
    [record] = lowered.records
    assert record.rule == "guarded_updated_slice"
    told = {other.rule: join_phrases(other.reasons) for other in record.why_not}
    assert told[lowering.__name__] == f"emits stablehlo.{refused_op}, which npu rejects: no"
    assert f"stablehlo.{refused_op}" not in {node.name for node in lowered.graph.main.body.nodes}
    assert lowered.text == hl.lower(MULTIPLIED).text


def ops_of(source):
    """The names of a module's ops, those in regions included."""
    graph = source if isinstance(source, hl.Graph) else hl.read(source)
    return {node.name for node in graph.nodes()} - {"builtin.module", "func.func", "func.return", "stablehlo.return"}


@pytest.mark.few(8)
@pytest.mark.parametrize("path", [example.path for example in SCATTERS], ids=lambda path: path.stem)
def test_no_form_is_refused_for_what_it_does_not_build(path):
    """A target that takes just what forms become takes them; without one of these ops it gets others that lack it, and
    without updates of slices what those become next."""
    before, policies = ops_of(path), {}
    for lowered in (hl.lower(path, oob=oob) for oob in ("xla", "spec")):
        policies[lowered.text] = lowered
    for lowered in policies.values():
        oob = lowered.options.oob
        ops, rules = ops_of(lowered.graph), [r.rule for r in lowered.records]
        assert [r.rule for r in hl.lower(path, oob=oob, target=npu(ops=ops)).records] == rules
        for op in sorted(ops - before):
            other = hl.lower(path, oob=oob, target=npu(refused={SCATTER: "", op: "no"}), keep_unsupported=True)
            assert op == "stablehlo.dynamic_update_slice" or [r.rule for r in other.records] != rules
            assert op not in ops_of(other.graph)


def test_a_failure_is_remembered_for_twins():
    """Of scatters that differ only in where they stand, the second does not try again what failed for the first."""
    tried = []

    def scatter_to_counted(op):
        tried.append(op.scatter.node)
        return scatter_to_while(op)

    def thrice(cache, row, place):
        return cache.at[place].add(row).at[place].add(row).at[place + 1].add(row)

    registry = default_registry()
    tile = {"subset": {Subset.TILE}, "combiner": {Combiner.ADD}, "in_bounds": {InBounds.UNKNOWN}}
    registry.lowers(SCATTER, **tile, drops={Drops.WINDOWS})(scatter_to_counted)
    target = npu(refused={SCATTER: "", "stablehlo.while": "no loops"})
    lowered = hl.lower(
        hl.export(thrice, jnp.zeros((64, 4)), jnp.ones(4), jnp.int32(3)), target=target, registry=registry
    )
    assert [record.rule for record in lowered.records] == ["guarded_updated_slice"] * 3
    reasons = [{other.rule: join_phrases(other.reasons) for other in record.why_not} for record in lowered.records]
    assert {told["scatter_to_counted"] for told in reasons} == {"emits stablehlo.while, which npu rejects: no loops"}
    assert len(tried) == 2
