"""Options under which a target takes more of a module: found by lowering it again, under each and under several."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlo_lower.base.change import RefusedOps
from hlo_lower.base.short_forms import listed
from hlo_lower.lowering.options import WIDENINGS, Options
from hlo_lower.ops.names import CUSTOM_CALL
from hlo_lower.ops.spec import Role, ops_with

REMEDIES: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "--one-device": ({"one_device": True}, ("sdy.", CUSTOM_CALL, *ops_with(role=Role.DEVICES))),
    "--legalize": ({"legalize": True}, ("chlo.", CUSTOM_CALL)),
    "--demote-i64": ({"demote_i64": True}, ("",)),
    "--float-mode reassociate": ({"float_mode": "reassociate"}, ("",)),
    **{f"--widen {pair}": ({"widen": (pair,)}, ("",)) for pair in WIDENINGS},
    "--demote-f64": ({"demote_f64": True}, ("",)),
}
"""Options under which a target may take more of a module, as on the command line and as keywords, and how the names of
the ops begin that they are for. Those that change numbers come last."""

ABOUT_FLOATS = {**{f"--widen {pair}": pair.split("=")[0] for pair in WIDENINGS}, "--demote-f64": "f64"}
"""Options that are for one element type, and are tried where that is refused."""

MOST_TOLD = 3
"""Ops that a line names."""


@dataclass(frozen=True)
class Remedy:
    """Options that help together, none of which can be left out.

    Attributes:
      options: as on the command line, in the order of `REMEDIES`.
      left: what is refused under them.
    """

    options: tuple[str, ...]
    left: tuple[RefusedOps, ...]

    def __str__(self) -> str:
        """ "with --widen bf16=f32 --float-mode reassociate all of it is taken"."""
        return f"with {' '.join(self.options)} {self.left_told or 'all of it is accepted'}"

    @property
    def left_told(self) -> str:
        """What no option removes, and where, to be computed before or after; "" where nothing is left."""
        named = [f"{one.count:,} {_name(one)}" + (f" at {one.places[0]}" if one.places else "") for one in self.left]
        return f"these are left, to be computed elsewhere: {listed(named, MOST_TOLD)}" if named else ""


class Remedies:
    """What is refused of one module under other options, each asked for once.

    Args:
      options: those of the user, which stay.
      refused: what the target refuses under some options; None where the module cannot be lowered under them.
    """

    def __init__(self, options: Options, refused: Callable[[Options], Sequence[RefusedOps] | None]) -> None:
        self._options, self._refused = options, refused
        self._known: dict[frozenset[str], Sequence[RefusedOps] | None] = {}

    def each(self, refused: Sequence[RefusedOps]) -> list[tuple[str, tuple[RefusedOps, ...]]]:
        """Each option that may help, with what is refused under it alone."""
        found = ((option, self._under({option})) for option in self._relevant_options(refused))
        return [(option, tuple(left)) for option, left in found if left is not None]

    def best(self, refused: Sequence[RefusedOps]) -> Remedy | None:
        """The fewest options under which least is refused; None where that is no less than now.

        Where one option is enough, it is the first such one. Else all that may help are taken together, but for those
        under which the module cannot be lowered, and then those that help what they leave. In the end each is left out
        that is not missed, those that change numbers first.
        """
        self._known[frozenset()] = refused
        if enough := next(filter(self._leaves_nothing, self._relevant_options(refused)), None):
            return Remedy((enough,), ())
        chosen, left, tried = set[str](), refused, set[str]()
        while more := [option for option in self._relevant_options(left) if option not in tried]:
            for option in more:
                tried.add(option)
                if (under := self._under(chosen | {option})) is not None:
                    chosen, left = chosen | {option}, under
        for option in reversed(list(REMEDIES)):
            under = self._under(chosen - {option}) if option in chosen else None
            if under is not None and _count(under) <= _count(left):
                chosen, left = chosen - {option}, under
        if _count(left) >= _count(refused):
            return None
        return Remedy(tuple(option for option in REMEDIES if option in chosen), tuple(left))

    def _leaves_nothing(self, option: str) -> bool:
        under = self._under({option})
        return under is not None and not under

    def _under(self, names: set[str]) -> Sequence[RefusedOps] | None:
        key = frozenset(names)
        if key not in self._known:
            other = replace(self._options, **_keywords(self._options, names))
            self._known[key] = self._refused(other)
        return self._known[key]

    def _relevant_options(self, refused: Sequence[RefusedOps]) -> list[str]:
        """The options that concern a refused op and are not given already."""
        found: list[str] = []
        for option, (_, names) in REMEDIES.items():
            about = (one for one in refused if _is_about(one, ABOUT_FLOATS.get(option, "")))
            is_new = replace(self._options, **_keywords(self._options, {option})) != self._options
            if is_new and any(one.op.startswith(names) for one in about):
                found.append(option)
        return found


def _keywords(options: Options, names: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        for key, value in REMEDIES[name][0].items():
            found[key] = (*found.get(key, options.widen), *value) if key == "widen" else value
    if "widen" in found:
        found["widen"] = tuple(dict.fromkeys(sorted(found["widen"])))
    return found


def _count(refused: Sequence[RefusedOps]) -> int:
    return sum(one.count for one in refused)


def _name(one: RefusedOps) -> str:
    return one.op or f"ops on {one.reason['dtype']}"


def _is_about(refused: RefusedOps, dtype: str) -> bool:
    """Whether what is refused is an op on an element type; "" is any."""
    pairs = list(zip(refused.reason.code.fields, refused.reason.values, strict=True))
    named = {value for name, value in pairs if name == "dtype"}
    named |= {one for name, value in pairs if name == "dtypes" and isinstance(value, tuple) for one in value}
    return not dtype or dtype in named
