"""The parts of terms, each read once: z3 makes Python objects anew whenever a term is asked for its operands."""

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from zlib import crc32

from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.solver import alone, z3

MOST_PARTS = 100_000
"""Parts of terms that are walked through; it takes a second."""


class Part:
    """A term, read.

    Attributes:
      term: the term.
      number: z3's own number of it.
      kind: that of the function that it applies.
      name: that of a function or constant symbol, with its sorts; "" of any other term.
      operands: what the function is applied to.
      look: a number that depends on what it is alone, not on what was made before it; so almost surely another one of
        another term.
    """

    __slots__ = ("kind", "look", "name", "number", "operands", "term")

    def __init__(self, term: Any, number: int, operands: "tuple[Part, ...]") -> None:
        self.term, self.number, self.operands = term, number, operands
        context = term.ctx_ref()
        function = z3.Z3_get_app_decl(context, term.as_ast())
        self.kind: int = z3.Z3_get_decl_kind(context, function)
        self.name: str = term.decl().name() if self.kind == z3.Z3_OP_UNINTERPRETED else ""
        told = self.name or ("" if operands else term.sexpr())
        if operands and not told and z3.Z3_get_decl_num_parameters(context, function):
            told = str(term.decl().params())
        self.look: int = hash((self.kind, crc32(told.encode()), *(operand.look for operand in operands)))


_READ: dict[int, Part] = {}
"""What was read, by its number: a number is free for another term only when nothing holds the term any more."""

_OF_READ: list[dict[int, Any]] = [_READ]
"""All that is kept by the numbers of terms."""

Answer = TypeVar("Answer")


def once(ask: Callable[[Part], Answer]) -> Callable[[Part], Answer]:
    """A function that answers for each part once: questions share most of their terms."""
    answers = dict[int, Answer]()
    _OF_READ.append(answers)

    def answer(part: Part) -> Answer:
        if part.number not in answers:
            answers[part.number] = ask(part)
        return answers[part.number]

    return answer


@contextmanager
def terms_anew() -> Generator[None]:
    """Make terms in a context of their own (`solver.alone`), and forget behind it what was read of them: terms of
    another context have the same numbers."""
    with alone():
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    for kept in _OF_READ:
        kept.clear()


def part_of(term: Any) -> Part:
    """A term, read, and all that stands within it."""
    first = term.get_id()
    found = _READ.get(first)
    if found is not None:
        return found
    pending = [(first, term, _numbers_of_operands(term))]
    while pending:
        number, part, operands = pending[-1]
        missing = next((k for k, operand in enumerate(operands) if operand not in _READ), None)
        if missing is not None:
            inner = part.arg(missing)
            pending.append((operands[missing], inner, _numbers_of_operands(inner)))
            continue
        pending.pop()
        _READ[number] = Part(part, number, tuple(_READ[operand] for operand in operands))
    return _READ[first]


def _numbers_of_operands(term: Any) -> list[int]:
    """z3's numbers of the operands of a term, of which it makes no Python objects: most of them are read already."""
    context, term = term.ctx_ref(), term.as_ast()
    operands = range(z3.Z3_get_app_num_args(context, term))
    return [z3.Z3_get_ast_id(context, z3.Z3_get_app_arg(context, term, k)) for k in operands]


def operands_first(
    terms: Iterable[Any], known: Container[int], operands: Callable[[Part], Sequence[Part]] = lambda part: part.operands
) -> Iterator[Part]:
    """Some terms and what stands within them, each once, and after its operands.

    Args:
      terms: the terms.
      known: numbers of parts that are left out with all within them. The caller adds each part that it is given.
      operands: which operands of a part are looked at; by default all.
    """
    pending = [part_of(term) for term in terms]
    while pending:
        part = pending[-1]
        missing = [] if part.number in known else [one for one in operands(part) if one.number not in known]
        if missing:
            pending += missing
            continue
        pending.pop()
        if part.number not in known:
            yield part


def parts_of(terms: Iterable[Any]) -> list[Part]:
    """Some terms and all that stands within them, each once.

    Raises:
      Beyond: they have more than `MOST_PARTS` parts.
    """
    pending, done, found = [part_of(term) for term in terms], set[int](), list[Part]()
    while pending:
        part = pending.pop()
        if part.number not in done:
            done.add(part.number)
            if len(done) > MOST_PARTS:
                raise Beyond(f"a term of more than {MOST_PARTS:,} parts")
            found.append(part)
            pending += part.operands
    return found
