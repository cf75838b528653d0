"""Rules from installed distributions: the entry point group `hlo_lower.rules`.

An entry point of the group names a `RuleList`. In the `pyproject.toml` of a distribution of its own:

    [project.entry-points."hlo_lower.rules"]
    npu = "my_npu.scatter_rules:rules"

The rules of all such lists join the built-in ones, in no order: a rule is chosen before another one only because it is
more specific, and what is ambiguous is an error. A plug-in that cannot be used is an error too, never left out: what a
module is lowered to must not depend on what happened to import. `HLO_LOWER_NO_PLUGINS=1` leaves all of them out.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from hlo_lower.base.arguments import shown
from hlo_lower.base.errors import InputError, RegistryError
from hlo_lower.base.installed import WITHOUT, Installed, PluginError, installed, unusable
from hlo_lower.base.registry import CompositeLoweringRegistry, RuleList
from hlo_lower.lowering.kinds import default_registry

GROUP = "hlo_lower.rules"


Plugin: TypeAlias = Installed[RuleList]
"""A list of rules, and where it comes from."""


def installed_registry() -> CompositeLoweringRegistry:
    """The built-in rules and those of installed plug-ins, checked; the same one each time, to which nobody adds.

    Raises:
      PluginError: a plug-in cannot be imported, is no `RuleList`, or contradicts another one or the built-in rules.
    """
    return _registry(not os.environ.get(WITHOUT))


def registry_of(registry: CompositeLoweringRegistry | None) -> CompositeLoweringRegistry:
    """The registry that a caller gives, or the installed one.

    Raises:
      InputError: it is none.
      PluginError: as `installed_registry`.
    """
    if registry is None:
        return installed_registry()
    if isinstance(registry, CompositeLoweringRegistry):  # pyright: ignore[reportUnnecessaryIsInstance]
        return registry
    raise InputError(
        "registry",
        f"{shown(registry)} is not a registry",
        facts=f"it is of type {type(registry).__name__}",
        next_step="registry = hlo_lower.lowering.kinds.default_registry(); registry.extend(rules) adds an hl.RuleList",
    )


@cache
def _registry(with_plugins: bool) -> CompositeLoweringRegistry:
    return registry_with(find_plugins() if with_plugins else ())


def registry_with(plugins: Sequence[Plugin]) -> CompositeLoweringRegistry:
    """A fresh registry with the built-in rules and those of plug-ins, checked for ambiguity.

    Raises:
      PluginError: a rule is registered wrongly, or two contradict each other; the message names the plug-ins.
    """
    registry = default_registry()
    for plugin in plugins:
        try:
            registry.extend(plugin.value, origin=plugin.origin)
        except RegistryError as error:
            raise unusable(GROUP, plugin.distribution, plugin.entry_point, str(error)) from None
    try:
        registry.check()
    except RegistryError as error:
        raise PluginError(
            "",
            f"the rules of plug-ins contradict others: {error}",
            facts=f"plug-ins: {'; '.join(plugin.origin for plugin in plugins)}",
            next_step=f"constrain one of the two further; {WITHOUT}=1 runs without plug-ins",
        ) from None
    return registry


def find_plugins() -> tuple[Plugin, ...]:
    """The plug-ins of all distributions that Python can import from, by distribution and name.

    Raises:
      PluginError: one cannot be imported, or is no `RuleList`.
    """
    return installed(GROUP, RuleList)
