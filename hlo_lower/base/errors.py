"""Errors that a user meets, each with the exit code that the command ends with.

A message has up to four lines: where and what, the facts, the nearest thing that would have worked, and
the next command to type. Nothing else reaches the user: no traceback for a user's mistake.
"""

from dataclasses import dataclass

EXIT_OK = 0
EXIT_DIFFERS = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_LOWERED = 3
EXIT_ONLY_RUN = 4


@dataclass(eq=False)
class HloLowerError(Exception):
    """Base of all errors that hlo_lower raises on purpose.

    Attributes:
      where: file, and line and column where they are known ("decode.mlir:41:10").
      what: what is wrong, one line.
      facts: what is known about the thing that failed, one line, or empty.
      nearest: what would have been accepted, one line each, or empty.
      next_step: a command or an action that helps, one line, or empty.

    Example:
      >>> try:
      ...     hl.lower("decode.mlir", target="tpu9")
      ... except hl.HloLowerError as error:
      ...     print(error.what, error.exit_code)
      no target named 'tpu9' 2
    """

    where: str
    what: str
    facts: str = ""
    nearest: tuple[str, ...] = ()
    next_step: str = ""

    exit_code = EXIT_BAD_INPUT

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.facts:
            lines.append(f"  facts:   {self.facts}")
        lines.extend(f"  nearest: {line}" for line in self.nearest)
        if self.next_step:
            lines.append(f"  next:    {self.next_step}")
        return "\n".join(lines)


class InputError(HloLowerError):
    """The input cannot be read, or an option does not fit it.

    Example:
      >>> hl.lower("decode.mlir", oob="zzz")
      Traceback (most recent call last):
      hlo_lower.base.errors.InputError: oob: 'zzz' is not one of its values
        facts:   oob is 'xla' or 'spec'
        next:    write oob='xla', or leave it out
    """


class NotLoweredError(HloLowerError):
    """A scatter has no lowering under the target and options asked for.

    Example:
      >>> npu = hl.Target("npu", ops={"stablehlo.add", "func.func", "func.return"})
      >>> try:
      ...     hl.lower("decode.mlir", target=npu)
      ... except hl.NotLoweredError as error:
      ...     print(error.what, error.exit_code)
      stablehlo.scatter: no lowering for target npu 3
    """

    exit_code = EXIT_NOT_LOWERED


class DifferenceError(HloLowerError):
    """The two versions of a module compute different results.

    Example:
      >>> issubclass(hl.DifferenceError, hl.HloLowerError), hl.DifferenceError.exit_code
      (True, 1)
    """

    exit_code = EXIT_DIFFERS


class RegistryError(Exception):
    """The rules contradict each other: a mistake of whoever registered them, found when the registry is built.

    Example:
      >>> from hlo_lower.lowering.kinds import default_registry
      >>> rules = hl.RuleList()
      >>> @rules.lowers("stablehlo.scater")
      ... def scatter_to_nothing(op): ...
      >>> try:
      ...     default_registry().extend(rules)
      ... except hl.RegistryError as error:
      ...     print("scater" in str(error))
      True
    """
