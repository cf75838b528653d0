"""A function of a model file, found and ready to be exported."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.export

from hlo_lower.ir.export.trace import export
from hlo_lower.ir.export.user_code import importable

EXPORT_PLATFORMS = ("cpu",)


@dataclass(frozen=True)
class ExportTarget:
    """A function of a model file, and what it is exported with.

    Attributes:
      spec: as it was asked for ("models/llama.py:decode").
      fn: the function.
      args: example arguments.
      donate: positions of the arguments that are given away.
      static: keyword arguments that are not traced: the config, where the file has one.
      x64: whether it is traced with 64-bit types, whatever `JAX_ENABLE_X64` says; without, as JAX is set.
      module: the file as a module.
      folders: where its imports are looked for.
      shapes: symbolic shapes and constraints that it is exported with; None leaves the shapes of args.
    """

    spec: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    donate: tuple[int, ...]
    static: Mapping[str, Any]
    x64: bool
    module: ModuleType
    folders: tuple[str, ...]
    shapes: tuple[str, ...] | None = None

    def export(self, shapes: Sequence[str] | None = None) -> jax.export.Exported:
        """Export it for CPU, whatever the machine has, so that the text is the same everywhere.

        Args:
          shapes: symbolic shapes and constraints in place of its own.

        Raises:
          InputError: as `export`.
        """
        with importable(self.folders), jax.enable_x64(True) if self.x64 else nullcontext():
            return export(
                self.fn,
                *self.args,
                shapes=self.shapes if shapes is None else shapes,
                donate=self.donate,
                static=self.static,
                name=self.spec.rpartition(":")[2],
                platforms=EXPORT_PLATFORMS,
            )
