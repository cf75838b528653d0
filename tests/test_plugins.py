"""Rules of installed distributions: a real one is made in a folder on the import path, and two examples are some."""

import ast
import importlib
import sys

import pytest
from decode_module import POINT
from example_plugins import EXAMPLES, own_tests_of

import hlo_lower as hl
from hlo_lower.lowering import kinds
from hlo_lower.testing.prove.proof_campaign import prove_rules, rules_named

RULES = """\
from hlo_lower.plugin import Combiner, Drops, InBounds, RuleList, Subset, one_window

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
    subset={Subset.POINT},
    combiner={Combiner.ASSIGN},
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="a write of my own",
)
def scatter_to_NAME(op):
    return one_window(op)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with a module and entry points; give the folder that it is in."""
    monkeypatch.delenv(kinds.WITHOUT, raising=False)
    modules = []

    def installed(name, source, entry_points="", folder="site"):
        site = tmp_path / folder
        info = site / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        module = name.replace("-", "_") + "_rules"
        (info / "entry_points.txt").write_text(f"[hlo_lower.rules]\n{entry_points or f'mine = {module}:rules'}\n")
        (site / f"{module}.py").write_text(source)
        modules.append(module)
        monkeypatch.syspath_prepend(str(site))
        kinds._registry.cache_clear()
        return site

    yield installed
    kinds._registry.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)
    importlib.invalidate_caches()


def refused(call=hl.rules):
    """The error that a plug-in gives."""
    with pytest.raises(hl.PluginError) as error:
        call()
    assert error.value.exit_code == 2
    assert f"{kinds.WITHOUT}=1 runs without plug-ins" in error.value.next_step
    return str(error.value)


def test_rules_of_a_distribution_are_used(install, monkeypatch):
    """They are chosen by every function, and shown with their place; a variable or a registry leaves them out."""
    install("npu-rules", RULES.replace("NAME", "own_write"))
    place = "site/npu_rules_rules.py:6 (npu-rules 1.2, entry point mine)"
    assert [row.place for row in hl.rules() if row.name == "own_write"] == [place]
    [record] = hl.classify(hl.read(POINT))
    assert record.rule == "own_write"
    assert (record.form, record.why["place"]) == ("a write of my own", place)
    lowered = hl.lower(POINT)
    assert lowered.records[0].rule == "own_write"
    assert hl.verify(POINT, lowered).ok
    [record] = hl.classify(hl.read(POINT), registry=kinds.registry_with(()))
    assert record.rule == "guarded_dynamic_update_slice"
    monkeypatch.setenv(kinds.WITHOUT, "1")
    assert "own_write" not in [row.name for row in hl.rules()]


POWERS = """\
from hlo_lower.plugin import COMPOSITE, RuleList, When

rules = RuleList()
small = lambda facts: facts.full_name == "acme.power" and facts.attributes["exponents"][0] <= 4


@rules.lowers(COMPOSITE, when=When("acme.power of 4 at most", small), form="x * x * ...")
def composite_to_products(op):
    x, count = op.node.operand(0), op.facts.attributes["exponents"][0]
    found = x
    for _ in range(count - 1):
        found = op.build.multiply(found, x)
    return [found]
"""
POWER = """\
func.func public @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.composite "acme.power" %x {composite_attributes = {exponents = [COUNT]}, decomposition = @power} :
    (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
func.func private @power(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = stablehlo.constant dense<COUNT> : tensor<4xi32>
  %r = stablehlo.power %x, %c : tensor<4xi32>
  return %r : tensor<4xi32>
}
"""


def test_a_rule_for_a_composite_goes_by_its_attributes(install):
    """It is taken where its condition on them holds, which the table shows; it is verified like any other."""
    install("npu-rules", POWERS)
    assert [row.classes for row in hl.rules() if row.name == "composite_to_products"] == [
        "composite, acme.power of 4 at most"
    ]
    for count, products in ((3, 2), (9, 0)):
        source = POWER.replace("COUNT", str(count))
        lowered = hl.lower(source, legalize=True)
        assert lowered.text.count("stablehlo.multiply") == products
        assert ("call @power" in lowered.text) is (products == 0)
        assert hl.verify(source, lowered).ok


DECLARES = """\
from hlo_lower.plugin import RuleList

rules = RuleList()
rules.declare("acme.power", exponent={VALUES})


@rules.composite("acme.power", exponent=VALUE)
def power_to_RULE(op):
    x = found = op.node.operand(0)
    for _ in range(op.facts["exponent"] - 1):
        found = op.build.multiply(found, x)
    return [found]
"""


def test_a_plugin_adds_a_variant_to_what_another_declares(install):
    """Whichever comes first, the one declares and the other adds; two that declare otherwise are an error with both."""
    declares = DECLARES.replace("VALUES", "2, 3").replace("VALUE", "2").replace("RULE", "square")
    install("b-rules", declares, folder="b")
    adds = declares.replace('rules.declare("acme.power", exponent={2, 3})', "").replace("exponent=2", "exponent=3")
    install("a-rules", adds.replace("square", "cube"), folder="a")
    for count, rule in ((2, "power_to_square"), (3, "power_to_cube")):
        source = POWER.replace("exponents = [COUNT]", f"exponent = {count}").replace("COUNT", str(count))
        lowered = hl.lower(source, verify="regions")
        assert f"({rule})" in lowered.notes[0]
    install("c-rules", declares.replace("{2, 3}", "{2}").replace("square", "cubes"), folder="c")
    told = refused()
    assert "c-rules 1.2, entry point mine of hlo_lower.rules: the plug-in cannot be used: c/c_rules_rules.py:4" in told
    assert "acme.power is declared otherwise at b/b_rules_rules.py:4 (b-rules 1.2, entry point mine)" in told


PROVED = """\
from hlo_lower.plugin import RuleList

rules = RuleList()
CALL = '''
func.func public @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %r = stablehlo.custom_call @acme.scale(%x) {backend_config = "by=BY"} : (tensor<3xi32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}'''
COMPOSITE = '''
func.func public @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %r = stablehlo.composite "acme.scale" %x {composite_attributes = {by = BY}, decomposition = @f}
    : (tensor<3xi32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}
func.func private @f(%x: tensor<3xi32>) -> tensor<3xi32> {
  %c = stablehlo.constant dense<BY> : tensor<3xi32>
  %r = stablehlo.multiply %x, %c : tensor<3xi32>
  return %r : tensor<3xi32>
}'''
TEXTS = [text.replace("BY", str(by)) for text in (CALL, COMPOSITE) for by in (2, 3, 4, 5)]
rules.declare("acme.scale", by={2, 3, 4, 5}, decomposition=lambda x, by: x * by, examples=TEXTS)


@rules.composite("acme.scale", by={2, 4})
def scale_to_sum(op):
    x = op.node.operand(0)
    twice = op.build.add(x, x)
    return [twice if op.facts["by"] == 2 else op.build.add(twice, twice)]


@rules.composite("acme.scale", by=3)
def scale_to_square(op):
    return [op.build.multiply(op.node.operand(0), op.node.operand(0))]
"""


def test_rules_of_a_plugin_are_proved_on_its_examples(install):
    """Composites and custom calls; a rule is tried on what it takes, and one that is wrong is refuted on each."""
    install("npu-rules", PROVED)
    found = {one.rule: one for one in prove_rules(rules_named(["scale_to_sum", "scale_to_square"]))}
    told = {name: (one.proved, one.other, len(one.refuted), one.unknown) for name, one in found.items()}
    assert told == {"scale_to_sum": (4, 4, 0, []), "scale_to_square": (0, 6, 2, [])}


def test_examples_that_are_none(install):
    """A rule without any has none to be proved on; what raises, or gives no text, is an error."""
    install("a-rules", DECLARES.replace("VALUES", "2").replace("VALUE", "2").replace("RULE", "square"), folder="a")
    with pytest.raises(hl.InputError, match="has no family of modules"):
        rules_named(["power_to_square"])
    for number, (examples, told) in enumerate(
        [
            ("lambda: [1 / 0]", "raised ZeroDivisionError: division by zero"),
            ("[3]", "is of type int, not the text"),
            ("'text'", "examples must be a list"),
        ]
    ):
        source = DECLARES.replace("power", f"root{number}").replace("{VALUES}", f"{{2}}, examples={examples}")
        install(f"rules-{number}", source.replace("VALUE", "2").replace("RULE", "two"), folder=f"rules{number}")
        with pytest.raises(hl.HloLowerError, match=told):
            prove_rules(rules_named([f"root{number}_to_two"]))


NOT_IMPORTED = "npu_rules_rules:rules cannot be imported:"
NO_EMITS = "scatter_to_NAME: emits is no longer declared: the engine looks at what a rule builds"
SAME_NAME = "scatter_to_while has the name of scatter_to_while at lowering/scatter/many_windows.py"
UNUSABLE = {
    "syntax": ("rules = (", f"{NOT_IMPORTED} SyntaxError: '(' was never closed"),
    "missing name": ("", f"{NOT_IMPORTED} AttributeError: module 'npu_rules_rules' has no attribute"),
    "a list": ("rules = []", "npu_rules_rules:rules is a list, not a RuleList"),
    "a module": ("rules = []", "npu_rules_rules is a module, not a RuleList"),
    "op": (RULES.replace("stablehlo.scatter", "stablehlo.fft"), "lowers stablehlo.fft, which has no domains"),
    "no set": (RULES.replace("{Combiner.ASSIGN}", "None"), "combiner must be a value or a set of values, not None"),
    "value": (RULES.replace("{Combiner.ASSIGN}", "{'added'}"), "combiner must be some of add|"),
    "fact": (RULES.replace("combiner=", "combine="), "constrains combine, which is not a fact of stablehlo.scatter"),
    "emits": (RULES.replace("form=", 'emits=("stablehlo.add",), form='), NO_EMITS),
    "name": (RULES.replace("NAME", "while"), SAME_NAME),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_plugin_that_cannot_be_used_is_an_error(install, what):
    """It is never left out: the error names the distribution, the entry point and the reason."""
    source, says = UNUSABLE[what]
    install("npu-rules", source, "mine = npu_rules_rules" if what == "a module" else "")
    told = refused()
    assert told.startswith("npu-rules 1.2, entry point mine of hlo_lower.rules: the plug-in cannot be used: ")
    assert says in told
    assert refused(lambda: hl.lower(POINT)) == told


def test_plugins_that_contradict_each_other_or_the_built_in_rules(install, tmp_path):
    """Two rules, neither more specific, are an error that names both places, distributions and entry points."""
    for name, more in (("a", "unique={Unique.PROVED}"), ("b", "oob={OutOfBounds.XLA}")):
        source = RULES.replace("NAME", name).replace("InBounds,", "InBounds, OutOfBounds, Unique,")
        install(f"{name}-rules", source.replace("drops=", f"{more}, drops="), folder=name)
    told = refused()
    assert told.startswith("the rules of plug-ins contradict others: stablehlo.scatter: ")
    for name in ("a", "b"):
        assert f"scatter_to_{name} ({name}/{name}_rules_rules.py:6 ({name}-rules 1.2, entry point mine))" in told
        sys.path.remove(str(tmp_path / name))
    install("npu-rules", RULES.replace("NAME", "any_drop").replace("drops={Drops.WINDOWS},\n", ""))
    told = refused()
    assert "scatter_to_any_drop (site/npu_rules_rules.py:6 (npu-rules 1.2, entry point mine))" in told
    assert "(lowering/" in told


PACKAGES = {"plugin": "point_select", "composites": "expand_clone"}
"""The examples that are rules, each with its package."""


def test_the_tests_of_one_rule_pass(install_example, monkeypatch):
    """The rule is taken and is equal, a wrong variant is found."""
    install_example("plugin")
    its_tests = own_tests_of("plugin")
    for oob in ("xla", "spec"):
        its_tests.test_a_point_is_selected(oob)
    its_tests.test_a_large_operand_keeps_its_place()
    its_tests.test_a_wrong_comparison_is_found()
    its_tests.test_without_the_plugin_there_is_no_lowering(monkeypatch)
    assert len([name for name in vars(its_tests) if name.startswith("test_")]) == 4


def test_the_tests_of_rules_for_a_composite_pass(install_example):
    """Each variant is lowered by its rule on each target; one without a rule, and a wrong rule, show."""
    install_example("composites")
    its_tests = own_tests_of("composites")
    for variant in its_tests.RULES:
        its_tests.test_each_variant_is_lowered_by_its_rule(*variant)
    its_tests.test_a_variant_without_a_rule_is_an_error()
    its_tests.test_a_wrong_rule_for_one_variant_is_found()
    assert len([name for name in vars(its_tests) if name.startswith("test_")]) == 3


@pytest.mark.parametrize("name", PACKAGES)
def test_an_example_imports_one_module_of_ours(name):
    """Its rules import what is public, and nothing else of the package."""
    tree = ast.parse((EXAMPLES / name / PACKAGES[name] / "__init__.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name.startswith("hlo_lower")} == {"hlo_lower.plugin"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
