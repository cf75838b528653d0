"""Which routine of linear algebra an op is: LAPACK's, as JAX calls them on a CPU, and StableHLO's own two.

    %1:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%0) {operand_layouts = [dense<[0, 1]> : ...], ...}

LAPACK reads columns one after the other, so the layouts of such a call say that it means the matrices as they are; with
any other layout it would read the transposed ones, and is not known. Nor is one with an attribute that is not read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from hlo_lower import mlir
from hlo_lower.graph import Node
from hlo_lower.lowerings.op import OpLowering
from hlo_lower.lowerings.plain_op import Numbers
from hlo_lower.registry import FactsByName

LINEAR_ALGEBRA = "linear algebra"
"""The name under which rules for these ops are registered."""

CUSTOM_CALL, CHOLESKY, TRIANGULAR_SOLVE = (
    "stablehlo.custom_call",
    "stablehlo.cholesky",
    "stablehlo.triangular_solve",
)
BEGINS, ENDS = "lapack_", "_ffi"


class Routine(Enum):
    """What is computed."""

    CHOLESKY = "cholesky"
    LU = "lu"
    TRIANGULAR_SOLVE = "triangular solve"
    QR = "qr"
    ORTHOGONAL = "q of qr"
    UNKNOWN = "unknown"


DOMAINS: Mapping[str, Iterable[Enum]] = {"routine": Routine, "numbers": Numbers}


@dataclass(frozen=True)
class MatrixFacts(FactsByName):
    """The facts of one op of linear algebra.

    Attributes:
      routine, numbers: the facts that rules constrain; numbers is whether floats may be rounded otherwise.
      named: the op, or what it calls.
      flags: what it is asked for ("lower": True).
      why: why it is not known what it computes; "" where it is.
    """

    domains = DOMAINS

    routine: Routine
    numbers: Numbers
    named: str
    flags: Mapping[str, bool] = field(default_factory=dict[str, bool])
    why: str = ""


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

NOT_ONE = {
    "syevd": "eigenvectors are only defined up to their signs, of equal eigenvalues up to a rotation: no rule",
    "gtsv": "there is no rule for tridiagonal systems",
    "gesdd": "singular vectors are only defined up to their signs, and there is no rule for singular values",
    "gesvd": "singular vectors are only defined up to their signs, and there is no rule for singular values",
    "geev": "the eigenvalues of a matrix that is not symmetric have no order, and there is no rule for them",
    "gees": "a Schur form is not the only one, and there is no rule for it",
    "gehrd": "there is no rule for a Hessenberg form",
}
"""Why there is no rule for other routines of LAPACK that JAX calls."""

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
        told = f"it is of {node.operand(0).element_type}"
        return MatrixFacts(Routine.UNKNOWN, numbers, node.name, why=told)
    flags = {"lower": _is_true(attributes, "lower")}
    if node.name == CHOLESKY:
        return MatrixFacts(Routine.CHOLESKY, numbers, node.name, flags)
    flags["left"], flags["unit"] = _is_true(attributes, "left_side"), _is_true(attributes, "unit_diagonal")
    flags["transposed"] = mlir.enum_value(attributes["transpose_a"]) != "NO_TRANSPOSE"
    return MatrixFacts(Routine.TRIANGULAR_SOLVE, numbers, node.name, flags)


def _is_true(attributes: Mapping[str, mlir.RawAttribute], name: str) -> bool:
    return name in attributes and str(attributes[name]) == "true"


def _of_call(node: Node, numbers: Numbers) -> MatrixFacts:
    name = mlir.symbol_name(node.raw.attributes["call_target_name"])
    letter, called = name[len(BEGINS)], name[len(BEGINS) + 1 : -len(ENDS)]
    signature = SIGNATURES.get(called)
    if signature is None:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=NOT_ONE.get(called, "no rule is known for it"))
    flags: dict[str, bool] = {}
    why = _why_unknown(node, letter, signature) or _read_flags(node, signature, flags)
    if why:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=why)
    return MatrixFacts(signature.routine, numbers, name, flags)


def _why_unknown(node: Node, letter: str, signature: _Signature) -> str:
    """Why a call may be something else than its name says, or ""."""
    attributes = mlir.attributes_of(node.raw)
    more = sorted(set(attributes) - SAID)
    if more:
        return f"its {more[0]} is not known to leave it what its name says"
    if letter not in LETTERS:
        return "it is of complex numbers"
    if _is_true(attributes, "has_side_effect") or str(attributes.get("called_computations", "[]")) != "[]":
        return "it has an effect, or calls a function"
    sides = (
        (node.operands, signature.operands, "operand_layouts"),
        (node.results, signature.results, "result_layouts"),
    )
    batch = len(node.operand(0).static_shape) - {"m": 2, "v": 1}[signature.operands[0]]
    for values, kinds, key in sides:
        ranks = [batch + {"m": 2, "v": 1, "s": 0}[kind] for kind in kinds]
        if [len(value.static_shape) for value in values] != ranks:
            return "it does not take and give what the routine does"
        known = [mlir.dense_integers(one) for one in mlir.entries_in(attributes[key])] if key in attributes else None
        if known != [_layout(kind, rank) for kind, rank in zip(kinds, ranks, strict=True)]:
            return f"its {key} are not those of columns one after the other"
    floats = [v.element_type for v in (*node.operands, *node.results) if not v.element_type.startswith("i")]
    return "" if set(floats) == {LETTERS[letter]} else f"it is not of {LETTERS[letter]}"


def _layout(kind: str, rank: int) -> tuple[int, ...]:
    """The dims from the one that varies fastest: the rows of a matrix, the last dim of others."""
    dims = tuple(reversed(range(rank)))
    return (dims[1], dims[0], *dims[2:]) if kind == "m" else dims


def _read_flags(node: Node, signature: _Signature, flags: dict[str, bool]) -> str:
    """Read the configuration into flags; why that cannot be done, or ""."""
    attributes = mlir.attributes_of(node.raw)
    given: dict[str, mlir.RawAttribute] = {}
    for key in ("backend_config", "mhlo.backend_config"):
        if key in attributes and str(attributes[key]).startswith("{"):
            given.update(mlir.entries_of(attributes[key]))
    if set(given) != set(signature.flags):
        return "its configuration is another than that of the routine"
    for key, (flag, meanings) in signature.flags.items():
        letter = chr(mlir.integer_of(given[key]))
        if letter not in meanings:
            return f"its {key} is {letter}"
        flags[flag] = meanings[letter]
    return ""
