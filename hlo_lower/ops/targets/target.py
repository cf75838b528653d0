"""A target as data: which operations it takes, and on which element types."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from hlo_lower.base.arguments import is_listed, is_named, one_of, short_repr
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.errors import InputError
from hlo_lower.base.short_forms import listed
from hlo_lower.ops.names import ADD, RETURN, SCATTER, WHILE
from hlo_lower.ops.targets.costs import COSTS, WHOLE_MASKS, CostTable
from hlo_lower.ops.targets.named_op import NamedOp
from hlo_lower.ops.targets.native_scatter import NativeScatter

ALWAYS_TAKEN = frozenset({RETURN})
"""The terminator of a region: whoever takes the op takes it."""

DIALECTS = ("stablehlo", "linalg")
"""What a module may leave in."""

INDEX_TYPES = ("", "i32")
"""What starts, counters and row numbers may be narrowed to."""

GATHERS = ("", "in_bounds")
"""Which gathers are taken as they are: all, or those whose starts are in bounds."""

SHOWN = 3
"""Refused operations that a line shows."""

EXAMPLE = ADD

FLOAT_MODES = ("", "exact", "reassociate")
"""The float modes; "" is what the tool's default is."""


@dataclass(frozen=True, repr=False)
class Target:
    """A consumer of StableHLO.

    An operation is taken if it is one of `ops` and not refused, and each element type among its operands and results
    (starts, predicates and counters included) is one of `dtypes`, not refused, and one of the operation's `op_dtypes`.
    What is not given restricts nothing. Two targets are equal if all of this is.

    Attributes:
      name: as on the command line.
      description: one line.
      refused: operations that it does not take, each with the reason.
      ops: the operations that it takes; None: all but the refused ones.
      dtypes: the element types that it takes, as MLIR prints them ("f32", "ui8", "i1"); None: all but the refused.
      refused_dtypes: element types that it takes on no operation, each with the reason.
      op_dtypes: for some operations, the element types that they are taken on, out of those that are taken at all.
      costs: what the forms of a scatter cost there, which decides between those that are right.
      dialect: what the module leaves in: "stablehlo" or "linalg".
      index_type: "i32": starts, counters and row numbers are i32 wherever every bound fits, whatever the indices are;
        "": i64 where the indices are 64 bits wide.
      float_mode: the float mode where the user names none; "" is "exact".
      keep: scatters that it takes as they are; they are left although `stablehlo.scatter` is refused.
      legalize: whether `chlo` ops, known `mhlo` custom calls and composites are made plain StableHLO for it.
      composites: composites and `chlo` operations that it takes whole ("odml.softmax", "chlo.erf").
      gather: "in_bounds": gathers are right only where each start is in bounds, so others are clamped before; "": all.
        Where `stablehlo.gather` is refused, gathers are read by other operations.
      refused_forms: forms of ops that it takes otherwise, by the words of `hlo_lower.ops.quirks` ("constant Inf").
      max_rank: the most dims that a tensor on an operation may have, {"*": 5} on all others.
      named: the composites that it takes for named ops, which `raise` writes for it (docs/named-ops.md).
      demote_i64: whether 64-bit integers are to be made 32 bits wide for it.

    Raises:
      InputError: a value is of a wrong type or none of the words that there are.

    Example:
      >>> npu = hl.Target("npu", refused={"stablehlo.scatter": "no kernel"}, index_type="i32")
      >>> npu
      <Target npu: rejects stablehlo.scatter>
      >>> hl.lower("decode.mlir", target=npu).scatters_left
      0
    """

    name: str
    description: str = ""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    ops: Collection[str] | None = None
    dtypes: Collection[str] | None = None
    refused_dtypes: Mapping[str, str] = field(default_factory=dict[str, str])
    op_dtypes: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    costs: CostTable = COSTS
    dialect: str = "stablehlo"
    index_type: str = ""
    float_mode: str = ""
    keep: tuple[NativeScatter, ...] = ()
    legalize: bool = False
    composites: Collection[str] = frozenset()
    demote_i64: bool = False
    gather: str = ""
    refused_forms: Collection[str] = frozenset()
    named: tuple[NamedOp, ...] = ()
    max_rank: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        """Take copies: whoever made the arguments may change them, and choices are remembered by target."""
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                "name", f"{short_repr(self.name)} is not a name of a target", next_step='write Target("npu")'
            )
        for name in ("refused", "refused_dtypes", "op_dtypes"):
            _check_table(name, getattr(self, name))
        _check_parts(self)
        op_dtypes = {op: _frozen("op_dtypes", dtypes) for op, dtypes in self.op_dtypes.items()}
        taken = {
            "refused": dict(self.refused),
            "ops": None if self.ops is None else _frozen("ops", self.ops),
            "dtypes": None if self.dtypes is None else _frozen("dtypes", self.dtypes),
            "refused_dtypes": dict(self.refused_dtypes),
            "op_dtypes": op_dtypes,
            "keep": tuple(self.keep),
            "named": tuple(self.named),
            "max_rank": dict(self.max_rank),
            "composites": _frozen("composites", self.composites),
            "refused_forms": _frozen("refused_forms", self.refused_forms),
        }
        words = (("dialect", DIALECTS), ("index_type", INDEX_TYPES), ("float_mode", FLOAT_MODES), ("gather", GATHERS))
        for name, allowed in words:
            if getattr(self, name) not in allowed:
                told = f"{name} is one of {', '.join(map(repr, allowed))}, not {getattr(self, name)!r}"
                raise InputError(
                    f"target {self.name}", told, next_step=f"write {name}={allowed[-1]!r}, or leave it out"
                )
        _check_forms(self.refused_forms)
        for name, value in taken.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _hash(self) -> int:
        maps = (self.refused, self.refused_dtypes, self.op_dtypes, self.max_rank)
        plain = (self.name, self.description, self.ops, self.dtypes, self.costs, self.dialect, self.index_type)
        rest = (self.float_mode, self.keep, self.legalize, self.composites, self.demote_i64, self.gather)
        return hash((*plain, *rest, self.refused_forms, self.named, *(frozenset(m.items()) for m in maps)))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        refused = sorted(self.refused)
        parts = [f"accepts {len(self.ops)} op{'s' * (len(self.ops) != 1)}"] if self.ops is not None else []
        parts += [f"rejects {listed(refused, SHOWN)}"] if refused else []
        parts += [f"on {len(self.dtypes)} element types"] if self.dtypes is not None else []
        parts += [f"not on {', '.join(sorted(self.refused_dtypes))}"] if self.refused_dtypes else []
        parts += [f"in {self.dialect}"] if self.dialect != DIALECTS[0] else []
        return f"<Target {self.name}: {', '.join(parts) or 'accepts every op'}>"

    def refuses_op(self, op: str) -> str | None:
        """Why an operation is not taken on any element type ("" where there is no more to say), or None if it is."""
        if op in self.refused:
            return self.refused[op]
        return None if self.ops is None or op in self.ops or op in ALWAYS_TAKEN else ""

    def refuses_dtype(self, dtype: str) -> str | None:
        """Why an element type is not accepted on any op, or None if it is."""
        if dtype in self.refused_dtypes:
            return self.refused_dtypes[dtype]
        return None if self.dtypes is None or dtype in self.dtypes else ""

    def refuses_op_on(self, op: str, dtype: str) -> bool:
        """Whether an operation is refused on an element type that is taken elsewhere."""
        taken = self.op_dtypes.get(op)
        return taken is not None and dtype not in taken and op not in ALWAYS_TAKEN

    def takes_whole(self, name: str, dtypes: Collection[str]) -> bool:
        """Whether a composite, or a `chlo` operation, is taken as it is on these element types."""
        return name in self.composites and not any(self.refuses_op_on(name, dtype) for dtype in dtypes)

    @property
    def costs_there(self) -> CostTable:
        """The table of costs; where loops are refused, none could take a mask in parts: masks are whole."""
        return self.costs if self.refuses_op(WHILE) is None else replace(self.costs, mask_elements=WHOLE_MASKS)

    @property
    def restricts_dtypes(self) -> bool:
        """Whether there is an element type that it does not take on some operation."""
        return self.dtypes is not None or bool(self.refused_dtypes or self.op_dtypes)

    @property
    def restricts_only_scatter(self) -> bool:
        """Whether it takes every op but scatter, on every element type, in every form."""
        is_free = self.ops is None and not self.restricts_dtypes and not self.refused_forms and not self.max_rank
        return is_free and self.refused.keys() <= {SCATTER}

    def refusal(self, op: str, dtypes: Collection[str] = ()) -> Cause | None:
        """Why the target does not take an operation with these element types on it, or None if it does."""
        reason = self.refuses_op(op)
        if reason is not None:
            return Code.REFUSES_OPS(self.name, (op,), reason or None)
        for dtype in sorted(dtypes):
            reason = self.refuses_dtype(dtype)
            if reason is not None:
                return Code.REFUSES_DTYPE(self.name, dtype, op, reason or None)
            if self.refuses_op_on(op, dtype):
                return Code.REFUSES_OP_ON(self.name, op, (dtype,))
        return None

    def refusals(self, ops: Sequence[str]) -> tuple[Cause, ...]:
        """Why the target does not take operations, whatever their element types; empty if it takes all of them."""
        return tuple(reason for op in dict.fromkeys(ops) if (reason := self.refusal(op)) is not None)


def _frozen(what: str, names: Collection[str]) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, Collection) or not all(isinstance(n, str) for n in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        told = f"{what} is a collection of names, not {short_repr(names)}"
        raise InputError(
            "", told, next_step=f"write {what}={{{short_repr(names if isinstance(names, str) else EXAMPLE)}}}"
        )
    return frozenset(names)


def _check_forms(words: Collection[str]) -> None:
    """Check that each word is a quirk's."""
    for word in sorted(frozenset(words)):
        from hlo_lower.ops.quirks import WORDS  # which read ops; a target without a form needs none

        one_of("refused_forms", word, WORDS)


def _check_table(what: str, table: object) -> None:
    """Check that a table maps names to reasons, or to collections of names."""
    values = cast(Mapping[str, object], table).values() if is_named(table) else None
    if values is None or (what != "op_dtypes" and not all(isinstance(value, str) for value in values)):
        told = "collections of element types" if what == "op_dtypes" else "reasons"
        raise InputError("", f"{what} maps names to {told}, not {short_repr(table)}", next_step=f"write {TABLES[what]}")


TABLES = {
    "refused": 'refused={"stablehlo.pad": "no kernel"}',
    "refused_dtypes": 'refused_dtypes={"f64": "too wide"}',
    "op_dtypes": 'op_dtypes={"stablehlo.add": {"f32"}}',
}
"""An example of each table."""


def _check_parts(target: Target) -> None:
    """Check the parts of a target that are values of their own."""
    if not isinstance(target.costs, CostTable):  # pyright: ignore[reportUnnecessaryIsInstance]
        told = f"costs is a table of costs, not {short_repr(target.costs)}"
        raise InputError("", told, next_step='write costs=COSTS.with_entry("few_windows", 64)')
    kept: Any = target.keep
    if not is_listed(kept) or not all(isinstance(native, NativeScatter) for native in kept):
        told = f"keep holds NativeScatters, not {short_repr(kept)}"
        raise InputError("", told, next_step='write keep=(NativeScatter(combiners={"add"}),)')
    named: Any = target.named
    if not is_listed(named) or not all(isinstance(op, NamedOp) for op in named):
        told = f"named holds NamedOps, not {short_repr(named)}"
        raise InputError("", told, next_step='write named=(NamedOp("gelu", "my.gelu", ("x",)),)')
    ranks: Any = target.max_rank
    if not is_named(ranks) or not all(
        type(most) is int and most >= 4 for most in cast(dict[str, object], ranks).values()
    ):
        told = f"max_rank maps operations to numbers of dims, 4 or more, not {short_repr(ranks)}"
        raise InputError("", told, next_step='write max_rank={"*": 5}')
    for name in ("legalize", "demote_i64"):
        one_of(name, getattr(target, name), (False, True))
