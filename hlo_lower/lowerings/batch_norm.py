"""The three batch normalizations, written out as XLA does."""

from collections.abc import Sequence
from math import prod

from hlo_lower import mlir
from hlo_lower.graph import Builder, Node, Value
from hlo_lower.graph.axes import reduce_along
from hlo_lower.lowerings.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.registry import RuleList

rules = RuleList()


class _Batch:
    """What is normalized, feature by feature."""

    def __init__(self, node: Node, build: Builder) -> None:
        x = node.operand(0)
        self._build, self._shape, self._element = build, x.static_shape, x.element_type
        self._feature = node.integer("feature_index")
        self.count = prod(self._shape) // max(self._shape[self._feature], 1)
        self.epsilon = mlir.float_of(node.raw.attributes["epsilon"])

    def spread(self, value: Value) -> Value:
        """One number for each feature, in the shape of what is normalized."""
        return self._build.broadcast(value, self._shape, [self._feature])

    def total(self, value: Value) -> Value:
        """The sum of each feature."""
        zero = self._build.zero(mlir.tensor_element(value.raw.type))
        others = [d for d in range(len(self._shape)) if d != self._feature]
        return reduce_along(self._build, value, zero, others, "add")

    def op(self, name: str, *values: Value | float) -> Value:
        """An elementwise op; numbers become constants of the shape of the first operand."""
        like = next(value for value in values if isinstance(value, Value)).static_shape
        given = (v if isinstance(v, Value) else self._build.float_splat(v, like, self._element) for v in values)
        return self._build.elementwise(name, *given)

    def scale(self, variance: Value) -> Value:
        """1 / sqrt(variance + epsilon)."""
        return self.op("rsqrt", self.op("add", variance, self.epsilon))

    def normalized(self, x: Value, mean: Value, variance: Value) -> Value:
        """(x - mean) / sqrt(variance + epsilon)."""
        return self.op("multiply", self.op("subtract", x, self.spread(mean)), self.spread(self.scale(variance)))

    def scaled(self, x: Value, scale: Value, offset: Value) -> Value:
        """x * scale + offset."""
        return self.op("add", self.op("multiply", x, self.spread(scale)), self.spread(offset))


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_INFERENCE}, form="x * s + (offset - mean * s), s = scale * rsqrt(...)")
def batch_norm_inference_to_elementwise(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        s = rsqrt(variance + epsilon) * scale;  x * s + (offset - mean * s)

    Equal: bit for bit to XLA on a CPU, which computes the factor and the shift feature by feature, too.
    """
    x, scale, offset, mean, variance = op.node.operands
    batch = _Batch(op.node, op.build)
    factor = batch.op("multiply", batch.scale(variance), scale)
    shift = batch.op("subtract", offset, batch.op("multiply", mean, factor))
    return [batch.scaled(x, factor, shift)]


@rules.lowers(
    PLAIN, named={PlainOp.BATCH_NORM_TRAINING}, form="mean, variance E[x^2] - E[x]^2, and what inference computes"
)
def batch_norm_training_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order: the mean and the variance of each feature, then the normalization.

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    x, scale, offset = op.node.operands
    batch = _Batch(op.node, op.build)
    mean = batch.op("divide", batch.total(x), float(batch.count))
    squares = batch.op("divide", batch.total(batch.op("multiply", x, x)), float(batch.count))
    variance = batch.op("subtract", squares, batch.op("multiply", mean, mean))
    return [batch.scaled(batch.normalized(x, mean, variance), scale, offset), mean, variance]


@rules.lowers(PLAIN, named={PlainOp.BATCH_NORM_GRAD}, form="the derivatives of a normalization, sums of each feature")
def batch_norm_grad_to_reduce(op: PlainLowering) -> Sequence[Value]:
    """Write it out, in XLA's own order.

        offset' = sum(g);  scale' = sum(g * (x - mean)) * r, r = rsqrt(variance + epsilon)
        x' = scale * r / n * (n * g - offset' - (x - mean) * sum(g * (x - mean)) / (variance + epsilon))

    Equal: up to the order of the two sums, which the specification leaves open.
    """
    x, scale, mean, variance, grad = op.node.operands
    batch = _Batch(op.node, op.build)
    centred = batch.op("subtract", x, batch.spread(mean))
    root = batch.scale(variance)
    offset_grad, moment = batch.total(grad), batch.total(batch.op("multiply", grad, centred))
    scale_grad = batch.op("multiply", moment, root)
    inner = batch.op("subtract", batch.op("multiply", grad, float(batch.count)), batch.spread(offset_grad))
    share = batch.op("multiply", batch.spread(moment), centred)
    share = batch.op("divide", share, batch.spread(batch.op("add", variance, batch.epsilon)))
    inner = batch.op("subtract", inner, share)
    factor = batch.op("divide", batch.spread(batch.op("multiply", scale, root)), float(batch.count))
    return [batch.op("multiply", factor, inner), scale_grad, offset_grad]
