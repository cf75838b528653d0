"""Where computations end that were written otherwise: each is a region, not all of them one."""

import jax
import jax.numpy as jnp

import hlo_lower as hl

DERIVES = True


def test_a_sort_of_what_is_sorted_is_two_regions():
    """The greatest numbers end where nothing else of their type is computed before what the second sort gives; and of
    two values that both versions reverse what they reverse is equal."""
    exported = hl.export(lambda x: jnp.flip(jnp.sort(jax.lax.top_k(x, 2)[0])), jax.ShapeDtypeStruct((2, 4), "float32"))
    verdict = hl.verify(exported, hl.lower(exported, target="iree"))
    assert {region.how for region in verdict.regions} == {"derived"}
    assert "order of an order" not in {law for region in verdict.regions for law in region.laws}  # each sort is alone
