"""What cannot be read ends in an error that says where, what and what to do; what may kill the parser is suspicious."""

import re
import time

import pytest

from hlo_lower.base.errors import EXIT_BAD_INPUT, InputError
from hlo_lower.ir import suspicion
from hlo_lower.ir.reader import read
from hlo_lower.ir.suspicion import DEEPEST, LONGEST_SHAPE, could_kill

GOOD = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def error_of(source, name=None):
    """The error that reading gives."""
    with pytest.raises(InputError) as caught:
        read(source, name)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    assert caught.value.next_step
    return caught.value


def with_line(line):
    """The good module with one line more, its second one."""
    return GOOD.replace("  return", f"  {line}\n  return")


SCATTER = """\
%a = stablehlo.constant dense<1.0> : tensor<8xf32>
%i = stablehlo.constant dense<1> : tensor<1xi32>
%u = stablehlo.constant dense<1.0> : tensor<f32>
%r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
^bb0(%c: tensor<f32>, %d: tensor<f32>):
  stablehlo.return %d : tensor<f32>
}) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
"""
TRANSPOSED = "%r = stablehlo.transpose %x, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>"
NO_ENTRY = "the module has no public function with a body"
ERRORS = {  # a source, and what is found in the place, in what is wrong, and in the facts or the next step
    "nothing": (b"", "^m.mlir$", "^the input is empty$", ""),
    "empty lines": ("\n\n", "^m.mlir$", "^the input is empty$", ""),
    "an undeclared value": (GOOD.replace("return %x", "return %y"), "^m.mlir:2:10$", "undeclared SSA value", ""),
    "a wrong permutation": (with_line(TRANSPOSED), "^m.mlir:2:", "permutation", ""),
    "an unknown dialect": (with_line('"torch.aten.add"() : () -> ()'), "^m.mlir:2:", "", "torch.*legalize"),
    "bytes of no known form": (
        b"\xff\xfe\x00\x01garbage",
        "^m.mlir$",
        "neither MLIR text, MLIR bytecode",
        "ff fe 00 01",
    ),
    "cut-off bytecode": (b"ML\xefR", "^m.mlir$", "", ""),
    "a cut-off portable artifact": (b"ML\xefR\x0d\x05StableHLO_v1.9.0\x00", "^m.mlir$", "", ""),
    "no function": ("module {}\n", "", NO_ENTRY, "^functions: none"),
    "no public function": (GOOD.replace("public", "private"), "^m.mlir$", NO_ENTRY, "^functions: @main"),
    "a scatter outside of functions": (SCATTER + GOOD, "^m.mlir:4$", "^a stablehlo.scatter stands in no function$", ""),
    "a name of bytes": (GOOD.replace("@main", r'@"\FF"'), "^m.mlir$", "name of a function is not UTF-8$", ""),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_read(name):
    source, where, what, more = ERRORS[name]
    error = error_of(source, "m.mlir")
    assert re.search(where, error.where)
    assert re.search(what, error.what)
    assert re.search(more, f"{error.facts} {error.next_step}")


def test_where_and_how_it_is_told(tmp_path):
    """A path that is not there, or is a folder, is named as it was given; text has a name of its own. Where and what,
    the facts, the nearest and the next step stand each on its own line; a scatter of a module within has its place."""
    missing, folder = error_of(tmp_path / "no.mlir"), error_of(str(tmp_path))
    assert (str(tmp_path / "no.mlir"), "no such file") == (missing.where, missing.what)
    assert (str(tmp_path), "is a directory, not a module") == (folder.where, folder.what)
    assert error_of("this is no module\n").where.startswith("<module>:1:")
    assert str(error_of(GOOD.replace("public", "private"), "m.mlir")).splitlines() == [
        f"m.mlir: {NO_ENTRY}",
        "  facts:   functions: @main",
        "  next:    make the entry point public: func.func public @main(...)",
    ]
    within = f"module {{ module {{ {GOOD.replace('  return', SCATTER + '  return')} }}\n{GOOD} }}"
    assert len(read(within).scatters) == 1


def calling(*pairs):
    """A module of functions of which the first of a pair calls the second."""
    functions = []
    for name in sorted({name for pair in pairs for name in pair}):
        callees = [callee for caller, callee in pairs if caller == name]
        calls = [f"  %{n} = call @{c}(%x) : (tensor<4xf32>) -> tensor<4xf32>\n" for n, c in enumerate(callees)]
        functions.append(GOOD.replace("@main", f"@{name}").replace("  return", f"{''.join(calls)}  return"))
    return "".join(functions)


def test_functions_that_call_themselves():
    """A circle of calls has no meaning, and kills XLA; the message names it. A diamond is none, nor is a chain that is
    longer than Python's stack."""
    circles = {"@a calls @a": [("a", "a")], "@c calls @d calls @c": [("a", "b"), ("a", "c"), ("c", "d"), ("d", "c")]}
    for circle, pairs in circles.items():
        error = error_of(calling(*pairs), "m.mlir")
        assert (error.where, error.facts) == ("m.mlir", circle)
        assert "call themselves" in error.what
    assert len(read(calling(("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))).functions) == 4
    chain = [(f"f{n:04}", f"f{n + 1:04}") for n in range(1500)]
    assert len(read(calling(*chain)).functions) == 1501


AROUND = "func.func public @main(%x: tensor<4xf32> {a = ATTRIBUTE}) -> tensor<4xf32> { // }}}\n  return %x\n}\n"


def around(attribute='"}}>>"'):
    """A function with an attribute."""
    return AROUND.replace("ATTRIBUTE", attribute)


def nested(opening, closing, depth=DEEPEST + 1):
    """A function with brackets in brackets."""
    return around(opening * depth + closing * depth)


HIDDEN = ['"]]]]]]]]"', "1 // ]]]]]]]]\n", r'"\"]]]]]]]"', '"// "']
KILLS = {
    **{f"deep {pair}": nested(*pair) for pair in ("()", "[]", "{}", "<>")},
    **{f"beside {one}": around(f"[{one}, " * (DEEPEST + 1) + "]" * (DEEPEST + 1)) for one in HIDDEN},
    "a chain of aliases": "#a0 = 1\n" + "".join(f"#a{n + 1} = [#a{n}]\n" for n in range(DEEPEST + 1)) + around(),
    **{f"no UTF-8: {text}": around(f'"{text}"') for text in (r"\FF", r"\C3", r"\A4a")},
    "a shape of thousands of dims": around("tensor<" + "1x" * (LONGEST_SHAPE // 2 + 1) + "f32>"),
    "an affine map": around("affine_map<(d0) -> (d0)>"),
    "a bracket behind a negative number": nested("<-1, ", ">"),
}
HARMLESS = {
    **{f"as deep as may be: {pair}": nested(*pair, DEEPEST - 5) for pair in ("()", "[]", "{}", "<>")},
    "wide, not deep": around() * 1000,
    "arrows": around("[" + "(tensor<4xf32>) -> f32, " * 1000 + "1]"),
    "negative numbers": around("[" + "dense<-1>, " * 1000 + "1]"),
    **{f"in {one}": around("[" + f"{one.replace(']', '[')}, " * (DEEPEST + 1) + "]") for one in HIDDEN},
    "aliases side by side": around() + "".join(f'#loc{n} = loc("x"(#loc))\n' for n in range(5000)),
    **{f"UTF-8: {text}": around(f'"{text}"') for text in (r"\C3\A4", r"\22a\09", "ä")},
    "a long list of numbers": around("dense<[" + "1, " * LONGEST_SHAPE + "1]>"),
    **{f"scrap {text!r}": text for text in ("", "}", '"', "#", "\\", "/" * 10)},
    # what only looks like an alias
    **{f"no alias: {line}": f"{line}\n" * (DEEPEST + 1) for line in ("#", "!#", '#a = "#"', "# #a", '!t = !"x"')},
}


@pytest.mark.parametrize("what", [*KILLS, *HARMLESS])
def test_which_text_is_read_in_another_process_first(what):
    """Deep nesting, long shapes and bytes that are no text; strings and comments neither close nor open brackets."""
    assert could_kill((KILLS | HARMLESS)[what]) is (what in KILLS)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_strings_go_on_where_the_next_part_begins(chunk, monkeypatch):
    """However the text is cut, what stands in strings is left out and what stands beside them is not."""
    monkeypatch.setattr(suspicion, "CHUNK", chunk)
    hidden, many = '"]]]] >>"', DEEPEST + 1
    attributes = f"[{hidden}, " * many + "]" * many, f"[{hidden}], " * many, '"[[[[" ' * DEEPEST
    texts = [around(attribute).replace("// }}}", "") for attribute in attributes]  # with a comment, it is not cut
    assert [could_kill(text) for text in texts] == [True, False, False]


def test_large_text_is_looked_through_quickly():
    """Five megabytes take less than a second of work."""
    text = "".join(f"  %{n} = stablehlo.add %a, %b : tensor<8x4xf32> loc(#loc{n})\n" for n in range(80_000))
    start = time.process_time()
    assert not could_kill(text)
    assert time.process_time() - start < 1
