"""The judge on trial, in a child that serves one pair after the other and is ended where it takes too long."""

from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic
from typing import Any

from hlo_lower.base.child import AnsweringChild, answer_all

CRASH, HANG = -1, -2
"""In the place of an exit code."""

SECONDS = 300.0
"""Wall time after which the child is ended; a busy machine needs more than the 120 s of a quiet one."""


DERIVE_SECONDS = 1.0
"""For each attempt to derive."""


def judge(before: str, after: str, *, derives: bool = False) -> dict[str, Any]:
    """The same in this process."""
    return _answer((before, after, derives))


def judged(before: str, after: str, *, derives: bool = False) -> dict[str, Any]:
    """What `verify` says of a pair: the exit code, seconds of a processor and the lines of the verdict.

    Where it `derives` alone, 0 is "derived" and 4 is "open".
    """
    start = monotonic()
    try:
        return AnsweringChild.of_this_process("mutating.judging").ask((before, after, derives), SECONDS)
    except TimeoutError:
        return {"code": HANG, "cpu": monotonic() - start, "lines": []}
    except BrokenPipeError:
        return {"code": CRASH, "cpu": monotonic() - start, "lines": ["the process ended"]}


def _seconds() -> float:
    return sum(sum(getrusage(who)[:2]) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))


def _answer(request: tuple[str, str, bool]) -> dict[str, Any]:
    import hlo_lower as hl
    from hlo_lower.base.errors import HloLowerError
    from hlo_lower.verify.pull import derive

    *texts, derives = request
    start = _seconds()
    try:
        if derives:
            found = derive(*texts, seconds=DERIVE_SECONDS)
            answer: dict[str, Any] = {"code": 0 if found else 4, "lines": [*found.laws, found.reason]}
        else:
            verdict = hl.verify(*texts)
            answer = {"code": verdict.exit_code, "lines": [verdict.summary(), *verdict.lines()]}
    except HloLowerError as error:
        answer = {"code": 2, "lines": str(error).splitlines()}
    except Exception as error:  # a traceback is a find
        answer = {"code": CRASH, "lines": [f"{type(error).__name__}: {error}"]}
    return {**answer, "cpu": round(_seconds() - start, 2)}


if __name__ == "__main__":
    answer_all(_answer)
