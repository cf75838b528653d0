"""Options that several commands share, and the values that they take."""

import argparse
import shlex
from collections.abc import Callable
from typing import Any

from hlo_lower.api.module_forms import FORM_BY_SUFFIX, FORMS, MODULE_FORMS
from hlo_lower.ops.targets.target_file import NAMES

DEFAULT_TARGET = "stablehlo"
OOB_POLICIES = ("xla", "spec")
FLOAT_MODES = ("exact", "reassociate")
END = "--"
"""Behind it stands what a command hands on, to a consumer's compiler."""

ARTIFACTS = (".vmfb", ".tflite", ".mlpackage")
"""Suffixes of what the built-in consumers run, for help: without importing what makes them."""

VERIFY_LEVELS = ("auto", "regions", "full", "off")


def add_quiet(command: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    command.add_argument("-q", "--quiet", action="store_true", help="print only errors")


def add_verbose(command: argparse.ArgumentParser) -> None:
    """Add --verbose."""
    told = "list every op that is lowered besides scatters; default: long lists are summed up by rule"
    command.add_argument("-v", "--verbose", action="store_true", help=told)


def add_in_place(command: argparse.ArgumentParser) -> None:
    """Add --in-place."""
    command.add_argument("--in-place", action="store_true", help="allow OUT to be IN, which it replaces")


def add_target(command: argparse.ArgumentParser) -> None:
    """Add --target."""
    told = f"{', '.join(NAMES)}, or a target file (npu.toml); default: {DEFAULT_TARGET}"
    command.add_argument("--target", metavar="T", default=DEFAULT_TARGET, help=told)


def add_policy(command: argparse.ArgumentParser) -> None:
    """Add --target and --oob: what a scatter means, and for whom."""
    add_target(command)
    add_oob(command)


def add_oob(command: argparse.ArgumentParser) -> None:
    """Add --oob."""
    command.add_argument(
        "--oob",
        choices=OOB_POLICIES,
        default="xla",
        help="out of bounds: drop whole windows (xla, the default) or single elements (spec)",
    )


def policy_given(args: argparse.Namespace) -> str:
    """What was given of --target and --oob, to be typed behind another command."""
    target = "" if args.target == DEFAULT_TARGET else f" --target {shlex.quote(args.target)}"
    return target if args.oob == OOB_POLICIES[0] else f"{target} --oob {args.oob}"


def add_exactness(command: argparse.ArgumentParser) -> None:
    """Add --float-mode, --trust-flags and --prefer: what a rule may assume, and which of several is taken."""
    command.add_argument(
        "--float-mode",
        choices=FLOAT_MODES,
        help="keep the order of float sums (exact) or not (reassociate); default: the target's choice",
    )
    command.add_argument("--trust-flags", action="store_true", help="believe unique_indices = true")
    told = "keep guards and clamps that only a proof by induction over a loop would remove"
    command.add_argument("--no-loop-ranges", dest="loop_ranges", action="store_false", help=told)
    told = "lower also scatters that the target computes faster itself, which are kept otherwise"
    command.add_argument("--lower-all", action="store_true", help=told)
    command.add_argument(
        "--prefer",
        metavar="RULE",
        action="append",
        default=[],
        help="use this rule wherever it is right; or NAME=NUMBER, an entry of the cost table; repeatable",
    )


def add_plain(command: argparse.ArgumentParser) -> None:
    """Add --legalize, --demote-i64, --one-device and the like: what is made of a module first."""
    by_target = "default: the target's choice"
    told = f"first expand chlo, mhlo custom calls and composites; {by_target}"
    command.add_argument("--legalize", action=argparse.BooleanOptionalAction, default=None, help=told)
    told = f"first narrow 64-bit integers to 32 bits, arguments included; {by_target}"
    command.add_argument("--demote-i64", action=argparse.BooleanOptionalAction, default=None, help=told)
    told = "add an i1 result to each public function: whether the assumptions of --demote-i64 held"
    command.add_argument("--checked", action="store_true", help=told)
    told = "first turn f64 into f32, arguments included; numbers change"
    command.add_argument("--demote-f64", action="store_true", help=told)
    told = "first widen floats (bf16=f32, f8E4M3FN=f32, ...), arguments included; numbers change; repeatable"
    command.add_argument("--widen", metavar="A=B", action="append", default=[], help=told)
    told = "first take a module for several devices to one: without shardings, shard_map computed for all of them"
    command.add_argument("--one-device", action="store_true", help=told)
    told = "most ops that a loop may become for a target without loops; default: 10,000"
    command.add_argument("--max-unroll", metavar="N", type=count, default=10_000, help=told)


def add_linalg(command: argparse.ArgumentParser) -> None:
    """Add --linalg-ops, --linalg-loops and --linalg-groups."""
    told = "named ops if there are any (named, the default), or only linalg.generic"
    command.add_argument("--linalg-ops", choices=("named", "generic"), default="named", help=told)
    told = "counted loops as scf.for (for, the default), or as scf.forall if iterations are independent"
    command.add_argument("--linalg-loops", choices=("for", "forall"), default="for", help=told)
    told = "attention, norms and activations as functions (outlined, the default), or inlined"
    command.add_argument("--linalg-groups", choices=("outlined", "inlined"), default="outlined", help=told)


def add_emit(command: argparse.ArgumentParser) -> None:
    """Add --emit."""
    by_suffix = ", ".join(f"{suffix} {form}" for suffix, form in FORM_BY_SUFFIX.items())
    command.add_argument("--emit", choices=FORMS, help=f"form of OUT; default: by its suffix ({by_suffix})")


def add_module_emit(command: argparse.ArgumentParser) -> None:
    """Add --emit of a module that is not called; see `hlo_lower.cli.checks.checked_form`."""
    command.add_argument("--emit", choices=MODULE_FORMS, help="form of OUT; default: by its suffix")


def add_level(command: argparse.ArgumentParser) -> None:
    """Add --verify, --accept-runs, --jobs, --patience, --timeout, --cache: how what is written is verified."""
    told = "auto (the default): the regions that changed, and the module if it is small; regions: only these; "
    told += "full: the module whatever it takes; off: nothing"
    command.add_argument("--verify", choices=VERIFY_LEVELS, default="auto", help=told)
    command.add_argument("--no-verify", dest="verify", action="store_const", const="off", help="same as --verify off")
    add_accept_runs(command)
    add_jobs(command)
    add_patience(command)
    add_timeout(command)
    add_cache(command)


def add_patience(command: argparse.ArgumentParser) -> None:
    """Add --patience of a verification."""
    told = "seconds without progress after which verification gives up; default: 60"
    command.add_argument("--patience", metavar="S", type=positive, default=60, help=told)
    add_former(command, "--time-limit", "--patience", positive)


def add_former(command: argparse.ArgumentParser, former: str, new: str, kind: Callable[[str], Any]) -> None:
    """Accept an option by its former name, too, without a word in the help."""
    dest = new.strip("-").replace("-", "_")
    command.add_argument(former, dest=dest, type=kind, default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def add_timeout(command: argparse.ArgumentParser) -> None:
    """Add --timeout of a verification."""
    told = "stop verifying a module after S seconds and tell what was found (exit 4); default: never"
    command.add_argument("--timeout", metavar="S", type=seconds, help=told)


def add_cache(command: argparse.ArgumentParser) -> None:
    """Add --cache of a verification."""
    told = "keep verdicts in this folder and reuse them where nothing changed; default: none"
    command.add_argument("--cache", metavar="DIR", help=told)


def add_accept_runs(command: argparse.ArgumentParser) -> None:
    """Add --accept-runs."""
    told = "accept regions that were only run; without it exit 4"
    command.add_argument("--accept-runs", action="store_true", help=told)


def add_jobs(command: argparse.ArgumentParser) -> None:
    """Add --jobs of a verification."""
    told = "processes that judge regions; default: 1"
    command.add_argument("--jobs", metavar="N", type=positive, default=1, help=told)


class _Merged(argparse.Action):
    """What is given each time that the option stands there, in one mapping."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), **values})


def add_bind(command: argparse.ArgumentParser) -> None:
    """Add --bind: sizes of symbolic shapes."""
    command.add_argument(
        "--bind",
        metavar="b=4,s=16",
        type=sizes,
        action=_Merged,
        default={},
        help="first bind symbolic sizes; arg1.0=7 is dim 0 of argument 1, arg0=7 an integer argument",
    )


def sizes(text: str) -> dict[str, int]:
    """NAME=SIZE, separated by commas."""
    from hlo_lower.ir.shapes.given_sizes import SizesError, parse_sizes

    try:
        return parse_sizes(text)
    except SizesError as error:
        raise argparse.ArgumentTypeError(f"{error.what}; {error.next_step}") from None


def count(text: str) -> int:
    """A number of times, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


def positive(text: str) -> int:
    """A number of things, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def seconds(text: str) -> float:
    """A time, above 0."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return found


def setting(text: str) -> tuple[str, str]:
    """KEY=VALUE, in two."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, as in layers=80")
    return key, value
