"""Former names of modules that others import, and of keywords: each still gives what it gave, and says what is new.

>>> from hlo_lower.rule_api import RuleList
DeprecationWarning: hlo_lower.rule_api is hlo_lower.plugin now
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

FORMER = {
    "hlo_lower.rule_api": "hlo_lower.plugin",
    "hlo_lower.mlir": "hlo_lower.ir.mlir",
    "hlo_lower.errors": "hlo_lower.base.errors",
    "hlo_lower.registry": "hlo_lower.base.registry",
    "hlo_lower.targets": "hlo_lower.ops.targets",
    "hlo_lower.verify.program": "hlo_lower.verify.read.program",
}
"""By the former name the new one."""


KEYWORDS = {"time_limit": "patience"}
"""By the former name of a keyword the new one."""


def with_new_names(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a public function under their new names; a former one says which that is."""
    for name in keywords:
        if name in KEYWORDS:
            warnings.warn(f"{name} is {KEYWORDS[name]} now", DeprecationWarning, stacklevel=3)
    return {KEYWORDS.get(name, name): value for name, value in keywords.items()}


class _Forwarding(ModuleType):
    """A module whose names are those of another one."""

    def __init__(self, name: str, new: ModuleType) -> None:
        super().__init__(name, new.__doc__)
        self._new = new

    def __getattr__(self, name: str) -> object:
        return getattr(self._new, name)

    def __dir__(self) -> list[str]:
        return dir(self._new)


class _FormerNames(MetaPathFinder, Loader):
    """Finds modules by their former names; it is asked last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What imports a module of a former name; None of any other."""
        return ModuleSpec(fullname, self) if fullname in FORMER else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that gives what the new one gives."""
        new = FORMER[spec.name]
        warnings.warn(f"{spec.name} is {new} now", DeprecationWarning, stacklevel=2)
        return _Forwarding(spec.name, import_module(new))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the new module was executed when it was imported."""


def install() -> None:
    """Let former names be imported, once in a process."""
    if not any(isinstance(finder, _FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(_FormerNames())
