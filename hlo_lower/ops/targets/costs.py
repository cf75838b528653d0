"""What the forms of a scatter cost, and the limits between them: one table, each entry with the measurement behind it.

Costs are nanoseconds on a CPU; they only choose between forms that are all right. `hlo-lower rules` prints the table,
`--prefer NAME=NUMBER` changes an entry, and each record says in its `why` what the chosen form was estimated to cost.
"""

from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

WHOLE_MASKS = 1_000_000_000_000
"""More elements than any mask has."""


def _entry(default: float, what: str, measured: str, *, may_be_zero: bool = False) -> Any:
    return field(default=default, metadata={"what": what, "measured": measured, "may_be_zero": may_be_zero})


@dataclass(frozen=True)
class CostTable:
    """The table of a target. The defaults are for a consumer of which nothing is known but what it takes.

    They choose between measured forms so that none is twice the best one of the suite of `scripts/bench.py`, neither
    on XLA CPU nor on IREE (llvm-cpu). That is because a consumer whose loops are slow refuses them, or has a scatter of
    its own (`own_row`, dearer than nothing and cheaper than an iteration). For one that does neither, no table would
    do: counting 1,000,000 numbers in a loop is 97 times faster on XLA than any other form, and on IREE, without its
    scatter, more than 22 times slower. Its target file says `loop = 12_000`.
    """

    few_windows: int = _entry(
        16, "most windows that get ops of their own", "IREE compiles 32 of them in 1.6 s, 128 in 7.5 s"
    )
    window: float = _entry(60, "one of these windows", "XLA CPU 0.8 to 1.4 iterations of a loop; IREE 5,000")
    loop: float = _entry(100, "an iteration of a loop", "XLA CPU 20 to 200; IREE 12,000 to 50,000")
    copy_element: float = _entry(
        0.0001,
        "an element of the operand, in each iteration of a loop",
        "XLA CPU 0, it writes in place; IREE 3.13 copies, 1 to 4",
        may_be_zero=True,
    )
    element: float = _entry(0.5, "an element of a window that is written", "XLA CPU, rows of 1,024")
    step: float = _entry(
        300, "starting a form other than a loop", "a dispatch of IREE 10,000; XLA CPU 11,000 beside a loop's start"
    )
    fill_element: float = _entry(
        0.2, "an element of an operand that is one value everywhere, which is written anyway", "not measured"
    )
    pass_element: float = _entry(
        0.12, "an element in a pass over the operand", "XLA CPU 0.13; 1 of 16 Mi elements into a new buffer"
    )
    compare: float = _entry(
        0.3, "comparing the number of one row with that of one write", "XLA CPU 0.16, IREE 0.13 to 0.5"
    )
    reduce: float = _entry(
        0.5, "combining one element with that of one write, or with nothing", "XLA CPU 0.1 to 0.6, IREE 0.35 to 0.5"
    )
    multiply: float = _entry(0.1, "a step of a matrix product", "XLA CPU 0.03 (f32) to 0.36 (i32), IREE 0.06 (i32)")
    sort: float = _entry(10, "sorting one element, for each doubling of their number", "XLA CPU, two operands")
    sort_pair: float = _entry(
        3, "sorting, per pair of elements", "IREE 3.13 compares each pair; XLA CPU 0", may_be_zero=True
    )
    find: float = _entry(10, "a step of a binary search", "XLA CPU")
    own_row: float = _entry(
        2, "a row written by the consumer's own scatter, if that is right", "IREE 2 to 5, of one element"
    )
    own_element: float = _entry(0.5, "an element of such a row", "IREE 0.5; LiteRT 100")
    rank_pair: float = _entry(
        1,
        "comparing and counting a pair of rows of a sort",
        "XLA CPU 0.6 to 5, IREE 0.1 to 0.2, LiteRT 30 to 130",
    )
    exchange: float = _entry(
        1, "an element of a column, in a stage of a sorting network", "XLA CPU 0.5 to 0.9, IREE 0.5, LiteRT 5"
    )
    exchange_stage: float = _entry(
        1_000, "starting a stage of a sorting network", "LiteRT 2,500; XLA CPU and IREE fuse stages, below 500"
    )
    few_stages: int = _entry(
        36,
        "most stages of a sorting network that get ops of their own, if the target has loops",
        "28 of them, 128 rows, compile in 7 s (XLA CPU) and 9 s (IREE) on two busy cores; 55 in 17 s and 24 s",
    )
    top_k: float = _entry(
        0,
        "sorting one element by the target's own top_k, for each doubling of those read; 0: never so",
        "LiteRT 5 (1,000 to 32,000 elements) to 8 (1,000,000)",
        may_be_zero=True,
    )
    mask_elements: int = _entry(
        1 << 16,
        "most elements of a mask that is made at once; a loop makes larger ones in parts",
        "16 Mi compares: XLA CPU 84 ms at once, 2.6 ms in parts; 1 Gi: IREE 2.8 s at once, 0.5 s in parts of 1 Mi",
    )
    short_operand: int = _entry(
        0,
        "most elements of an operand into which a select writes one window; 0: none",
        "the slice's times over the select's, in a loop: IREE 2.0 (17 elements), 2.7 (4,096), 1.4 (65,536), 0.7 (1 Mi)",
        may_be_zero=True,
    )
    dense_per_window: int = _entry(
        4096,
        "most elements of the operand, per constant row, for which a pass over it pays",
        "XLA CPU 0.7 (320 elements each) to 1.06 times native (4,096 each); in place, of a donated operand, 1.3 to 2.1",
    )
    constant_rows: int = _entry(4096, "most rows of a constant table that replaces constant indices", "not measured")
    growth: int = _entry(
        4, "most such rows as a multiple of the indices' size; the larger limit counts", "not measured"
    )

    @classmethod
    def entries(cls) -> tuple[Field[Any], ...]:
        """The entries, each with `what` it is and what was `measured` as metadata."""
        return fields(cls)

    def with_entry(self, name: str, value: object) -> "CostTable":
        """The table with another value for an entry.

        Raises:
          ValueError: there is no such entry, or the value is no number above 0 (from 0 on, where an entry may be 0), or
            no whole one where it counts.
        """
        entry = next((entry for entry in self.entries() if entry.name == name), None)
        if entry is None:
            raise ValueError(f"no cost named {name!r}; costs are {', '.join(e.name for e in self.entries())}")
        is_whole = entry.type is int
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else -1.0
        may_be_zero = entry.metadata["may_be_zero"] and number == 0
        if not (0 < number < 1e18 or may_be_zero) or (is_whole and not number.is_integer()):
            wanted = "a whole number" if is_whole else "a number"
            least = "from 0 on" if entry.metadata["may_be_zero"] else "above 0"
            raise ValueError(f"{name}: {wanted} {least} is wanted, not {value!r}")
        return replace(self, **{name: int(number) if is_whole else number})


COSTS = CostTable()
