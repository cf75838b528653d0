"""Ways to get a loop over tiles wrong, each as a change of the package that random programs must show."""

from dataclasses import replace

from hlo_lower.lowering import loops
from hlo_lower.ops.axes.cut import THREADED, AxisLink, SubsetRules
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile.emit import emit_loops, loop_body


def dropped_tail(monkeypatch):
    """The steps that are left over are never computed."""
    monkeypatch.setattr(loops.TiledLoop, "rest", property(lambda loop: 0))
    monkeypatch.setattr(loops.TiledLoop, "trips", property(lambda loop: loop.count // loop.size))


def repeated_tail(monkeypatch):
    """An accumulator counts steps twice: its last tile is clamped."""
    made = loops.TiledLoop
    monkeypatch.setattr(emit_loops, "TiledLoop", lambda count, size, tail, un: made(count, size, "clamped", un))


def seam(monkeypatch):
    """A tile begins one step too late, but for the first."""
    start = loops.TiledLoop._start

    def late(loop, build, counter):
        one = build.elementwise("minimum", counter, build.constant(1, (), "i32"))
        return build.elementwise("add", start(loop, build, counter), one)

    monkeypatch.setattr(loops.TiledLoop, "_start", late)


def forgotten_sum(monkeypatch):
    """An accumulator keeps what the last tile gave."""
    accumulate = loop_body._Tile.accumulate

    def last(tile, node, carried):
        if tile._body.labels.axes[node].combine == THREADED:
            return accumulate(tile, node, carried)
        return tile._body.program.rules.build_piece(tile._build, tile._cut(node, tile._operands(node)))

    monkeypatch.setattr(loop_body._Tile, "accumulate", last)


def unthreaded(monkeypatch):
    """Each tile of a scatter writes into what the scatter began with."""
    made = loop_body._Tile._operands
    monkeypatch.setattr(
        loop_body._Tile, "_operands", lambda tile, node, carried=None, part=None: made(tile, node, None, part)
    )
    given = emit_loops._values_read

    def with_operand(program, plan, loop):
        threaded = [n for n in loop.accumulators if plan.labels.axes[n].combine == THREADED]
        first = [v for n in threaded for v in n.operands[: len(n.results)]]
        return list(dict.fromkeys([*given(program, plan, loop), *first]))

    monkeypatch.setattr(emit_loops, "_values_read", with_operand)


MACHINERY = (dropped_tail, repeated_tail, seam, forgotten_sum, unthreaded)


def changed(name: str, change) -> SubsetRules:
    """The rules, with what one of them says of an op changed."""
    rules = default_subset_rules().copy()
    right = rules.by_axes[name]

    def wrong(node):
        axes = right(node)
        return change(node, axes) if isinstance(axes, (list, tuple)) else axes

    rules.by_axes[name] = wrong
    return rules


def also(extra):
    """One axis more."""
    return lambda node, axes: [*axes, *extra(node)]


def square(node):
    """Dims of an op's first operand and result that have one size."""
    pairs = zip(node.operand(0).shape, node.result().shape, strict=False)
    return [d for d, (a, b) in enumerate(pairs) if a == b and a != 1]


def every_dim(node):
    """An axis for every dim that keeps its size, whatever the op does along it."""
    others = (None,) * (len(node.operands) - 1)
    return [AxisLink((d, *others), (d,) * len(node.results)) for d in square(node)]


def added(node, axes):
    """Whatever a reduction combines by, its pieces are added."""
    return [replace(a, combine="add") if a.combine else a for a in axes]


RULES = {
    "reversed dims keep their order": ("stablehlo.reverse", also(every_dim)),
    "sorted dims are sorted in pieces": ("stablehlo.sort", also(every_dim)),
    "an update of a window is cut along its way": ("stablehlo.dynamic_update_slice", also(every_dim)),
    "pieces of a maximum are added": ("stablehlo.reduce", added),
}

SEEN = {
    "unthreaded": 1,
    "dropped_tail": 3,
    "seam": 4,
    "repeated_tail": 6,
    "forgotten_sum": 6,
    "sorted dims are sorted in pieces": 14,
    "pieces of a maximum are added": 18,
    "reversed dims keep their order": 21,
    "an update of a window is cut along its way": 48,
}
"""A random program in which each wrong variant gives other results."""
