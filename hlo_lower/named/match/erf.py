"""erf and erfc, the integrals of a normal distribution, in every way in which a module has them.

    chlo.erf %x                              as JAX lowers it
    stablehlo.custom_call @mhlo.erf(%x)      as torch_xla exports it
    stablehlo.composite "any.name" %x        where its decomposition computes one of these, whatever its name
    polynomials, a quotient, a clamp         as the legalization of chlo, and so jax.export, writes it out
    convert, the same in f32, convert        as it writes out that of a narrower float: who asks looks through these

An erf that is written out is not guessed from its shape. jaxlib's own legalization writes one out here, and the value
has to be made by the same ops, with the same directions of comparison, from constants of the same bits; so one digit
elsewhere is another function.
"""

from dataclasses import dataclass, field
from functools import cache

from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.named.match.arithmetic import uncast
from hlo_lower.named.match.terms import Term, Terms, is_one_number
from hlo_lower.ops.encoded_calls import KNOWN, why_unknown
from hlo_lower.ops.names import CLAMP, COMPOSITE, CUSTOM_CALL, SELECT

ERF, ERFC = "chlo.erf", "chlo.erfc"

ENDS = (ERF, ERFC, CUSTOM_CALL, COMPOSITE, CLAMP, SELECT)
"""The ops that may give an erf or an erfc, for matchers that begin at one."""


@dataclass(frozen=True)
class Erf:
    """An erf, or an erfc, which is 1 - erf."""

    term: Term  # the value
    argument: Term  # of which it is
    op: str  # "chlo.erf" or "chlo.erfc"


def erf_of(term: Term) -> Erf | None:
    """The erf or erfc that a value is."""
    if term.op in (ERF, ERFC):
        return Erf(term, term.operands[0], term.op)
    if term.op == "custom_call":
        op = KNOWN.get(mlir.call_target(term.node.raw), "")
        return Erf(term, term.operands[0], op) if op in (ERF, ERFC) and why_unknown(term.node) is None else None
    if term.op == "composite":
        return _of_composite(term)
    return _legalized_erf(term)


def _of_composite(term: Term) -> Erf | None:
    """The erf that the decomposition of a composite computes of its argument."""
    function = term.terms.graph.functions.get(term.node.body_name)
    if function is None or not function.has_body or len(term.operands) != 1 or len(term.node.results) != 1:
        return None
    inner = term.terms.of(function.body.terminator.raw.operands[0], term.terms.frame(term.node.raw, term.frame))
    found = erf_of(uncast(inner))
    if found is None or uncast(found.argument) is not uncast(term.operands[0]):
        return None
    return Erf(term, term.operands[0], found.op)


_WRITTEN_OUT = {"clamp": (ERF,), "select": (ERF, ERFC)}
"""Which may be written out so that it ends with an op."""


def _legalized_erf(term: Term) -> Erf | None:
    """The erf that the legalization of chlo expanded into a value."""
    for op in _WRITTEN_OUT.get(term.op, ()) if term.element in ("f32", "f64") else ():
        comparison = _Comparison()
        if comparison.are_same(_legalize(op, term.element), term):
            return None if comparison.argument is None else Erf(term, comparison.argument, op)
    return None


@cache
def _legalize(op: str, element: str) -> Term:
    """The result of an op of one argument as jaxlib legalizes it to StableHLO."""
    tensor = f"tensor<{element}>"
    body = f"%r = {op} %x : {tensor} -> {tensor}\nreturn %r : {tensor}"
    graph = read(f"func.func public @main(%x: {tensor}) -> {tensor} {{\n{body}\n}}")
    mlir.run_pass(graph.module.operation, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
    graph.forget()
    return Terms(graph).of(graph.functions["main"].body.terminator.raw.operands[0])


_COMMUTING = frozenset({"add", "multiply"})


@dataclass
class _Comparison:
    """Whether values are made in the same way, from the argument of one and from some value of the other.

    Attributes:
      argument: what stands in the place of the argument.
    """

    argument: Term | None = None
    _same: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def are_same(self, pattern: Term, term: Term) -> bool:
        """Whether a value is made as the one of the pattern."""
        if pattern.op == "argument":
            self.argument = self.argument or term
            return self.argument.is_same(term)
        if (id(pattern), id(term)) in self._same:
            return True
        if (number := pattern.scalar) is not None:
            return is_one_number(number, term.scalar)
        if pattern.op != term.op or pattern.element != term.element or len(pattern.operands) != len(term.operands):
            return False
        if pattern.op == "compare" and comparison_direction(pattern.node) != comparison_direction(term.node):
            return False
        pairs = zip(_in_order(pattern), _in_order(term), strict=True)
        if not all(self.are_same(its, mine) for its, mine in pairs):
            return False
        self._same.add((id(pattern), id(term)))
        return True


def _in_order(term: Term) -> tuple[Term, ...]:
    """The operands, the constant of a sum or a product last, where simplifiers put it."""
    if term.op in _COMMUTING and term.operands[0].scalar is not None:
        return term.operands[::-1]
    return term.operands
