"""A module after lowering: in every form that it is written in, with what became of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.export

from hlo_lower.base import english
from hlo_lower.base.arguments import short_repr
from hlo_lower.base.change import Change, RefusedOps
from hlo_lower.base.errors import InputError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.ir.reader import copy_graph, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_bytecode, to_portable_artifact, to_text
from hlo_lower.lowering.engine.refused_ops import refused_ops
from hlo_lower.lowering.integers64.demotion import Demotion, with_original_signature
from hlo_lower.lowering.linalg.groups import with_names
from hlo_lower.lowering.linalg.lower import LinalgReport, to_linalg
from hlo_lower.lowering.linalg.one_form import inline_small, one_form
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.assumed import Assumption
from hlo_lower.lowering.scatter.scatters import LoweredScatters
from hlo_lower.lowering.types.storage import stored_lines
from hlo_lower.lowering.types.widen import float_lines
from hlo_lower.report.notebook import Records, notebook_html


@dataclass(eq=False, repr=False)
class Lowered:
    """A module after lowering.

    Attributes:
      graph: the rewritten module.
      scatters: what became of its scatters.
      op_count: operations in the input.
      options: how it was lowered.
      registry: the rules that were given; None where they were those that are installed.
      changes: what was legalized first, kept or left, beside scatters.
      demotion: what making 64-bit integers 32 bits wide rests on; None where that was not asked for.
      floats: what floats of another precision rest on; None where none were asked for, or there are none.
      storage: what values are stored in whose element type the target takes nowhere; None where there are none.
      variants_left: composites of declared parameters that no rule fits, and that were left (`keep_unsupported`).
      assumed: which scatters are assumed to write inside; None where that was not asked for.
      given: what it was exported with before that, where it came as an `Exported`.
      scatters_left: scatters that were not lowered (kept on request, or unsupported with `keep_unsupported`).
      unsupported: those of them that no rule fits.
      kept: those of them that the target takes as they are.

    Example:
      >>> lowered = hl.lower("decode.mlir")
      >>> "stablehlo.scatter" in lowered.text, lowered.records[0].rule
      (False, 'guarded_dynamic_update_slice')
    """

    graph: Graph
    scatters: LoweredScatters
    op_count: int
    options: Options
    registry: CompositeLoweringRegistry | None = None
    changes: tuple[Change, ...] = ()
    demotion: Demotion | None = None
    storage: Demotion | None = None
    floats: Demotion | None = None
    given: jax.export.Exported | None = None
    variants_left: int = 0
    assumed: Assumption | None = None

    def __post_init__(self) -> None:
        self.unsupported, self.kept = self.scatters.unsupported, self.scatters.kept
        self.scatters_left = self.scatters.left

    @cached_property
    def records(self) -> Records:
        """One per scatter of the input, in program order; written when they are first asked for."""
        return Records(self.scatters.records)

    def __repr__(self) -> str:
        return f"<Lowered {self._summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the line of the repr, the table of the scatters, the memory, and the notes."""
        from hlo_lower.facts.memory.liveness import curves_of

        return notebook_html(f"Lowered {self._summary()}", self.records, self.notes, curves_of(self.graph))

    def _summary(self) -> str:
        count, rules = len(self.records), dict.fromkeys(record.rule for record in self.records if record.rule)
        told = f"{count:,} scatter{'s' * (count != 1)}, {self.scatters_left:,} left"
        shown = f"; rules {', '.join(rules)}" if rules else ""
        return f"{self.graph.name} for {self.options.target.name}: {told}{shown}"

    def named(self) -> Graph | None:
        """A copy for linalg, in StableHLO: groups by their names, small functions inlined; None for other targets."""
        target, named = self.options.target, self.options.linalg_ops == "named"
        if target.dialect != "linalg":
            return None
        outlined = named and self.options.linalg_groups == "outlined"
        graph = with_names(self.graph, target, outlined=outlined) if named else copy_graph(self.graph)
        inline_small(graph)
        return graph

    @cached_property
    def in_one_form(self) -> Graph | None:
        """That copy in its one form, which becomes linalg; None for other targets."""
        graph = self.named()
        if graph is not None:
            one_form(graph)
        return graph

    @cached_property
    def _in_linalg(self) -> tuple[Graph, LinalgReport] | None:
        if self.in_one_form is None:
            return None
        graph, named = copy_graph(self.in_one_form), self.options.linalg_ops == "named"
        return graph, to_linalg(graph, named=named, parallel=self.options.linalg_loops == "forall")

    @cached_property
    def refused(self) -> tuple[RefusedOps, ...]:
        """What the target refuses of the module as it is now, scatters included; empty if it takes all of it."""
        return refused_ops(self.graph, self.options.target, self.records)

    @property
    def linalg(self) -> LinalgReport | None:
        """How the module left in linalg; None for a target that reads StableHLO.

        Raises:
          NotLoweredError: jaxlib's pass fails.
        """
        return None if self._in_linalg is None else self._in_linalg[1]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done beside the scatters, and what the result rests on, a line each."""
        lines = [str(change) for change in self.changes]
        if self.options.float_mode == "reassociate":
            told = "floats may be added in another order, and computed in other ways within stated bounds"
            lines.append(f"{told} (float mode reassociate)")
        if self.demotion is not None:
            lines += [f"narrowed: {self.demotion.summary()}"] if self.demotion.is_needed else []
            lines += [f"assumed, not checked: {assumption}" for assumption in self.demotion.assumptions]
            lines += [f"assumed, checked at run time: {assumption}" for assumption in self.demotion.tested]
        if self.assumed is not None:
            lines += [f"assumed, not verified: {scatter} writes inside" for scatter in self.assumed.scatters]
        lines += _not_preferred(self.records, [name for name in self.options.prefer if "=" not in name])
        if not self.options.loop_ranges:
            lines.append("guards and clamps stay where only a range that a loop keeps shows that none is needed")
        if self.options.checked:
            lines.append("the last result of each public function, assumptions_hold: whether what is checked held")
        if self.floats is not None:
            lines += float_lines(self.floats)
        if self.storage is not None:
            lines += [f"stored: {line}" for line in stored_lines(self.storage)]
        return (*lines, *(self.linalg.lines() if self.linalg is not None else ()))

    @cached_property
    def text(self) -> str:
        """The module as text, in the target's dialect; with locations if the input had them."""
        return self.stablehlo if self._in_linalg is None else to_text(self._in_linalg[0])

    @cached_property
    def stablehlo(self) -> str:
        """The module as StableHLO text, whatever the target's dialect: what XLA runs."""
        return to_text(self.graph, is_verified=True)  # `lower` did that

    @cached_property
    def as_given(self) -> str:
        """The module as StableHLO text under the signature that it had before values were stored in other types.

        Indices that are assumed to lie inside are clamped in it, so that it can be compared with the module.
        """
        text = self.assumed.text if self.assumed is not None and self.assumed.text else self.stablehlo
        return text if self.storage is None else with_original_signature(text, self.storage)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, in the target's dialect, locations kept."""
        return to_bytecode(self.graph if self._in_linalg is None else self._in_linalg[0])

    def portable(self, version: str | None = None) -> bytes:
        """The module as a portable artifact of a StableHLO version, by default the current one.

        Raises:
          InputError: the target reads linalg, of which there is none; or it cannot be written for that version.
        """
        self._refuse_linalg("a portable artifact")
        asked: Any = version
        if not isinstance(asked, str | None) or not re.fullmatch(r"\d+\.\d+\.\d+", asked or "0.0.0"):
            told = f"{short_repr(version)} is not a version of StableHLO"
            raise InputError("version", told, next_step='write version="1.0.0", or leave it out')
        try:
            return to_portable_artifact(self.graph, version)
        except ValueError as error:
            told = f"the module cannot be written for StableHLO {version}: {error}"
            raise InputError(self.graph.name, told, next_step="leave the version out, or ask for a newer one") from None

    @cached_property
    def exported(self) -> jax.export.Exported:
        """The module as a callable `jax.export.Exported`.

        An `Exported` that was given keeps its calling convention (pytrees, names); a bare module gets flat arguments
        and results.

        Raises:
          InputError: the signature of a bare module has no form in JAX, it is partitioned over several devices, or the
            target reads linalg.
        """
        self._refuse_linalg("a jax.export.Exported")
        if self.graph.exported is not None:
            return replace(self.graph.exported, mlir_module_serialized=self.portable())
        from hlo_lower.verify.run import CannotRunError, exported_from_module

        try:
            return exported_from_module(self.portable())
        except CannotRunError as error:
            raise InputError(
                self.graph.name,
                f"the module cannot become a jax.export.Exported: {error}",
                next_step="write it as text, bytecode or a portable artifact",
            ) from None

    @cached_property
    def exported_as_given(self) -> jax.export.Exported:
        """`exported` under the signature that the module had before values were stored in other types.

        Raises:
          InputError: as `exported`.
        """
        if self.storage is None or self.given is None:
            return self.exported
        return replace(self.given, mlir_module_serialized=to_portable_artifact(read(self.as_given, contained=False)))

    def _refuse_linalg(self, form: str) -> None:
        if self.options.target.dialect != "stablehlo":
            raise InputError(
                self.graph.name,
                f"{form} holds StableHLO, which is not what the target {self.options.target.name} reads",
                next_step="write it as text or bytecode (--emit), or choose another --target",
            )


def _not_preferred(records: Sequence[ScatterRecord], wanted: Sequence[str]) -> list[str]:
    """Why rules that were preferred were not taken: "prefer rounds: not for #1, #4: subset is Tile, not Points"."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for record in records:
        if record.rule in wanted or not record.rule:
            continue
        for rejection in record.why_not:
            name = rejection.rule.removeprefix("scatter_to_")
            if name in wanted:
                told = "; ".join(english.phrase(cause) for cause in rejection.reasons)
                numbers.setdefault((name, told), []).append(record.number)
    return [
        f"prefer {name}: not for {', '.join(f'#{number}' for number in of[:8])}{', ...' * (len(of) > 8)}: {told}"
        for (name, told), of in numbers.items()
    ]
