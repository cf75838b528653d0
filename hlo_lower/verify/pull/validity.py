"""For which sizes the ops of two modules are valid: the first one's are taken to be, the second one's have to be.

What an op does whose sizes do not fit is not defined. So nothing has to be shown where one of the first module's that
always run does not fit, or a shape assertion fails. Elsewhere each op of the second module has to fit, whether what it
gives is needed or not. XLA looks at the sizes of loops and branches that do not run, too: what is said of sizes alone
has to hold there; what depends on values, where they run.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.loops import count_of_loop
from hlo_lower.verify.pull.prover import At, Bound, Frame, Prover
from hlo_lower.verify.pull.shapes import sizes_of
from hlo_lower.verify.pull.sizes import extent, is_same, product_is_small, symbol
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import SIZE, Place, Term, apply_symbol, number, resize, sort_of, symbols_of
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, location_of, ops_within

ASSERTION = "shape_assertion"
"""The call that ends a program whose sizes are not as JAX expects."""

DEPTH = 10_000
"""A depth whose bound variables are those of no other term."""


@dataclass(frozen=True)
class Valid:
    """What is known of a pair of modules of dynamic shapes whose second one is valid where the first one is.

    Attributes:
      assumptions: what holds of the sizes where the first module is valid.
      invariant: loops whose rounds keep the sizes of all that they carry.
    """

    assumptions: tuple[Term, ...]
    invariant: frozenset[Op]


def valid(make: Callable[[Sequence[Term]], Prover]) -> Valid:
    """What is known of two modules of dynamic shapes.

    Args:
      make: makes a prover of both, given what holds of the sizes.

    Raises:
      Beyond: the second module is not shown to be valid where the first one is, or the first one may never be.
    """
    assumptions = size_assumptions(make(()))
    prover = make(assumptions)
    if not prover.is_possible():
        raise Beyond("sizes that are not found to exist")
    find_invariant(prover)
    check(prover)
    return Valid(tuple(assumptions), frozenset(prover.invariant))


def is_dynamic(program: Program) -> bool:
    """Whether something in a module has a size that is not known."""
    return any(_is_of_dynamic_shape(program, op) for op in ops_within(program.entries["main"].ops))


def size_assumptions(prover: Prover) -> list[Term]:
    """What the argument sizes must satisfy for the ops of the first module that always run to be valid."""
    program = prover.programs[0]
    found = _bounds(program)
    for op in program.entries["main"].ops:
        with suppress(Beyond):
            _find_invariant(prover, prover.root(0), op)
            if op.name == names.SCATTER:
                found += _has_few_updates(prover, op)
            found += (
                _assertion(prover, prover.root(0), op) if _is_assertion(op) else _validity(prover, prover.root(0), op)
            )
    told = {test.get_id(): test for test in map(z3.simplify, found) if not z3.is_true(test) and _is_of_arguments(test)}
    return list(told.values())


def check(prover: Prover) -> None:
    """Show that the second module is valid.

    Raises:
      Beyond: that is not found.
    """
    _check(prover, prover.root(1), prover.programs[1].entries["main"].ops, z3.BoolVal(True))


def find_invariant(prover: Prover) -> None:
    """Find the first module's loops whose rounds keep the sizes of all that they carry."""
    for op in prover.programs[0].entries["main"].ops:
        with suppress(Beyond):
            _find_invariant(prover, prover.root(0), op)


def _has_few_updates(prover: Prover, op: Op) -> list[Term]:
    """That a scatter of the first module has fewer than 2^31 windows and elements of updates."""
    shape, numbers = prover.type_of_function(0, op.inputs[-1])[0], mlir.ScatterNumbers.of(op.raw)
    windows = [size for d, size in enumerate(shape) if d not in numbers.update_window_dims]
    return [product_is_small(windows), product_is_small(shape)]


def _is_assertion(op: Op) -> bool:
    return op.name == names.CUSTOM_CALL and mlir.call_target(op.raw) == ASSERTION


def _is_of_dynamic_shape(program: Program, op: Op) -> bool:
    tensors = [program.type_of(value) for value in (*op.inputs, *op.results)]
    return any(tensor is not None and not tensor.is_static for tensor in tensors)


def _is_of_arguments(test: Term) -> bool:
    constants, functions = symbols_of([test])
    return all(name.startswith((SIZE, "argument ")) for name in (*constants, *functions))


def _bounds(program: Program) -> list[Term]:
    """That the sizes of the arguments are at most the bounds of their types."""
    found: list[Term] = []
    for place, value in enumerate(program.entries["main"].arguments):
        tensor = program.type_of(value)
        if tensor is None or tensor.is_static:
            continue
        bounds = mlir.bounds_of(program.types[value])
        found += [z3.ULE(symbol(place, d), number(most)) for d, most in enumerate(bounds) if most is not None]
    return found


def _assertion(prover: Prover, frame: Frame, op: Op) -> list[Term]:
    return [prover.pull(At(prover, frame, DEPTH, op, 0, ()).operand(0, ()))]


def _validity(prover: Prover, frame: Frame, op: Op) -> list[Term]:
    """What holds where an op of dynamic shape is valid; of another one nothing."""
    program = prover.programs[frame.side]
    if not _is_of_dynamic_shape(program, op):
        return []
    sized = sizes_of(At(prover, frame, DEPTH, op, 0, ()))
    found = list(sized.valid)
    for value, sizes in zip(op.results, sized.results, strict=True):
        tensor = program.type_of(value)
        told = tensor.shape if tensor is not None else ()
        found += [term == number(size) for size, term in zip(told, sizes, strict=True) if size is not None]
    return found


def _check(prover: Prover, frame: Frame, ops: Sequence[Op], when: Term) -> None:
    """Show that ops are valid, what depends on values where something holds, and all that stands within them."""
    program = prover.programs[frame.side]
    for op in ops:
        _find_invariant(prover, frame, op)
        tests = _assertion(prover, frame, op) if _is_assertion(op) else _validity(prover, frame, op)
        tests = [test for test in map(z3.simplify, tests) if not z3.is_true(test)]
        goals = [test if _is_of_arguments(test) else z3.Implies(when, test) for test in tests]
        if not all(prover.same([(goal, z3.BoolVal(True))]) for goal in goals):
            raise Beyond(f"{op.short_name} at {location_of(op.raw)}, whose sizes may not fit")
        if not any(_is_of_dynamic_shape(program, inner) or _is_assertion(inner) for inner in _inside(op)):
            continue
        if op.short_name == "while":
            inner, runs = _round(prover, frame, op)
            _check(prover, inner, op.bodies[1].ops, z3.And(when, runs))
            _check(prover, _of_any(prover, frame, op, op.bodies[0], {}), op.bodies[0].ops, when)
        elif op.short_name in ("if", "case"):
            for k, body in enumerate(op.bodies):
                _check(
                    prover,
                    Frame(frame.side, body, {}, frame),
                    body.ops,
                    z3.And(when, _branch_condition(prover, frame, op, k)),
                )
        else:
            raise Beyond(f"dynamic shapes in the body of {op.short_name}")


def _inside(op: Op) -> list[Op]:
    return [inner for body in op.bodies for inner in ops_within(body.ops)]


def _branch_condition(prover: Prover, frame: Frame, op: Op, branch: int) -> Term:
    """The condition under which a branch runs."""
    test = prover.pull(At(prover, frame, DEPTH, op, 0, ()).operand(0, ()))
    if op.short_name == "if":
        return z3.Not(test) if branch else test
    tests = [test == number(k, test.size()) for k in range(len(op.bodies) - 1)]
    return tests[branch] if branch < len(tests) else z3.Not(z3.Or(tests))


def _of_any(prover: Prover, frame: Frame, op: Op, body: Body, known: Mapping[int, Term]) -> Frame:
    """A body of a loop in any round: what it is given is anything, but for scalars that are known, by place."""
    bound: dict[ValueId, Bound] = {}
    inner = Frame(frame.side, body, bound, frame)
    for k, value in enumerate(body.arguments):
        element = prover.type_in(inner, value)[1]
        name, sort = f"any {k} of {id(op)}", sort_of(element)

        def argument(place: Place, name: str = name, sort: object = sort, k: int = k) -> Term:
            return known[k] if k in known else apply_symbol(name, place, sort)

        bound[value] = argument
    return inner


def _round(prover: Prover, frame: Frame, op: Op) -> tuple[Frame, Term]:
    """A loop's body in any round, and where there is one."""
    try:
        count = prover.run_law(count_of_loop(At(prover, frame, DEPTH, op, 0, ())))
    except Beyond:
        return _of_any(prover, frame, op, op.bodies[1], {}), z3.BoolVal(True)
    which = prover.positions.variable(f"round of {id(op)} ", count.total)
    counter = count.begin + resize(which, count.begin.size(), is_signed=False)
    return _of_any(prover, frame, op, op.bodies[1], {count.place: counter}), z3.ULT(which, extent(count.total))


def _find_invariant(prover: Prover, frame: Frame, op: Op) -> None:
    """Find whether the rounds of a loop keep the sizes of all that it carries; that the loops in its body do, too.

    What a round is given is taken to have the sizes of what went into the loop, and what it returns has them then.
    """
    if op.short_name != "while" or op in prover.invariant:
        return
    program, body = prover.programs[frame.side], op.bodies[1]
    tensors = [program.type_of(value) for value in op.inputs]
    if all(tensor is not None and tensor.is_static for tensor in tensors) and not any(
        inner.short_name == "while" for inner in _inside(op)
    ):
        prover.invariant.add(op)
        return
    prover.invariant.add(op)
    try:
        inner = _of_any(prover, frame, op, body, {})
        for one in body.ops:
            with suppress(Beyond):
                _find_invariant(prover, inner, one)
        for given, returned in zip(body.arguments, body.returned, strict=True):
            before, after = (prover.type_in(inner, value)[0] for value in (given, returned))
            if not all(map(is_same, before, after)):
                raise Beyond("a loop that may change the size of what it carries")
    except Beyond:
        prover.invariant.discard(op)
        raise
