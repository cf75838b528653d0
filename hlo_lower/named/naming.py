"""`hl.raise_named` and `hl.inline_named`: named ops put in the place of plain ones, and written out again."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from hlo_lower.base.errors import InputError
from hlo_lower.base.short_forms import tally
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import Writable, to_bytecode
from hlo_lower.named.match.matches import matchers
from hlo_lower.named.record import NamedRecord, NamedReport, NearMissRecord, report_of
from hlo_lower.named.spell.other_names import close_composites, open_composites
from hlo_lower.named.spell.spelling import Spelling, spell_graph
from hlo_lower.named.take_out.outline import inline_graph
from hlo_lower.named.take_out.raising import find_named, raise_graph
from hlo_lower.ops.targets import TargetLike, target_of


@dataclass(frozen=True, repr=False)
class Raised(Writable):
    """A module with composites in the place of its named ops.

    Attributes:
      graph: the module.
      report: what was found.
      spelled: with a target, what became of each: its composite, or plain ops and why.

    Example:
      >>> hl.raise_named("decode.mlir")
      <Raised decode.mlir: 0 named ops>
    """

    report: NamedReport
    spelled: tuple[Spelling, ...] = ()

    def __repr__(self) -> str:
        return f"<Raised {self.graph.name}: {self.summary()}>"

    @property
    def named(self) -> tuple[NamedRecord, ...]:
        """The named ops that were raised."""
        return self.report.named

    @property
    def misses(self) -> tuple[NearMissRecord, ...]:
        """The near misses."""
        return self.report.misses

    def summary(self) -> str:
        """How many of which: "14 named ops: 5 rms_norm, 2 attention, ..."."""
        if self.spelled:
            return self._target_summary()
        listed = tally(Counter(one.name for one in self.named))
        return f"{len(self.named)} named op{'s' * (len(self.named) != 1)}" + (f": {listed}" if listed else "")

    def _target_summary(self) -> str:
        """The named ops in the target's words: "2 of 15 named ops: 2 odml.scaled_dot_product_attention (XNNPACK)"."""
        found = [one for one in self.spelled if one.composite]
        listed = tally(Counter(f"{o.composite} ({o.delegate})" if o.delegate else o.composite for o in found))
        return f"{len(found)} of {len(self.spelled)} named ops written" + (f": {listed}" if listed else "")


def raise_named(
    source: Source | Graph,
    *,
    target: TargetLike | None = None,
    only: Collection[str] | None = None,
    name: str | None = None,
) -> Raised:
    """Put a `stablehlo.composite` in the place of each named op of a module (docs/named-ops.md).

    The ops that it stands for become its decomposition, so the module computes what it computed, to the bit, and
    whoever does not know the name inlines it.

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      target: whose composites are written, in its spelling, and what it does not take stays plain ops: the name of a
        target, the path of a target file, or a target. By default composites of ours, "hl.attention".
      only: the names of those that are raised ("attention", "rms_norm"); by default all.
      name: name for messages.

    Returns:
      The module: `.text`, `.named`, `.misses`, `.summary()`.

    Raises:
      InputError: the source cannot be read, there is no named op of such a name, or no such target.

    Example:
      >>> hl.raise_named("decode.mlir").named
      ()
    """
    check_names(only)
    consumer = None if target is None else target_of(target)
    graph = _copy(source, name)
    with mlir.active(graph.context):
        others = open_composites(graph)
        found = find_named(graph, matchers, only)
        report = report_of(found)
        raise_graph(graph, found)
        close_composites(graph, others)
        spelled = () if consumer is None else tuple(spell_graph(graph, consumer, others))
    return Raised(graph, report, spelled)


def inline_named(source: Source | Graph, *, only: Collection[str] | None = None, name: str | None = None) -> Graph:
    """Write the named ops of a module out: the inverse of `raise_named`.

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      only: the names of those that are written out; by default all.
      name: name for messages.

    Returns:
      The module, plain.

    Raises:
      InputError: the source cannot be read, or there is no named op of such a name.

    Example:
      >>> hl.inline_named("decode.mlir")
      <Graph decode.mlir: 5 ops, 1 scatter, 1 function>
    """
    check_names(only)
    graph = _copy(source, name)
    with mlir.active(graph.context):
        inline_graph(graph, only)
    return graph


def named_report(source: Source | Graph, *, name: str | None = None) -> NamedReport:
    """The named ops of a module, and what was almost one; the module is left as it is."""
    graph = source if isinstance(source, Graph) else read(source, name)
    with mlir.active(graph.context):
        return report_of(find_named(graph, matchers))


def named_report_or_error(source: Source | Graph, name: str) -> NamedReport:
    """The named ops of one module of several: of one that cannot be read a report that says so."""
    try:
        return named_report(source, name=name)
    except InputError as error:
        return NamedReport(name, 0, 0, (), (), str(error))


def check_names(only: Collection[str] | None) -> None:
    """Check the names of named ops, or raise InputError."""
    known = matchers.all_names
    for name in only or ():
        if name not in known:
            near = get_close_matches(name, known, 3) or known
            told = "only" if isinstance(only, str) else repr(name)
            raise InputError(
                *("raise", f"{told}: no named op of that name"),
                facts=f"named ops are {', '.join(known)}",
                next_step=f"write {near[0]!r}, or leave it out for all",
            )


def _copy(source: Source | Graph, name: str | None) -> Graph:
    if not isinstance(source, Graph):
        return read(source, name)
    copy = read(to_bytecode(source), source.name)
    copy.has_locations = source.has_locations
    return copy
