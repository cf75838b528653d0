"""What stands around a scatter, drawn: what computes its indices, what reads it, and what it becomes."""

import re

from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.report.neighbourhood import DEPTH, MOST, neighbourhoods, of_built

SCATTER = "%r = scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1> {%c, %d: return %d}"
ARGUMENTS = "%o: 8xf32, %k: 5x1xi32, %u: 5xf32"


def reads(svg):
    """Who reads whom, as the drawing says in words."""
    [told] = re.findall(r'aria-label="([^"]*)"', svg)
    return set(told.partition(": ")[2].split(", "))


def around(lines, returned="%r"):
    """The drawing of the only scatter of a module."""
    [svg] = neighbourhoods(hl.read(module(ARGUMENTS, lines, returned))).values()
    return svg


def test_what_computes_the_indices_is_drawn_so_many_steps_back_and_what_reads_the_result():
    """Indices are followed back, other operands one step only; arguments stand as values that are given."""
    chain = "\n".join(f"%a{n + 1} = negate %a{n}" for n in range(1, DEPTH + 2))
    lines = f"%a1 = abs %k\n{chain}\n%i = add %a{DEPTH + 2}, %k\n{SCATTER}\n%q = sine %r"
    found = reads(around(lines, "%q"))
    assert "scatter reads add 5x1xi32" in found
    assert "add 5x1xi32 reads negate 5x1xi32" in found
    assert "sine 8xf32 reads scatter" in found
    assert "scatter reads argument 0 8xf32" in found
    assert not any("abs" in one for one in found)


def test_a_large_neighbourhood_is_cut():
    """No more ops are drawn than can be seen; of many readers the first few, and how many more there are."""
    readers = "\n".join(f"%q{n} = sine %r" for n in range(9))
    wide = "\n".join(f"%a{n} = negate %k" for n in range(30))
    sums = "\n".join(f"%s{n + 1} = add %s{n}, %a{n}" for n in range(1, 30))
    lines = f"{wide}\n%s1 = add %a0, %a0\n{sums}\n%i = add %s30, %k\n{SCATTER}\n{readers}"
    svg = around(lines, ", ".join(f"%q{n}" for n in range(9)))
    assert svg.count("<rect") <= MOST + 12
    assert "and 4 more reads scatter" in reads(svg)


def test_what_was_built_is_drawn_from_its_lines():
    """Ops and the values from outside that they read; constants and what stands in regions are left out."""
    lines = [
        "%c = stablehlo.constant dense<0> : tensor<i32>",
        "%4 = stablehlo.clamp %c, %arg1, %c : tensor<i32>",
        '%5:2 = "stablehlo.reduce"(%4, %c) ({',
        "  %6 = stablehlo.add %x, %y : tensor<i32>",
        "}) : (tensor<i32>, tensor<i32>) -> tensor<4xf32>",
        "%7 = stablehlo.add %5#0, %4 : tensor<4xf32>",
    ]
    svg = of_built(lines)
    assert reads(svg) == {
        "clamp i32 reads %arg1",
        "reduce reads clamp i32",
        "add 4xf32 reads reduce",
        "add 4xf32 reads clamp i32",
        "the same readers reads add 4xf32",
    }
    assert of_built(()) == ""
    many = of_built([f"%{n + 1} = stablehlo.abs %{n} : tensor<4xf32>" for n in range(MOST + 2)])
    assert "and 2 more ops" in many
    assert "the same readers" not in many


def test_the_page_has_both_drawings_and_names_stay_text(tmp_path):
    """Of a report with texts each scatter has what stands around it and what it becomes."""
    (tmp_path / "m.mlir").write_text(module(ARGUMENTS, f"%i = abs %k\n{SCATTER}", "%r"))
    [report] = hl.classify_modules([tmp_path / "m.mlir"], jobs=1, with_texts=True)
    assert "scatter reads abs 5x1xi32" in reads(report.around[1])
    assert report.built[1]
    assert reads(of_built(report.built[1]))
