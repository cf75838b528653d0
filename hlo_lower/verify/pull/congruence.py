"""Ops that are functions of their operands and nothing more: the same on the same operands, attributes and bodies."""

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.verify.pull.beyond import Beyond
from hlo_lower.verify.pull.prover import Ask, At, Bound, Frame, Pull
from hlo_lower.verify.pull.solver import z3
from hlo_lower.verify.pull.terms import Place, Term, apply_symbol, sort_of
from hlo_lower.verify.read.program import Body, ValueId

SHARDING = "Sharding"
"""The call that returns its operand."""

Terms: TypeAlias = Generator[Ask, Term, list[Term]]


def scalars(at: At, body: Body, args: Sequence[Term]) -> Terms:
    """What a body of scalars returns for some elements."""

    def everywhere(term: Term) -> Bound:
        return lambda _: term

    bound = {value: everywhere(term) for value, term in zip(body.arguments, args, strict=True)}
    frame = Frame(at.frame.side, body, bound, at.frame)
    found: list[Term] = []
    for value in body.returned:
        found.append((yield Ask(frame, at.depth, value, ())))
    return found


def body_on_variables(at: At, body: Body, name: str) -> Generator[Ask, Term, tuple[list[Term], list[Term]]]:
    """A body as a function: its arguments as variables, and what it returns of them.

    An argument that is a tensor is a function symbol of its position, and what is returned is taken at a position of
    variables; those that are scalars are constants, which another body's can be put in the place of.
    """
    bound: dict[ValueId, Bound] = {}
    frame = Frame(at.frame.side, body, bound, at.frame)
    variables: list[Term] = []
    for k, value in enumerate(body.arguments):
        shape, element = at.prover.type_in(frame, value)
        symbol, sort = f"{name} {at.depth}.{k} {element.name}{list(shape)}", sort_of(element)

        def argument(place: Place, symbol: str = symbol, sort: Any = sort) -> Term:
            return apply_symbol(symbol, place, sort)

        bound[value] = argument
        if not shape:
            variables.append(argument(()))
    found: list[Term] = []
    for k, value in enumerate(body.returned):
        place = at.positions.place(f"r{at.depth}.{k}.", at.prover.type_in(frame, value)[0])
        variables += [term for term in place if not z3.is_bv_value(term)]
        found.append((yield Ask(frame, at.depth, value, place)))
    return variables, found


def whole_operands(at: At, values: Sequence[ValueId]) -> Generator[Ask, Term, tuple[list[Term], list[Term]]]:
    """Values at all of their positions: bound variables, and the terms over them."""
    bound: list[Term] = []
    terms: list[Term] = []
    for k, value in enumerate(values):
        place = at.positions.place(f"o{at.depth}.{k}.", at.type(value)[0])
        bound += [term for term in place if not z3.is_bv_value(term)]
        terms.append((yield at.value(value, place)))
    return bound, terms


def same_function(at: At) -> Pull:
    """An op as a function of all elements of its operands and of what its bodies compute."""
    op, deep = at.op, at.deeper()
    if op.has_effects:
        raise Beyond(f"{op.short_name}, which has effects")
    bound, terms = yield from whole_operands(deep, op.inputs)
    for k, body in enumerate(op.bodies):
        variables, returned = yield from body_on_variables(deep, body, f"of body {k}")
        bound, terms = [*bound, *variables], [*terms, *returned]
    at.use("same function")
    program = at.prover.programs[at.frame.side]
    types: list[Any] = [str(program.types[value]) for value in (*op.inputs, *op.results)]
    if at.prover.is_open:
        types += [at.type(value) for value in (*op.inputs, *op.results)]
    attributes = [(name, str(told)) for name, told in op.attributes if "." not in name]
    key = (op.name, str(attributes), str(types), at.result)
    which = at.prover.occurrence(at, key, terms, bound, z3.IntSort())
    return apply_symbol(f"result {at.result} of {op.short_name}", [which, *at.place], sort_of(at.element))


def custom_call(at: At) -> Pull:
    """`@Sharding` returns its operand; any other call is a function of its operands."""
    if mlir.call_target(at.op.raw) == SHARDING:
        return (yield at.operand(0))
    return (yield from same_function(at))


def map_(at: At) -> Pull:
    """result[p] = body(operand[p], ...)."""
    args: list[Term] = []
    for k in range(len(at.op.inputs)):
        args.append((yield at.operand(k)))
    return (yield from scalars(at, at.op.bodies[0], args))[at.result]
