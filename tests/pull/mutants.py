"""Modules with one thing changed: another operand of the same type, another scalar, another number in an attribute."""

import re

from hlo_lower.ir import mlir

TRIES = 30
"""Ops that are looked at for something to change."""

DIRECTIONS = {"LT": "LE", "GE": "GT", "GT": "GE", "LE": "LT", "EQ": "NE", "NE": "EQ"}


def mutant(text, rng):
    """The module with something changed; None where that is no module."""
    context = mlir.make_context()
    module = mlir.parse_module(text, context)
    ops = [op for op in mlir.operations_within(module.operation) if op.name.startswith("stablehlo.") and op.operands]
    scalars = [op for op in mlir.operations_within(module.operation) if op.name == "stablehlo.constant"]
    with mlir.active(context):
        for _ in range(TRIES):
            way = (another_number, another_operand, another_operand, another_attribute)[rng.integers(4)]
            among = scalars if way is another_number else ops
            if among and way(among[rng.integers(len(among))], rng):
                changed = mlir.print_module(module)
                return changed if is_module(changed) else None
    return None


def is_module(text):
    """Whether a text is one."""
    try:
        return mlir.verify_module(mlir.parse_module(text)) is None
    except mlir.MlirSyntaxError:
        return False


def another_number(op, rng):
    """Change a constant of one integer."""
    told = re.fullmatch(r"dense<(-?\d+)> : (.*)", str(op.attributes["value"]))
    if told is None:
        return False
    number = int(told[1]) + int(rng.choice((-2, -1, 1, 2)))
    return reset(op, "value", f"dense<{number}> : {told[2]}")


def another_operand(op, rng):
    """Read another value of the same type that stands in the same block."""
    place = int(rng.integers(len(op.operands)))
    old = op.operands[place]
    block = next(
        b
        for region in op.parent.operation.regions
        for b in region.blocks
        if any(inner.operation == op for inner in b.operations)
    )
    found = list(block.arguments)
    for inner in block.operations:
        if inner.operation == op:
            break
        found += inner.operation.results
    fit = [value for value in found if value.type == old.type and value != old]
    if fit:
        op.operands[place] = fit[rng.integers(len(fit))]
    return bool(fit)


def another_attribute(op, rng):
    """Change a number in an attribute, or the direction of a comparison."""
    names = sorted(mlir.attributes_of(op))
    if not names:
        return False
    name = names[rng.integers(len(names))]
    told = str(op.attributes[name])
    numbers = list(re.finditer(r"(?<![a-z\d])\d+", told))
    if numbers:
        at = numbers[rng.integers(len(numbers))]
        number = max(0, int(at.group()) + int(rng.choice((-1, 1))))
        return reset(op, name, f"{told[: at.start()]}{number}{told[at.end() :]}")
    direction = next((d for d in DIRECTIONS if f" {d}>" in told), None)
    return direction is not None and reset(op, name, told.replace(f" {direction}>", f" {DIRECTIONS[direction]}>"))


def reset(op, name, text):
    """Set an attribute; False where the text is none."""
    try:
        op.attributes[name] = mlir.parse_attribute(text)
    except Exception as error:  # the bindings' own error, which is not exported everywhere
        if "parse" not in str(error).lower():
            raise
        return False
    return True
