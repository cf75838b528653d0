"""A module in which one element type stands for another: values, blocks, signatures and the signature in JAX."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.export
import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node, Value

ElementTypes = Mapping[str, str]
"""Element types and those that they become; of two parts, which stand along a last dim, one as in "2xf32"."""

TWO = "2x"


def retyped(raw_type: mlir.RawType, becomes: ElementTypes) -> mlir.RawType:
    """A type with the element type that its own becomes; other types as they are."""
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None or tensor.element_name not in becomes:
        return raw_type
    after = becomes[tensor.element_name]
    shape = (*tensor.shape, 2) if after.startswith(TWO) else tensor.shape
    return mlir.tensor_type(shape, after.removeprefix(TWO))


def retype(graph: Graph, becomes: ElementTypes, kept: Collection[Value] = (), inside: Collection[Node] = ()) -> None:
    """Give every value its new type, and every function its new signature.

    Args:
      graph: the module; ops that are not right on the new types have to be replaced before.
      becomes: element types and those that they become.
      kept: values that keep theirs.
      inside: nodes in whose regions nothing changes.
    """
    functions: list[Function] = []
    skipped: set[mlir.RawOperation] = set()
    for node in inside:
        for block in node.blocks:
            for inner in block.nodes:
                skipped.update(mlir.walked(inner.raw))

    def change(value: Value) -> None:
        if value not in kept and value.is_tensor and value.element_type in becomes:
            mlir.set_type(value.raw, retyped(value.raw.type, becomes))

    def visit(raw: mlir.RawOperation) -> None:
        if raw in skipped:
            return
        node = Node(raw)
        for value in node.results:
            change(value)
        if node not in inside:
            for block in node.blocks:
                for argument in block.arguments:
                    change(argument)
        if node.name == "func.func":
            functions.append(Function(node))

    mlir.walk(graph.module.operation, visit)
    for function in functions:
        if function.has_body:
            mlir.set_signature(function.node.raw)
        else:
            mlir.set_declared_signature(function.node.raw, lambda raw_type: retyped(raw_type, becomes))


def with_avals(graph: Graph, becomes: ElementTypes) -> jax.export.Exported | None:
    """The `Exported` that a graph came from, with its new signature; None where it came from none."""
    exported: jax.export.Exported | None = graph.exported
    if exported is None:
        return None
    dtypes = {_dtype(before): (_dtype(after.removeprefix(TWO)), after) for before, after in becomes.items()}

    def aval(given: Any) -> Any:
        if given.dtype not in dtypes:
            return given
        dtype, after = dtypes[given.dtype]
        return given.update(dtype=dtype, shape=(*given.shape, 2) if after.startswith(TWO) else given.shape)

    return replace(
        exported,
        in_avals=tuple(map(aval, exported.in_avals)),
        out_avals=tuple(map(aval, exported.out_avals)),
        mlir_module_serialized=mlir.module_portable_artifact(graph.module),
        uses_global_constants=False,
    )


def _dtype(element: str) -> np.dtype[Any]:
    found = mlir.dtype_of(element)
    assert found is not None
    return found
