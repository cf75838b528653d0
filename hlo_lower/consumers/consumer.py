"""A consumer as data: what it needs to be there, and the module of ours that drives it in a child process."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol, TypeAlias

from hlo_lower.base.errors import InputError
from hlo_lower.base.installed import install_line
from hlo_lower.base.whole_files import check_package
from hlo_lower.consumers.consumer_outcome import Array

Runner: TypeAlias = Callable[[Sequence[Array]], list[Array]]
"""A compiled module: arguments to results, by position."""


class Driver(Protocol):
    """What the child process needs of a consumer's file."""

    def load(self) -> None:
        """Import what it is made of: not counted in the time of a module."""
        ...

    def compile_module(self, text: str) -> Runner | None:
        """Compile a module's text; None where the consumer only converts here.

        It raises RefusedError, as does a runner, or ToolCrashedError if one of its processes died.
        """
        ...


class Builder(Driver, Protocol):
    """A driver whose compiler makes a file that is of use elsewhere."""

    def build(self, text: str, path: str, flags: Sequence[str]) -> Runner | None:
        """Have the compiler make this file of a module's text, with these flags, and load that file.

        It raises what `compile_module` does, or RunsElsewhereError where the file is not for this machine.
        """
        ...


@dataclass(frozen=True)
class Consumer:
    """A compiler or converter that reads StableHLO.

    Attributes:
      name: as on the command line.
      title: for people.
      driver: the Python module with its `load` and `compile_module`, imported in the child process alone.
      imports: what has to be importable.
      package: the distribution whose version is told.
      extra: the extra of this project that installs it, or "".
      runs: whether it runs modules here, or only converts them.
      modules_per_process: how many modules a child takes before it is replaced. One that runs machine code of its own
        making gets one: what it writes out of bounds is then nobody else's damage.
      environment: variables of the child.
      artifact: the suffix of the file that its compiler makes (".vmfb"), by `Builder`; "" where it makes none.
      settings: what its compiler takes as NAME=VALUE, each with its values (without: any); None: flags as of a command.
    """

    name: str
    title: str
    driver: str
    imports: tuple[str, ...] = ()
    package: str = ""
    extra: str = ""
    runs: bool = True
    modules_per_process: int = 1
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    artifact: str = ""
    settings: Mapping[str, tuple[str, ...]] | None = None

    def version(self) -> str:
        """The installed version, "" where something that it needs is missing."""
        for name in self.imports:
            try:
                if importlib.util.find_spec(name) is None:
                    return ""
            except ModuleNotFoundError:  # the package around it is missing
                return ""
        try:
            return version(self.package) if self.package else "any"
        except PackageNotFoundError:
            return ""

    def require(self) -> None:
        """Check that it is installed, or raise InputError, which names the extra."""
        if not self.version():
            raise self.not_installed()

    def not_installed(self) -> InputError:
        """The error that says how to install it."""
        return InputError(
            "",
            f"{self.title} is not installed",
            facts=f"it needs {', '.join(self.imports)}",
            next_step=install_line(self.extra) if self.extra else f"pip install {self.package}",
        )

    def check_build(self, path: str, flags: Sequence[str]) -> None:
        """Check, before the work, that it is installed, can write its file, and takes the flags, as far as that is
        known, or raise InputError."""
        self.require()
        self._check_flags(flags)
        check_package(path, self.artifact)

    def _check_flags(self, flags: Sequence[str]) -> None:
        if self.settings is None:
            if flags and not flags[0].startswith("-"):
                raise InputError(flags[0], f"it is not a flag of {self.title}", next_step="write -- --NAME=VALUE")
            return
        takes = [f"{name}={'|'.join(values) or '...'}" for name, values in self.settings.items()]
        facts = f"it takes {', '.join(takes)}" if takes else "it takes none"
        for flag in flags:
            name, _, value = flag.partition("=")
            values = self.settings.get(name)
            if values is None or not value or (values and value not in values):
                told = f"the converter of {self.title} takes no such setting"
                raise InputError(flag, told, facts=facts, next_step="write -- NAME=VALUE")
