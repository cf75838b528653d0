"""Which values a fact may have, and what is declared of the parameters of one composite.

A value is known by its text: `Mode.REPEAT`, whose value is "repeat", is the text "repeat" of an attribute, and 2 is the
"2" of a plain string. So rules, modules and whoever looks a rule up can each write it as they have it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import ELEMENT_TYPES
from hlo_lower.base.errors import RegistryError


class Other(Enum):
    """Whatever no rule names, of a fact whose values are not listed."""

    OTHER = "any other"


def text_of(value: object) -> str:
    """A value as text: an enum's member as its value, or its name where that is not text; True as "true", 2.0 as "2", a
    tuple as "[1, 2]"."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, tuple):
        return f"[{', '.join(map(text_of, cast(tuple[object, ...], value)))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def texts_of(values: Iterable[object]) -> tuple[str, ...]:
    """Values as texts, in the order of these."""
    return tuple(sorted(map(text_of, values)))


@dataclass(frozen=True)
class Domain:
    """The values that a fact may have.

    Attributes:
      values: all of them; where it is open, those that are known.
      is_open: whether any other text is one, too.
    """

    values: frozenset[Hashable]
    is_open: bool = False

    @classmethod
    def of(cls, values: Iterable[Any]) -> "Domain":
        """The domain of these values."""
        return cls(frozenset(values))

    @cached_property
    def _by_text(self) -> Mapping[str, Hashable]:
        """Each value by its text; a member of an enum by its value and name, too, where these are no other's text, and
        a truth value as Python prints it."""
        found = {text_of(value): value for value in self.values}
        members = [value for value in self.values if isinstance(value, Enum)]
        for member in sorted(members, key=lambda member: member.name):
            for other in (text_of(member.value), member.name, member.name.lower()):
                found.setdefault(other, member)
        for truth in (value for value in self.values if isinstance(value, bool)):
            found.setdefault(str(truth), truth)
        return found

    def find(self, value: object) -> Hashable | None:
        """The value that this is, or whose text this is; None where there is none.

        A member of another enum is none of an enum's values, whatever its text.
        """
        if isinstance(value, Enum) and value in self.values:
            return value
        found = self._by_text.get(text_of(value))
        if found is None:
            return text_of(value) if self.is_open and value != "" else None
        return None if isinstance(value, Enum) and isinstance(found, Enum) else found

    def accepted_values(self, what: str, given: object) -> frozenset[Hashable]:
        """The values that a rule accepts, given as one value or several.

        Raises:
          RegistryError: there are none, or some are no values of the domain; `what` says of what.
        """
        whole = isinstance(given, tuple) and not self.is_open and self.find(cast(object, given)) is not None
        values = (cast(Any, given),) if whole else as_values(what, cast(Any, given))
        found = [self.find(value) for value in values]
        if not found or None in found:
            known = "texts" if self.is_open else f"some of {'|'.join(texts_of(self.values))}"
            raise RegistryError(f"{what} must be {known}, not {'|'.join(texts_of(values))!r}")
        return frozenset(cast(list[Hashable], found))


def as_values(what: str, given: object) -> tuple[object, ...]:
    """A tuple of one value or of several; a text counts as one value.

    Raises:
      RegistryError: it is neither; `what` says of what.
    """
    if isinstance(given, str | Enum | bool | int | float):
        return (given,)
    try:
        return tuple(cast(Iterable[Any], given))
    except TypeError:
        raise RegistryError(f"{what} must be a value or a set of values, not {given!r}") from None


EVERY: Mapping[str, Domain] = {
    "dtype": Domain.of(ELEMENT_TYPES),
    "layout": Domain(frozenset({"default"}), is_open=True),
    "target": Domain(frozenset(), is_open=True),
}
"""The facts of every op: the element type of its first operand, the layout of that, and the target's name."""

PLAIN_TYPES = (int, float, str, tuple)
"""Types of parameters that have no finite domain."""

RESERVED = frozenset({"op", "lowering", "form", "when", "otherwise", "defaults", "decomposition", "examples"})
"""Names that are arguments of `declare` and of what registers a rule."""


class UnfitError(Exception):
    """The parameters of an op are not among those that are declared."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True)
class Declared:
    """What is declared of one composite: its parameters, and what becomes of a variant without a rule.

    Attributes:
      op: the composite's name ("my.expand_clone").
      domains: the parameters that rules constrain, each with its values; `dtype`, `layout` and `target` among them
        where they are narrower than those of every op.
      types: parameters of any value of a type, which conditions and rules read.
      defaults: the value of a parameter where the op says nothing of it.
      is_called: whether a variant without a rule becomes a call of the decomposition; else it is an error.
      place: where it is declared.
      decomposition: what a custom call of this name computes: a JAX function of the operands, with the parameters as
        keywords, or a module as text; None where nobody says.
      examples: modules as texts, or what gives them, on which `hlo-lower prove` tries its rules.
    """

    op: str
    domains: Mapping[str, Domain]
    types: Mapping[str, type] = field(default_factory=dict[str, type])
    defaults: Mapping[str, Hashable] = field(default_factory=dict[str, Hashable])
    is_called: bool = False
    place: str = ""
    decomposition: Callable[..., Any] | str | None = None
    examples: Callable[[], Iterable[str]] | Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        op: str,
        parameters: Mapping[str, object],
        defaults: Mapping[str, object],
        otherwise: str,
        place: str,
        decomposition: object = None,
        examples: object = None,
    ) -> "Declared":
        """Read a declaration.

        Raises:
          RegistryError: a domain is empty or has two values of one text, a default is outside of its domain, or a name
            is taken.
        """
        where = f"{place}: {op}"
        if not isinstance(op, str) or not op:  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's own value
            raise RegistryError(f"{place}: a composite is declared by its name, not {op!r}")
        if otherwise not in ("error", "call"):
            raise RegistryError(f"{where}: otherwise must be 'error' or 'call', not {otherwise!r}")
        if not (decomposition is None or callable(decomposition) or isinstance(decomposition, str)):
            raise RegistryError(f"{where}: decomposition must be a function or the text of a module")
        if not (examples is None or callable(examples) or isinstance(examples, list | tuple)):
            raise RegistryError(f"{where}: examples must be a list of modules as texts, or a function that gives them")
        if taken := sorted(RESERVED & parameters.keys()):
            raise RegistryError(f"{where}: no parameter can be called {taken[0]}, which is an argument of its own")
        types = {name: cast(type, one) for name, one in parameters.items() if any(one is kind for kind in PLAIN_TYPES)}
        if named := sorted(types.keys() & EVERY.keys()):
            raise RegistryError(f"{where}: {named[0]} is a fact of every op; leave it out, or give some of its values")
        domains = {
            name: _domain(f"{where}: {name}", name, one) for name, one in parameters.items() if name not in types
        }
        found: dict[str, Hashable] = {}
        for name, value in defaults.items():
            if name == "target" or name not in {*domains, *types}:
                known = ", ".join(one for one in (*domains, *types) if one != "target")
                raise RegistryError(
                    f"{where}: {name} has a default, but is not a parameter; parameters: {known or 'none'}"
                )
            found[name] = cls(op, domains, types).checked_value(f"{where}: the default of", name, value)
        return cls(op, domains, types, found, otherwise == "call", place, cast(Any, decomposition), cast(Any, examples))

    def checked_value(self, what: str, name: str, value: object) -> Hashable:
        """A parameter's value, checked against its declaration.

        Raises:
          RegistryError: it is none; `what` says of what.
        """
        try:
            return _value(name, value, self.domains.get(name), self.types.get(name))
        except UnfitError:
            kind = self.types.get(name)
            known = f"any {kind.__name__}" if kind else "|".join(texts_of(self.domains[name].values))
            raise RegistryError(f"{what} {name} must be {known}, not {text_of(value)!r}") from None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what an op has for attributes."""
        return (*(name for name in self.domains if name not in EVERY), *self.types)

    def is_for(self, target: str) -> bool:
        """Whether it speaks of a target: of all, where it does not say of which."""
        return "target" not in self.domains or self.domains["target"].find(target) is not None

    def is_same(self, other: "Declared") -> bool:
        """Whether another declaration says the same, whatever its examples."""
        return replace(self, place="", examples=None) == replace(other, place="", examples=None)

    def read(self, attributes: Mapping[str, object], own: Mapping[str, str]) -> dict[str, Hashable]:
        """The value of each parameter, and of the facts of every op.

        Args:
          attributes: what the op says of its parameters.
          own: the facts of every op, as they are read from this one; an attribute called dtype or layout comes first.

        Raises:
          UnfitError: an attribute is not declared, one that has no default is missing, or a value is outside of its
            domain.
        """
        known = {*self.parameters, *(name for name in ("dtype", "layout") if name in self.domains)}
        if others := sorted(attributes.keys() - known):
            raise UnfitError(Code.OTHER_ATTRIBUTES(tuple(others)))
        told = {**own, **self.defaults, **attributes}
        if missing := [name for name in self.parameters if name not in told]:
            raise UnfitError(Code.NEEDS(f"an attribute {missing[0]}, for which no default is declared"))
        names = dict.fromkeys((*self.parameters, *own))
        return {name: _value(name, told[name], self.domains.get(name), self.types.get(name)) for name in names}


def _domain(what: str, name: str, given: object) -> Domain:
    """The values of a parameter: those of an enum, `bool`, several, or one."""
    if given is bool:
        return Domain.of((False, True))
    if isinstance(given, type) and not issubclass(given, Enum):
        kinds = ", ".join(kind.__name__ for kind in PLAIN_TYPES)
        raise RegistryError(f"{what} must be an Enum, values, bool, or one of {kinds}, not {given.__name__}")
    if name in EVERY:
        return Domain(EVERY[name].accepted_values(what, given))
    values = as_values(what, given)
    try:
        domain = Domain.of(values)
    except TypeError:
        raise RegistryError(f"{what} must be hashable values, not {given!r}") from None
    if not values:
        raise RegistryError(f"{what} has no values")
    texts = texts_of(domain.values)
    if twice := [text for one, text in pairwise(texts) if one == text]:
        raise RegistryError(f"{what} has two values of the text {twice[0]!r}")
    return domain


def _value(name: str, value: object, domain: Domain | None, kind: type | None) -> Hashable:
    """A value of a domain or of a type; as it is where there is neither.

    Raises:
      UnfitError: it is none.
    """
    if kind is not None:
        found = _of_type(kind, value)
    else:
        found = cast(Hashable, value) if domain is None else domain.find(value)
    if found is None:
        accepted = texts_of(domain.values) if domain is not None else (f"any {kind.__name__}" if kind else "",)
        raise UnfitError(Code.MISSES(name, text_of(value), accepted))
    return found


def _of_type(kind: type, value: object) -> Hashable | None:
    """A value as one of a type, or None: a whole number is a float, too, and the text of a number is that number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (kind is float and is_number) or (isinstance(value, str) and kind in (int, float)):
        try:
            return cast(Any, kind)(value)
        except ValueError:
            return None
    return cast(Hashable, value) if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else None
