"""Which routine of linear algebra an op is: LAPACK's, as JAX calls them on a CPU, and StableHLO's own two.

    %1:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%0) {operand_layouts = [dense<[0, 1]> : ...], ...}

LAPACK reads columns one after the other, so the layouts of such a call say that it means the matrices as they are; with
any other layout it would read the transposed ones, and is not known. Nor is one with an attribute that is not read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.registry import FactsByName
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import CHOLESKY, CUSTOM_CALL

LINEAR_ALGEBRA = "linear algebra"
"""The name under which rules for these ops are registered."""


BEGINS, ENDS = "lapack_", "_ffi"


class Routine(Enum):
    """What is computed."""

    CHOLESKY = "cholesky"
    LU = "lu"
    TRIANGULAR_SOLVE = "triangular solve"
    QR = "qr"
    ORTHOGONAL = "q of qr"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class MatrixFacts(FactsByName):
    """The facts of one op of linear algebra.

    Attributes:
      routine, numbers: the facts that rules constrain; numbers is whether floats may be rounded otherwise.
      named: the op, or what it calls.
      flags: what it is asked for ("lower": True).
      why: why it is not known what it computes, or has no rule; None where it has one.
    """

    routine: Routine
    numbers: Numbers
    named: str
    flags: Mapping[str, bool] = field(default_factory=dict[str, bool])
    why: Cause | None = None


MatrixLowering = OpLowering[MatrixFacts]


@dataclass(frozen=True)
class _Signature:
    """What a routine of LAPACK takes and gives.

    Attributes:
      routine: what it is.
      operands, results: "m" for a matrix, "v" for a vector, "s" for a number, of each matrix of a batch.
      flags: for each key of its configuration the name of the flag, and for each letter whether that holds.
    """

    routine: Routine
    operands: str
    results: str
    flags: Mapping[str, tuple[str, Mapping[str, bool]]] = field(
        default_factory=dict[str, tuple[str, Mapping[str, bool]]]
    )


UPLO = ("lower", {"L": True, "U": False})

SIGNATURES: Mapping[str, _Signature] = {
    "potrf": _Signature(Routine.CHOLESKY, "m", "ms", {"uplo": UPLO}),
    "getrf": _Signature(Routine.LU, "m", "mvs"),
    "geqrf": _Signature(Routine.QR, "m", "mv"),
    "orgqr": _Signature(Routine.ORTHOGONAL, "mv", "m"),
    "trsm": _Signature(
        Routine.TRIANGULAR_SOLVE,
        "mm",
        "m",
        {
            "uplo": UPLO,
            "side": ("left", {"L": True, "R": False}),
            "trans_x": ("transposed", {"N": False, "T": True, "C": True}),
            "diag": ("unit", {"U": True, "N": False}),
        },
    ),
}
"""The routines that are known, by their names without the letter of the element type."""

LETTERS = {"s": "f32", "d": "f64"}

SAID = frozenset(
    {"call_target_name", "backend_config", "mhlo.backend_config", "mhlo.frontend_attributes", "api_version"}
    | {"operand_layouts", "result_layouts", "output_operand_aliases", "has_side_effect", "called_computations"}
    | {"sdy.sharding_rule", "mhlo.sharding", "sdy.sharding"}
)
"""Attributes of a call that are read, or say nothing of what is computed."""


def is_lapack(name: str) -> bool:
    """Whether a custom call is JAX's to LAPACK, by its name."""
    return name.startswith(BEGINS) and name.endswith(ENDS)


def matrix_facts(node: Node, numbers: Numbers) -> MatrixFacts:
    """The facts of a call to LAPACK, a `stablehlo.cholesky` or a `stablehlo.triangular_solve` of static shape."""
    if node.name == CUSTOM_CALL:
        return _of_call(node, numbers)
    attributes = mlir.attributes_of(node.raw)
    if node.operand(0).element_type not in LETTERS.values():
        return MatrixFacts(Routine.UNKNOWN, numbers, node.name, why=Code.NAME_IN_DOUBT("element type"))
    flags = {"lower": _is_true(attributes, "lower")}
    if node.name == CHOLESKY:
        return MatrixFacts(Routine.CHOLESKY, numbers, node.name, flags)
    flags["left"], flags["unit"] = _is_true(attributes, "left_side"), _is_true(attributes, "unit_diagonal")
    flags["transposed"] = mlir.enum_value(attributes["transpose_a"]) != "NO_TRANSPOSE"
    return MatrixFacts(Routine.TRIANGULAR_SOLVE, numbers, node.name, flags)


def _is_true(attributes: Mapping[str, mlir.RawAttribute], name: str) -> bool:
    return name in attributes and str(attributes[name]) == "true"


def _of_call(node: Node, numbers: Numbers) -> MatrixFacts:
    name = mlir.call_target(node.raw)
    letter, called = name[len(BEGINS)], name[len(BEGINS) + 1 : -len(ENDS)]
    signature = SIGNATURES.get(called)
    if signature is None:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=Code.ROUTINE_LEFT(called))
    flags: dict[str, bool] = {}
    why = _why_unknown(node, letter, signature) or _read_flags(node, signature, flags)
    if why:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=why)
    return MatrixFacts(signature.routine, numbers, name, flags)


def _why_unknown(node: Node, letter: str, signature: _Signature) -> Cause | None:
    """Why a call may be something else than its name says; None where it is what it says."""
    attributes = mlir.attributes_of(node.raw)
    more = sorted(set(attributes) - SAID)
    if more:
        return Code.NAME_IN_DOUBT(more[0])
    if letter not in LETTERS:
        return Code.ROUTINE_LEFT("complex")
    if _is_true(attributes, "has_side_effect") or str(attributes.get("called_computations", "[]")) != "[]":
        return Code.NAME_IN_DOUBT("effect")
    sides = (
        (node.operands, signature.operands, "operand_layouts"),
        (node.results, signature.results, "result_layouts"),
    )
    batch = len(node.operand(0).static_shape) - {"m": 2, "v": 1}[signature.operands[0]]
    for values, kinds, key in sides:
        ranks = [batch + {"m": 2, "v": 1, "s": 0}[kind] for kind in kinds]
        if [len(value.static_shape) for value in values] != ranks:
            return Code.NAME_IN_DOUBT("signature")
        known = [mlir.dense_integers(one) for one in mlir.entries_in(attributes[key])] if key in attributes else None
        if known != [_layout(kind, rank) for kind, rank in zip(kinds, ranks, strict=True)]:
            return Code.NAME_IN_DOUBT(key)
    floats = [v.element_type for v in (*node.operands, *node.results) if not v.element.is_integer]
    return None if set(floats) == {LETTERS[letter]} else Code.NAME_IN_DOUBT("element type")


def _layout(kind: str, rank: int) -> tuple[int, ...]:
    """The dims from the one that varies fastest: the rows of a matrix, the last dim of others."""
    dims = tuple(reversed(range(rank)))
    return (dims[1], dims[0], *dims[2:]) if kind == "m" else dims


def _read_flags(node: Node, signature: _Signature, flags: dict[str, bool]) -> Cause | None:
    """Read the configuration into flags; why that cannot be done, None where it is."""
    attributes = mlir.attributes_of(node.raw)
    given: dict[str, mlir.RawAttribute] = {}
    for key in ("backend_config", "mhlo.backend_config"):
        if key in attributes and str(attributes[key]).startswith("{"):
            given.update(mlir.entries_of(attributes[key]))
    if set(given) != set(signature.flags):
        return Code.NAME_IN_DOUBT("configuration")
    for key, (flag, meanings) in signature.flags.items():
        letter = chr(mlir.integer_of(given[key]))
        if letter not in meanings:
            return Code.NAME_IN_DOUBT(key)
        flags[flag] = meanings[letter]
    return None
