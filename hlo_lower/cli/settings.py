"""`[tool.hlo_lower]` in pyproject.toml: what a project always gives to the commands that take it.

    [tool.hlo_lower]
    target = "coreml"
    widen = ["bf16=f32"]
    verify = "regions"

A key is the name of an option, with or without its hyphens. What the command line says goes before it.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from hlo_lower.base.errors import EXIT_OK, InputError

FILE, TABLE = "pyproject.toml", "hlo_lower"
COMMANDS = ("report", "convert", "verify", "tile")
"""The commands that read settings."""

OWN = frozenset(
    {"output", "input", "in_place", "debug", "quiet", "help", "only", "skip", "explain", "inputs", "report"}
)
"""Options that are about one call, and no setting of a project."""


@dataclass(frozen=True)
class Settings:
    """What a project's file says.

    Attributes:
      path: the file; None where no folder up to the root has one with the table.
      values: by the name of the argument ("float_mode"), as the file gives them.
    """

    path: Path | None
    values: Mapping[str, Any]

    def give_to(self, name: str, command: argparse.ArgumentParser) -> None:
        """Make them the defaults of a command that takes them.

        Raises:
          InputError: a value is none that the option takes.
        """
        if name in COMMANDS:
            actions = taken_by(command)
            given = {k: self._check(k, v, actions[k]) for k, v in self.values.items() if k in actions}
            command.set_defaults(**{key: self._from_here(key, value) for key, value in given.items()})

    def _from_here(self, key: str, value: Any) -> Any:
        """A value; of one that is a path, the path from the folder of the file."""
        from hlo_lower.ops.targets import is_path  # which imports what a target is made of

        is_file = key == "cache" or (key == "target" and is_path(value))
        return str(self.path.parent / value) if is_file and self.path is not None else value

    def _check(self, key: str, value: Any, action: argparse.Action) -> Any:
        values = cast(list[Any], value) if isinstance(value, list) else [value]
        if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
            if not isinstance(value, bool):
                raise self.wrong(key, f"{value!r} is neither true nor false")
            return value
        found: list[Any] = []
        for one in values:
            if isinstance(one, (dict, bool)):
                raise self.wrong(key, f"{one!r} is not a value of --{key.replace('_', '-')}")
            try:
                found.append(cast(Any, action.type)(str(one)) if action.type is not None else str(one))
            except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
                raise self.wrong(key, f"{one!r}: {error}") from None
            if action.choices is not None and found[-1] not in action.choices:
                raise self.wrong(key, f"{one!r} is not one of {', '.join(map(str, action.choices))}")
        if isinstance(action.default, list):
            return found
        if isinstance(value, list):
            raise self.wrong(key, "it has one value, not a list")
        return found[0]

    def wrong(self, key: str, told: str) -> InputError:
        """The error about one of them."""
        return InputError(
            f"{self.path}: [tool.{TABLE}]: {key}", told, next_step="hlo-lower settings prints all of them"
        )


def taken_by(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a command that a project can set, by the name of the argument."""
    actions = cast(Sequence[argparse.Action], command._actions)  # pyright: ignore[reportPrivateUsage]
    found: dict[str, argparse.Action] = {}
    for action in actions:
        if action.option_strings and action.dest not in OWN and action.default is not argparse.SUPPRESS:
            found.setdefault(action.dest, action)  # --verify, and not --no-verify, which sets the same
    return found


def settings_of(folder: Path) -> Settings:
    """What the nearest pyproject.toml says, from a folder upwards.

    Raises:
      InputError: it cannot be read, or the table is none.
    """
    for place in (folder, *folder.parents):
        path = place / FILE
        if not path.is_file():
            continue
        try:
            tools: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(
                str(path), f"it cannot be read: {error}", next_step="mend it, or call from elsewhere"
            ) from None
        table: Any = cast(dict[str, Any], tools).get(TABLE, {}) if isinstance(tools, dict) else {}
        if not isinstance(table, dict):
            raise InputError(f"{path}: tool.{TABLE}", "it is not a table", next_step=f"write [tool.{TABLE}]")
        found = {str(key).replace("-", "_"): value for key, value in cast(dict[str, Any], table).items()}
        return Settings(path if found else None, found)
    return Settings(None, {})


def check_known(settings: Settings, commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """Check that each setting is an option of some command.

    Raises:
      InputError: one is not; the message names what is near.
    """
    known = sorted({name for command in COMMANDS for name in taken_by(commands[command])})
    for key in settings.values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            error = settings.wrong(key, "no command that reads settings has such an option")
            error.nearest = tuple(near)
            raise error


def add_arguments(command: argparse.ArgumentParser) -> None:
    """It has none."""


def run(args: argparse.Namespace) -> int:
    """Print the file, each setting, and the commands that take it."""
    from hlo_lower.cli.parser import make_parser

    found = settings_of(Path.cwd())
    commands = make_parser(found).commands
    if found.path is None:
        print(f"no [tool.{TABLE}] in a {FILE} here or above; options of {', '.join(COMMANDS)} can stand there")
        return EXIT_OK
    print(found.path)
    for key, value in found.values.items():
        takers = [name for name in COMMANDS if key in taken_by(commands[name])]
        print(f"  {key.replace('_', '-')} = {value!r}   {', '.join(takers)}")
    return EXIT_OK
