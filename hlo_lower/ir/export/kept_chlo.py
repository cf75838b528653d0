"""An export whose chlo ops stay as they are.

`jax.export` writes chlo ops out as plain StableHLO when it serializes a module: an erf becomes forty ops. What it
lowered the function to has them still. So it is given a function that remembers what that was, and this takes the place
of the module that was serialized. Where sizes are symbolic, `jax.export` puts a function around @main that computes
them, which is taken over.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.export

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node

_IS_SYMBOLIC = "jax.uses_shape_polymorphism"
"""An attribute of the modules of `jax.export`."""

_SIGNATURE = ("sym_name", "sym_visibility", "arg_attrs", "res_attrs")
"""What `jax.export` changes of @main where it puts a function around it."""


class Remembered:
    """A function under `jax.jit`, or what tracing it gave, that remembers what came of it.

    Attributes:
      last: of a function what tracing it gave last, of that what lowering it gave.
    """

    def __init__(self, jitted: Any) -> None:
        self._jitted = jitted
        self.last: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function: `jax.export` takes nothing else."""
        return self._jitted(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> "Remembered":
        """Trace the function."""
        self.last = Remembered(self._jitted.trace(*args, **kwargs))
        return self.last

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        """Lower what was traced."""
        self.last = self._jitted.lower(*args, **kwargs)
        return self.last


def with_chlo(exported: jax.export.Exported, function: Remembered) -> jax.export.Exported:
    """The same export with the chlo ops that its function was lowered to; the export itself where there are none.

    Args:
      exported: what `jax.export` made of the function.
      function: the function.
    """
    lowered = function.last.last.compiler_ir("stablehlo")
    if not mlir.any_operation(lowered.operation, lambda op: op.name.startswith("chlo.")):
        return exported
    context = mlir.make_context()
    module, written_out = (
        Graph(mlir.parse_module(data, context), exported.fun_name, has_locations=True)
        for data in (mlir.module_bytecode(lowered), bytes(exported.mlir_module_serialized))
    )
    attributes = written_out.module.operation.attributes
    module.module.operation.attributes[_IS_SYMBOLIC] = attributes[_IS_SYMBOLIC]
    around, main = written_out.functions["main"].node.raw, module.functions["main"].node.raw
    calls = (Node(op).callee for op in mlir.body_of(around) if op.name == "func.call")
    if inner := next((name for name in calls if name not in module.functions), None):
        its = written_out.functions[inner].node.raw.attributes
        for name in _SIGNATURE:
            if name in its:
                main.attributes[name] = its[name]
        around.move_before(main)
    return replace(exported, mlir_module_serialized=mlir.module_portable_artifact(module.module))
