"""A memo of what is found on the way through assumptions: each entry lives as long as what it rests on."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """What was found, by its key, under assumptions that are made and settled like brackets.

    An assumption opens a level and takes it away when it is settled. While something is found, the levels that it rests
    on are noted; it is kept at the innermost of them, and so is found again while that assumption holds and not after.
    What rests on none is kept for good. So nothing is found twice under the same assumptions.
    """

    def __init__(self) -> None:
        self._tables: list[dict[K, tuple[V, int]]] = [{}]
        self._rests: list[int] = []  # for each search under way, the levels that it rests on so far, as bits

    @property
    def level(self) -> int:
        """The innermost assumption: how many are made, 0 for none."""
        return len(self._tables) - 1

    def get(self, key: K) -> V | None:
        """What is known, if it is; what rests on it rests on the same levels."""
        for table in reversed(self._tables):
            known = table.get(key)
            if known is not None:
                self._add(known[1])
                return known[0]
        return None

    def begin(self) -> None:
        """Begin a search, to be ended by `keep` or `drop`."""
        self._rests.append(0)

    def keep(self, key: K, found: V) -> None:
        """End a search, and keep what was found for as long as what it rests on is assumed."""
        rests = self._rests.pop()
        self._tables[rests.bit_length()][key] = (found, rests)
        self._add(rests)

    def drop(self) -> None:
        """End a search without keeping anything."""
        self._add(self._rests.pop())

    def note(self, level: int) -> None:
        """The search under way rests on an assumption."""
        self._add(1 << (level - 1) if level else 0)

    def assume(self) -> None:
        """Make an assumption: open a level."""
        self._tables.append({})

    def settle(self) -> None:
        """Settle the innermost assumption: what rests on it is forgotten, and no search rests on it any more."""
        self._tables.pop()
        if self._rests:
            self._rests[-1] &= (1 << self.level) - 1

    def _add(self, rests: int) -> None:
        if self._rests:
            self._rests[-1] |= rests
