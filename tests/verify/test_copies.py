"""Random programs of which the second version computes a value anew for each reader, some of them otherwise."""

from random import Random

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import verify
from hlo_lower.verify.run import Executable

OPS = ("add", "subtract", "multiply", "maximum", "minimum", "maximum", "minimum")
WHICH = {"maximum": "GT", "minimum": "LT"}
OTHERS = {"GT": ("LT", "GE", "NE"), "LT": ("GT", "LE", "EQ")}
ALIKE = "%a: 4xi32, %b: 4xi32, %c: 4xi32, %i: i32"


class Copies:
    """The two versions of a program, which are written together.

    Args:
      seed: of the program; of an even one a copy may be computed otherwise.
    """

    def __init__(self, seed):
        self.random, self.may_change = Random(seed), seed % 2 == 0
        self.first, self.second, self.chosen, self.count = [], [], {}, 0
        self.values = ["%a", "%b", "%c"]

    def read(self, value, lines):
        """The name of a value for one reader: of a copy, if it is the larger or smaller one of two."""
        if value not in self.chosen:
            return value
        op, x, y = self.chosen[value]
        self.count += 1
        which, k = WHICH[op], self.count
        if self.may_change and self.random.random() < 0.25:
            which, self.may_change = self.random.choice(OTHERS[which]), False
        lines.append(f"%p{k} = compare {which}, {x}, {y}; %y{k} = select %p{k}, {x}, {y}")
        return f"%y{k}"

    def pair(self, last):
        """Two of the last values."""
        return [self.random.choice(self.values[-last:]) for _ in range(2)]

    def add_op(self):
        """One more op."""
        op, (x, y), value = self.random.choice(OPS), self.pair(5), f"%v{len(self.values)}"
        self.first.append(f"{value} = {op} {x}, {y}")
        mine, theirs = (self.read(v, self.second) for v in (x, y))
        if op in WHICH and self.random.random() < 0.7:
            self.chosen[value] = op, mine, theirs
        else:
            self.second.append(f"{value} = {op} {mine}, {theirs}")
        self.values.append(value)

    def add_branches(self):
        """Branches that read values from around them."""
        x, y = self.pair(4)
        bodies = "%r = case(%i) {{ {}%w = subtract {}, {}; return %w }} {{ {}%z = add {}, {}; return %z }}"
        self.first.append(bodies.format("", x, y, "", x, x))
        lines = [], []
        mine, theirs, same = self.read(x, lines[0]), self.read(y, lines[0]), self.read(x, lines[1])
        inner = ["".join(f"{line}; " for line in each) for each in lines]
        self.second.append(bodies.format(inner[0], mine, theirs, inner[1], same, same))
        self.values.append("%r")

    def texts(self):
        """Both versions."""
        for _ in range(self.random.randint(6, 12)):
            self.add_op()
        if self.random.random() < 0.5:
            self.add_branches()
        returned = self.random.sample(self.values[3:], 3)
        copies = [self.read(value, self.second) for value in returned]
        versions = (self.first, returned), (self.second, copies)
        return [module(ALIKE, "\n".join(lines), ", ".join(names)) for lines, names in versions]


def are_same(texts):
    """Whether the versions are the same on small numbers, among them equal ones, and on large ones."""
    first, second = (Executable(text, "quick") for text in texts)
    drawn = np.random.default_rng(0)
    for k in range(60):
        most = (3, 5, 2**31 - 1)[k % 3]
        given = [*drawn.integers(-most, most, (3, 4)).astype(np.int32), np.asarray(drawn.integers(0, 2), np.int32)]
        if not all(map(np.array_equal, first.run(given), second.run(given))):
            return False
    return True


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", range(100))
def test_copies_are_one_value_and_a_wrong_one_is_seen(seed):
    """What differs in a run is never equal; what is the same never differs."""
    texts = Copies(seed).texts()
    verdict = verify(*texts, level="regions")
    assert not (verdict.differs if are_same(texts) else verdict.ok), verdict.lines()
