"""Classify every scatter of a StableHLO module, lower it to plain ops, and prove that nothing changed.

    import hlo_lower as hl
    graph = hl.read("decode.mlir")
    records = hl.classify(graph)
    lowered = hl.lower("decode.mlir")
    verdict = hl.verify("decode.mlir", lowered)

The names are imported when they are first used: `hlo-lower --help` need not wait for JAX.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from hlo_lower.base import former_names

if TYPE_CHECKING:
    from hlo_lower.api.functions import CostRow, RuleRow, bind, classify, costs, export, jit, lower, read, rules, verify
    from hlo_lower.api.install import InstallWarning, Stats, install, installed, stats, uninstall
    from hlo_lower.api.jit import LoweredFunction
    from hlo_lower.api.many.conversion import convert_modules
    from hlo_lower.api.many.modules import classify_modules
    from hlo_lower.api.tiling import tile
    from hlo_lower.base.errors import DifferenceError, HloLowerError, InputError, NotLoweredError, RegistryError
    from hlo_lower.base.installed import PluginError
    from hlo_lower.base.registry import CompositeLoweringRegistry, RuleList
    from hlo_lower.consumers.artifacts import Built, build
    from hlo_lower.facts.scatter.record import Fact, Rejection, ScatterRecord, Written
    from hlo_lower.ir.reader import Source
    from hlo_lower.ir.shapes.dims import dims
    from hlo_lower.ir.view import Graph
    from hlo_lower.lowering.lowered import Lowered
    from hlo_lower.lowering.options import Options
    from hlo_lower.named.named_function import named
    from hlo_lower.named.naming import Raised, inline_named, raise_named
    from hlo_lower.ops.targets import TargetLike
    from hlo_lower.ops.targets.target import Target
    from hlo_lower.report.module import ModuleReport
    from hlo_lower.report.notebook import Records
    from hlo_lower.tile.by_hand import ByHand
    from hlo_lower.tile.into_loop import IntoLoop
    from hlo_lower.tile.tiled_module import Tiled
    from hlo_lower.verify import Inputs, Level, ModuleVerdict, RegionVerdict, Verdict

__version__ = "0.1.0"

__all__ = [
    "Built",
    "ByHand",
    "CompositeLoweringRegistry",
    "CostRow",
    "DifferenceError",
    "Fact",
    "Graph",
    "HloLowerError",
    "InputError",
    "Inputs",
    "InstallWarning",
    "IntoLoop",
    "Level",
    "Lowered",
    "LoweredFunction",
    "ModuleReport",
    "ModuleVerdict",
    "NotLoweredError",
    "Options",
    "PluginError",
    "Raised",
    "Records",
    "RegionVerdict",
    "RegistryError",
    "Rejection",
    "RuleList",
    "RuleRow",
    "ScatterRecord",
    "Source",
    "Stats",
    "Target",
    "TargetLike",
    "Tiled",
    "Verdict",
    "Written",
    "__version__",
    "bind",
    "build",
    "classify",
    "classify_modules",
    "convert_modules",
    "costs",
    "dims",
    "export",
    "inline_named",
    "install",
    "installed",
    "jit",
    "lower",
    "named",
    "raise_named",
    "read",
    "rules",
    "stats",
    "tile",
    "uninstall",
    "verify",
]

_HOMES = {
    "hlo_lower.api.functions": (
        *("RuleRow", "CostRow", "bind", "classify", "export", "jit", "lower", "read", "rules", "costs", "verify"),
    ),
    "hlo_lower.base.errors": ("DifferenceError", "HloLowerError", "InputError", "NotLoweredError", "RegistryError"),
    "hlo_lower.ir.reader": ("Source",),
    "hlo_lower.ir.shapes.dims": ("dims",),
    "hlo_lower.ir.view": ("Graph",),
    "hlo_lower.api.install": ("InstallWarning", "Stats", "install", "installed", "stats", "uninstall"),
    "hlo_lower.api.jit": ("LoweredFunction",),
    "hlo_lower.named.named_function": ("named",),
    "hlo_lower.named.naming": ("Raised", "inline_named", "raise_named"),
    "hlo_lower.lowering.options": ("Options",),
    "hlo_lower.lowering.lowered": ("Lowered",),
    "hlo_lower.base.installed": ("PluginError",),
    "hlo_lower.base.registry": ("CompositeLoweringRegistry", "RuleList"),
    "hlo_lower.consumers.artifacts": ("Built", "build"),
    "hlo_lower.report.module": ("ModuleReport",),
    "hlo_lower.report.notebook": ("Records",),
    "hlo_lower.facts.scatter.record": ("Fact", "Rejection", "ScatterRecord", "Written"),
    "hlo_lower.api.many.conversion": ("convert_modules",),
    "hlo_lower.api.many.modules": ("classify_modules",),
    "hlo_lower.ops.targets": ("Target", "TargetLike"),
    "hlo_lower.tile.by_hand": ("ByHand",),
    "hlo_lower.tile.into_loop": ("IntoLoop",),
    "hlo_lower.tile.tiled_module": ("Tiled",),
    "hlo_lower.api.tiling": ("tile",),
    "hlo_lower.verify": ("Inputs", "Level", "ModuleVerdict", "RegionVerdict", "Verdict"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """A package in which a public name is never taken by the subpackage of the same name.

    Whoever imports `hlo_lower.verify` or `hlo_lower.ir.export` first, the import system then binds that name here to
    the subpackage, before or after the function was looked up. `hl.verify` and `hl.export` stay the functions; the
    subpackages are reached as what they are imported from (`from hlo_lower.verify import Verdict`).
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
former_names.install()


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
