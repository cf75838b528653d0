"""How a module is lowered, as one value: what `lower`, `classify`, `verify`, `jit` and the command line share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, Unpack, cast

from hlo_lower.base.arguments import known_names, one_of, short_repr, texts, whole
from hlo_lower.base.element_types import ELEMENT_TYPES
from hlo_lower.base.errors import InputError
from hlo_lower.ops.targets import TargetLike, target_of
from hlo_lower.ops.targets.target import Target

MAX_UNROLL = 10_000
"""Ops that a loop may become where the user names no number."""

Bound = tuple[tuple[str, int], ...]
"""Sizes that are bound, in the order in which they were given."""


class Choices(TypedDict, total=False):
    """The keywords of `Options` but the target; `Options` says what each is."""

    oob: Literal["xla", "spec"]
    float_mode: Literal["exact", "reassociate", ""] | None
    trust_flags: bool
    assume_in_bounds: bool
    keep_unsupported: bool
    only: str | Sequence[str]
    skip: str | Sequence[str]
    bind: Mapping[str, int] | Bound | None
    prefer: str | Sequence[str]
    legalize: bool | None
    demote_i64: bool | None
    checked: bool
    demote_f64: bool
    widen: str | Sequence[str]
    one_device: bool
    linalg_ops: Literal["named", "generic"]
    linalg_loops: Literal["for", "forall"]
    linalg_groups: Literal["outlined", "inlined"]
    max_unroll: int
    loop_ranges: bool
    lower_all: bool


class Keywords(Choices, total=False):
    """The keywords of `Options`, as the public functions take them beside `options`."""

    target: TargetLike


@dataclass(frozen=True, init=False, repr=False)
class Options:
    """How to lower: a value that `lower`, `classify`, `verify`, `jit`, `rules` and others take as `options=`.

    The same keywords can be given to these functions themselves.

    Args:
      target: the name of a built-in consumer, the path of a target file, or a `Target`; by default "stablehlo".
      **choices: the other attributes. A str for only, skip or prefer is one pattern or name; bind takes a mapping.

    Attributes:
      target: the consumer.
      oob: "xla" drops a window that is not wholly inside, "spec" its outside elements.
      float_mode: "exact" keeps the order of float reductions, "reassociate" allows another; None or "" becomes the
        target's, or "exact" where it has none.
      trust_flags: take `unique_indices = true` as a proof.
      assume_in_bounds: take it that scatters write inside, of which nothing shows it. What rests on that is not
        verified, and `Lowered.notes` names each such scatter.
      keep_unsupported: leave a scatter, or a variant of a declared composite, that no rule fits instead of failing.
      only, skip: lower only, or all but, the scatters whose location, scope, function or number ("#3") matches one of
        these patterns (`fnmatch`).
      bind: symbolic sizes that are bound before lowering, in pairs (see `hlo_lower.bind`).
      prefer: rules that are taken wherever they are right ("last_writer"), and entries of the target's table of costs
        with other values ("few_windows=64").
      legalize: make chlo, known mhlo custom calls and composites plain StableHLO first; None: as the target says.
      demote_i64: make 64-bit integers 32 bits wide first; None: as the target says.
      checked: give every public function one more result, an i1: whether what making 64-bit integers narrower assumes
        of values within the module held in this run. Where it is true, all else is right.
      demote_f64: make floats of 64 bits those of 32 first; numbers change.
      widen: floats that become wider ones first ("bf16=f32"), arguments included; numbers change, as nothing is rounded
        to the narrow type any more.
      one_device: make a module for several devices one for one device first: its shardings are removed, and what is
        written for one of its devices (`shard_map`) is computed for all of them.
      linalg_ops: for a target that reads linalg: "named" ops where there are any, or all "generic".
      linalg_loops: for such a target: counted loops are `scf.for`, or, where their iterations do not meet, "forall".
      linalg_groups: for such a target, in named ops: attention, norms and activations are functions of their own,
        "outlined", or plain ops, "inlined".
      max_unroll: ops that a loop may become, nested ones included, where the target has no loops.
      loop_ranges: let ranges that values keep from turn to turn of a loop prove guards and clamps away. What rests on
        such a proof cannot always be verified; `convert` lowers without them then.
      lower_all: lower also those scatters that the target computes faster itself (`when = "loop"` in its file); so does
        any rule that is preferred.

    Raises:
      InputError: a value is of a wrong type or none of the choices, or the target does not exist.

    Example:
      >>> options = hl.Options(target="iree", only="llama.py:*")
      >>> options
      Options(target='iree', only=('llama.py:*',))
      >>> hl.lower("decode.mlir", options=hl.Options(oob="spec")).scatters_left
      0
    """

    target: Target
    oob: Literal["xla", "spec"] = "xla"
    float_mode: Literal["exact", "reassociate"] = "exact"
    trust_flags: bool = False
    assume_in_bounds: bool = False
    keep_unsupported: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    bind: Bound = ()
    prefer: tuple[str, ...] = ()
    legalize: bool = False
    demote_i64: bool = False
    checked: bool = False
    demote_f64: bool = False
    widen: tuple[str, ...] = ()
    one_device: bool = False
    linalg_ops: Literal["named", "generic"] = "named"
    linalg_loops: Literal["for", "forall"] = "for"
    linalg_groups: Literal["outlined", "inlined"] = "outlined"
    max_unroll: int = MAX_UNROLL
    loop_ranges: bool = True
    lower_all: bool = False

    def __init__(self, target: TargetLike = "stablehlo", **choices: Unpack[Choices]) -> None:
        known_names("Options", choices, NAMES)
        given: dict[str, Any] = {**choices}
        found = target_of(target)
        values: dict[str, Any] = {"target": found}
        for name, allowed in WORDS.items():
            values[name] = one_of(name, given.get(name, allowed[0]), allowed)
        values["float_mode"] = values["float_mode"] or found.float_mode or "exact"
        if values["linalg_loops"] == "forall" and found.dialect != "linalg":
            told = f"{found.name} does not read linalg, in which loops are scf.forall"
            raise InputError("linalg_loops", told, next_step="write --target linalg, or leave it out")
        for name in ("legalize", "demote_i64"):
            if values[name] is None:
                values[name] = getattr(found, name)
        for name, example in PATTERNS.items():
            values[name] = texts(name, given.get(name, ()), example)
        for pair in values["widen"]:
            one_of("widen", pair, WIDENINGS)
        values["bind"] = _bound(given.get("bind"))
        values["max_unroll"] = whole("max_unroll", given.get("max_unroll", MAX_UNROLL), 0)
        for field in fields(self):
            object.__setattr__(self, field.name, values[field.name])

    def __repr__(self) -> str:
        told = [f"target={self.target.name!r}"]
        plain = Options(self.target)
        names = [field.name for field in fields(self)][1:]
        told += [f"{n}={getattr(self, n)!r}" for n in names if getattr(self, n) != getattr(plain, n)]
        return f"Options({', '.join(told)})"


WORDS: Mapping[str, tuple[str | bool | None, ...]] = {
    "oob": ("xla", "spec"),
    "float_mode": (None, "exact", "reassociate", ""),
    "trust_flags": (False, True),
    "assume_in_bounds": (False, True),
    "keep_unsupported": (False, True),
    "legalize": (None, False, True),
    "demote_i64": (None, False, True),
    "checked": (False, True),
    "demote_f64": (False, True),
    "one_device": (False, True),
    "linalg_ops": ("named", "generic"),
    "linalg_loops": ("for", "forall"),
    "linalg_groups": ("outlined", "inlined"),
    "loop_ranges": (True, False),
    "lower_all": (False, True),
}
"""What is one of a few values, the default first."""

_NARROW = (e for e in ELEMENT_TYPES.values() if e.is_float and e.bits < 32 and e.dtype is not None)
WIDENINGS = tuple(f"{e.name}=f32" for e in sorted(_NARROW, key=lambda e: (-e.bits, e.name)))
"""What floats may be widened to, those of 16 bits first."""

PATTERNS = {"only": "llama.py:88", "skip": "#3", "prefer": "last_writer", "widen": "bf16=f32"}
"""What is texts, each with an example."""

NAMES = tuple(Keywords.__annotations__)
"""The keywords of `Options`."""


def options_of(
    options: Options | None, keywords: Keywords | Mapping[str, object], base: Options | None = None
) -> Options:
    """The options that a public function was given, as a value or by keywords.

    Args:
      options: the value.
      keywords: some of the keywords.
      base: what keywords that are not given are taken from; by default the defaults.

    Raises:
      InputError: both are given, a keyword does not exist, or its value is wrong.
    """
    known_names("options", keywords, NAMES)
    if options is None:
        given: Any = keywords
        return Options(**given) if base is None else replace(base, **given)
    if not isinstance(options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
        raise InputError(
            "options",
            f"{short_repr(options)} is not an hl.Options",
            facts=f"it is of type {type(options).__name__}",
            next_step='write options=hl.Options(target="iree")',
        )
    if keywords:
        raise InputError(
            "options",
            f"options and keywords are given at once: {', '.join(keywords)}",
            facts="each of them could contradict the options",
            next_step=f"dataclasses.replace(options, {next(iter(keywords))}=...) makes other options",
        )
    return options


def other_floats_of(options: Options) -> dict[str, str]:
    """The floats that become those of another precision, as options ask for."""
    asked = dict(pair.split("=") for pair in options.widen)
    return {**asked, "f64": "f32"} if options.demote_f64 else asked


def _bound(sizes: object) -> Bound:
    if sizes is None or sizes == ():
        return ()
    from hlo_lower.ir.shapes.given_sizes import SizesError, named_sizes  # which imports JAX: few options have sizes

    given = sizes
    try:
        given = dict(cast(Bound, given)) if isinstance(given, tuple) else given
        return tuple(named_sizes(given).items())
    except SizesError as error:
        raise InputError("bind", error.what, next_step=error.next_step) from None
    except (TypeError, ValueError):
        what = f"{short_repr(sizes)} is not a mapping of names to sizes"
        raise InputError("bind", what, next_step='write {"b": 4, "s": 16}') from None
