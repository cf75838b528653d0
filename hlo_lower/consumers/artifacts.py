"""What a consumer's compiler makes of a module in one step: lowered, verified, built, run, and put in place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from os import PathLike, fspath
from typing import Any, Unpack

from hlo_lower.api.verified import EFFORT, VerifyKeywords, compared_with, more_careful, require_ok, verify
from hlo_lower.base.arguments import known_names, split_keywords
from hlo_lower.base.errors import EXIT_DIFFERS, DifferenceError, InputError, NotLoweredError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.base.whole_files import put_in_place, room_beside
from hlo_lower.consumers import all_consumers, builder_of
from hlo_lower.consumers.consumer import Consumer
from hlo_lower.consumers.consumer_outcome import Build
from hlo_lower.consumers.verification import ConsumerVerdict, verify_on
from hlo_lower.ir.reader import Source
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.options import NAMES, Options, options_of
from hlo_lower.lowering.pipeline import lower
from hlo_lower.verify import Level, Progress, Verdict
from hlo_lower.verify.effort import checked_level

NOT_VERIFIED = "no verification was asked for"
REGIONS_ALONE = "the verification of regions alone was asked for"


@dataclass(frozen=True, repr=False)
class Built:
    """What `hl.build` made.

    Attributes:
      path: the file, or the folder of a package.
      lowered: the module that the consumer's compiler was given.
      verdict: on that module; None where none was asked for.
      on: what became of it at the consumer: `.ok`, `.summary()`, `.lines()`, `.to_json()`.

    Example:
      >>> [field for field in hl.Built.__dataclass_fields__]
      ['path', 'lowered', 'verdict', 'on']
    """

    path: str
    lowered: Lowered
    verdict: Verdict | None
    on: ConsumerVerdict

    def __repr__(self) -> str:
        return f"<Built {self.path}: {self.on.summary()}>"


def build(
    source: Source | Graph,
    output: str | PathLike[str],
    *,
    flags: Sequence[str] = (),
    verify: Level | None = "auto",
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    **keywords: Unpack[VerifyKeywords],
) -> Built:
    """Lower a module for a consumer, verify it, and have the consumer's compiler make what it runs.

    What is made is run on the consumer, where it runs here, on seeded inputs, and compared with what XLA makes of the
    module as it was. It is written where all of that is right, and else not at all.

    Args:
      source: the module: whatever `read` takes, or a graph.
      output: what to write; the suffix says what: ".vmfb" of iree, ".tflite" of litert, ".mlpackage" of coreml.
      flags: what the consumer's compiler is given beside: ["--iree-llvmcpu-target-cpu=generic"]; of litert and coreml
        ["compute_precision=FLOAT16"], a setting of the converter each.
      verify: "auto", "full", or "regions", with which nothing is run on the consumer; None: nothing is verified or run.
      options: how it is lowered, as an `Options`; or its keywords (target, oob, float_mode, ...) here.
      registry: rules to choose from; by default the built-in ones and those of installed plug-ins.
      **keywords: also those of `hl.verify` (inputs, jobs, cache, progress, ...), but `level`, which is `verify` here.

    Returns:
      What was made, with both verdicts.

    Raises:
      InputError: as of `lower`; or the suffix does not go with the target, the consumer is not installed, or its
        compiler takes no such flag.
      NotLoweredError: a scatter has no lowering that the target takes, or the consumer refuses the module.
      DifferenceError: the lowered module is not verified, or the consumer computes something else.

    Example:
      >>> hl.build("decode.mlir", "decode.vmfb", target="litert")
      Traceback (most recent call last):
      hlo_lower.base.errors.InputError: decode.vmfb: .vmfb is what iree runs, and the target is litert
        facts:   of litert: .tflite, or a module: .mlir, .mlirbc, .vhlo, .portable, .exported, .jax_exported
        next:    --target iree, or another suffix
    """
    known_names("build", keywords, sorted({*EFFORT, *NAMES} - {"level"}))
    how, meaning = split_keywords(keywords, EFFORT)
    chosen, path = options_of(options, meaning), fspath(output)
    if verify is not None:
        checked_level("verify", verify)
    consumer = builder_of(path, chosen.target.name)
    if consumer is None:
        suffixes = ", ".join(one.artifact for one in all_consumers() if one.artifact)
        told = "its suffix is that of a module, or of nothing that a consumer runs"
        raise InputError(path, told, facts=f"consumers run {suffixes}", next_step="hl.lower(...) makes a module")
    consumer.check_build(path, flags)
    lowered, verdict = lower(source, options=chosen, registry=registry), None
    if verify is not None:
        judge = partial(_judge, source, level=verify, **how)
        lowered, verdict = more_careful(source, lowered, judge(lowered), judge)
        require_ok(verdict, lowered.graph.name, "lowered")
    of_runs = how.get("inputs"), how.get("progress")
    on = build_lowered(source, lowered, consumer, path, flags, not_run(verify, verdict), *of_runs)
    if not on.ok:
        error = DifferenceError if on.exit_code == EXIT_DIFFERS else NotLoweredError
        told = f"{on.summary()}; {path} was not written"
        raise error(lowered.graph.name, told, next_step="hl.lower and hl.verify say more of the module")
    return Built(path, lowered, verdict, on)


_judge: Callable[..., Verdict] = verify
"""`verify` as `build` reaches it, which has a keyword of that name."""


def not_run(level: str | None, verdict: Verdict | None) -> str:
    """Why what is built is not run, "" where it is: it is run where the module itself was."""
    if verdict is None:
        return NOT_VERIFIED
    if level == "regions":
        return REGIONS_ALONE
    module = verdict.module
    return module.reason if module is not None and module.status == "not run" else ""


def build_lowered(
    source: Source | Graph,
    lowered: Lowered,
    consumer: Consumer,
    path: str,
    flags: Sequence[str] = (),
    not_run: str = "",
    inputs: Any = None,
    progress: Progress | None = None,
) -> ConsumerVerdict:
    """Have a consumer's compiler make a file of a lowered module, run that unless `not_run` says why not, and put it in
    place if the verdict is good.

    Raises:
      InputError: the inputs do not fit, or the file cannot be written.
    """
    before, arguments = compared_with(source, lowered, inputs)
    with room_beside(path) as made:
        how: dict[str, Any] = {"inputs": arguments, "limit": inf, "memory": 0, "progress": progress}
        found = verify_on(consumer, before, lowered.text, build=Build(made, tuple(flags)), not_run=not_run, **how)
        if found.ok:
            put_in_place(made, path)
    return found
