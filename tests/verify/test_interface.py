"""What is not computed is compared as it stands: public functions, signatures, attributes, effects."""

import pytest
from two_programs import F8, aligned, main, programs

from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import effect_differences, interface_differences

SUM = f"%r = stablehlo.add %a, %b : {F8}"
PLAIN = main(f"%a: {F8}, %b: {F8}", SUM, "%r")


def differences(before: str, after: str) -> list[str]:
    """How two interfaces differ."""
    return interface_differences(*programs(before, after))


ATTRIBUTES = [
    "tf.aliasing_output = 0 : i32",
    "jax.buffer_donor = true",
    'mhlo.sharding = "{replicated}"',
    'mhlo.memory_kind = "pinned_host"',
    'mhlo.layout_mode = "default"',
]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_an_attribute_of_an_argument_is_not_lost_or_gained(attribute):
    """Each is told with the argument and what it was; the same on both sides is no difference."""
    other = PLAIN.replace(f"%b: {F8}", f"%b: {F8} {{{attribute}}}")
    name = attribute.split(" ")[0]
    assert differences(other, other) == []
    [lost], [gained] = differences(other, PLAIN), differences(PLAIN, other)
    assert lost.startswith(f"@main: argument 1 loses {name} = ")
    assert gained.startswith(f"@main: argument 1 gains {name} = ")


def test_an_attribute_that_is_another_one_is_told_with_both():
    """Another value of an attribute of a result is told with both values."""
    texts = [PLAIN.replace(f"-> ({F8})", f'-> ({F8} {{jax.result_info = "{name}"}})') for name in ("x", "y")]
    assert differences(*texts) == ['@main: result 0 has jax.result_info = "x", and "y" in the second version']


def test_attributes_of_the_module_and_the_function():
    """The module's own attributes and a function's are compared, names of modules are not."""
    texts = [
        f"module @{name} attributes {{mhlo.num_partitions = {n} : i32}} {{\n{PLAIN}}}"
        for name, n in (("a", 1), ("b", 2))
    ]
    [told] = differences(*texts)
    assert told.startswith("module has mhlo.num_partitions = 1")
    other = PLAIN.replace(f"-> ({F8}) {{", f'-> ({F8}) attributes {{execution_thread = "host"}} {{')
    assert differences(PLAIN, other) == ['@main: function gains execution_thread = "host"']


def test_public_functions_stay():
    """A public function may not vanish or come in; a private one may."""
    for visible in ("public", "private"):
        more = PLAIN + f"func.func {visible} @f(%a: {F8}) -> {F8} {{ return %a : {F8} }}"
        expected = ["@f is public in the {} version only"] if visible == "public" else []
        assert differences(more, PLAIN) == [told.format("first") for told in expected]
        assert differences(PLAIN, more) == [told.format("second") for told in expected]


def test_every_public_function_is_verified():
    """A mistake in a public function beside @main is a region of that function."""
    texts = [
        PLAIN + f"func.func public @f(%a: {F8}) -> {F8} {{ %r = stablehlo.{op} %a : {F8} return %r : {F8} }}"
        for op in ("negate", "abs")
    ]
    verdict = verify(*texts, level="regions")
    assert [(r.function, r.status) for r in verdict.regions] == [("f", "differs")]


def test_another_signature_ends_it():
    """Where a type differs nothing else is compared: it is told with both types."""
    other = PLAIN.replace("8x", "9x")
    verdict = verify(PLAIN, other, level="regions")
    assert (verdict.regions, verdict.exit_code) == ((), 1)
    assert "and (tensor<9xf32>, tensor<9xf32>)" in verdict.interface[0]


CALL = f'stablehlo.custom_call @tell(%a) {{has_side_effect = true, backend_config = "WHAT"}} : ({F8}) -> ()'


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (CALL, ""),
        ("", "main: operations with effects: custom_call and none"),
        (f"{CALL}\n{CALL}", "main: operations with effects: custom_call and custom_call, custom_call"),
        (CALL.replace("WHAT", "ELSE"), "main: custom_call with other attributes"),
    ],
)
def test_effects_stay_in_number_and_order(calls, told):
    """An operation with effects may not vanish, come twice, or have other attributes."""
    before = main(f"%a: {F8}", f"{CALL}\n%r = stablehlo.negate %a : {F8}", "%r")
    after = main(f"%a: {F8}", f"{calls}\n%r = stablehlo.abs %a : {F8}", "%r")
    found = [what for pair in aligned(before, after) for what in effect_differences(pair)]
    assert found == ([told] if told else [])
