"""QR by Householder reflections: the factor and its reflections, and Q of the reflections."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Value
from hlo_lower.lowerings.linear_algebra.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowerings.linear_algebra.stack import COUNTER, Stack
from hlo_lower.lowerings.plain_op import Numbers
from hlo_lower.registry import RuleList

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.QR},
    numbers={Numbers.BOUNDED},
    form="column by column: a reflection that makes what stands below the diagonal zero",
)
def qr_to_reflections(op: MatrixLowering) -> Sequence[Value]:
    """Reflect column by column, each onto its diagonal element.

        for k:  beta = -sign(a[k, k]) * |a[k:, k]|;  tau = (beta - a[k, k]) / beta;  v = a[k:, k] / (a[k, k] - beta)
                v[k] = 1;  a -= tau * v (v' a)  right of column k;  a[k, k] = beta, and v stands below it

    Equal up to rounding, with LAPACK's signs: beta's is the opposite of a[k, k]'s, tau is 0 and the column stays where
    nothing stands below the diagonal. Both are exact for a matrix whose columns differ by at most about m n * eps of
    their norms (Higham, theorem 19.4). Norms are of what is divided by its largest element, so their squares do not
    overflow; LAPACK's further scaling of columns near the smallest normal number is left out. Costs min(m, n) steps.
    """
    node, build = op.node, op.build
    stack = Stack.of(build, node.operand(0), 2)
    a = stack.flat(node.operand(0), 2)
    count = min(a.static_shape[-2:])
    found = stack.steps(count, [a, stack.number(0.0, (count,))], _reflection)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _reflection(stack: Stack, k: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
    """One reflection, and what it makes of the columns right of it."""
    (a, taus), build = carried, stack.build
    m, n = a.static_shape[-2:]
    column = stack.part(a, k, 1)
    rows, here, zeros = stack.place((m,), 0), stack.step(k, (m,)), stack.number(0.0, (m,))
    below = build.compare(rows, "GT", here)
    alpha = stack.part(column, k, 0)
    beta, is_done = _mirrored(stack, alpha, stack.where(below, column, zeros))
    tau = stack.where(is_done, stack.number(0.0, ()), stack.op("divide", stack.op("subtract", beta, alpha), beta))
    scale = stack.spread(stack.op("subtract", alpha, beta), (m,), [])
    scaled = stack.where(stack.spread(is_done, (m,), []), column, stack.op("divide", column, scale))
    beta = stack.where(is_done, alpha, beta)
    ones = stack.where(build.compare(rows, "EQ", here), stack.number(1.0, (m,)), zeros)
    vector = stack.where(below, scaled, ones)
    columns, now = stack.place((m, n), 1), stack.step(k, (m, n))
    right = stack.where(build.compare(columns, "GT", now), _reflected(stack, vector, tau, a), a)
    own = stack.where(build.compare(rows, "EQ", here), stack.spread(beta, (m,), []), stack.where(below, scaled, column))
    a = stack.where(build.compare(columns, "EQ", now), stack.spread(own, (m, n), [0]), right)
    count = taus.static_shape[-1]
    is_here = build.compare(stack.place((count,), 0), "EQ", stack.step(k, (count,)))
    return [a, stack.where(is_here, stack.spread(tau, (count,), []), taus)]


def _mirrored(stack: Stack, alpha: Value, below: Value) -> tuple[Value, Value]:
    """-sign(alpha) times the norm of alpha and what stands below it, and whether nothing stands there."""
    build, m = stack.build, below.static_shape[-1]
    zero, one = stack.number(0.0, ()), stack.number(1.0, ())
    least = build.infinity(mlir.tensor_element(below.raw.type), is_negative=True)
    largest = stack.reduced(stack.op("abs", below), least, 0, "maximum")
    is_done = build.compare(largest, "EQ", zero)
    size = stack.op("maximum", largest, stack.op("abs", alpha))
    size = stack.where(build.compare(size, "EQ", zero), one, size)
    scaled = stack.op("divide", below, stack.spread(size, (m,), []))
    first = stack.op("divide", alpha, size)
    squares = stack.op("add", stack.sum(stack.op("multiply", scaled, scaled), 0), stack.op("multiply", first, first))
    norm = stack.op("multiply", size, stack.op("sqrt", squares))
    is_negative_zero = build.compare(stack.op("divide", one, alpha), "LT", zero)
    is_negative = stack.op("or", build.compare(alpha, "LT", zero), is_negative_zero)
    return stack.where(is_negative, norm, stack.op("negate", norm)), is_done


def _reflected(stack: Stack, vector: Value, tau: Value, a: Value) -> Value:
    """a - tau * v (v' a)."""
    m, n = a.static_shape[-2:]
    products = stack.sum(stack.op("multiply", stack.spread(vector, (m, n), [0]), a), 0)
    scaled = stack.op("multiply", stack.spread(tau, (n,), []), products)
    return stack.op("subtract", a, stack.outer(vector, scaled))


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.ORTHOGONAL},
    numbers={Numbers.BOUNDED},
    form="the reflections applied to the identity, the last one first",
)
def reflections_to_q(op: MatrixLowering) -> Sequence[Value]:
    """Multiply the reflections out.

        q = 1 on the diagonal;  for k from the last to 0:  v = (0, ..., 1, a[k+1:, k]);  q -= tau[k] * v (v' q)

    Equal up to rounding: both differ from the product of the exact reflections by at most about m n * eps (Higham,
    lemma 19.3). What stands on and above the diagonal is not read. Costs as many steps over the matrix as there are
    reflections.
    """
    node, build = op.node, op.build
    stack = Stack.of(build, node.operand(0), 2)
    a, taus = stack.flat(node.operand(0), 2), stack.flat(node.operand(1), 1)
    (m, n), count = a.static_shape[-2:], taus.static_shape[-1]
    diagonal = build.compare(stack.place((m, n), 0), "EQ", stack.place((m, n), 1))
    q = stack.where(diagonal, stack.number(1.0, (m, n)), stack.number(0.0, (m, n)))

    def step(inner: Stack, number: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
        a, taus, q = carried
        k = inner.op("subtract", inner.build.constant(count - 1, (), COUNTER), number)
        rows, here = inner.place((m,), 0), inner.step(k, (m,))
        ones = inner.where(inner.build.compare(rows, "EQ", here), inner.number(1.0, (m,)), inner.number(0.0, (m,)))
        vector = inner.where(inner.build.compare(rows, "GT", here), inner.part(a, k, 1), ones)
        return [a, taus, _reflected(inner, vector, inner.part(taus, k, 0), q)]

    return [build.reshape(stack.steps(count, [a, taus, q], step)[2], node.result(0).static_shape)]
