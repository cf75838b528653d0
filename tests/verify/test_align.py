"""Alignment: what both modules have is matched, and each change is a region of its own, in loops too."""

from two_programs import F8, aligned, main, names, regions

BOTH = f"%a: {F8}, %b: {F8}"
CHAIN = f"""%x = stablehlo.add %a, %b : {F8}
%y = stablehlo.multiply %x, %b : {F8}
%z = stablehlo.maximum %y, %a : {F8}
%r = stablehlo.subtract %z, %x : {F8}"""
LOOP = f"""%s = stablehlo.constant dense<0> : tensor<i32>
%w:3 = stablehlo.while(%k = %s, %x = %a, %y = %b) : tensor<i32>, {F8}, {F8} cond {{
  %n = stablehlo.constant dense<4> : tensor<i32>
  %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}} do {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %k, %one : tensor<i32>
  %t = stablehlo.subtract %x, %y : {F8}
  stablehlo.return %next, %t, %y : tensor<i32>, {F8}, {F8}
}}"""


def test_an_identical_pair_has_no_region():
    """Nothing differs, so nothing is to be judged."""
    assert regions(main(BOTH, CHAIN, "%r"), main(BOTH, CHAIN, "%r")) == []


def test_other_names_order_and_duplicates_make_no_region():
    """A second version that is renamed, reordered and partly written twice has none either."""
    other = f"""%u = stablehlo.add %b, %a : {F8}
%x = stablehlo.add %a, %b : {F8}
%y = stablehlo.multiply %b, %u : {F8}
%z = stablehlo.maximum %y, %a : {F8}
%r = stablehlo.subtract %z, %x : {F8}"""
    assert regions(main(BOTH, CHAIN, "%r"), main(BOTH, other, "%r")) == []


def test_a_changed_operation_is_one_region():
    """One operation in the middle is a region with its two operands as inputs; what reads it is matched behind it."""
    changed = CHAIN.replace("multiply", "divide")
    [region] = regions(main(BOTH, CHAIN, "%r"), main(BOTH, changed, "%r"))
    assert names(region) == (["multiply"], ["divide"])
    assert (len(region.inputs), len(region.outputs), region.where) == (2, 1, "main")


def test_two_changes_are_two_regions():
    """Changes with matched operations between them are judged each alone."""
    changed = CHAIN.replace("multiply", "divide").replace("subtract", "power")
    found = [names(region) for region in regions(main(BOTH, CHAIN, "%r"), main(BOTH, changed, "%r"))]
    assert sorted(found) == [(["multiply"], ["divide"]), (["subtract"], ["power"])]


def test_thirty_rewritten_scatters_are_thirty_small_regions():
    """In a chain of scatters into one cache each is a region of one scatter and one update of a slice."""

    def chain(*, rewritten: bool) -> str:
        lines, last = ["%z = stablehlo.constant dense<0> : tensor<i32>"], "%a"
        for k in range(30):
            at = f"%i{k}"
            lines.append(f"{at} = stablehlo.slice %i [{k}:{k + 1}] : (tensor<30xi32>) -> tensor<1xi32>")
            lines.append(f"%u{k} = stablehlo.slice %u [{k}:{k + 1}] : (tensor<30xf32>) -> tensor<1xf32>")
            if rewritten:
                lines.append(f"%s{k} = stablehlo.reshape {at} : (tensor<1xi32>) -> tensor<i32>")
                lines.append(
                    f"%r{k} = stablehlo.dynamic_update_slice {last}, %u{k}, %s{k} : "
                    f"({F8}, tensor<1xf32>, tensor<i32>) -> {F8}"
                )
            else:
                lines.append(f"""%r{k} = "stablehlo.scatter"({last}, {at}, %u{k}) <{{scatter_dimension_numbers =
  #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>
  }}) : ({F8}, tensor<1xi32>, tensor<1xf32>) -> {F8}""")
            lines.append(f"%t{k} = stablehlo.tanh %r{k} : {F8}")
            last = f"%t{k}"
        return main(f"%a: {F8}, %i: tensor<30xi32>, %u: tensor<30xf32>", "\n".join(lines), last)

    found = regions(chain(rewritten=False), chain(rewritten=True))
    assert len(found) == 30
    small, last = (
        (["scatter"], ["reshape", "dynamic_update_slice"]),
        (["scatter", "tanh"], ["reshape", "dynamic_update_slice", "tanh"]),
    )
    assert all(names(region) in (small, last) for region in found)
    assert sum(names(region) == small for region in found) >= 29  # the last one goes to what is returned


def test_a_changed_body_is_a_region_within_its_loop():
    """The loop's two bodies are aligned with equal arguments, and the place says which body it is."""
    before, after = (main(BOTH, text, "%w#1") for text in (LOOP, LOOP.replace("subtract", "maximum")))
    [region] = regions(before, after)
    assert names(region) == (["subtract"], ["maximum"])
    assert region.where == "main > while 1 body 1"


def test_a_changed_condition_is_a_region_within_its_loop():
    """The number of turns is a constant of the condition."""
    before, after = (main(BOTH, text, "%w#1") for text in (LOOP, LOOP.replace("dense<4>", "dense<5>")))
    assert [region.where for region in regions(before, after)] == ["main > while 1 body 0"]


def test_a_loop_with_other_carried_values_is_a_region_as_a_whole():
    """Carried values in another order, or one more of them, leave no bodies to pair: the loop is the region."""
    more = (
        LOOP.replace("%w:3", "%w:4")
        .replace("%y = %b)", "%y = %b, %v = %b)")
        .replace(f"tensor<i32>, {F8}, {F8}", f"tensor<i32>, {F8}, {F8}, {F8}")
        .replace("%t, %y :", "%t, %y, %v :")
    )
    permuted = LOOP.replace("%x = %a, %y = %b", "%y = %b, %x = %a").replace("%next, %t, %y", "%next, %y, %t")
    for after, result in ((more, "%w#1"), (permuted, "%w#2")):
        found = regions(main(BOTH, LOOP, "%w#1"), main(BOTH, after, result))
        assert [region.where for region in found] == ["main"]
        assert all("while" in names(region)[0] and "while" in names(region)[1] for region in found)


def test_assumptions_name_what_is_returned():
    """What both modules return is taken as equal under its own name; what lies between has none."""
    changed = CHAIN.replace("multiply", "divide").replace("subtract", "power")
    [pair] = aligned(main(BOTH, CHAIN, "%r"), main(BOTH, changed, "%r"))
    assert sorted(a.root for a in pair.assumptions) == ["", "result 0"]


def test_different_constants_are_not_assumed_to_be_equal():
    """Where two modules read two constants at one place, nothing is assumed of them: the region is what reads them."""

    def clamped(most: int) -> str:
        return f"""%c = stablehlo.constant dense<{most}.0> : {F8}
%x = stablehlo.minimum %a, %c : {F8}
%r = stablehlo.subtract %x, %b : {F8}"""

    [pair] = aligned(main(BOTH, clamped(2), "%r"), main(BOTH, clamped(3), "%r"))
    kinds = [pair.first.program.makers[assumption.first].short_name for assumption in pair.assumptions]
    assert "constant" not in kinds
    assert kinds
