"""Where StableHLO's interpreter is known to be wrong about a scatter, or to drop otherwise than XLA; and about NaN.

It drops single elements, never whole windows; reads unsigned indices as signed; and updates an operand in place, so
that whoever else reads the operand sees what was written. It compares floats as IEEE 754 does also where they are to be
totally ordered, so that NaN is below nothing.
"""

from collections import Counter
from collections.abc import Sequence

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within


def why_interpreter_errs(program: Program, ops: Sequence[Op], outputs: Sequence[ValueId], policy: str) -> str:
    """Why the interpreter is no judge of some operations, "" if nothing is known.

    Args:
      program: that they are of.
      ops: the operations; those in their regions are looked at, too.
      outputs: what is returned of them.
      policy: what scatters do out of bounds, "xla" or "spec".
    """
    every = ops_within(ops)
    if any(op.name == "stablehlo.compare" and _is_total(program, op) for op in every):
        return "it compares by IEEE 754 where floats are to be totally ordered"
    scatters = [op for op in every if op.name == "stablehlo.scatter"]
    if not scatters:
        return ""
    reads = Counter(outputs)
    for op in every:
        reads.update(op.inputs)
        for body in op.bodies:
            reads.update(body.returned)
    for op in scatters:
        indices = program.type_of(op.inputs[len(op.results)])
        if indices is not None and element_type(indices.element_name).is_unsigned:
            return "it reads unsigned indices as signed"
        if any(reads[operand] > 1 for operand in op.inputs[: len(op.results)]):
            return "it updates an operand in place that is read elsewhere"
        if policy == "xla" and mlir.scatter_dimension_numbers(op.raw).update_window_dims:
            return "it drops single elements, not whole windows"
    return ""


def _is_total(program: Program, op: Op) -> bool:
    """Whether a comparison is one of floats by their total order."""
    kind = dict(op.attributes).get("compare_type")
    compared = program.type_of(op.inputs[0])
    return "TOTALORDER" in str(kind) and (compared is None or "f" in compared.element_name)
