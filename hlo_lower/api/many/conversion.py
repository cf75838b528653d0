"""Many modules converted into a folder: one after the other, in processes, or through an executor.

What stands in the folder is whole: a module is written once it is verified, and through a temporary file. A journal
there says which input gave which output, so that a run that was interrupted goes on where it was: a module whose
content, options and tool are those of its line, and whose output stands, is not converted again.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from hlo_lower.api.many.files import Selected, select
from hlo_lower.api.many.module_classification import detach_record, failure_report, internal
from hlo_lower.api.many.modules import reports_of
from hlo_lower.api.many.work_spread import SPREAD, Spread, SpreadKeywords
from hlo_lower.api.module_forms import FORMS
from hlo_lower.base.arguments import known_names, one_of, short_repr, split_keywords
from hlo_lower.base.errors import HloLowerError, InputError
from hlo_lower.base.former_names import with_new_names
from hlo_lower.base.whole_files import make_folder, write_whole
from hlo_lower.lowering.options import NAMES, Options, options_of
from hlo_lower.report.module import ModuleReport

if TYPE_CHECKING:
    from hlo_lower.api.many.converted import Judge

JOURNAL = "hlo-lower.jsonl"
"""The journal's name in the folder."""

SUFFIX_BY_FORM = {"text": ".mlir", "bytecode": ".mlirbc", "portable": ".vhlo", "exported": ".exported"}
VERIFY = ("auto", "regions", "full", "off")

Verified = Literal["auto", "regions", "full", "off"]
Form = Literal["text", "bytecode", "portable", "exported"]


class _How(TypedDict, total=False):
    emit: Form
    verify: Verified
    accept_runs: bool
    patience: int
    cache: str | PathLike[str] | None
    with_texts: bool


class ConversionKeywords(SpreadKeywords, _How, total=False):
    """The keywords of `convert_modules`: those of `Options`, of `Spread`, and how each module is written."""


@dataclass(frozen=True)
class Conversion:
    """How each module is converted; InputError if a value is none of the choices."""

    options: Options  # how it is lowered
    folder: str  # where it is written
    emit: Form = "text"  # one of FORMS
    verify: Verified = "auto"  # a level of verification, or "off"
    accept_runs: bool = False  # whether what was only run counts as verified
    patience: int = 60  # seconds that each verification may spend in vain, as in `verify`
    timeout: float | None = None  # seconds after which a verification begins nothing more, as in `verify`
    cache: str | PathLike[str] | None = None  # the folder of verdicts, as in `verify`
    with_texts: bool = False  # whether reports have the text of what was built for each scatter, and the memory

    def __post_init__(self) -> None:
        one_of("emit", self.emit, FORMS)
        one_of("verify", self.verify, VERIFY)
        one_of("accept_runs", self.accept_runs, (False, True))
        one_of("with_texts", self.with_texts, (False, True))

    def output_of(self, module: Selected) -> Path:
        """Where a module is written: below its group, its suffix by the form."""
        suffix = SUFFIX_BY_FORM[self.emit]
        name = Path(module.file).name
        own = name if name.endswith(suffix) else name + suffix
        parts = [part for part in Path(module.group).parts if part not in (os.sep, "..", ".")]
        return Path(self.folder, *parts, own)

    def judge(self, content: bytes) -> "Judge | None":
        """What verifies a module that was lowered; None where nothing does."""
        if self.verify == "off":
            return None
        from hlo_lower.api.verified import verify

        how: dict[str, Any] = {"level": self.verify, "accept_runs": self.accept_runs}
        return partial(verify, content, **how, patience=self.patience, timeout=self.timeout, cache=self.cache)

    def key_of(self, content: bytes) -> str:
        """What decides what is written: the content, the options, and the version of the tool."""
        how = repr((self.options, self.emit, self.verify, self.accept_runs, version("hlo-lower")))
        return hashlib.sha256(content + how.encode()).hexdigest()


def convert_modules(
    paths: str | PathLike[str] | Sequence[str | PathLike[str] | Selected],
    folder: str | PathLike[str],
    *,
    options: Options | None = None,
    **keywords: Unpack[ConversionKeywords],
) -> tuple[ModuleReport, ...]:
    """Convert many modules into a folder; one that cannot be converted becomes a report with its reason.

    Args:
      paths: a file, a folder, or several of them (see `hlo_lower.api.many.select`).
      folder: where the modules are written, each below the folder that it was in. It is made where it is missing. What
        stands there already, of the same input, options and tool, is not made again.
      options, or target, oob, float_mode and others: as in `lower`.
      emit: "text", "bytecode", "portable" or "exported".
      verify: "auto", "regions" or "full" (see `verify`): a module is written only if it is verified; or "off".
      accept_runs: whether what was only run counts as verified.
      patience: seconds that each verification may spend in vain, as in `verify`.
      cache: a folder in which verdicts are kept, as in `verify`.
      with_texts: whether the reports have the text of what was built for each scatter, and the memory over program
        order, which the HTML report shows.
      jobs, executor, progress: as in `classify_modules`. An executor writes where it runs.
      timeout: seconds for a module, after which its verification begins nothing more, and says what it found. A process
        that goes on for twice as long, and ten seconds, is killed.

    Returns:
      One report per module, in the order of `select`. Its `exit_code` is that of `hlo-lower convert` for it alone.

    Raises:
      InputError: the folder cannot be made, the only path is a folder without modules, there is no such target, or an
        argument is of a wrong type or none of its choices.

    Example:
      >>> [report] = hl.convert_modules("decode.mlir", "lowered", target="iree", verify="regions")
      >>> report.exit_code, report.scatters_left
      (0, 0)
    """
    given = with_new_names(keywords)
    known_names("convert_modules", given, (*SPREAD, *_How.__annotations__, *NAMES))
    spread, rest = split_keywords(given, SPREAD)
    how, meaning = split_keywords(rest, tuple(_How.__annotations__))
    chosen = replace(options_of(options, meaning), keep_unsupported=True)
    if not isinstance(folder, (str, PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
        raise InputError("folder", f"{short_repr(folder)} is not a path", next_step='write "lowered/"')
    chosen_spread = Spread(**spread)
    conversion = Conversion(chosen, os.fspath(folder), **how, timeout=chosen_spread.timeout)
    if chosen_spread.timeout is not None:
        chosen_spread = replace(chosen_spread, timeout=2 * chosen_spread.timeout + 10)
    modules = select([paths] if isinstance(paths, (str, PathLike)) else paths)
    make_folder(conversion.folder)
    known = _journal(conversion)
    return reports_of(partial(convert_one, conversion, known), modules, chosen, chosen_spread)


def convert_one(conversion: Conversion, known: dict[str, Any], module: Selected) -> ModuleReport:
    """Convert one module; an error becomes the report's, none is raised. `known` is the journal: by output, the key
    of what gave it."""
    options = conversion.options
    try:
        if module.error is not None:
            raise module.error
        return _convert_file(conversion, known, module)
    except HloLowerError as error:
        return replace(failure_report(options, module, str(error)), exit_code=error.exit_code)
    except Exception as error:
        return failure_report(options, module, internal(module.file, error))


def _convert_file(conversion: Conversion, known: dict[str, Any], module: Selected) -> ModuleReport:
    from hlo_lower.api.many.converted import convert_source
    from hlo_lower.ir.reader import file_bytes

    options, output = conversion.options, conversion.output_of(module)
    content = module.source if isinstance(module.source, bytes) else file_bytes(module.source, module.file)
    key = conversion.key_of(content)
    line = known.get(output.as_posix())
    if line is not None and line["key"] == key and output.exists():
        told: dict[str, Any] = {"group": module.group, "exit_code": line["exit_code"], "is_resumed": True}
        return ModuleReport(module.file, target=options.target.name, oob=options.oob, **told)
    judge, with_texts = conversion.judge(content), conversion.with_texts
    found = convert_source(content, module.file, options, conversion.emit, judge, with_texts=with_texts)
    report = replace(found.report, group=module.group, records=tuple(map(detach_record, found.report.records)))
    if found.verdict is not None and not found.verdict.ok:
        why = f"not written: {found.verdict.summary()}"
        error = InputError(
            module.file, why, next_step="convert it by itself with the same options: that names the regions"
        )
        return replace(report, error=str(error))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(os.fspath(output), found.data)
    _note(conversion, {"output": output.as_posix(), "key": key, "exit_code": report.exit_code})
    return report


def _journal(conversion: Conversion) -> dict[str, Any]:
    """The lines of the journal, by output, the last ones of each; a line that was cut off is none."""
    found: dict[str, Any] = {}
    try:
        lines = Path(conversion.folder, JOURNAL).read_text().splitlines()
    except OSError:
        return found
    for text in lines:
        try:
            line = json.loads(text)
            found[line["output"]] = line
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _note(conversion: Conversion, line: dict[str, Any]) -> None:
    """Add a line to the journal: one write in append mode, which processes do not mix."""
    with open(Path(conversion.folder, JOURNAL), "ab", buffering=0) as file:
        file.write(f"{json.dumps(line)}\n".encode())
