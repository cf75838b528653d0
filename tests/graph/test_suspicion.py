"""Which text is read in another process first."""

import time

import pytest

from hlo_lower.ir import suspicion
from hlo_lower.ir.suspicion import DEEPEST, LONGEST_SHAPE, could_kill

GOOD = (
    'func.func public @main(%x: tensor<4xf32> {a = "}}>>"}) -> tensor<4xf32> { // }}}\n  return %x : tensor<4xf32>\n}\n'
)


def around(attribute):
    """A function with an attribute."""
    return GOOD.replace('"}}>>"', attribute)


@pytest.mark.parametrize(("opening", "closing"), ["()", "[]", "{}", "<>"])
def test_deep_nesting(opening, closing):
    """Every bracket counts; at the limit nothing is suspicious yet."""
    assert could_kill(around(opening * (DEEPEST + 1) + closing * (DEEPEST + 1)))
    assert not could_kill(around(opening * (DEEPEST - 5) + closing * (DEEPEST - 5)))


def test_brackets_side_by_side_are_no_nesting():
    """A large module is wide, not deep; arrows close nothing."""
    assert not could_kill(GOOD * 1000)
    assert not could_kill(around("[" + "(tensor<4xf32>) -> f32, " * 1000 + "1]"))


@pytest.mark.parametrize("hidden", ['"]]]]]]]]"', "1 // ]]]]]]]]\n", r'"\"]]]]]]]"', '"// "'])
def test_strings_and_comments_hide_nothing(hidden):
    """Brackets in them neither close nor open."""
    assert could_kill(around(f"[{hidden}, " * (DEEPEST + 1) + "]" * (DEEPEST + 1)))
    assert not could_kill(around("[" + f"{hidden.replace(']', '[')}, " * (DEEPEST + 1) + "]"))


def test_chains_of_aliases():
    """An alias that names an alias nests without brackets; many aliases beside each other do not."""
    chain = "".join(f"#a{n + 1} = [#a{n}]\n" for n in range(DEEPEST + 1))
    assert could_kill(f"#a0 = 1\n{chain}{GOOD}")
    beside = "".join(f'#loc{n + 1} = loc("x"(#loc0))\n' for n in range(5000))
    assert not could_kill(f"{GOOD}#loc0 = loc(unknown)\n{beside}")


@pytest.mark.parametrize(
    ("text", "suspicious"),
    [(r"\FF", True), (r"\C3", True), (r"\A4a", True), (r"\C3\A4", False), (r"\22a\09", False), ("ä", False)],
)
def test_bytes_in_strings(text, suspicious):
    """Escapes that are no UTF-8 are suspicious; the printer writes letters, quotes and tabs as escapes, too."""
    assert could_kill(around(f'"{text}"')) is suspicious


def test_shapes_of_thousands_of_dims():
    """They take the parser minutes; a long list of numbers does not."""
    assert could_kill(around("tensor<" + "1x" * (LONGEST_SHAPE // 2 + 1) + "f32>"))
    assert not could_kill(around("dense<[" + "1, " * LONGEST_SHAPE + "1]>"))


def test_affine_maps():
    """Their expressions nest without brackets, and StableHLO has none."""
    assert could_kill(around("affine_map<(d0) -> (d0)>"))


@pytest.mark.parametrize("text", ["", "\n", "}", '"', "#", "\\", "/" * 10])
def test_scraps(text):
    """Whatever it is given, it answers."""
    assert could_kill(text) is False


def test_large_text_is_looked_through_quickly():
    """Five megabytes take less than a second of work."""
    text = "".join(f"  %{n} = stablehlo.add %a, %b : tensor<8x4xf32> loc(#loc{n})\n" for n in range(80_000))
    start = time.process_time()
    assert not could_kill(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("line", ["#", "##", "!#", '#a = "#"', "# #a", '!t = !"x"'])
def test_what_only_looks_like_an_alias_is_for_the_parser(line):
    assert not could_kill(f"{line}\n" * (DEEPEST + 1) + GOOD)


def test_negative_numbers_are_no_arrows():
    """A bracket behind a minus closes, if something stands between them."""
    assert not could_kill(around("[" + "dense<-1>, " * 1000 + "1]"))
    assert could_kill(around("<-1, " * (DEEPEST + 1) + ">" * (DEEPEST + 1)))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_strings_go_on_where_the_next_part_begins(chunk, monkeypatch):
    """However the text is cut, what stands in strings is left out and what stands beside them is not."""
    monkeypatch.setattr(suspicion, "CHUNK", chunk)
    hidden = '"]]]] >>"'

    def suspicious(attribute):
        return could_kill(around(attribute).replace("// }}}", ""))  # with a comment, it is not cut

    assert suspicious(f"[{hidden}, " * (DEEPEST + 1) + "]" * (DEEPEST + 1))
    assert not suspicious(f"[{hidden}], " * (DEEPEST + 1))
    assert not suspicious('"[[[[" ' * DEEPEST)
