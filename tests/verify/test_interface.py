"""What is not computed is compared as it stands: public functions, signatures, attributes, effects."""

import pytest
from two_programs import aligned, programs
from untyped_mlir import function, module

from hlo_lower.verify import verify
from hlo_lower.verify.read.interface import effect_differences, interface_differences

PLAIN = module("%a: 8xf32, %b: 8xf32", "%r = add %a, %b")


def differences(before: str, after: str) -> list[str]:
    """How two interfaces differ."""
    return interface_differences(*programs(before, after))


ATTRIBUTES = [
    *("tf.aliasing_output = 0 : i32", "jax.buffer_donor = true", 'mhlo.sharding = "{replicated}"'),
    *('mhlo.memory_kind = "pinned_host"', 'mhlo.layout_mode = "default"'),
]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_an_attribute_of_an_argument_is_not_lost_or_gained(attribute):
    """Each is told with the argument and what it was; the same on both sides is no difference."""
    other = PLAIN.replace("%b: tensor<8xf32>", f"%b: tensor<8xf32> {{{attribute}}}")
    name = attribute.split(" ")[0]
    assert differences(other, other) == []
    [lost], [gained] = differences(other, PLAIN), differences(PLAIN, other)
    assert lost.startswith(f"@main: argument 1 loses {name} = ")
    assert gained.startswith(f"@main: argument 1 gains {name} = ")


def test_other_attributes_are_told():
    """Those of a result with both values; the module's own and a function's; names of modules are not compared."""

    def with_result(behind):
        return PLAIN.replace("-> tensor<8xf32> {", f"-> {behind} {{")

    results = (with_result(f'(tensor<8xf32> {{jax.result_info = "{name}"}})') for name in ("x", "y"))
    assert differences(*results) == ['@main: result 0 has jax.result_info = "x", and "y" in the second version']
    head = "module @{} attributes {{mhlo.num_partitions = {} : i32}}"
    [told] = differences(*(f"{head.format(*how)} {{\n{PLAIN}}}" for how in (("a", 1), ("b", 2))))
    assert told.startswith("module has mhlo.num_partitions = 1")
    other = with_result('tensor<8xf32> attributes {execution_thread = "host"}')
    assert differences(PLAIN, other) == ['@main: function gains execution_thread = "host"']


def test_public_functions_stay():
    """A public function may not vanish or come in; a private one may."""
    for visible in ("public", "private"):
        more = PLAIN + function(f"{visible} @f", "%a: 8xf32", "", "%a")
        expected = ["@f is public in the {} version only"] if visible == "public" else []
        assert differences(more, PLAIN) == [told.format("first") for told in expected]
        assert differences(PLAIN, more) == [told.format("second") for told in expected]


def test_every_public_function_is_verified():
    """A mistake in a public function beside @main is a region of that function."""
    texts = (PLAIN + function("public @f", "%a: 8xf32", f"%r = {op} %a") for op in ("negate", "abs"))
    verdict = verify(*texts, level="regions")
    assert [(r.function, r.status) for r in verdict.regions] == [("f", "differs")]


def test_another_signature_ends_it():
    """Where a type differs nothing else is compared: it is told with both types."""
    verdict = verify(PLAIN, PLAIN.replace("8x", "9x"), level="regions")
    assert (verdict.regions, verdict.exit_code) == ((), 1)
    assert "and (tensor<9xf32>, tensor<9xf32>)" in verdict.interface[0]


CALL = 'custom_call @tell(%a) {has_side_effect = true, backend_config = "WHAT"} -> ()'


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
    bodies = f"{CALL}\n%r = negate %a", f"{calls}\n%r = abs %a"
    pairs = aligned(*(module("%a: 8xf32", body) for body in bodies))
    assert [what for pair in pairs for what in effect_differences(pair)] == ([told] if told else [])
