"""What a target calls a named op, as data: name, operands, attributes, on what it takes it, and what adapts it."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hlo_lower.base.errors import InputError

ADAPTERS = ("", "attention", "normalized_shape", "channels_last")
"""What may stand between one of ours and the target's: a file each in `hlo_lower.named.spell`."""

ATTENDED = ("query", "key", "value", "mask")
"""What the adapter of attentions gives, in this order; the mask may be left out."""

GAINS = ("", "keys_in_place", "keys_repeated")
"""When an attention is worth its transposes: see `NamedOp.gains`."""

REFUSES = ("one head in a batch", "mask of grouped heads")
"""What an attention of a target may not take; see `NamedOp.refuses`."""

LAYOUT = re.compile(r"(?:(?:\([bqngkhv]+\)|[bqngkhv])+(?:,|->|$)){5}")
"""The layout of an attention: query, key, value, mask and result by their letters."""

Plain = bool | int | float | str


@dataclass(frozen=True)
class SpelledAttribute:
    """An attribute as a target has it.

    Attributes:
      of: the attribute of ours whose value it has; "" where `value` is given.
      value: what it always is.
      type: how MLIR writes it: "f32", "i64", "i1", "str" or "i64s"; "" as ours is written.
      omit: the value at which it is left out, since the target takes it for something else.
      words: what it has for a value of ours, by that value as text.
    """

    of: str = ""
    value: Plain | None = None
    type: str = ""
    omit: Plain | None = None
    words: Mapping[str, Plain] = field(default_factory=dict[str, Plain])


@dataclass(frozen=True)
class NamedOp:
    """A composite that a target takes for a named op.

    Attributes:
      op: ours, without "hl." ("gelu").
      composite: the target's name of it ("aten.gelu.default").
      operands: the roles of what it takes, in order; those in brackets may be left out: ("x", "[weight]").
      attributes: its attributes by their names.
      where: for attributes of ours the values that it takes.
      dtypes: the element types of its operands that it takes; None: all.
      ranks: the ranks of its first operand, as the target sees it; None: all.
      delegate: what runs it there.
      adapter: what adapts it, one of `ADAPTERS`.
      layout: of an attention: how its operands, the mask and its result lie, as `hlo_lower.named.spell.attention` says.
      refuses: of an attention: "one head in a batch": a single head of keys and several batches; "mask of grouped
        heads": a mask with heads where several heads of queries share one of keys.
      gains: of an attention, when it is faster than its plain ops, one of these is enough: "keys_in_place": keys and
        values stand as the target wants them; "keys_repeated": the plain ops repeat them for groups of heads. Empty:
        always.
      run: whether it was run there; else it is what the target's source says.
    """

    op: str
    composite: str
    operands: tuple[str, ...]
    attributes: Mapping[str, SpelledAttribute] = field(default_factory=dict[str, SpelledAttribute])
    where: Mapping[str, Collection[Plain]] = field(default_factory=dict[str, Collection[Plain]])
    dtypes: Collection[str] | None = None
    ranks: Collection[int] | None = None
    delegate: str = ""
    adapter: str = ""
    layout: str = ""
    refuses: Collection[str] = ()
    gains: Collection[str] = ()
    run: bool = True

    def __post_init__(self) -> None:
        """Refuse words that do not exist, and operands that no adapter gives."""
        words = (
            ("adapter", [self.adapter], ADAPTERS),
            ("gains", self.gains, GAINS),
            ("refuses", self.refuses, REFUSES),
        )
        for told, given, known in words:
            for word in given:
                if word not in known:
                    raise InputError(
                        f"named {self.op}",
                        f"{told}: {word!r} is none",
                        facts=f"there is {', '.join(filter(None, known))}",
                        next_step="write one of them, or leave it out",
                    )

        if self.adapter == "attention" and self.roles not in (ATTENDED, ATTENDED[:3]):
            raise InputError(
                f"named {self.op}",
                f"operands: {', '.join(self.operands)}",
                facts=f"the adapter attention gives {', '.join(ATTENDED)}, in this order",
                next_step='write operands = ["query", "key", "value", "[mask]"]',
            )

        if self.adapter == "attention" and not LAYOUT.fullmatch(self.layout):
            raise InputError(
                f"named {self.op}",
                f"layout: {self.layout!r} is none",
                facts="it has query, key, value, mask and result, by the letters b, q, n, g, k, h and v",
                next_step='write layout = "b(ng)qh,bnkh,bnkh,b(ng)qk->b(ng)qh", say',
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """Of the operands, without brackets."""
        return tuple(role.strip("[]") for role in self.operands)

    def __hash__(self) -> int:
        return hash((self.op, self.composite, self.operands, self.adapter))
