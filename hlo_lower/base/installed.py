"""What installed distributions add: objects of a kind that their entry points name, found without importing JAX.

What cannot be used is an error, never left out: what a module is lowered to, or judged by, must not depend on what
happened to import. `HLO_LOWER_NO_PLUGINS=1` leaves all of them out.
"""

import re
import shlex
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires
from typing import Generic, TypeVar

from hlo_lower.base.errors import HloLowerError

WITHOUT = "HLO_LOWER_NO_PLUGINS"

Kind = TypeVar("Kind")


def install_line(extra: str) -> str:
    """The command that installs what an extra of hlo-lower needs: its packages by name, whatever hlo-lower itself came
    from; of an extra that it does not have, the extra."""
    try:
        told = [one.partition(";") for one in requires("hlo-lower") or ()]
    except PackageNotFoundError:  # run from a checkout
        return f"pip install '.[{extra}]' in the checkout of hlo_lower"
    found = [name.strip() for name, _, marker in told if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return f"pip install {shlex.join(found)}" if found else f"pip install 'hlo-lower[{extra}]'"


class PluginError(HloLowerError):
    """An installed distribution adds rules or a consumer that cannot be used.

    Example:
      >>> issubclass(hl.PluginError, hl.HloLowerError)
      True
    """


@dataclass(frozen=True)
class Installed(Generic[Kind]):
    """An object that an entry point names.

    Attributes:
      distribution: name and version ("my-npu 1.2").
      entry_point: its name in the group.
      value: the object.
    """

    distribution: str
    entry_point: str
    value: Kind

    @property
    def origin(self) -> str:
        """For messages and reports: "my-npu 1.2, entry point npu"."""
        return f"{self.distribution}, entry point {self.entry_point}"


def installed_objects(group: str, kind: type[Kind]) -> tuple[Installed[Kind], ...]:
    """The objects of a group of all distributions that Python can import from, by distribution and name.

    Args:
      group: of entry points.
      kind: the class of the objects.

    Raises:
      PluginError: one cannot be imported, or is none.
    """
    found = sorted(entry_points(group=group), key=lambda point: (_distribution(point), point.name, point.value))
    return tuple(_load(point, kind) for point in found)


def unusable(group: str, distribution: str, entry_point: str, reason: str) -> PluginError:
    """The error that says why a plug-in cannot be used, and how to do without it."""
    return PluginError(
        f"{distribution}, entry point {entry_point} of {group}",
        f"the plug-in cannot be used: {reason}",
        next_step=f"update or uninstall {distribution.split(' ', maxsplit=1)[0]}; {WITHOUT}=1 runs without plug-ins",
    )


def _load(point: EntryPoint, kind: type[Kind]) -> Installed[Kind]:
    distribution = _distribution(point)
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # whatever a user's module does when it is imported
        told = (str(error).splitlines() or [""])[0]
        reason = f"{point.value} cannot be imported: {type(error).__name__}: {told}"
        raise unusable(point.group, distribution, point.name, reason) from error
    if not isinstance(value, kind):
        reason = f"{point.value} is a {type(value).__name__}, not a {kind.__name__}"
        raise unusable(point.group, distribution, point.name, reason)
    return Installed(distribution, point.name, value)


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "a distribution without a name"
