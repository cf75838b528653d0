"""Named ops of Core ML's ML programs: what becomes of the composites that `hlo-lower raise --target coreml` writes.

stablehlo-coreml finds softmax, attention and some forms of gelu by itself, in passes over the program that it has made.
It finds no layer norm: the patterns of coremltools begin with a mean, and the pass that makes one of a sum runs later.
So the op is handed over by its name: each composite has a handler, as the converter's own `chlo.erf` has. Where it is
not registered the converter takes the decomposition, which is right, too.

    from hlo_lower.consumers.coreml_named import register

    register()
    program = stablehlo_coreml.convert(module, minimum_deployment_target=coremltools.target.iOS18)

coreml.layer_norm    mb.layer_norm; what it does not take is a mul and an add behind it: weights that are no constants,
                     and a bias alone, over which coremltools 9.0 stumbles
coreml.gelu          mb.gelu
coreml.silu          mb.silu
coreml.scaled_dot_product_attention
                     mb.scaled_dot_product_attention, whose scale is 1 / sqrt(elements of a head): a query with another
                     one is multiplied by what is left of it
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.ir import mlir

Handler: TypeAlias = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
"""Of MIL's builder, the operands and the attributes of a composite: its result in MIL."""


def register() -> None:
    """Let stablehlo-coreml take the composites of `HANDLERS` for the named ops that they are, in this process."""
    build = import_module("coremltools.converters.mil.mil").Builder
    converter = import_module("stablehlo_coreml.converter").StableHloConverter
    for name, handler in HANDLERS.items():
        converter._composite_ops_registry[name] = _make_handler(build, handler)


def _make_handler(build: Any, handler: Handler) -> Callable[[Any, Any, Any], None]:
    def handle(_: Any, context: Any, op: Any) -> None:
        operands = [context[value.get_name()] for value in op.inputs]
        attributes = {} if "composite_attributes" not in op.attributes else mlir.entries_of(op.composite_attributes)
        context.add_result(op.results[0], handler(build, operands, attributes))

    return handle


def _layer_norm(build: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    x, *weights = operands
    names = ["gamma"] * (mlir.symbol_name(attributes["weight"]) != "none") + ["beta"]
    given = dict(zip(names, weights, strict=False))
    axes = list(range(-len(mlir.integers_of(attributes["normalized_shape"])), 0))
    epsilon = _number_type(x)(mlir.float_of(attributes["epsilon"]))
    if ("gamma" in given or not given) and all(one.val is not None for one in given.values()):
        constants = {name: one.val for name, one in given.items()}
        return build.layer_norm(x=x, axes=axes, epsilon=epsilon, **constants)
    result = build.layer_norm(x=x, axes=axes, epsilon=epsilon)
    if "gamma" in given:
        result = build.mul(x=result, y=given["gamma"])
    return build.add(x=result, y=given["beta"]) if "beta" in given else result


def _number_type(x: Any) -> Any:
    """NumPy's type of the elements of a value: constants have to be of the same."""
    return import_module("coremltools.converters.mil.mil").types.nptype_from_builtin(x.dtype)


def _attention(build: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    names = ("query", "key", "value", "attn_mask")
    given = dict(zip(names, operands, strict=False))
    query = given["query"]
    scale, own = mlir.float_of(attributes["scale"]), 1 / sqrt(query.shape[-1])
    if np.float32(scale) != np.float32(own):  # the attribute is of f32
        given["query"] = build.mul(x=query, y=_number_type(query)(scale / own))
    return build.scaled_dot_product_attention(**given)


HANDLERS: Mapping[str, Handler] = {
    "coreml.layer_norm": _layer_norm,
    "coreml.gelu": lambda build, given, told: build.gelu(x=given[0], mode=mlir.symbol_name(told["mode"])),
    "coreml.silu": lambda build, given, _: build.silu(x=given[0]),
    "coreml.scaled_dot_product_attention": _attention,
}
"""By the names of the composites in coreml.toml."""
