"""What is checked before the work, so that a mistyped option does not cost a minute."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlo_lower.api.module_forms import MODULE_FORMS, form_for
from hlo_lower.base.errors import InputError
from hlo_lower.base.whole_files import STANDARD

if TYPE_CHECKING:
    from hlo_lower.lowering.options import Options
    from hlo_lower.verify import Verdict


def options_from(args: argparse.Namespace) -> "Options":
    """The flags of a command as options; a target that does not exist, or whose file describes none, is refused."""
    from hlo_lower.lowering.options import NAMES, Options

    return Options(**{name: value for name, value in vars(args).items() if name in NAMES})


def judge_pair(args: argparse.Namespace, before: Any, after: Any, **how: Any) -> "Verdict":
    """The verdict on two versions of a module at the level of the command line, with progress on a terminal."""
    import hlo_lower as hl
    from hlo_lower.cli.streams import progress

    how |= {"level": args.verify, "accept_runs": args.accept_runs}
    how |= {"jobs": args.jobs, "patience": args.patience, "timeout": args.timeout, "cache": args.cache}
    with progress() as tell:
        return hl.verify(before, after, progress=tell, **how)


def check_inputs(inputs: str | None, level: str) -> None:
    """Check that arrays for the whole module are not given where it is not run."""
    if inputs and level in ("regions", "off"):
        raise InputError(
            inputs,
            f"inputs are for the whole module, and --verify {level} does not run it",
            next_step="leave --inputs out, or --verify full",
        )


def check_one_standard(what: str, names: Sequence[str]) -> None:
    """Check that the standard input, or output, is named at most once."""
    if names.count(STANDARD) > 1:
        raise InputError(STANDARD, f"standard {what} is named twice", next_step="name files")


def checked_form(args: argparse.Namespace, how: str) -> str:
    """The form of a module that was raised, or tiled, and is not written as an Exported."""
    form = args.emit or form_for(args.output)
    if form not in MODULE_FORMS:
        facts, told = f"forms are {', '.join(MODULE_FORMS)}", f"a {how} module is not written as an Exported"
        raise InputError(args.output, told, facts=facts, next_step="-o OUT.mlir, or --emit")
    return form


def check_no_flags(output: str, flags: Sequence[str]) -> None:
    """Check that there are no flags of a compiler where none is run."""
    if flags:
        told = f"{' '.join(flags)} is for a consumer's compiler, but the output is a module"
        raise InputError(output, told, next_step="-o OUT with the suffix of what the target runs, such as OUT.vmfb")


def check_distinct(output: str, report: str) -> None:
    """Check that the report does not overwrite the module."""
    if output != STANDARD and os.path.realpath(output) == os.path.realpath(report):
        raise InputError(report, "is also the output of the module", next_step="name another file for --report")


def check_not_input(args: argparse.Namespace) -> None:
    """Check that a module is not written over the one that it is made of, unless that is asked for."""
    if args.in_place or STANDARD in (args.input, args.output) or not args.output:
        return
    if os.path.realpath(args.input) == os.path.realpath(args.output):
        told = "name another file, or --in-place to replace it"
        raise InputError(args.output, "is also the input", next_step=told)


def check_explained(numbers: Sequence[int], most: int, files: Sequence[str]) -> None:
    """Check that there is a scatter of each number, in one of the files at least."""
    for number in numbers:
        if not 1 <= number <= most:
            raise InputError(
                files[0] if len(files) == 1 else "",
                f"there is no scatter {number} to explain",
                facts=_numbering(most),
                next_step=f"hlo-lower report --all {files[0]}",
            )


def _numbering(most: int) -> str:
    if most < 2:
        return "the only scatter is number 1" if most else "there are no scatters"
    return f"scatters are numbered 1 to {most}"
