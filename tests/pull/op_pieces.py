"""Every op on cut operands, beside a part of what it gives: a law must not take them as the same where they differ."""

import itertools

import numpy as np
from op_cases import OpCase

from hlo_lower.ir import mlir
from hlo_lower.verify.run import Executable


def sliced(value, runs, before):
    """A slice of a value, built before an op; the value itself where nothing is cut."""
    shape = mlir.static_shape(value.type)
    if not runs:
        return value
    begin = [runs[d][0] if d in runs else 0 for d in range(len(shape))]
    sizes = [runs[d][1] if d in runs else n for d, n in enumerate(shape)]
    if any(b < 0 or b + s > n for b, s, n in zip(begin, sizes, shape, strict=True)):
        return None
    bounds = begin, [b + s for b, s in zip(begin, sizes, strict=True)], [1] * len(shape)
    names = "start_indices", "limit_indices", "strides"
    attributes = {name: mlir.dense_i64(numbers) for name, numbers in zip(names, bounds, strict=True)}
    kind = mlir.tensor_type(sizes, mlir.tensor_element(value.type))
    where = {"location": before.location, "insertion_point": mlir.insert_before(before)}
    return mlir.create_operation("stablehlo.slice", [value], [kind], attributes, **where).results[0]


def parsed(text):
    """A module, its context, its last op and what it returns."""
    context = mlir.make_context()
    module = mlir.parse_module(text, context)
    [block] = module.body.operations[0].operation.regions[0].blocks
    *ops, last = [op.operation for op in block.operations]
    return context, module, ops[-1], last


def part_of(text, dim, run):
    """The module that returns a part of each of its results, along a dim."""
    context, module, _, last = parsed(text)
    with mlir.active(context):
        for k, value in enumerate(list(last.operands)):
            part = sliced(value, {dim: run}, last)
            if part is None:
                return None
            last.operands[k] = part
        mlir.set_signature(module.body.operations[0].operation)
    return mlir.print_module(module)


def on_cut(text, dim, size, cuts):
    """The module that computes its op on cut operands, `size` of a dim of its results; None where that is no op."""
    context, module, op, last = parsed(text)
    with mlir.active(context):
        operands = [sliced(v, runs, op) for v, runs in zip(op.operands, cuts, strict=True)]
        if any(operand is None for operand in operands):
            return None
        types = []
        for value in op.results:
            shape = list(mlir.static_shape(value.type))
            shape[dim] = size
            types.append(mlir.tensor_type(shape, mlir.tensor_element(value.type)))
        copy = mlir.clone_on(op, mlir.insert_before(last), op.location, operands, types)
        if op.name == "stablehlo.gather":
            taken, shape = mlir.integers_of(op.attributes["slice_sizes"]), mlir.static_shape(operands[0].type)
            sizes = [min(a, b) for a, b in zip(taken, shape, strict=True)]
            copy.attributes["slice_sizes"] = mlir.dense_i64(sizes)
        if op.name == "stablehlo.dynamic_slice":
            copy.attributes["slice_sizes"] = mlir.dense_i64(mlir.static_shape(types[0]))
        for k, value in enumerate(copy.results):
            last.operands[k] = value
        mlir.set_signature(module.body.operations[0].operation)
        text = mlir.print_module(module)
    try:
        return None if mlir.verify_module(mlir.parse_module(text)) else text
    except mlir.MlirSyntaxError:
        return None


def attacks(case: OpCase):
    """Pairs of modules: a part of what the op gives, and the op on operands that are cut in every way that fits."""
    text = case.text(1)
    _context, _module, op, _last = parsed(text)
    shape = mlir.static_shape(op.results[0].type)
    for dim, extent in enumerate(shape):
        for run in {(0, extent - 1), (1, extent - 1), (extent // 2, 1)}:
            if run[1] < 1 or run[0] + run[1] > extent:
                continue
            first = part_of(text, dim, run)
            if first is None:
                continue
            ways = []
            for value in op.operands:
                dims = range(len(mlir.static_shape(value.type)))
                ways.append([{}, *({d: run} for d in dims), *({d: (0, run[1])} for d in dims)])
            for cuts in itertools.islice(itertools.product(*ways), 600):
                second = on_cut(text, dim, run[1], cuts)
                if second is not None:
                    yield first, second


def are_same(first, second, seed=0):
    """Whether two modules give the same on small whole numbers, some out of bounds."""
    versions = [Executable(text, "quick") for text in (first, second)]
    rng = np.random.default_rng(seed)
    for _ in range(3):
        given = []
        for a in versions[0].arguments:
            dtype = np.dtype(a.dtype)
            low, high = (0, 2) if dtype.kind == "b" else (0 if dtype.kind == "u" else -2, 7)
            given.append(rng.integers(low, high, a.shape).astype(dtype))
        pairs = zip(*(version.run(given) for version in versions), strict=True)
        if not all(np.array_equal(a, b) for a, b in pairs):
            return False
    return True
