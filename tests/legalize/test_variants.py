"""Composites and custom calls whose parameters are declared: each is lowered by the rule of its variant, or refused."""

from enum import Enum

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.cli import main
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.plugin import REVERSE, SCATTER, When, one_window

SIGNATURE = "(%x: tensor<2x3xf32>) -> tensor<2x3xf32>"
TYPES = "(tensor<2x3xf32>) -> tensor<2x3xf32>"
MODULE = f"""
func.func public @main{SIGNATURE} {{
  %r = OP : {TYPES}
  return %r : tensor<2x3xf32>
}}
func.func private @negated{SIGNATURE} {{
  %r = stablehlo.negate %x : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}}
"""
NPU = hl.Target("npu", refused={"stablehlo.composite": "no kernel", "stablehlo.negate": "no kernel"})
Sign = Enum("Sign", {"MINUS": "minus", "PLUS": "plus"})


def composite(attributes, more=""):
    """A module with a composite of these attributes."""
    told = f"composite_attributes = {{{attributes}}}, decomposition = @negated{more}"
    return MODULE.replace("OP", f'stablehlo.composite "my.sign" %x {{{told}}}')


def call(config, more=""):
    """A module with a custom call of this `backend_config`."""
    return MODULE.replace("OP", f"stablehlo.custom_call @my.sign(%x) {{backend_config = {config}{more}}}")


def registry(**how):
    """The rules of `my.sign`: less than 0 is x times the factor, negated where the sign is minus."""
    own = default_registry()
    declared = {"sign": Sign, "factor": float, "defaults": {"factor": 1}, **how}
    own.declare("my.sign", **declared)

    def my_sign_to_product(op):
        factor = op.build.float_splat(-op.facts["factor"], (2, 3), "f32")
        return [op.build.multiply(op.node.operand(0), factor)]

    def my_sign_to_negate(op):
        return [op.build.elementwise("negate", op.node.operand(0))]

    own.register("my.sign", my_sign_to_product, sign="minus")
    own.register("my.sign", my_sign_to_negate, sign=Sign.MINUS, when=When("1", lambda facts: facts["factor"] == 1))
    return own


def became(source, own=None, **keywords):
    """What lowering tells of the composite: the rule, or the words of why it is left."""
    lowered = hl.lower(source, registry=own or registry(), **keywords)
    return lowered.notes[0].partition(": ")[2].partition(":")[2]


JSON = r'"{\22sign\22: \22minus\22, \22factor\22: 2}"'
READ = {
    "attributes": (composite('sign = "minus", factor = 2.0 : f64'), "product"),
    "a name of the enum": (composite('sign = "MINUS", factor = 2 : i64'), "product"),
    "a default": (composite('sign = "minus"'), "negate"),
    "a dictionary": (call('{sign = "minus", factor = 2.0 : f32}', ", api_version = 4 : i32"), "product"),
    "JSON": (call(JSON), "product"),
    "pairs": (call('"sign=minus; factor=2"'), "product"),
    "spaces": (call('"sign=minus factor=1.0"'), "negate"),
}


@pytest.mark.parametrize(("source", "rule"), READ.values(), ids=READ)
def test_parameters_are_read(source, rule):
    """From attributes of a composite, and from a custom call's dictionary, JSON object or pairs; defaults fill in."""
    assert became(source).endswith(f"(my_sign_to_{rule})")


def named(name, lowering=lambda op: [op.build.elementwise("negate", op.node.operand(0))]):
    """A rule of this name; by default one that negates."""

    def rule(op):
        return lowering(op)

    rule.__name__ = name
    return rule


def test_a_text_is_the_value_of_the_only_parameter():
    """A `backend_config` needs no name where there is one parameter; truth values are known by their text, too."""
    own = default_registry()
    own.declare("my.sign", is_negated=bool)
    own.register("my.sign", named("negated"), is_negated=True)
    for config in ('"true"', '"is_negated=true"', "{is_negated = true}, api_version = 4 : i32"):
        assert became(call(config), own).endswith("(negated)")


REFUSED = {
    "an attribute": (composite('sign = "minus", axis = 1'), "it has unknown attributes: axis"),
    "a value": (composite('sign = "times"'), "sign=times, needs minus|plus"),
    "a type": (composite('sign = "minus", factor = "much"'), "factor=much, needs any float"),
    "nothing": (composite("factor = 2.0 : f64"), "needs an attribute sign, for which no default is declared"),
    "a version": (composite('sign = "minus"', ", version = 2 : i32"), "its version is 2"),
    "a variant": (composite('sign = "plus"'), ""),
    "an effect": (call('"sign=minus"', ", has_side_effect = true"), "its has_side_effect may change"),
    "a text": (call('"minus"'), "needs a backend_config that is a JSON object, or name=value pairs, not 'minus'"),
}


@pytest.mark.parametrize(("source", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_declared_is_an_error(source, why):
    """It says what is wrong with the op, and lists the rules that there are; `keep_unsupported` leaves it."""
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(source, registry=registry(), name="m.mlir")
    first, facts, *_, after = str(error.value).splitlines()
    assert first.startswith("m.mlir:3:8: stablehlo.")
    assert first.partition("no lowering for target stablehlo")[2].removeprefix(": ").startswith(why)
    assert "registered: sign=minus (my_sign_to_product)" in facts or "sign=minus, 1 (my_sign_to_negate)" in facts
    assert "--keep-unsupported" in after
    lowered = hl.lower(source, registry=registry(), keep_unsupported=True)
    assert (lowered.variants_left, "my.sign" in lowered.text) == (1, True)


def test_a_call_of_the_decomposition_is_asked_for():
    """With otherwise="call" a variant without a rule, and what is no variant, is called; one with a rule is not."""
    own = registry(otherwise="call")
    for source in (composite('sign = "plus"'), composite("axis = 1")):
        assert "call @negated" in hl.lower(source, registry=own, verify="regions").text
    assert became(composite('sign = "minus"'), own).endswith("(my_sign_to_negate)")


@pytest.mark.parametrize("inner", ["plus", "minus"])
def test_what_stands_in_a_decomposition_goes_with_it(inner):
    """A composite with a rule is lowered whatever its decomposition holds, also a variant that has none."""
    variant = composite(f'sign = "{inner}"')
    outer = variant.partition("func.func private")[0].replace("public @main", "private @outer")
    source = composite('sign = "minus"').replace("@negated}", "@outer}") + outer
    lowered = hl.lower(source, registry=registry(), verify="regions")
    assert [line.count("(my_sign_to_negate)") for line in lowered.notes] == [1]
    assert "private" not in lowered.text
    with pytest.raises(hl.NotLoweredError, match="sign=plus"):
        hl.lower(source.replace('"minus"', '"plus"', 1), registry=registry())


def test_a_declaration_may_be_for_some_targets():
    """For another one the composite is what it was; a target that takes the name whole keeps it, rules or none."""
    own = registry(target={"npu"}, dtype={"f32", "bf16"})
    own.check()
    source = composite('sign = "plus"')
    assert "stablehlo.composite" in hl.lower(source, registry=own).text
    with pytest.raises(hl.NotLoweredError, match="no lowering for target npu"):
        hl.lower(source, registry=own, target=NPU)
    whole = hl.Target("npu", composites={"my.sign"}, legalize=True)
    assert "stablehlo.composite" in hl.lower(composite('sign = "minus"'), registry=own, target=whole).text
    with pytest.raises(hl.NotLoweredError, match=r"dtype=f64, needs bf16\|f32"):
        hl.lower(composite('sign = "minus"').replace("f32", "f64"), registry=own, target=NPU)


def test_what_a_rule_builds_is_held_against_the_target():
    """Where it is refused the next best rule is tried; what later passes lower for the target may be built."""
    assert became(composite('sign = "minus"'), target=NPU).endswith("(my_sign_to_product)")
    own = default_registry()
    own.declare("my.sign", sign=Sign)

    def my_sign_to_reverses(op):
        return [op.build.reverse(op.build.reverse(op.build.elementwise("negate", op.node.operand(0)), [0]), [0])]

    own.register("my.sign", my_sign_to_reverses)
    lowered = hl.lower(composite('sign = "minus"'), registry=own, target=hl.Target("t", refused={REVERSE: "none"}))
    assert "(my_sign_to_reverses)" in lowered.notes[0]
    assert REVERSE not in lowered.text
    assert lowered.refused == ()


LAYOUTS = {
    "usual": ("", "", "default"),
    "of an argument": ('{mhlo.layout_mode = "{0,1}"}', "", "{0,1}"),
    "of a custom call": ("", ", operand_layouts = [dense<[0, 1]> : tensor<2xindex>]", "{0,1}"),
    "that is the usual one": ("", ", operand_layouts = [dense<[1, 0]> : tensor<2xindex>]", "default"),
}


def test_an_attribute_called_dtype_or_layout_comes_first():
    """Where it is declared, what the composite says counts before its operand; a default where it says nothing."""
    own = default_registry()
    own.declare("my.sign", dtype={"f32", "bf16"}, layout={"rows", "columns"}, defaults={"layout": "rows"})
    own.register("my.sign", named("narrow"), dtype="bf16")
    own.register("my.sign", named("rows"), dtype="f32", layout="rows")
    own.register("my.sign", named("columns"), dtype="f32", layout="columns")
    told = {'dtype = bf16, layout = "columns"': "narrow", 'layout = "columns"': "columns", "": "rows"}
    for attributes, rule in told.items():
        assert became(composite(attributes), own).endswith(f"({rule})")


@pytest.mark.parametrize(("argument", "more", "layout"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout_is_a_fact(argument, more, layout):
    """It is read from a custom call or from the attribute of an argument; nothing said is row by row."""
    own = default_registry()
    own.declare("my.sign")
    for name, one in (("usual", "default"), ("turned", "{0,1}")):
        own.register("my.sign", named(name), layout=one)
    results = ", result_layouts = [dense<[1, 0]> : tensor<2xindex>]" if more else ""
    source = call('""', more + results).replace("%x: tensor<2x3xf32>", f"%x: tensor<2x3xf32> {argument}", 1)
    assert became(source, own).endswith("(usual)" if layout == "default" else "(turned)")


POINT, ASSIGNED = "%o: 8xDTYPE, %i: 1xi32, %u: DTYPE", "%r = scatter(%o, %i, %u) <inserted=[0], to=[0]> {assign}"
POINTS = {"subset": "Point", "combiner": "assign", "in_bounds": "unknown", "drops": "windows"}


def test_dtype_and_target_are_facts_of_every_kind():
    """Of rules that do the same, that for a type and a target is taken for these, and for no others."""
    own = default_registry()
    mine = {"dtype": ["f32", "bf16"], "target": "npu"}
    own.register(SCATTER, named("mine_of_points", one_window), **POINTS, **mine)
    for rule in own.rules(REVERSE):
        own.register(REVERSE, named(f"mine_{rule.name}", rule.lowering), **rule.constraints, **mine)
    own.check()
    turned = MODULE.replace("OP", "stablehlo.reverse %x, dims = [0]")
    for target, dtype, is_mine in (("npu", "f32", True), ("npu", "f16", False), ("other", "f32", False)):
        refusing = hl.Target(target, refused={REVERSE: "no kernel"})
        assert ("mine_" in became(turned.replace("f32", dtype), own, target=refusing)) is is_mine
        [record] = hl.classify(module(POINT.replace("DTYPE", dtype), ASSIGNED), registry=own, target=refusing)
        assert record.rule.startswith("mine_") is is_mine


def test_reports_leave_the_module_and_tell_what_is_left(tmp_path, monkeypatch, install_example, capsys):
    """`classify` changes nothing of the graph; `report` tells a variant without a rule, and `convert` exits with 3."""
    graph = hl.read(composite('sign = "minus"'))
    assert hl.classify(graph, registry=registry()) == ()
    assert "stablehlo.composite" in str(graph.module)
    install_example("composites")
    told = composite('mode = "mirror", copies = 1 : i64').replace("my.sign", "acme.expand_clone")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(told)
    (tmp_path / "npu_tiles.toml").write_text("")
    assert main(["report", "m.mlir", "--target", "./npu_tiles.toml"]) == 0
    assert 'left: stablehlo.composite "acme.expand_clone"' in capsys.readouterr().out
    convert = ["convert", "m.mlir", "-o", "out.mlir", "--target", "./npu_tiles.toml"]
    assert main(convert) == 3
    assert not (tmp_path / "out.mlir").exists()
    assert main([*convert, "--keep-unsupported"]) == 3
    assert "stablehlo.composite" in (tmp_path / "out.mlir").read_text()
