"""Shardings of a module for one device go where the target does not know them; those of several devices are told."""

import pytest

import hlo_lower as hl

PLACED = """module attributes {mhlo.num_partitions = %d : i32} {
  sdy.mesh @mesh = <[%s]>
  func.func public @main(%%x: tensor<8xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{%s}]>})
      -> (tensor<8xf32> {jax.result_info = "y"}) {
    %%y = stablehlo.sign %%x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{%s}]>]>} : tensor<8xf32>
    %%z = sdy.sharding_constraint %%y <@mesh, [{%s}]> : tensor<8xf32>
    return %%z : tensor<8xf32>
  }
}
"""
ONE, TWO = PLACED % (1, "", "", "", ""), PLACED % (2, '"a"=2', '"a"', '"a"', '"a"')


@pytest.mark.parametrize("target", ["iree", "litert", "coreml"])
def test_shardings_of_one_device_are_taken_off_and_told(target):
    """They mean nothing; what else stands on the argument stays. A mesh of two devices is told, with what helps."""
    lowered = hl.lower(ONE, target=target)
    assert "sdy" not in lowered.text
    assert "jax.buffer_donor = true" in lowered.text
    assert not lowered.refused
    told = [change.op for change in lowered.changes if change.why.code.code == "placed_on_one_device"]
    assert told == ["sdy.mesh", "sdy.sharding"]
    assert hl.verify(ONE, lowered).ok
    for text in (TWO, TWO.replace("attributes {mhlo.num_partitions = 2 : i32} ", "")):
        lowered = hl.lower(text, target=target)
        assert "sdy.mesh" in lowered.text
        assert "sdy.mesh" in [one.op for one in lowered.refused]
        assert not hl.lower(text, target=target, one_device=True).refused


def test_they_are_found_in_whatever_form_the_module_comes():
    """Bytecode and portable artifacts name the dialect as text does; without a target, and for XLA, they stay."""
    lowered = hl.lower(ONE)
    for form in (lowered.bytecode(), lowered.portable(), lowered.graph):
        assert "sdy" not in hl.lower(form, target="iree").text
    for kept in (lowered, hl.lower(ONE, target="xla")):
        assert kept.text.count("sdy.") == ONE.count("sdy.")


def test_a_sharding_that_a_version_for_two_devices_gains_is_a_difference():
    """Shardings are ignored where both versions are for one device, and not where one of them is."""
    plain = """func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = stablehlo.sign %x : tensor<8xf32>
      return %y : tensor<8xf32>
    }"""
    spread = plain.replace("f32>)", 'f32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})', 1) + 'sdy.mesh @m = <["a"=2]>'
    for first, second in ((plain, spread), (spread, plain)):
        assert hl.verify(first, second).differs


@pytest.mark.sweep
def test_a_sharding_that_a_version_for_two_devices_loses_is_a_difference():
    """For one device the judge ignores the sharding of an argument, for two it is a promise to the caller."""
    for text, is_equal in ((ONE, True), (TWO, False)):
        before, _, after = text.partition("{jax.buffer_donor = true, ")
        assert hl.verify(text, before + "{jax.buffer_donor = true" + after[after.index("})") :]).ok == is_equal
