"""What an operation asks and promises beyond what it computes: looked at op by op."""

import inspect
import re

import pytest

import hlo_lower as hl
from hlo_lower.ir.mlir import stablehlo
from hlo_lower.verify.judges.silent_attributes import MEANINGS

KIND = "tensor<8x8xf32>"
NONE, TEN, ONE = (
    "",
    "<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>",
    "<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>",
)
BEST = "<mode = #stablehlo.result_accuracy_mode<HIGHEST>>"
SIX, THREE = (
    "<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, "
    f"rhs_component_count = 1, num_primitive_operations = {steps}, allow_imprecise_accumulation = false>"
    for steps in (6, 3)
)


def test_every_attribute_of_every_operation_has_a_meaning():
    """The table knows what jaxlib registers, so that no request and no promise of a new release is overlooked."""
    told = {
        name
        for kind in vars(stablehlo).values()
        if inspect.isclass(kind) and hasattr(kind, "OPERATION_NAME")
        for entry in vars(kind).values()
        if isinstance(entry, property) and entry.fget is not None
        for name in re.findall(r'self\.operation\.attributes\["(\w+)"\]', inspect.getsource(entry.fget))
    }
    assert "precision_config" in told
    assert told - set(MEANINGS) == set()


def products(*precisions, algorithm=("", "")):
    """A difference of two products, each with the precision of its operands, or by an algorithm."""
    told = [f", precision = [{both[0]}, {both[-1]}]" if both else "" for both in precisions]
    told = [one + (f", algorithm = {how}" if how else "") for one, how in zip(told, algorithm, strict=True)]
    both = [
        f"%{name} = stablehlo.dot_general %{x}, %{y}, contracting_dims = [1] x [0]{one} : ({KIND}, {KIND}) -> {KIND}"
        for name, x, y, one in zip("ab", "xy", "yx", told, strict=True)
    ]
    lines = "\n".join(both)
    return f"""func.func public @main(%x: {KIND}, %y: {KIND}) -> ({KIND}) {{
      {lines}
      %r = stablehlo.subtract %a, %b : {KIND}
      return %r : {KIND}
    }}"""


def exponential(accuracy, more=""):
    """An exponential of an accuracy."""
    told = f" {{result_accuracy = #stablehlo.result_accuracy{accuracy}}}" if accuracy else ""
    return f"""func.func public @main(%x: {KIND}) -> ({KIND}) {{
      %r = stablehlo.exponential %x{told or more} : {KIND}
      return %r : {KIND}
    }}"""


def largest(recall):
    """A call that finds the largest numbers, as many of them as it is asked for."""
    return f"""func.func public @main(%x: {KIND}) -> ({KIND}) {{
      %r = stablehlo.custom_call @Nearly(%x) {{mhlo.backend_config = {{recall_target = {recall} : f32}}}}
        : ({KIND}) -> {KIND}
      return %r : {KIND}
    }}"""


HIGHEST, HIGH, DEFAULT = ("HIGHEST",), ("HIGH",), ("DEFAULT",)


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (products(HIGHEST, DEFAULT), products(DEFAULT, HIGHEST), False),  # exchanged
        (products(HIGHEST, DEFAULT), products(HIGHEST, ()), True),
        (products(HIGHEST, DEFAULT), products(HIGHEST, HIGH), True),
        (products(("HIGHEST", "DEFAULT"), ()), products(("DEFAULT", "HIGHEST"), ()), False),
        (products((), (), algorithm=(SIX, "")), products((), (), algorithm=("", SIX)), False),
        (products((), (), algorithm=(SIX, "")), products((), (), algorithm=(SIX, SIX)), False),  # perhaps less
        (products((), (), algorithm=(SIX, SIX)), products((), (), algorithm=(SIX, THREE)), False),
        (products((), (), algorithm=(THREE, SIX)), products((), (), algorithm=(SIX, SIX)), True),
        (exponential(TEN), exponential(ONE), True),
        (exponential(ONE), exponential(TEN), False),
        (exponential(NONE), exponential(BEST), True),
        (exponential(BEST), exponential(NONE), False),
        (exponential(BEST), exponential(ONE), False),
        (exponential(TEN), exponential(NONE), False),
        (exponential(""), exponential("", '{mhlo.frontend_attributes = {a = "b"}}'), False),
        (largest(0.95), largest(0.5), False),
    ],
)
def test_an_operation_asks_for_at_least_what_it_stands_for(before, after, is_ok):
    """A CPU computes them alike; each is compared with the one of the same operands, and more is no loss."""
    verdict = hl.verify(before, after, level="regions", prove=True)
    assert verdict.ok is is_ok


def test_what_is_asked_for_is_not_accepted_because_of_runs():
    """Runs say nothing of precision, so that to take them for a proof does not cover it."""
    texts = products(HIGHEST, DEFAULT), products(DEFAULT, DEFAULT)
    assert hl.verify(*texts, accept_runs=True).exit_code == 4


def indexed(op, indices, flags, dims, *, start="%i", batching="", vector=1, updates=None, operand="8x8"):
    """A gather or scatter of one element at each index, at indices of a shape, with flags."""
    shape = f"tensor<{indices}xi32>"
    updates = updates or "x".join(indices.split("x")[:-1] if vector < indices.count("x") + 1 else [indices])
    told = "".join(f", {flag} = true" for flag in flags)
    of, to = (f"tensor<{operand}xi32>", f"tensor<{updates}xi32>")
    where = ", ".join(map(str, sorted(dims)))
    if op == "gather":
        sizes = ", ".join("1" * len(operand.split("x")))
        body = f"""%r = "stablehlo.gather"(%o, {start}) <{{slice_sizes = array<i64: {sizes}>{told}, dimension_numbers =
          #stablehlo.gather<collapsed_slice_dims = [{where}], {batching} start_index_map = {list(dims)},
          index_vector_dim = {vector}>}}> : ({of}, {shape}) -> {to}
        return %r : {to}"""
        of_result = to
    else:
        body = f"""%r = "stablehlo.scatter"(%o, {start}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [{where}], {batching} scatter_dims_to_operand_dims = {list(dims)},
          index_vector_dim = {vector}>{told}}}> ({{
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %c = stablehlo.add %a, %b : tensor<i32>
          stablehlo.return %c : tensor<i32>
        }}) : ({of}, {shape}, {to}) -> {of}
        return %r : {of}"""
        of_result = of
    counted = "" if start == "%i" else f"{start} = {COUNTED[start]} : {shape}"
    return f"""func.func public @main(%o: {of}, %i: {shape}, %u: {to}) -> ({of_result}) {{
        {counted}
        {body}
    }}"""


COUNTED = {"%k": "stablehlo.iota dim = 0", "%z": "stablehlo.constant dense<1>", "%n": "stablehlo.iota dim = 1"}
UNIQUE, SORTED = ["unique_indices"], ["indices_are_sorted"]
BATCHED = "input_batching_dims = [0], scatter_indices_batching_dims = [{}],"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("form", "flags", "is_ok"),
    [
        ({"op": "scatter", "indices": "6", "dims": [0], "vector": 1, "operand": "8"}, SORTED, False),
        ({"op": "scatter", "indices": "6x2", "dims": [0, 1]}, UNIQUE, False),
        ({"op": "scatter", "indices": "6x2", "dims": [1, 0]}, SORTED, False),
        ({"op": "scatter", "indices": "2x6", "dims": [0, 1], "vector": 0, "updates": "6"}, UNIQUE, False),
        ({"op": "scatter", "indices": "2x3x2", "dims": [0, 1], "vector": 2}, UNIQUE, False),
        ({"op": "gather", "indices": "6x1", "dims": [0], "operand": "8"}, SORTED, False),
        ({"op": "gather", "indices": "6x2", "dims": [0, 1]}, SORTED, False),
        ({"op": "gather", "indices": "6x2", "dims": [0, 1], "start": "%k"}, SORTED, True),
        ({"op": "scatter", "indices": "6x2", "dims": [0, 1], "start": "%k"}, UNIQUE + SORTED, True),
        ({"op": "scatter", "indices": "6x2", "dims": [0, 1], "start": "%z"}, SORTED, True),
        ({"op": "scatter", "indices": "6x2", "dims": [0, 1], "start": "%z"}, UNIQUE, False),
        ({"op": "scatter", "indices": "6x2", "dims": [0, 1], "start": "%n"}, UNIQUE, False),
    ],
)
def test_a_promise_that_was_not_made_is_looked_at(form, flags, is_ok):
    """In every layout of indices what a flag promises is evaluated; the first version need not keep it."""
    bare, told = indexed(**form, flags=[]), indexed(**form, flags=flags)
    verdict = hl.verify(bare, told, level="regions", prove=True)
    assert (verdict.exit_code == 0) is is_ok
    assert verdict.exit_code == (0 if is_ok else 1)

    assert hl.verify(told, bare, level="regions").ok


@pytest.mark.parametrize(("place", "start", "is_ok"), [(0, "%i", False), (1, "%i", False), (1, "%k", True)])
def test_a_promise_of_batches_is_that_of_each(place, start, is_ok):
    """What two batches write are two places, whatever their indices are."""
    form = {"op": "scatter", "dims": [1], "vector": 2, "batching": BATCHED.format(place), "start": start}
    indices = "8x3x1" if place == 0 else "3x8x1"
    texts = (
        indexed(**form, indices=indices, flags=flags).replace(
            "inserted_window_dims = [1]", "inserted_window_dims = [1]"
        )
        for flags in ([], UNIQUE)
    )
    assert hl.verify(*texts, level="regions").exit_code == (0 if is_ok else 1)


def test_a_promise_is_not_exchanged():
    """One that is made of other indices is no excuse."""
    texts = []
    for flags in (("true", "false"), ("false", "true")):
        scatters = "".join(
            f"""%r{k} = "stablehlo.scatter"(%o, {start}, %u) <{{unique_indices = {flag},
              scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
              scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
            ^bb0(%a: tensor<i32>, %b: tensor<i32>):
              stablehlo.return %b : tensor<i32>
            }}) : (tensor<8xi32>, tensor<6x1xi32>, tensor<6xi32>) -> tensor<8xi32>
            """
            for k, (start, flag) in enumerate(zip(("%k", "%i"), flags, strict=True))
        )
        texts.append(f"""func.func public @main(%o: tensor<8xi32>, %i: tensor<6x1xi32>, %u: tensor<6xi32>)
            -> (tensor<8xi32>, tensor<8xi32>) {{
          %k = stablehlo.iota dim = 0 : tensor<6x1xi32>
          {scatters}
          return %r0, %r1 : tensor<8xi32>, tensor<8xi32>
        }}""")
    assert hl.verify(*texts, level="regions").exit_code == 1
    assert hl.verify(*texts[::-1], level="regions").exit_code == 0
