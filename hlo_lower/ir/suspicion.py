"""Which text could kill the process that parses it: a cheap test, wrong only in calling sound text suspicious.

jaxlib's parser calls itself for each level of nesting, and so do its printer and verifier: some thousand levels fill
the stack. Its bindings abort at a source location whose file is not UTF-8, which text writes as `"\\FF"`. A shape of
100,000 dims takes it minutes. What models are made of comes nowhere near.
"""

import re

import numpy as np

DEEPEST = 256
LONGEST_SHAPE = 4096
"""Characters of a shape; one of rank 8 has some 40."""

CHUNK = 1 << 20
"""Characters that are looked through at once."""

_ESCAPED = re.compile(r"(?:\\[89A-Fa-f][0-9A-Fa-f])+")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_SHAPES = bytes(ord("x") if chr(code) in "0123456789x?" else ord(" ") for code in range(256))
_LONG_SHAPE = b"x" * (LONGEST_SHAPE + 1)
_ALIAS = re.compile(r"\n?[#!][\w.$-]+")
_ALIASES = re.compile(r"\n([#!].*)")

_NO_BRACKETS = bytes(set(range(256)) - set(b"([{<)]}>-"))
_STEP = np.zeros(256, np.int8)
_STEP[list(b"([{<")] = 1
_STEP[list(b")]}>")] = -1


def could_kill(text: str) -> bool:
    """Whether text is nested so deeply, or says such things, that it is better read in another process."""
    if "\\" in text and not all(map(_is_utf_8, _ESCAPED.findall(text))):
        return True
    bare = _without_strings(text)
    if "affine_" in bare:  # an expression nests without brackets
        return True
    letters = bare.encode(errors="replace")
    if _LONG_SHAPE in letters.translate(_SHAPES):
        return True
    # With nothing else left, `<-1>` seems to hold an arrow, too: that is deeper, never less deep.
    if _depth(letters.translate(None, _NO_BRACKETS)) > DEEPEST and _depth(letters) > DEEPEST:
        return True
    aliases = _ALIASES.findall(f"\n{bare}")
    return len(aliases) > DEEPEST and _alias_depth(aliases) > DEEPEST


def _without_strings(text: str) -> str:
    """What stands outside of strings and comments: a constant of a gigabyte is one string, which is not copied at once.
    One that is not closed ends the parsing, so that what follows does not matter."""
    if "\\" in text:
        return _STRING_OR_COMMENT.sub(" ", text)
    found, is_inside = list[str](), False
    for start in range(0, len(text), CHUNK):
        parts = text[start : start + CHUNK].split('"')
        found += [" " * is_inside, " ".join(parts[is_inside::2])]
        is_inside ^= len(parts) % 2 == 0
    bare = "".join(found)
    # A comment may hold a quotation mark; the first comment of all is seen, as no string is cut wrongly before it.
    return _STRING_OR_COMMENT.sub(" ", text) if "/" in bare else bare


def _is_utf_8(escapes: str) -> bool:
    """Whether bytes that are written as `\\C3\\A4` are characters: the printer writes all beyond ASCII so."""
    try:
        bytes.fromhex(escapes.replace("\\", "")).decode()
    except UnicodeDecodeError:
        return False
    return True


def _depth(letters: bytes) -> int:
    """The deepest nesting of brackets; the one in `->` is none."""
    codes = np.frombuffer(letters, np.uint8)
    steps = _STEP[codes]
    closing = np.flatnonzero(codes == ord(">"))
    steps[closing[codes[closing - 1] == ord("-")]] = 0
    level = np.cumsum(steps[steps != 0], dtype=np.int32)
    return int((level - np.minimum.accumulate(level)).max()) if len(level) else 0


def _alias_depth(lines: list[str]) -> int:
    """The longest chain of aliases (`#a1 = [#a0]`) of which each names the one before."""
    depths, defined = {"": 1}, ""
    for name in _ALIAS.findall("\n" + "\n".join(lines)):
        if name[0] == "\n":
            defined = name[1:]
            depths.setdefault(defined, 1)
        elif depths.get(name, 1) >= depths[defined]:
            depths[defined] = depths.get(name, 1) + 1
    return max(depths.values())
