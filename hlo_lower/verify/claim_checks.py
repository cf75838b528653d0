"""What a converter claims of a scatter's indices, evaluated on what they are: facts, beside results.

A rule rests on facts: starts that lie in bounds, rows that are written once, in order. A wrong fact may show in no
result that a run happens to give. So where the converter's claims are at hand, the indices of each scatter are computed
from the function's arguments, on driven inputs, and the claims are evaluated on them by whoever brings the claims.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Assumption, BodyPair, Region, Side
from hlo_lower.verify.align.loops import may_not_end
from hlo_lower.verify.align.piece import pieces_of
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import roles_of
from hlo_lower.verify.judges.devices import piece_executable
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Op, Program
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]


@dataclass(frozen=True)
class Check:
    """A converter's claims, and what evaluates them.

    Attributes:
      claims: by the number of a scatter; of equal ones those of scatters that are alike are evaluated once.
      of_updates: numbers of the scatters whose claims speak of the updates, too.
      broken: given claims, the scatter, and its indices, and where asked for its updates: the claims that do not
        hold, or "".
    """

    claims: Mapping[int, Hashable]
    of_updates: frozenset[int]
    broken: Callable[[Any, mlir.RawOperation, Sequence[Array]], str]


MAX_OPS = 300
"""Operations behind the indices and updates of a scatter up to which its claims are evaluated."""


REMEMBERED = 1 << 12
"""Bytes of the arguments, or of the results, of a run up to which it is remembered, and not made again."""


@dataclass(frozen=True)
class ClaimsVerdict:
    """What was found of the claims.

    Attributes:
      scatters: numbers of those whose claims were evaluated.
      broken: a line for each scatter whose claims do not hold.
    """

    scatters: tuple[int, ...] = ()
    broken: tuple[str, ...] = ()


def check_claims(program: Program, check: Check, seed: int) -> ClaimsVerdict:
    """Evaluate the claims of every scatter that stands in a public function itself, or in what it calls.

    Args:
      program: the first module.
      check: evaluates the claims of a scatter.
      seed: of the driven inputs.
    """
    numbers = program.scatter_numbers
    looked_at: dict[int, None] = {}
    broken: dict[str, None] = {}
    known: dict[Hashable, str] = {}
    for name, body in program.entries.items():
        side = Side(program, body, 0, {}, Table())
        for op in (op for op in side.live if op.name == names.SCATTER):
            found = _broken(side, name, op, numbers[op.raw], check, seed, known)
            if found is None:
                continue
            looked_at[numbers[op.raw]] = None
            if found:
                broken[f"scatter {numbers[op.raw]}: {found}"] = None
    return ClaimsVerdict(tuple(sorted(looked_at)), tuple(broken))


def _broken(
    side: Side, name: str, op: Op, number: int, check: Check, seed: int, known: dict[Hashable, str]
) -> str | None:
    """The claims of one scatter that do not hold, "" where all do, None where they are not evaluated."""
    claims = check.claims.get(number)
    if claims is None:
        return None
    arity = len(op.results)
    values = op.inputs[arity:] if number in check.of_updates else (op.inputs[arity],)
    opened = frozenset(side.numbers.values())
    region = Region(BodyPair(side, side, (name,), None), tuple(Assumption(v, v) for v in values), opened)
    if len(region.first) > MAX_OPS or may_not_end(side, region.first):
        return None
    try:
        roles = roles_of(region)
        text = pieces_of(region).first
        # The operands' types give the extents and the windows, of which the claims speak.
        key = (text, claims, op.attributes, tuple(side.program.types[v] for v in op.inputs))
        if key in known:
            return known[key]
        executable, seen = piece_executable(text, "quick"), (set[bytes](), set[bytes]())
        for run in runs_of(roles, [seed]):
            if _is_known(run.arguments, seen[0]):
                continue
            given = executable.run(run.arguments)
            if not _is_known(given, seen[1]) and (found := check.broken(claims, op.raw, given)):
                return known.setdefault(key, f"claimed, and not so ({run.aim}): {found}")
    except (CannotRunError, mlir.MlirSyntaxError):
        return None
    return known.setdefault(key, "")


def _is_known(arrays: Sequence[Array], seen: set[bytes]) -> bool:
    """Whether small arrays of these types were met before, to the bit; now they were."""
    if sum(array.nbytes for array in arrays) > REMEMBERED:
        return False
    told = b"".join([array.tobytes() for array in arrays])
    is_known = told in seen
    seen.add(told)
    return is_known
