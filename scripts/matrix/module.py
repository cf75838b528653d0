"""One module through a consumer, native and converted: in a process that may die of it."""

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hlo_lower as hl
from hlo_lower.consumers import ConsumerOutcome, consumer_named
from hlo_lower.consumers.consumer_judge import LIMIT, MEMORY, Judge
from hlo_lower.consumers.reference import Reference, reference_of
from hlo_lower.ir.reader import text_of
from hlo_lower.verify.run import CannotRunError
from matrix.entry import Entry

_SCATTER = re.compile(r"\bstablehlo\.scatter\b")


@dataclass(frozen=True)
class Work:
    """A module and how it is judged.

    Attributes:
      path: its file.
      module: its name in the table.
      consumer: name of the consumer.
      target: what it is converted for.
      options: further keywords of `hlo_lower.lower`.
      seed, runs: of the inputs.
      limit: seconds for a version.
      memory: bytes for the consumer.
      before: the entry that there is; it stays if the converted text is still the same.
      tool: what converts it, as `made_by.tool` says.
    """

    path: str
    module: str
    consumer: str
    target: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    seed: int = 0
    runs: int = 3
    limit: float = LIMIT
    memory: int = MEMORY
    before: Entry | None = None
    tool: str = ""

    @property
    def text(self) -> str:
        """The module's text, whatever form it is in."""
        return text_of(Path(self.path), self.module)


_judges: dict[tuple[str, float, int], Judge] = {}
"""Kept from module to module: a consumer's child may take several."""


def judge_module(work: Work) -> Entry:
    """Convert a module and judge both versions."""
    text = work.text
    converted, not_lowered = _converted(text, work)
    entry = Entry(
        work.module,
        digest_of(text),
        len(_SCATTER.findall(text)),
        not_lowered=not_lowered,
        converted_digest=digest_of(converted),
        scatters_left=len(_SCATTER.findall(converted)),
        tool=work.tool,
    )
    before = work.before
    if before and (before.digest, before.converted_digest) == (entry.digest, entry.converted_digest):
        return replace(before, tool=entry.tool, not_lowered=entry.not_lowered, scatters_left=entry.scatters_left)
    try:
        reference = reference_of(text, seed=work.seed, runs=work.runs)
    except (CannotRunError, hl.HloLowerError) as error:
        return replace(entry, not_judged=str(error).splitlines()[0])
    if before and before.native and before.digest == entry.digest:
        native = before.native
    else:
        native = _judge(work).judge(text, reference.runs, reference.rounding)
    outcome, notes = _outcome(work, entry, converted, native, reference)
    return replace(entry, native=native, converted=outcome, notes=notes)


def _outcome(
    work: Work, entry: Entry, converted: str, native: ConsumerOutcome, reference: Reference
) -> tuple[ConsumerOutcome, tuple[str, ...]]:
    """What became of the converted version, and what is to be known of its runs."""
    if entry.not_lowered:
        told = f"not lowered: {entry.not_lowered}"
        return ConsumerOutcome(work.consumer, "refused", told, "stablehlo.scatter"), reference.all_notes()
    if entry.converted_digest == entry.digest:
        return native, reference.all_notes()
    try:
        own = reference.for_signature_of(converted)
    except CannotRunError as error:
        return ConsumerOutcome(work.consumer, "wrong", str(error)), reference.all_notes()
    outcome = _judge(work).judge(converted, own.runs, own.rounding)
    return outcome, own.all_notes()


def _converted(text: str, work: Work) -> tuple[str, str]:
    """The converted text, and why there is none: then it is the text as it was."""
    try:
        return hl.lower(text, target=work.target, name=work.module, **work.options).text, ""
    except hl.HloLowerError as error:
        return text, f"{error.what}{f' ({error.nearest[0]})' if error.nearest else ''}"
    except Exception as error:  # a mistake of ours is an entry of the table, too, not the end of the run
        return text, f"{type(error).__name__}: {error}"


def _judge(work: Work) -> Judge:
    key = (work.consumer, work.limit, work.memory)
    if key not in _judges:
        _judges[key] = Judge(consumer_named(work.consumer), limit=work.limit, memory=work.memory)
    return _judges[key]


def digest_of(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
