"""Level two: what a run of the whole module says, what it must not say, and where XLA is no judge."""

import numpy as np
import pytest
from two_programs import scattering
from untyped_mlir import function, module

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.judges.xla_defects import why_xla_errs
from hlo_lower.verify.module_runs import EDGES, RUN_REGIMES, blind, draw, drives_of
from hlo_lower.verify.read.program import Program, scatters_on_path
from hlo_lower.verify.run import CannotRunError, Executable, read_signature

NOWHERE = "%x = custom_call @nowhere({}) -> 8xf32"
TWO = Program(
    mlir.parse_module(
        module(
            "%o: 8xf32, %i: 1xi32, %j: 1xi32, %u: f32",
            "\n".join(f"%r{at} = scatter(%o, %{at}, %u) <inserted=[0], to=[0]> {{%c, %d: return %d}}" for at in "ij"),
            "%ri, %rj",
        )
    )
)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (scattering(behind="%q = convert %r -> 8xf64", returned="%q"), "tensor<8xf64>"),
        (scattering().replace("(%o:", "(%x: tensor<1xi1>, %o:", 1), "tensor<1xi1>, tensor<8xf32>"),
        (scattering().replace("@main", "@other"), "@main is public in the first version only"),
    ],
)
def test_another_signature_is_a_difference(after, told):
    """A second version with other arguments or results, or another entry point, differs."""
    verdict = verify(scattering(), after)
    assert (verdict.ok, verdict.differs, bool(verdict.interface)) == (False, True, True)
    assert told in "\n".join(verdict.lines())


@pytest.mark.parametrize(
    "after",
    [
        scattering(before=NOWHERE.format("%o"), used="%x, %i, %u"),
        scattering().replace("public @main", "private @main"),
    ],
)
def test_a_second_version_that_does_not_run_is_a_difference(after):
    """Where the first version runs, the second one has to: what XLA refuses is not passed over."""
    verdict = verify(scattering(), after)
    assert (verdict.ok, verdict.module.status) == (False, "differs")


def test_a_first_version_that_does_not_run_is_told():
    """A first version that XLA refuses gives no verdict on the module, with the reason."""
    text = scattering(behind=NOWHERE.format("%r"), returned="%x")
    found = verify(text, text).module
    assert found.status == "not run"
    assert "nowhere" in found.reason


def test_what_a_run_does_not_exercise_is_told():
    """A scatter that reaches no result is named, and a result of NaN with its share."""
    text = scattering(returned="%o")
    told = "\n".join(verify(text, text).module.not_exercised)
    assert "scatter 1" in told
    assert "no result depends on it" in told
    text = scattering(behind="%k = constant 0x7FC00000 : 8xf32; %q = add %r, %k", returned="%q")
    assert any("100% of it is NaN" in told for told in verify(text, text).module.not_exercised)


def test_what_never_reaches_a_result_is_no_difference():
    """A scatter that is written wrongly and whose result is not selected is taken as unequal, and what is returned is
    equal; where it is selected that is a difference."""
    for chosen in ("false", "true"):
        hidden = f"%k = constant {chosen} : 8xi1; %q = select %k, %r, %o"
        texts = (scattering(body=body, behind=hidden, returned="%q") for body in ("add", "maximum"))
        assert verify(*texts).ok == (chosen == "false")


def test_over_the_budget_it_is_not_run():
    """Beyond the memory budget level "auto" says why it did not run the module, and "full" runs it."""
    text = scattering()
    auto, full = (verify(text, text, memory_budget=10, level=level).module for level in ("auto", "full"))
    assert (auto.status, full.status) == ("not run", "equal")
    assert "--verify full" in auto.reason


def test_blinded_scatters_give_their_operand():
    """The blinded module holds no scatter."""
    assert "scatter" not in blind(scattering(body="add"))


def test_the_index_arguments_and_the_paths_of_scatters_are_known():
    """Each of two results depends on its own scatter; the arguments that place windows are known with their columns."""
    main, drives = TWO.entries["main"], drives_of(TWO)
    assert [[place.number for place in scatters_on_path(TWO, main, k)] for k in range(2)] == [[1], [2]]
    columns = {place: [(c.size, c.window) for c in found] for place, found in drives.columns.items()}
    assert columns == {1: [(8, 1)], 2: [(8, 1)]}
    assert not drives.may_overhang


# --- where XLA is no judge ---

SCATTERED = "%r:2 = scatter({}, %i, %u, %v) <inserted=[0], to=[0], ivd=1> {{%c, %e, %d, %f: return %d, %f}}"
ZEROS = "%{0} = constant 0.0 : 8xf32;"
BROADCAST = "%z{0} = constant 0.0 : f32; %{0} = broadcast_in_dim %z{0}, dims = [] -> 8xf32;"


@pytest.mark.parametrize(
    ("arguments", "before", "operands", "wrong"),
    [
        ("%a: 8xf32, %b: 8xf32, ", "", "%a, %b", False),
        ("%a: 8xf32, ", "", "%a, %a", True),
        ("", ZEROS.format("a") + ZEROS.format("b"), "%a, %b", True),
        ("", ZEROS.format("a") + ZEROS.format("b").replace("0.0", "1.0"), "%a, %b", False),
        ("", ZEROS.format("a") + BROADCAST.format("b"), "%a, %b", True),
        ("%a: 8xf32, ", ZEROS.format("b"), "%a, %b", False),
    ],
)
def test_a_variadic_scatter_of_one_value_twice_is_not_run(arguments, before, operands, wrong):
    """XLA corrupts its memory where two operands become one value; such a module is judged scatter by scatter."""
    given = f"{arguments}%i: 5x1xi32, %u: 5xf32, %v: 5xf32"
    text = module(given, before + SCATTERED.format(operands), "%r#0, %r#1")
    assert wrong == bool(why_xla_errs(mlir.parse_module(text))[0])
    if wrong:
        verdict = verify(text, text)
        assert (verdict.ok, verdict.module.status, verdict.regions) == (True, "not run", ())
        assert "corrupts memory" in verdict.module.reason


@pytest.mark.parametrize(("operands", "wrong"), [("%a, %b", False), ("%a, %a", True), ("%b, %k", True)])
def test_a_variadic_scatter_is_looked_at_through_calls(operands, wrong):
    """Operands that only a caller makes the same value are found: the argument itself, or behind a barrier."""
    given = "%a: 8xf32, %b: 8xf32, %i: 5x1xi32, %u: 5xf32, %v: 5xf32"
    inner = function("private @pair", given, SCATTERED.format("%a, %b"), "%r#0, %r#1")
    body = f"%k = optimization_barrier %b; %r:2 = call @pair({operands}, %i, %u, %u) -> (8xf32, 8xf32)"
    text = module(given.removesuffix(", %v: 5xf32"), body, "%r#0, %r#1", inner)
    assert ["corrupts memory" in why for why in why_xla_errs(mlir.parse_module(text))] == [wrong]


EMPTY = "inserted=[0], ivd=1"


@pytest.mark.parametrize(
    ("types", "wrong"),
    [
        (("8xf32", "5x1xi8", "5xf32"), ""),
        (("200xf32", "5x1xi8", "5xf32"), "narrow index type"),
        (("200xf32", "5x1xui8", "5xf32"), ""),
        (("300xf32", "5x1xui8", "5xf32"), "narrow index type"),
        (("8xf32", "5x0xi32", "5xf32", EMPTY), "empty index vector"),
        (("8xf32", "1x0xi32", "1xf32", EMPTY), ""),
    ],
)
def test_where_xla_is_known_to_err(types, wrong):
    """The known errors are recognised, and their near misses are not."""
    why = why_xla_errs(mlir.parse_module(scattering(*types)))[0]
    assert wrong in why
    assert bool(wrong) == bool(why)


def test_what_calls_back_into_python_is_not_run():
    """JAX's callbacks are addresses in the process that traced them: any other one would die of running them."""
    call = "%0 = custom_call @xla_ffi_python_cpu_callback(%x) {mhlo.backend_config = {index = 0 : ui64}} -> 2xf32"
    text, doubled = (
        module("%x: 2xf32", f"{call}; {rest}")
        for rest in ("%r = add %0, %0", "%two = constant 2.0 : 2xf32; %r = multiply %0, %two")
    )
    assert "calls back into the Python process" in verify(text, doubled).module.reason
    with pytest.raises(CannotRunError, match="calls back"):
        Executable(text, "exact")


ARGUMENTS = "%x: 64xf32, %s: i32, %i: 2x1xi32, %u: 2xf32"
SLICED = "%w = dynamic_slice %x, %s, sizes = [16]"
UNCLAIMED = "indices_are_sorted = false, unique_indices = false"
IN_SLICE = module(ARGUMENTS, f"{SLICED}; %r = scatter(%w, %i, %u) <inserted=[0], to=[0], ivd=1, {UNCLAIMED}> {{add}}")


def unrolled(*, clamped):
    """A scatter of two indices into a dynamic_slice, its updates guarded; the starts clamped, or as they are."""
    text, operand = f"{SLICED}; %lo = constant 0 : i32; %hi = constant 15 : i32\n", "%w"
    for k in range(2):
        start = f"%at{k}" if clamped else f"%k{k}"
        text += f"""%i{k} = slice %i [{k}:{k + 1}, 0:1]; %k{k} = reshape %i{k} -> i32; %u{k} = slice %u [{k}:{k + 1}]
        %ge{k} = compare GE, %k{k}, %lo, SIGNED; %le{k} = compare LE, %k{k}, %hi, SIGNED; %in{k} = and %ge{k}, %le{k}
        %at{k} = clamp %lo, %k{k}, %hi; %old{k} = dynamic_slice {operand}, {start}, sizes = [1]
        %sum{k} = add %old{k}, %u{k}; %new{k} = select %in{k}, %sum{k}, %old{k}
        %r{k} = dynamic_update_slice {operand}, %new{k}, {start}
        """
        operand = f"%r{k}"
    return module(ARGUMENTS, text, "%r1")


def test_an_unclamped_start_within_another_slice_is_found():
    """XLA adds the two starts; each region is right alone, and only the whole module shows it."""
    verdict = verify(IN_SLICE, unrolled(clamped=False))
    assert verdict.exit_code == 1, verdict.lines()
    assert verdict.module.status == "differs"
    verdict = verify(IN_SLICE, unrolled(clamped=True))
    assert verdict.exit_code == 0, verdict.lines()
    assert "beyond the edges" in verdict.module.how


def test_starts_of_such_a_run_lie_beyond_the_edges():
    """Below, above and far out, each in some run; the first runs that are asked for lie inside."""
    program = Program(mlir.parse_module(IN_SLICE))
    drives, signature = drives_of(program), read_signature(program.raw)
    starts = [draw(signature, drives, 0, k)[2].reshape(-1) for k in EDGES]
    assert all(((one < 0) | (one > 15)).any() for one in starts)
    drawn = np.concatenate(starts)
    assert (drawn < 0).any()
    assert (np.abs(drawn.astype(np.int64)) > 1000).any()
    assert ((drawn > 15) & (drawn < 32)).any()
    for k in range(len(RUN_REGIMES) - 1):
        inside = draw(signature, drives, 0, k)[2]
        assert inside.min() >= 0
        assert inside.max() <= 15
