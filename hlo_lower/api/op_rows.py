"""What is known of each op, and what becomes of it for each target: rows for `hlo-lower ops` and docs/ops.md."""

from hlo_lower.base.registry import Rule
from hlo_lower.lowering.kinds import installed_registry
from hlo_lower.lowering.matrices import LINEAR_ALGEBRA
from hlo_lower.lowering.plain.chlo import CHLO
from hlo_lower.lowering.types.carried.exactness import TABLE, Exactness
from hlo_lower.lowering.types.carried.exactness import How as Needs
from hlo_lower.lowering.types.element_type import ON_COMPLEX
from hlo_lower.ops.spec import OPS, OpSpec
from hlo_lower.ops.targets import TARGETS
from hlo_lower.report.ops_table import OpRow

ACCEPTS, LOWERS, REJECTS = "accepts", "lowered", "rejects"


def op_rows() -> tuple[OpRow, ...]:
    """A row for each op of StableHLO and chlo, in the order of their declarations."""
    known = installed_registry()
    rules = [rule for kind in known.ops for rule in known.rules(kind)]
    return tuple(_row(spec, tuple(rule.short_name for rule in rules if _replaces(rule, spec))) for spec in OPS.values())


def _row(spec: OpSpec, rules: tuple[str, ...]) -> OpRow:
    told = {
        target.name: ACCEPTS if target.refuses_op(spec.name) is None else LOWERS if rules else REJECTS
        for target in TARGETS
    }
    return OpRow(spec, rules, told)


def _replaces(rule: Rule, spec: OpSpec) -> bool:
    """Whether a rule is for an op: its kind's name is the op's or begins with it, or one of its facts names the op."""
    if rule.op == CHLO:
        return spec.name.startswith(CHLO)
    if rule.op == ON_COMPLEX:
        return _is_of_complex(TABLE.get(spec.name))
    called = spec.short_name.replace("_", " ") if rule.op == LINEAR_ALGEBRA else spec.name
    named = (value for values in rule.constraints.values() for value in values)
    is_named = any(getattr(value, "value", None) == called for value in named)
    return is_named or rule.op == spec.name or rule.op.startswith(f"{spec.name} ")


def _is_of_complex(needs: Exactness | None) -> bool:
    """Whether an op is for complex numbers alone: it has a form on their parts, and none on another carrier."""
    if needs is None or needs.parts is Needs.NONE:
        return False
    return {needs.signed, needs.wider, needs.float, needs.bits, needs.itself} == {Needs.NONE}
