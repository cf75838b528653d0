"""Scatters that a target takes as they are: what is kept, what is not, and how both are told."""

import pytest

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.ops.targets.native_scatter import NativeScatter

ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
POINTS = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
COLUMNS = (
    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
)
TILES = "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
FORMS = {
    "rows": (ROWS, 1, "5x3"),
    "points": (POINTS, 2, "5"),
    "columns": (COLUMNS, 1, "4x5"),
    "tiles": (TILES, 1, "5x2x3"),
}
DISTINCT = "dense<[[3], [0], [2], [1], [4]]>"


def module(form="rows", dtype="f32", index="i32", body="stablehlo.return %b : T", constant="", before=""):
    """Five updates of this form into 4x3 elements (5x3 where the indices are a constant)."""
    numbers, components, updates = FORMS[form]
    operand, indices = f"tensor<{'5x3' if constant else '4x3'}x{dtype}>", f"tensor<5x{components}x{index}>"
    known = f"%k = stablehlo.constant {constant} : {indices}" if constant else before.replace("INDICES", indices)
    return f"""
func.func public @main(%o: {operand}, %i: {indices}, %u: tensor<{updates}x{dtype}>) -> {operand} {{
  {known}
  %r = "stablehlo.scatter"(%o, {"%k" if known else "%i"}, %u) <{{
    scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    {body.replace("T", f"tensor<{dtype}>")}
  }}) : ({operand}, {indices}, tensor<{updates}x{dtype}>) -> {operand}
  return %r : {operand}
}}"""


ADD = "%c = stablehlo.add %a, %b : T\n stablehlo.return %c : T"
NEGATE = "%c = stablehlo.negate %b : T\n stablehlo.return %c : T"
TWICE = "%d = stablehlo.add %b, %b : T\n %c = stablehlo.add %a, %d : T\n stablehlo.return %c : T"
IN_RANGE = """%lo = stablehlo.constant dense<0> : INDICES
  %hi = stablehlo.constant dense<3> : INDICES
  %k = stablehlo.clamp %lo, %i, %hi : INDICES"""


def lowered_for(*keep, text, **options):
    """The module lowered for a target that keeps these."""
    target = hl.Target("npu", refused={"stablehlo.scatter": "in general"}, keep=keep)
    return hl.lower(text, target=target, **options)


ANY = NativeScatter(in_bounds="any", unique="any")


@pytest.mark.parametrize(
    ("native", "text", "kept"),
    [
        (ANY, module(), True),
        (ANY, module("columns"), True),
        (ANY, module(dtype="i8"), True),
        (ANY, module(body=ADD), False),
        (ANY, module(body=NEGATE), False),
        (NativeScatter({"add"}, in_bounds="any", unique="any"), module(body=ADD), True),
        (NativeScatter({"add"}, in_bounds="any", unique="any"), module(body=TWICE), False),
        (NativeScatter({"add"}, in_bounds="any", unique="any"), module(), False),
        (NativeScatter(dtypes={"i8"}, in_bounds="any", unique="any"), module(dtype="i8"), True),
        (NativeScatter(dtypes={"i8"}, in_bounds="any", unique="any"), module(), False),
        (NativeScatter(index_dtypes={"i32"}, in_bounds="any", unique="any"), module(), True),
        (NativeScatter(index_dtypes={"i32"}, in_bounds="any", unique="any"), module(index="i64"), False),
        (NativeScatter(form="rows", in_bounds="any", unique="any"), module(), True),
        (NativeScatter(form="rows", in_bounds="any", unique="any"), module("points"), True),
        (NativeScatter(form="rows", in_bounds="any", unique="any"), module("columns"), False),
        (NativeScatter(form="rows", in_bounds="any", unique="any"), module("tiles"), False),
        (NativeScatter(form="points", in_bounds="any", unique="any"), module("points"), True),
        (NativeScatter(form="points", in_bounds="any", unique="any"), module(), False),
        (NativeScatter(unique="any"), module(), False),
        (NativeScatter(unique="any"), module(before=IN_RANGE), True),
        (NativeScatter(in_bounds="any"), module(before=IN_RANGE), False),
        (NativeScatter(), module(constant=DISTINCT), True),
        (NativeScatter(), module(constant=DISTINCT.replace("4", "3")), False),
        (NativeScatter(), module(constant=DISTINCT.replace("4", "5")), False),
    ],
)
def test_what_is_kept_is_what_the_entry_says(native, text, kept):
    """Combiner, element types, form, bounds and uniqueness have to fit, each by itself."""
    lowered = lowered_for(native, text=text)
    assert lowered.text.count("stablehlo.scatter") == 2 * kept  # the op and its dimension numbers
    [record] = lowered.records
    assert (record.rule == "") is kept
    assert (record.why.code is Code.KEPT) is kept


def test_a_kept_scatter_is_told_and_is_not_unsupported():
    """It counts as left, not as lacking a lowering; its record says who takes it, and on what."""
    text = module(dtype="i8")
    lowered = lowered_for(ANY, text=text)
    assert (lowered.scatters_left, lowered.unsupported) == (1, 0)
    assert lowered.records[0].why == Code.KEPT("npu", "assign", "i8", False)
    graph = hl.read(text)
    assert hl.classify(graph, target=hl.Target("npu", keep=[ANY])) == lowered.records


def test_twins_are_kept_alike():
    """A scatter that is like one before it is kept, too, under its own number."""
    text = module()
    both = text.replace(
        "  return %r", text[text.index("  %r =") : text.index("  return %r")].replace("%r", "%s") + "  return %s"
    )
    records = lowered_for(ANY, text=both).records
    assert [(record.number, record.rule) for record in records] == [(1, ""), (2, "")]
    assert records[0].why == records[1].why


def test_elements_are_not_dropped_by_whom_drops_windows():
    """Under the specification's policy an overhanging window is written in part; a target that drops it does not."""
    for oob, kept in (("xla", 1), ("spec", 0)):
        assert lowered_for(ANY, text=module("tiles"), oob=oob).scatters_left == kept
        assert lowered_for(ANY, text=module("rows"), oob=oob).scatters_left == 1


def test_a_scatter_is_kept_where_nothing_else_is_legal():
    """With "no_lowering" it is lowered as long as the target takes a form of it, and kept where it takes none."""
    keep = NativeScatter(in_bounds="any", unique="any", when="no_lowering")
    assert lowered_for(keep, text=module()).scatters_left == 0
    target = hl.Target(
        "npu", refused={"stablehlo.scatter": "", "stablehlo.select": "", "stablehlo.while": ""}, keep=[keep]
    )
    lowered = hl.lower(module(), target=target)
    assert (lowered.scatters_left, lowered.unsupported) == (1, 0)
    assert lowered.records[0].why == Code.KEPT("npu", "assign", "f32", True)
    with pytest.raises(hl.NotLoweredError, match="no lowering for target npu"):
        hl.lower(module(body=ADD), target=target)


def test_what_is_kept_verifies():
    """A module with a kept scatter is held against the original like any other."""
    text = module()
    lowered = lowered_for(ANY, text=text)
    assert hl.verify(text, lowered).ok


@pytest.mark.parametrize("mode", ["exact", "reassociate"])
def test_the_float_mode_is_the_targets_where_none_is_given(mode):
    """A target's own mode holds unless the user names one."""
    from hlo_lower.lowering.options import Options

    assert Options().float_mode == "exact"
    assert Options(hl.Target("npu", float_mode=mode)).float_mode == mode
    assert Options(hl.Target("npu", float_mode=mode), float_mode="exact").float_mode == "exact"
