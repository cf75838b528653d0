"""Causes: why a guard is needed or a rule is missing, in words that count alike from module to module."""

import re

from hlo_lower.scatter.record import ScatterRecord

UNKNOWN = "not known"
NO_RULE_FITS = "no rule for its class"
PHRASES = ("overhangs", UNKNOWN)
BOUNDS = ("proved", "guarded", "nothing in bounds")


def guard_cause(record: ScatterRecord) -> str:
    """What the place that is written comes from, where it is not bounded.

    "guarded: argument 27 of @main" and "guarded: argument pos" give "argument"; "guarded: gather" gives "result of
    gather"; "guarded: carried by while" is a phrase already.
    """
    told = _without_names(record.bounds.removeprefix("guarded").removeprefix(":").strip()) or UNKNOWN
    if told.split(" ")[0] == "argument":
        return "argument"
    is_op = re.fullmatch(r"[a-z]\w*(\.\w+)*", told) is not None and told not in PHRASES
    return f"result of {told}" if is_op else told


def refusal_cause(record: ScatterRecord) -> str:
    """Why a scatter has no rule: "dynamic shape tensor<?x8xf32>" gives "dynamic shape"."""
    told = record.why or ("" if record.bounds.startswith(BOUNDS) else record.bounds)
    return _without_names(told) or NO_RULE_FITS


def _without_names(text: str) -> str:
    """The words without types, symbols and numbers, which differ from module to module."""
    words = [word for word in re.sub(r"\S*<.*>", "", text).split() if word[0] not in "@!%" and not word.isdecimal()]
    while words and words[-1] in ("of", "in", "at"):
        words.pop()
    return " ".join(words)
