"""The command line: export, report, convert, verify, rules.

What takes time to import is imported by the command that needs it.
"""

import argparse
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_lower.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK, HloLowerError, InputError
from hlo_lower.report.output import STANDARD, check_writable, write_whole

if TYPE_CHECKING:
    from hlo_lower.verify import Verdict

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

KINDS = ("insert_slice", "reduction_add", "general")
FORMATS = ("text", "json", "markdown", "html")
EMITS = ("text", "bytecode", "portable", "exported")
EMIT_BY_SUFFIX = {
    ".mlir": "text",
    ".mlirbc": "bytecode",
    ".vhlo": "portable",
    ".portable": "portable",
    ".exported": "exported",
    ".jax_exported": "exported",
}
EXIT_CODES = """exit codes:
  0  fine
  1  the two versions of a module differ
  2  bad usage, or an input that cannot be read
  3  something was not lowered"""
EMIT_HELP = "form of OUT; by default by its suffix: " + ", ".join(f"{s} {e}" for s, e in EMIT_BY_SUFFIX.items())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except HloLowerError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_standard_output()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        _complain(_unexpected(error))
        return EXIT_BAD_INPUT
    return code


def _complain(message: str) -> None:
    with suppress(OSError):
        print(message, file=sys.stderr)


def _unexpected(error: Exception) -> str:
    told = (str(error).splitlines() or [""])[0]
    return (
        f"hlo-lower: internal error: {type(error).__name__}: {told}\n"
        "  next:    this is a mistake in hlo-lower: please report it with the module and what --debug adds"
    )


def _drop_standard_output() -> None:
    """Point standard output at nothing: the reader has gone, and Python would complain when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- arguments --------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hlo-lower",
        description="Classify every scatter of a StableHLO module, lower it to plain ops, and prove the result.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _export_arguments(_command(commands, "export", "export a JAX function as StableHLO", _export))
    _report_arguments(_command(commands, "report", "classify the scatters of modules and say why", _report))
    _convert_arguments(_command(commands, "convert", "replace scatters by plain ops, verified", _convert))
    _verify_arguments(_command(commands, "verify", "run two versions of a module and compare", _verify))
    _rules_arguments(_command(commands, "rules", "print the canonical form of every class", _rules))
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hlo-lower")
    except PackageNotFoundError:  # run from a checkout
        return "(not installed)"


def _command(commands: Any, name: str, what: str, run: Any) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=what[0].upper() + what[1:] + ".", allow_abbrev=False
    )
    command.set_defaults(run=run)
    command.add_argument("--debug", action="store_true", help="show the traceback of an internal error")
    return command


def _export_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", metavar="FILE.py:FN", help="or pkg.mod:FN (models/llama.py:decode)")
    command.add_argument("-o", "--output", metavar="OUT", required=True, help="file, or - for standard output")
    command.add_argument(
        "--shapes", metavar="SHAPE", nargs="+", help='symbolic shapes, one per argument: "b, 2*s+1, 64"'
    )
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], type=_setting, help="set a field of the config"
    )
    command.add_argument("--emit", choices=EMITS, help=EMIT_HELP)


def _report_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("files", metavar="FILE", nargs="+", help="module, or - for standard input")
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    command.add_argument("-o", "--output", metavar="OUT", default=STANDARD, help="file; default: standard output")
    command.add_argument(
        "--explain", metavar="N", action="append", default=[], type=int, help="evidence of scatter N; repeatable"
    )
    command.add_argument("--all", action="store_true", help="a line for each scatter, alike ones too")
    command.add_argument(
        "--fail-on", metavar="KIND", action="append", default=[], choices=KINDS, help="exit 3 where there is such a one"
    )
    _policy_arguments(command)


def _convert_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("input", metavar="IN", help="module, or - for standard input")
    command.add_argument("-o", "--output", metavar="OUT", required=True, help="file, or - for standard output")
    _policy_arguments(command)
    _exactness_arguments(command)
    command.add_argument(
        "--only", metavar="LOCATION", action="append", default=[], help="lower only these (pattern); repeatable"
    )
    command.add_argument(
        "--skip", metavar="LOCATION", action="append", default=[], help="lower all but these (pattern); repeatable"
    )
    command.add_argument(
        "--keep-unsupported", action="store_true", help="write the module even if a scatter has no rule; exit 3 then"
    )
    command.add_argument(
        "--verify", choices=("auto", "scatter", "full", "off"), default="auto", help="each scatter, the module, or both"
    )
    command.add_argument("--no-verify", dest="verify", action="store_const", const="off", help="same as --verify off")
    command.add_argument("--emit", choices=EMITS, help=EMIT_HELP)
    command.add_argument("--report", metavar="R.json", help="write the records and the verdict as JSON")


def _verify_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("before", metavar="BEFORE", help="module, or - for standard input")
    command.add_argument("after", metavar="AFTER", help="its other version")
    command.add_argument("--inputs", metavar="X.npz", help="arguments of the module; default: seeded random ones")
    command.add_argument("--seed", metavar="N", type=_count, default=0, help="of random arguments; default: 0")
    command.add_argument("--runs", metavar="N", type=_count, default=3, help="of the whole module; default: 3")
    _policy_arguments(command)
    _exactness_arguments(command)


def _rules_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", metavar="T", default="stablehlo", help="default: stablehlo")
    command.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")


def _policy_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target", metavar="T", default="stablehlo", help="consumer; default: stablehlo")
    command.add_argument(
        "--oob", choices=("xla", "spec"), default="xla", help="out of bounds: drop whole windows, or single elements"
    )


def _exactness_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--float-mode", choices=("exact", "reassociate"), default="exact", help="order of float sums; default: exact"
    )
    command.add_argument("--trust-flags", action="store_true", help="take unique_indices = true as a proof")


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, as in layers=80")
    return key, value


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


# --- commands ---------------------------------------------------------------------------------------------------


def _export(args: argparse.Namespace) -> int:
    from hlo_lower.export import load_function

    check_writable(args.output)
    exported = load_function(args.function, dict(args.set)).export(args.shapes)
    emit = args.emit or _emit_for(args.output)
    data = _exported_bytes(exported, emit)
    write_whole(args.output, data)
    if args.output != STANDARD:
        print(f"{args.output}   {emit} of {args.function}, {len(data):,} bytes")
    return EXIT_OK


def _report(args: argparse.Namespace) -> int:
    from hlo_lower.report.module import ModuleReport
    from hlo_lower.report.progress import progress

    _check_targets(args.target)
    _check_one_standard("input", args.files)
    check_writable(args.output)
    reports: list[ModuleReport] = []
    errors: list[str] = []
    with progress() as tell:
        for number, file in enumerate(args.files):
            tell("classify", number, len(args.files))
            try:
                reports.append(_classified(file, args))
            except Exception as error:
                if len(args.files) == 1:
                    raise
                errors.append(str(error) if isinstance(error, HloLowerError) else f"{file}: {_unexpected(error)}")
                reports.append(ModuleReport(file, target=args.target, oob=args.oob, error=errors[-1]))
    _check_explained(args, reports)
    if len(errors) == len(reports):
        _complain("\n".join(errors))
        return EXIT_BAD_INPUT
    _show(_rendered(reports, args), args.output)
    if errors:
        _complain(f"{len(errors)} of {len(reports)} modules could not be read; the report says why")
        return EXIT_BAD_INPUT
    failing = sum(record.kind in args.fail_on for report in reports for record in report.records)
    if failing:
        _complain(f"{failing} scatters are of a kind to fail on: {', '.join(args.fail_on)}")
        return EXIT_NOT_LOWERED
    return EXIT_OK


def _convert(args: argparse.Namespace) -> int:
    import hlo_lower as hl
    from hlo_lower.report.json_report import render_json
    from hlo_lower.report.module import ModuleReport
    from hlo_lower.report.progress import progress
    from hlo_lower.report.text import render_text

    _check_targets(args.target)
    _check_one_standard("output", [args.output, args.report or ""])
    check_writable(args.output)
    if args.report:
        check_writable(args.report)
        _check_distinct(args.output, args.report)
    source = _source(args.input)
    how: dict[str, Any] = {
        "target": args.target,
        "oob": args.oob,
        "float_mode": args.float_mode,
        "trust_flags": args.trust_flags,
    }
    start = time.perf_counter()
    kept = {"keep_unsupported": args.keep_unsupported, "only": args.only, "skip": args.skip}
    lowered = hl.lower(source, name=args.input, **kept, **how)
    data = _lowered_bytes(lowered, args.emit or _emit_for(args.output))
    converted = time.perf_counter()
    verdict = None
    if args.verify != "off":
        with progress() as tell:
            verdict = hl.verify(source, lowered, level=args.verify, progress=tell, **how)
    verified = time.perf_counter()
    if verdict is not None and not verdict.ok:
        _complain(f"{args.input}: {_verdict_in_words(verdict)}; {args.output} was not written")
        _complain("\n".join(f"  {line}" for line in verdict.lines()))
        return EXIT_DIFFERS
    report = ModuleReport(
        args.input,
        lowered.op_count,
        lowered.records,
        args.target,
        args.oob,
        scatters_left=lowered.scatters_left,
        verification=verdict.summary() if verdict else None,
        convert_seconds=converted - start,
        verify_seconds=verified - converted if verdict else None,
        verdict=verdict.to_json() if verdict else None,
    )
    if args.report:
        write_whole(args.report, render_json([report]).encode())
    write_whole(args.output, data)
    page = sys.stderr if STANDARD in (args.output, args.report) else sys.stdout
    print(_fit(render_text([report], **_page(page)), page), end="", file=page)
    if args.keep_unsupported and (refused := [r for r in lowered.records if not r.rule and not r.why_not]):
        _complain(f"{len(refused)} of {len(lowered.records)} scatters have no lowering and were kept")
        return EXIT_NOT_LOWERED
    return EXIT_OK


def _verify(args: argparse.Namespace) -> int:
    import hlo_lower as hl
    from hlo_lower.report.progress import progress

    _check_targets(args.target)
    _check_one_standard("input", [args.before, args.after])
    inputs = _inputs(args.inputs) if args.inputs else None
    before, after = _source(args.before), _source(args.after)
    with progress() as tell:
        verdict = hl.verify(
            before,
            after,
            target=args.target,
            oob=args.oob,
            float_mode=args.float_mode,
            trust_flags=args.trust_flags,
            inputs=inputs,
            seed=args.seed,
            runs=args.runs,
            progress=tell,
        )
    _show("\n".join([f"{args.before}, {args.after}: {verdict.summary()}", *verdict.lines()]) + "\n", STANDARD)
    return EXIT_OK if verdict.ok else EXIT_DIFFERS


def _verdict_in_words(verdict: "Verdict") -> str:
    """What is wrong with a verdict that is not ok."""
    differs = [verdict.module is not None and verdict.module.status == "differs"]
    differs += [scatter.status == "differs" for scatter in verdict.scatters]
    if any(differs):
        return "the lowered module computes something else"
    return "not every scatter could be verified (--no-verify converts without)"


def _rules(args: argparse.Namespace) -> int:
    import hlo_lower as hl
    from hlo_lower.report.rules_table import render_rules_markdown, render_rules_text

    rules = hl.rules(args.target)
    _show(render_rules_markdown(rules) if args.format == "markdown" else render_rules_text(rules, **_page(sys.stdout)))
    return EXIT_OK


# --- checks that come before the work ---------------------------------------------------------------------------


def _check_targets(name: str) -> None:
    from hlo_lower.targets import target_named

    target_named(name)


def _check_one_standard(what: str, names: Sequence[str]) -> None:
    if names.count(STANDARD) > 1:
        raise InputError(STANDARD, f"standard {what} is named twice", next_step="name files")


def _check_distinct(output: str, report: str) -> None:
    if output != STANDARD and os.path.realpath(output) == os.path.realpath(report):
        raise InputError(report, "is also the output of the module", next_step="name another file for --report")


def _check_explained(args: argparse.Namespace, reports: Sequence[Any]) -> None:
    most = max((len(report.records) for report in reports), default=0)
    for number in args.explain:
        if not 1 <= number <= most:
            raise InputError(
                args.files[0] if len(args.files) == 1 else "",
                f"there is no scatter {number} to explain",
                facts=f"scatters are numbered 1 to {most}" if most else "there are no scatters",
                next_step=f"hlo-lower report --all {args.files[0]}",
            )


# --- inputs -----------------------------------------------------------------------------------------------------


def _source(name: str) -> Path | bytes:
    return sys.stdin.buffer.read() if name == STANDARD else Path(name)


def _classified(file: str, args: argparse.Namespace) -> Any:
    import hlo_lower as hl
    from hlo_lower.report.module import ModuleReport

    graph = hl.read(_source(file), name=file)
    records = hl.classify(graph, target=args.target, oob=args.oob)
    return ModuleReport(file, graph.op_count, records, args.target, args.oob)


def _inputs(file: str) -> "list[Any] | dict[str, Any]":
    """The arrays of an .npz file: a list where they are positional (arr_0, arr_1, ...), else by name."""
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as loaded:
            arrays: dict[str, Any] = dict(loaded)
    except FileNotFoundError:
        raise InputError(file, "no such file", next_step="check the path") from None
    except Exception as error:  # zipfile, zlib and numpy each have their own
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(file, f"is not an .npz file of arrays: {told}", next_step="write it with np.savez") from None
    if all(re.fullmatch(r"arr_\d+", key) for key in arrays):
        return [arrays[f"arr_{number}"] for number in range(len(arrays))]
    return arrays


# --- outputs ----------------------------------------------------------------------------------------------------


def _emit_for(output: str) -> str:
    return EMIT_BY_SUFFIX.get(Path(output).suffix, "text")


def _lowered_bytes(lowered: Any, emit: str) -> bytes:
    if emit == "text":
        return str(lowered.text).encode()
    if emit == "exported":
        return bytes(lowered.exported.serialize())
    return bytes(lowered.bytecode() if emit == "bytecode" else lowered.portable())


def _exported_bytes(exported: Any, emit: str) -> bytes:
    from hlo_lower.export import exported_text
    from hlo_lower.graph import read, to_bytecode, to_portable_artifact

    if emit == "text":
        return exported_text(exported).encode()
    if emit == "exported":
        return bytes(exported.serialize())
    graph = read(exported)
    return to_bytecode(graph) if emit == "bytecode" else to_portable_artifact(graph)


def _rendered(reports: Sequence[Any], args: argparse.Namespace) -> str:
    from hlo_lower import report

    if args.format == "json":
        return report.render_json(reports)
    how: dict[str, Any] = {"show_all": args.all, "explain": args.explain}
    if args.format == "markdown":
        return report.render_markdown(reports, **how)
    if args.format == "html":
        return report.render_html(reports, **how)
    return report.render_text(reports, **how, **(_page(sys.stdout) if args.output == STANDARD else {}))


def _page(stream: Any) -> dict[str, Any]:
    """Width and color of a stream: those of a terminal, else plain and as wide as COLUMNS says or 140."""
    from hlo_lower.report.text import PLAIN_WIDTH

    terminal = bool(stream.isatty())
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else _columns(PLAIN_WIDTH)
    return {"width": max(width, 40), "color": terminal and "NO_COLOR" not in os.environ}


def _columns(default: int) -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else default


def _show(text: str, output: str = STANDARD) -> None:
    if output == STANDARD:
        sys.stdout.write(_fit(text, sys.stdout))
    else:
        write_whole(output, text.encode())


def _fit(text: str, stream: Any) -> str:
    """The text with plain signs for those that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate({ord("─"): "-", ord("×"): "x", ord("·"): "-"})
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return text
