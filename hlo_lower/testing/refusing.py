"""A backend that refuses: JAX on a CPU raises what the plug-in of a target would raise for an op outside it."""

from collections.abc import Generator
from contextlib import contextmanager

from hlo_lower.ir import mlir
from hlo_lower.ir.jax_compile import Place, intercept, refusal, restore_on_exit
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.engine.refused_ops import refused_ops
from hlo_lower.lowering.kinds import registry_of
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.kind import has_native_form
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets import TargetLike
from hlo_lower.report.headline import refused_lines

FOR_CPUS = ("lapack_", "hapax_", "ducc_", "xla_python_cpu_", "xla_ffi_python_cpu_", "xla_ffi_partitioned_python_cpu_")
"""How the custom calls begin that JAX writes for a CPU alone: another platform gets other ops in their place."""


@contextmanager
def refusing(target: TargetLike) -> Generator[None]:
    """Make JAX refuse, on each platform and in all threads, programs with an op or a form outside a target.

    Custom calls that JAX writes for a CPU alone (LAPACK, callbacks) pass: the target's platform would not get them.

    It raises `jax.errors.JaxRuntimeError`, as a backend's compiler does. Modules that `hl.install` lowers are looked at
    after that.

    Args:
      target: the name of a built-in consumer, the path of a target file, or a `Target`.

    Example:
      >>> with refusing("iree"):
      ...     jnp.zeros(4).at[0].set(1.0)
      Traceback (most recent call last):
      jax.errors.JaxRuntimeError: UNIMPLEMENTED: iree refuses a stablehlo.scatter at model.py:12
    """
    options = Options(target)

    def refuse(module: mlir.RawModule, _platform: str) -> mlir.RawModule:
        graph = Graph(module, "program", has_locations=True)
        if told := refused_line(graph, options):
            raise refusal(f"UNIMPLEMENTED: {told}")
        return module

    with restore_on_exit(Place.BACKEND):
        intercept(Place.BACKEND, refuse)
        yield


def refused_line(graph: Graph, options: Options) -> str:
    """What a target refuses of a module first, and where; "" where it takes all of it."""
    target = options.target
    for one in refused_ops(graph, target):
        if one.op.partition("@")[2].startswith(FOR_CPUS):
            continue
        return f"{target.name} rejects {refused_lines([one])[0]}"
    if graph.scatters and target.refuses_op(SCATTER) is not None:
        context = Context(graph, options, registry_of(None))
        for node in graph.scatters:
            if not has_native_form(context, node):
                return f"{target.name} rejects a {SCATTER} at {graph.location(node)}"
    return ""
