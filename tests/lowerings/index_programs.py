"""Random scatters whose indices are computed as exporters compute them, as MLIR text and in NumPy side by side."""

from dataclasses import dataclass, field

import numpy as np
from untyped_mlir import SHORT_NUMBERS, module, of

from hlo_lower.verify.judges.definitions import ScatterNumbers

INDEX_TYPES = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32}
BODIES = {
    "assign": "assign",
    "add": "add",
    # Neither commutative nor associative: any other order or count of updates gives other numbers.
    "mixed": "%c, %u: %m = multiply %c, 3; %s = subtract %m, %u; return %s",
}


@dataclass
class Program:
    """Lines in short notation (see untyped_mlir) that compute an index tensor, and what they compute, from arguments.

    Attributes:
      element: the index type of the lines that follow; `convert` changes it.
      given: the type of the runtime arguments, the first index type.
      lines: the lines.
      arguments: shape of each runtime argument.
      steps: one NumPy function for each value that a line defines, by name; it takes the values so far.
    """

    element: str
    given: str = ""
    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[int, ...]] = field(default_factory=list)
    steps: dict[str, object] = field(default_factory=dict)

    def __post_init__(self):
        self.given = self.element

    def value(self, text, shape, compute, operands=()):
        """Add a line `%name = text` and its NumPy twin; returns the name."""
        name = f"%v{len(self.steps)}"
        self.lines.append(f"{name} = {text.format(*operands)}")
        self.steps[name] = (shape, compute, operands)
        return name

    def argument(self, shape):
        """A runtime argument."""
        name = f"%a{len(self.arguments)}"
        self.arguments.append(shape)
        self.steps[name] = (shape, None, ())
        return name

    def shape(self, name):
        """The shape of a value."""
        return self.steps[name][0]

    def constant(self, array):
        """A constant, a splat or element by element."""
        array = np.asarray(array, INDEX_TYPES[self.element])
        return self.value(f"constant {array.tolist()} : {of(array.shape, self.element)}", array.shape, lambda: array)

    def iota(self, shape, dim):
        """iota along a dim, in the index type."""
        array = np.broadcast_to(
            np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape
        ).astype(INDEX_TYPES[self.element])
        return self.value(f"iota dim = {dim} : {of(shape, self.element)}", shape, lambda: array)

    def broadcast(self, name, shape, dims):
        """broadcast_in_dim."""
        old = self.shape(name)
        spread = [old[list(dims).index(d)] if d in dims else 1 for d in range(len(shape))]
        text = f"broadcast_in_dim {{0}}, dims = {list(dims)} -> {of(shape, self.element)}"
        return self.value(text, shape, lambda x: np.broadcast_to(x.reshape(spread), shape), (name,))

    def convert(self, name, element):
        """convert to another index type, which lines from here on have."""
        shape, self.element = self.shape(name), element
        return self.value(
            f"convert {{0}} -> {of(shape, element)}", shape, lambda x: x.astype(INDEX_TYPES[element]), (name,)
        )

    def elementwise(self, op, a, b):
        """add, subtract, multiply, maximum, minimum of two values of one shape."""
        function = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
        function |= {"maximum": np.maximum, "minimum": np.minimum}
        return self.value(f"{op} {{0}}, {{1}}", self.shape(a), function[op], (a, b))

    def normalized(self, x, offset):
        """select(x < 0, x + offset, x)."""
        shape, element = self.shape(x), self.element
        zero, by = self.constant(np.zeros(shape)), self.constant(np.full(shape, offset))
        moved = self.elementwise("add", x, by)
        kind = "UNSIGNED" if element.startswith("u") else "SIGNED"
        below = self.value(f"compare LT, {{0}}, {{1}}, {kind}", shape, np.less, (x, zero))
        return self.value("select {0}, {1}, {2}", shape, np.where, (below, moved, x))

    def run(self, arguments):
        """The values of all names, for arguments in order."""
        values, given = {}, iter(arguments)
        with np.errstate(all="ignore"):
            for name, (shape, compute, operands) in self.steps.items():
                found = next(given) if compute is None else compute(*(values[o] for o in operands))
                values[name] = np.asarray(found).reshape(shape)
        return values


@dataclass
class Case:
    """A scatter of i32 with computed indices: the module, and what the reference needs."""

    text: str
    program: Program
    index: str
    operand: tuple[int, ...]
    updates: tuple[int, ...]
    numbers: ScatterNumbers
    sizes: list[int]


KINDS = [
    "run",
    "run",
    "run",
    "run",
    "coordinate",
    "data",
    "constant",
    "uniform",
    "strided",
    "reversed",
    "mixed",
    "mixed",
]
STYLES = {"free": 0.35, "batched": 0.3, "runs": 0.2, "constant": 0.15}
WIDER = {"i8": "i32", "i32": "i64", "ui8": "i32", "ui32": "i64"}


def column(rng, program, shape, size, window, kind, along):
    """A column [N0, ..., Nm] of starts in a dim: a constant, a run, a coordinate, data, or some of them together.

    Args:
      rng: draws what is left open.
      program: takes the lines.
      shape: the scatter dims.
      size, window: extents of the operand dim and of the window in it.
      kind: one of KINDS.
      along: the scatter dim along which a run or a coordinate goes.
    """
    dims = list(range(len(shape)))
    if kind == "constant":
        values = rng.integers(-1, size + 1, shape)
        if rng.random() < 0.6:
            step = int(rng.choice([1, 1, -1, 2, 3]))
            values = int(rng.integers(-1, size)) + step * np.arange(shape[along]).reshape(
                [-1 if d == along else 1 for d in dims]
            )
            values = np.broadcast_to(values, shape)
        elif rng.random() < 0.5:
            values = rng.permutation(int(np.prod(shape))).reshape(shape) % (size + 1)
        return program.constant(np.clip(values, 0 if program.element.startswith("u") else -3, 100))
    if kind == "coordinate":
        return program.iota(shape, along)
    if kind == "data":
        return program.argument(shape)
    if kind == "uniform":
        return program.broadcast(program.argument(()), shape, ())
    x = program.iota(shape, along)
    if kind == "strided":
        x = program.elementwise("multiply", x, program.constant(np.full(shape, int(rng.choice([2, 3, -1])))))
    base = tuple(d for d in dims if d != along) if kind == "mixed" else ()
    offset = program.broadcast(program.argument(tuple(shape[d] for d in base)), shape, base)
    if kind == "reversed":
        x = program.elementwise("subtract", offset, x)
    else:
        x = program.elementwise("add", *((x, offset) if rng.random() < 0.5 else (offset, x)))
    if rng.random() < 0.3:
        x = program.elementwise("add", x, program.constant(np.full(shape, int(rng.integers(0, 3)))))
    told = rng.random()
    if told < 0.5:
        x = program.normalized(x, size + int(rng.choice([0, 0, 0, 1, -1])))
    elif told < 0.6:
        low, high = program.constant(np.zeros(shape)), program.constant(np.full(shape, max(size - window, 0)))
        x = program.elementwise("minimum", program.elementwise("maximum", x, low), high)
    return x


def case_of(
    program, columns, order, shape, operand, window, combiner="assign", inserted=None, places=None, batching=()
):
    """The scatter of computed columns.

    Args:
      program: computes them; its element is their type.
      columns: names of [N0, ..., Nm] tensors, one per component of the index vector.
      order: the operand dim of each.
      shape, operand, window: the scatter dims, the operand's shape and the window's, of the operand's rank.
      combiner: one of BODIES.
      inserted: inserted window dims, by default all indexed ones; they are of extent 1.
      places: update window dims, by default the last ones.
      batching: dims that are batching dims of operand and indices alike.
    """
    inserted = sorted(order) if inserted is None else inserted
    batching = list(batching)
    rank, k, m = len(operand), len(columns), len(shape)
    columns = [program.broadcast(name, (*shape, 1), range(m)) for name in columns]
    if k == 0:
        columns.append(program.constant(np.zeros((*shape, 0))))
    text = f"concatenate {', '.join(f'{{{n}}}' for n in range(k))}, dim = {m}"
    index = (
        program.value(text, (*shape, k), lambda *parts: np.concatenate(parts, -1), tuple(columns))
        if k > 1
        else columns[0]
    )
    kept = [d for d in range(rank) if d not in (*inserted, *batching)]
    places = list(range(m, m + len(kept))) if places is None else places
    updates, scatter_sizes, window_sizes = [], iter(shape), iter(window[d] for d in kept)
    for place in range(m + len(kept)):
        updates.append(next(window_sizes) if place in places else next(scatter_sizes))
    numbers = ScatterNumbers(tuple(places), tuple(inserted), tuple(batching), tuple(batching), tuple(order), m)
    fields = {short: getattr(numbers, name) for short, name in SHORT_NUMBERS.items()}
    told = ", ".join(f"{short}={v if short == 'ivd' else list(v)}" for short, v in fields.items() if v != ())
    arguments = [f"%o: {of(operand, 'i32')}", f"%up: {of(updates, 'i32')}"]
    arguments += [f"%a{n}: {of(s, program.given)}" for n, s in enumerate(program.arguments)]
    lines = [*program.lines, f"%r = scatter(%o, {index}, %up) <{told}> {{{BODIES[combiner]}}}"]
    text = module(", ".join(arguments), "\n".join(lines))
    return Case(text, program, index, operand, tuple(updates), numbers, [operand[d] for d in order] or [1])


def draw_case(rng, style=None, combiner=None):
    """A random case.

    Args:
      rng: draws it.
      style: "free", "batched" (a scatter dim is a batch coordinate, by a column or by explicit batching dims), "runs"
        (a run along each scatter dim), "constant" (all starts are), or None for any.
      combiner: one of BODIES, or None for any.
    """
    style = style or str(rng.choice(list(STYLES), p=list(STYLES.values())))
    element = str(rng.choice(list(INDEX_TYPES), p=[0.15, 0.5, 0.15, 0.1, 0.1]))
    combiner = combiner or str(rng.choice(list(BODIES)))
    rank = int(rng.integers(2 if style == "batched" else 1, 4))
    operand = tuple(int(n) for n in rng.integers(1, 7, rank))
    if element in ("i8", "ui8") and rng.random() < 0.4:
        operand = (*operand[:-1], int(rng.integers(100, 140)))
    shape = tuple(int(n) for n in rng.integers(1, 6, min(rank, int(rng.integers(1, 3)))))
    batching, along, kinds = [], {}, {}
    indexed = sorted(rng.permutation(rank)[: int(rng.integers(1, rank + 1))].tolist())
    if style == "batched":
        if rng.random() < 0.4:  # more than are unrolled
            operand = (int(rng.integers(17, 21)), *operand[1:])
        shape = (operand[0], *shape[1:])
        indexed = sorted({0, *(indexed if indexed != [0] else [0, 1])})
        if rng.random() < 0.4:
            batching, indexed = [0], indexed[1:]
        kinds[0] = "coordinate"
        kinds |= {d: str(rng.choice(["mixed", "mixed", "data", "uniform"])) for d in indexed if d}
        along |= {d: len(shape) - 1 if kinds.get(d) == "mixed" else 0 for d in indexed}
    elif style == "runs":
        indexed = sorted(rng.permutation(rank)[: len(shape)].tolist())
        along = dict(zip(indexed, rng.permutation(len(shape)).tolist(), strict=True))
        kinds = {d: str(rng.choice(["run", "run", "run", "reversed", "coordinate"])) for d in indexed}
        if rng.random() < 0.3:
            kinds[indexed[0]] = "mixed"
    elif style == "constant":
        kinds = dict.fromkeys(indexed, "constant")
        if rng.random() < 0.6:
            shape = (int(rng.integers(6, 30)), *(1 for _ in shape[1:]))
            operand = (*operand[: indexed[0]], int(rng.integers(10, 60)), *operand[indexed[0] + 1 :])
    elif rng.random() < 0.3:
        shape = (operand[0], *shape[1:]) if operand[0] < 8 else shape
    program = Program(element)
    final = WIDER.get(element, element) if rng.random() < 0.25 else element
    window = [int(rng.integers(1, n + 1)) if rng.random() < 0.3 else n for n in operand]
    for d in (*indexed, *batching):
        window[d] = 1 if d in batching or rng.random() < 0.85 else int(rng.integers(1, operand[d] + 1))
    inserted = [d for d in range(rank) if window[d] == 1 and d not in batching and rng.random() < 0.7]
    columns = []
    order = rng.permutation(indexed).tolist()
    for d in order:
        program.element = element
        kind = kinds.get(d) or str(rng.choice(KINDS))
        where = along[d] if d in along else int(rng.integers(len(shape)))
        name = column(rng, program, shape, operand[d], window[d], kind, where)
        if final != element:
            name = program.convert(name, final)
        columns.append(name)
    kept = rank - len(inserted) - len(batching)
    places = sorted(rng.permutation(len(shape) + kept)[:kept].tolist())
    program.element = final
    case = case_of(program, columns, order, shape, operand, window, combiner, inserted, places, batching)
    program.element = element
    return case


def draw_arguments(rng, case, number):
    """Runtime arguments: in range, around both ends, negative, and at the ends of the type."""
    info = np.iinfo(INDEX_TYPES[case.program.given])
    most = max(case.sizes)
    pools = [
        range(most),
        range(-most - 2, most + 2),
        [-1, -2, 0, 1, most - 1, most - 2],
        [info.min, info.min + 1, info.max, info.max - 1, info.max - 2, info.min + most],
        range(info.min, info.max + 1) if info.max < 256 else [0, -most, most],
    ]
    pool = [v for v in pools[number % len(pools)] if info.min <= v <= info.max] or [0]
    return [
        np.asarray(rng.choice(np.asarray(pool, object), shape)).astype(info.dtype) for shape in case.program.arguments
    ]
