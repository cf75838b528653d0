"""Find out which ops a consumer takes on which element types, and write a target's file.

    python scripts/probe_target.py --on litert --out my_litert.toml
    python scripts/probe_target.py --on litert --ops 'stablehlo.a*' --against litert

Each op's modules hold that op alone. The consumer compiles and runs them in a child process, on two sets of arguments,
and is right where it computes what XLA does, within the bound of its own rounding. --against names a target, or a file,
and prints where it says something else. A consumer of your own is registered as docs/adding-a-consumer.md says.

Exit code 0, or 1 where --against differs, 2 for bad usage.
"""

import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from absl import app, flags
from probe.probed import Probed, difference_lines, target_lines
from probe.single_arguments import RUNS, arguments
from probe.single_ops import SingleOp, modules_of, single_ops

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK, HloLowerError, InputError
from hlo_lower.consumers import ConsumerOutcome, consumer_named
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.reference import reference_of
from hlo_lower.ops.targets import target_of
from hlo_lower.verify.run import CannotRunError, parse_or_refuse, read_signature

_ON = flags.DEFINE_string("on", None, "The consumer: iree, litert, coreml, or an installed one.", required=True)
_OUT = flags.DEFINE_string("out", None, "The target's file; standard output if none is named.")
_OPS = flags.DEFINE_multi_string("ops", [], "Only ops whose name fits: 'stablehlo.a*'. Repeat for more.")
_AGAINST = flags.DEFINE_string("against", None, "A target, or its file, that is compared with what is found.")
_LIMIT = flags.DEFINE_float("limit", 60, "Seconds for a module.", 0.1)


def judged(judge: Judge, module: SingleOp) -> ConsumerOutcome | None:
    """What becomes of a module; None where there is no such op on that type, or XLA cannot judge it."""
    try:
        signature = read_signature(parse_or_refuse(module.text, "op"))
        reference = reference_of(module.text, runs=1)
        assert reference.again is not None
        runs = [reference.again(arguments(signature, module.op, run), run) for run in RUNS]
    except (InputError, CannotRunError):
        return None
    return judge.judge(module.text, runs, reference.rounding)


def probe(judge: Judge, op: str) -> Probed:
    """Judge all modules of an op."""
    found = Probed(op)
    for module in modules_of(op):
        outcome = judged(judge, module)
        if outcome is not None:
            found.outcomes.setdefault(module.element, []).append(outcome)
            found.has_flags |= "xi1>" in module.text and module.element != "i1"
    return found


def run() -> int:
    """Probe, write the file, and compare.

    Raises:
      HloLowerError: see the flags.
    """
    consumer = consumer_named(_ON.value)
    consumer.require()
    against = target_of(_AGAINST.value) if _AGAINST.value else None
    names = [op for op in sorted(single_ops()) if not _OPS.value or any(fnmatch(op, p) for p in _OPS.value)]
    if not names:
        raise InputError("", "no op fits --ops", facts=f"ops: {', '.join(sorted(single_ops()))}")
    found: list[Probed] = []
    with Judge(consumer, limit=_LIMIT.value) as judge:
        for op in names:
            found.append(probe(judge, op))
            print(f"{len(found):>3} of {len(names)}  {op}: {', '.join(found[-1].right) or 'none'}", file=sys.stderr)
    text = "\n".join(target_lines(f"{consumer.title} {consumer.version()}", found)) + "\n"
    if _OUT.value:
        Path(_OUT.value).write_text(text)
    else:
        print(text)
    if against is None:
        return EXIT_OK
    differing = difference_lines(found, against)
    print("\n".join(differing))
    return EXIT_DIFFERS if any(": the same" not in line for line in differing) else EXIT_OK


def main(argv: Sequence[str]) -> int:
    """Run as the flags say."""
    if len(argv) > 1:
        print(f"no such argument: {argv[1]}", file=sys.stderr)
        return EXIT_BAD_INPUT
    try:
        return run()
    except HloLowerError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    app.run(main)
