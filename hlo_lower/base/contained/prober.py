"""Reading tried in a child first: `probe` says how it ends, and this process survives it."""

from typing import cast

from hlo_lower.base.child import AnsweringChild
from hlo_lower.base.contained import crash_messages
from hlo_lower.base.contained.status_board import seconds_for
from hlo_lower.base.errors import HloLowerError, InputError

SERVER = "hlo_lower.ir.probe"
START = 60.0
"""Seconds for the start of the child, which imports JAX."""


class Prober(AnsweringChild):
    """A child that reads modules, each in a fork of its own; started when first needed, and again when it is lost."""

    def __init__(self) -> None:
        super().__init__(SERVER)

    def probe(self, data: str | bytes, name: str) -> HloLowerError | None:
        """How reading a module ends: None where it can be read.

        Raises:
          InputError: there is no child to try it in.
        """
        if self._child is not None and self._child.poll() is not None:
            self.close()
        try:
            return cast(HloLowerError | None, self.ask((data, name), START + 2 * seconds_for(len(data))))
        except TimeoutError:
            return crash_messages.too_late(name, len(data))
        except BrokenPipeError as error:
            raise InputError(
                name,
                f"there is no process to read it in: {error}",
                next_step="read(..., contained=False) reads it in this process, which may not survive it",
            ) from None


def probe(data: str | bytes, name: str) -> HloLowerError | None:
    """How reading a module ends, tried in a child that this process keeps: None where it can be read.

    Raises:
      InputError: there is no child to try it in.
    """
    return Prober.of_this_process().probe(data, name)
