"""Two modules of one context, read, aligned and cut into regions as the judge does it."""

from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Aligner, BodyPair, Region, Side, regions_of
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Program


def scattering(
    operand="8xf32", indices="5x1xi32", updates="5xf32", numbers="inserted=[0], to=[0], ivd=1",
    body="%c, %d: return %d", *, before="", used="%o, %i, %u", behind="", returned="%r",
):  # fmt: skip
    """A module whose main scatters `used` into %o at %i, with ops before and behind, in short notation."""
    lines = f"{before}\n%r = scatter({used}) <{numbers}> {{{body}}}\n{behind}"
    return module(f"%o: {operand}, %i: {indices}, %u: {updates}", lines, returned)


def programs(*texts: str) -> list[Program]:
    """Modules of one context."""
    context = mlir.make_context()
    return [Program(mlir.parse_module(text, context)) for text in texts]


def aligned(before: str, after: str) -> list[BodyPair]:
    """The pairs of bodies of @main that differ, the function's own first."""
    return Aligner(*programs(before, after), frozenset(), {}).align("main")


def regions(before: str, after: str) -> list[Region]:
    """The regions of @main."""
    return regions_of(aligned(before, after))


def numbers(*texts: str) -> list[list[int]]:
    """The value numbers of what each @main returns, of one table."""
    table = Table()
    sides = [Side(program, program.entries["main"], 0, {}, table) for program in programs(*texts)]
    return [[side.numbers[value] for value in side.roots] for side in sides]


def names(region: Region) -> tuple[list[str], list[str]]:
    """The operations of both pieces, constants aside."""
    return tuple([op.short_name for op in ops if op.inputs] for ops in (region.first, region.second))  # type: ignore[return-value]
