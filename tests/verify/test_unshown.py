"""What an operation asks and promises beyond what it computes: looked at op by op, and orders of sorts."""

import inspect
import re

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.mlir import stablehlo
from hlo_lower.verify.judges.silent_attributes import MEANINGS, make_stable


def test_every_attribute_of_every_operation_has_a_meaning():
    """The table knows what jaxlib registers, so that no request and no promise of a new release is overlooked."""
    told = {
        name
        for kind in vars(stablehlo).values()
        if inspect.isclass(kind) and hasattr(kind, "OPERATION_NAME")
        for entry in vars(kind).values()
        if isinstance(entry, property) and entry.fget is not None
        for name in re.findall(r'self\.operation\.attributes\["(\w+)"\]', inspect.getsource(entry.fget))
    }
    assert "precision_config" in told
    assert told - set(MEANINGS) == set()


SIX, THREE, WIDE = (
    f", algorithm = <lhs_precision_type = {kind}, rhs_precision_type = {kind}, accumulation_type = {sums}, "
    "lhs_component_count = 1, rhs_component_count = 1, "
    f"num_primitive_operations = {steps}, allow_imprecise_accumulation = false>"
    for steps, kind, sums in ((6, "bf16", "f32"), (3, "bf16", "f32"), (1, "f64", "f64"))
)
HIGHEST, HIGH, DEFAULT, MIXED, TURNED = (
    f", precision = [{both}]"
    for both in ("HIGHEST, HIGHEST", "HIGH, HIGH", "DEFAULT, DEFAULT", "HIGHEST, DEFAULT", "DEFAULT, HIGHEST")
)
TEN, ONE, BEST = (
    f"{{result_accuracy = #stablehlo.result_accuracy<{units}mode = #stablehlo.result_accuracy_mode<{mode}>>}}"
    for units, mode in (("ulps = 10, ", "TOLERANCE"), ("ulps = 1, ", "TOLERANCE"), ("", "HIGHEST"))
)
ANNOTATED = '{mhlo.frontend_attributes = {a = "b"}}'


def products(first, second):
    """A difference of two products, each with the precision of its operands, or by an algorithm."""
    lines = [
        f"%{name} = dot_general {operands}, contracting_dims = [1] x [0]{how} -> 8x8xf32"
        for name, operands, how in (("a", "%x, %y", first), ("b", "%y, %x", second))
    ]
    return module("%x: 8x8xf32, %y: 8x8xf32", "\n".join([*lines, "%r = subtract %a, %b"]))


def exponential(told):
    """An exponential of an accuracy."""
    return module("%x: 8x8xf32", f"%r = exponential %x {told}")


def largest(recall):
    """A call that finds the largest numbers, as many of them as it is asked for."""
    call = f"custom_call @Nearly(%x) {{mhlo.backend_config = {{recall_target = {recall} : f32}}}}"
    return module("%x: 8x8xf32", f"%r = {call} -> 8x8xf32")


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (products(HIGHEST, DEFAULT), products(DEFAULT, HIGHEST), False),  # exchanged
        (products(HIGHEST, DEFAULT), products(HIGHEST, ""), True),
        (products(HIGHEST, ""), products("", ""), False),
        (products(HIGH, ""), products(DEFAULT, ""), False),
        (products(MIXED, ""), products(TURNED, ""), False),
        (products(SIX, ""), products("", SIX), False),
        (products(SIX, ""), products(HIGHEST, ""), True),
        (products(SIX, ""), products(MIXED, ""), False),
        (products(HIGHEST, ""), products(SIX, ""), False),
        (products(WIDE, ""), products(HIGHEST, ""), False),
        (products(SIX, ""), products(SIX, SIX), False),  # perhaps less
        (products(SIX, SIX), products(SIX, THREE), False),
        (products(THREE, SIX), products(SIX, SIX), True),
        (exponential(TEN), exponential(ONE), True),
        (exponential(BEST), exponential(""), False),
        (exponential(BEST), exponential(ONE), False),
        (exponential(""), exponential(ANNOTATED), False),
        (largest(0.95), largest(0.5), False),
    ],
)
def test_an_operation_asks_for_at_least_what_it_stands_for(before, after, is_ok):
    """A CPU computes them alike; each is compared with the one of the same operands, and more is no loss."""
    verdict = hl.verify(before, after, level="regions", prove=True)
    assert verdict.ok is is_ok


def test_what_is_asked_for_is_not_accepted_because_of_runs():
    """Runs say nothing of precision, so that to take them for a proof does not cover it."""
    texts = products(HIGHEST, DEFAULT), products(DEFAULT, DEFAULT)
    assert hl.verify(*texts, accept_runs=True).exit_code == 4


def looped(first, second, start="%x", given="%y, %x", read="%v"):
    """A loop of two products, each with a precision; what it begins with, and what the second one is of."""
    products = "\n".join(
        f"%{name} = dot_general {operands}, contracting_dims = [1] x [0]{how} -> 8x8xf32"
        for name, operands, how in (("a", "%v, %y", first), ("b", given, second))
    )
    return module(
        "%x: 8x8xf32, %y: 8x8xf32",
        f"""%zero = constant 0 : i32
        %copy = reshape %x -> 1x8x8xf32; %same = reshape %copy -> 8x8xf32
        %w:2 = while(%k = %zero, %v = {start}) cond {{ %p = compare LT, %k, 3; return %p }} do {{
          %next = add %k, 1
          %again = reshape %v -> 1x8x8xf32; %u = reshape %again -> 8x8xf32
          {products}
          %sum = add %a, %b; %r = subtract %sum, {read}
          return %next, %r
        }}""",
        "%w#1",
    )


@pytest.mark.parametrize("start", ["%x", "%same"])
@pytest.mark.parametrize(
    ("after", "is_ok"),
    [
        (lambda start: looped(HIGHEST, DEFAULT, start, read="%u"), True),
        (lambda start: looped(HIGHEST, HIGHEST, start, read="%u"), True),
        (lambda start: looped(DEFAULT, HIGHEST, start, read="%u"), False),  # exchanged
        (lambda start: looped(DEFAULT, DEFAULT, start, read="%u"), False),
        (lambda start: looped(DEFAULT, HIGHEST, start).replace("%a, %b", "%b, %a"), False),
    ],
)
def test_products_of_two_precisions_in_a_loop_that_is_rewritten(after, is_ok, start):
    """Each is compared with the one that it stands for, in a loop that begins with a copy, too."""
    assert hl.verify(looped(HIGHEST, DEFAULT), after(start), level="regions").exit_code == (0 if is_ok else 4)


def test_a_product_that_is_computed_again_at_less_precision():
    """What one reads of it is right, and another one reads what was computed once more."""

    def twice(again):
        first = f"%a = dot_general %x, %y, contracting_dims = [1] x [0]{HIGHEST} -> 8x8xf32"
        return module("%x: 8x8xf32, %y: 8x8xf32", f"{first}; {again}; %r = multiply %c, 2.0", "%a, %r")

    once = twice(f"%c = dot_general %x, %y, contracting_dims = [1] x [0]{HIGHEST} -> 8x8xf32")
    again = "%c = dot_general %x, %y, contracting_dims = [1] x [0] -> 8x8xf32"
    turned = """%u = transpose %x, dims = [1, 0] -> 8x8xf32; %v = transpose %y, dims = [1, 0] -> 8x8xf32
      %t = dot_general %v, %u, contracting_dims = [1] x [0] -> 8x8xf32; %c = transpose %t, dims = [1, 0] -> 8x8xf32"""
    for after in (again, turned):
        assert hl.verify(once, twice(after), level="regions", float_mode="reassociate").exit_code == 4


def called(*numbers, placed="", second="%k"):
    """A call back to Python whose result another one takes, each of a number."""
    config = [f"{{mhlo.backend_config = {{index = {number} : ui64}}{placed}}}" for number in numbers]
    return module(
        "%i: i32, %x: 4xf32",
        f"""%r = case(%i) {{ return %x }} {{
          %k = constant 0 : i32; %again = constant 0 : i32
          %a = custom_call @xla_ffi_python_cpu_callback(%k) {config[0]} -> 4xf32
          %b = custom_call @xla_ffi_python_cpu_callback(%a, {second}) {config[1]} -> 4xf32
          return %b
        }}""",
    )


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (called(0, 1, placed=', mhlo.sharding = "{maximal device=0}"', second="%again"), called(0, 1), True),
        (called(0, 1), called(1, 0), False),
        (called(0, 1), called(0, 0), False),
        pytest.param(
            *(called(0, 1, placed=', mhlo.sharding = "{maximal device=0}"'), called(1, 0), False),
            marks=pytest.mark.sweep,
        ),
    ],
)
def test_calls_are_told_apart_by_their_numbers_and_not_by_their_devices(before, after, is_ok):
    assert hl.verify(before, after, level="regions").exit_code == (0 if is_ok else 4)


COUNTED = {"%k": "iota dim = 0", "%z": "constant 1", "%n": "iota dim = 1"}
UNIQUE, SORTED = ", unique_indices = true", ", indices_are_sorted = true"


def indexed(op, indices, dims, told, *, start="%i", batching="", vector=1, updates=None, operand="8x8"):
    """A gather or scatter of one element at each index, at indices of a shape, with flags."""
    sizes = indices.split("x")
    updates = updates or "x".join(sizes[:-1] if vector < len(sizes) else sizes)
    inserted, where = f"{sorted(dims)}, {batching}", f"{list(dims)}, index_vector_dim = {vector}"
    body = f"{start} = {COUNTED[start]} : {indices}xi32\n" if start in COUNTED else ""
    if op == "gather":
        ones = ", ".join("1" for _ in operand.split("x"))
        body += f"""%r = gather(%o, {start}) <slice_sizes = array<i64: {ones}>{told}, dimension_numbers =
          #stablehlo.gather<collapsed_slice_dims = {inserted} start_index_map = {where}>> -> {updates}xi32"""
    else:
        body += f"""%r = scatter(%o, {start}, %u) <scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = {inserted} scatter_dims_to_operand_dims = {where}>{told}> {{add}}"""
    return module(f"%o: {operand}xi32, %i: {indices}xi32, %u: {updates}xi32", body)


PAIR = {"op": "scatter", "indices": "6x2", "dims": [0, 1]}
BATCHES = {"op": "scatter", "dims": [1], "vector": 2}
BATCHING = "input_batching_dims = [0], scatter_indices_batching_dims = [{}],"
EXCHANGED = """%k = iota dim = 0 : 6x1xi32
%r0 = scatter(%o, %k, %u) <unique_indices = {}, inserted=[0], to=[0], ivd=1> {{assign}}
%r1 = scatter(%o, %i, %u) <unique_indices = {}, inserted=[0], to=[0], ivd=1> {{assign}}
return %r0, %r1"""
MADE, OTHER = (
    module("%o: 8xi32, %i: 6x1xi32, %u: 6xi32", EXCHANGED.format(*both))
    for both in (("true", "false"), ("false", "true"))
)


@pytest.mark.parametrize(
    ("bare", "told", "is_ok"),
    [
        *(
            (indexed(**form, told=""), indexed(**form, told=flags), is_ok)
            for form, flags, is_ok in (
                # in every layout of indices what a flag promises is evaluated; the first version need not keep it
                (PAIR, UNIQUE, False),
                ({**PAIR, "indices": "6", "dims": [0], "operand": "8"}, SORTED, False),
                ({**PAIR, "indices": "2x6", "vector": 0, "updates": "6"}, UNIQUE, False),
                ({**PAIR, "dims": [1, 0]}, SORTED, False),
                ({**PAIR, "start": "%k"}, UNIQUE + SORTED, True),
                ({**PAIR, "op": "gather", "start": "%k"}, SORTED, True),
                ({**PAIR, "start": "%z"}, SORTED, True),
                ({**PAIR, "start": "%z"}, UNIQUE, False),
                ({**PAIR, "start": "%n"}, UNIQUE, False),
                # what two batches write are two places, whatever their indices are
                ({**BATCHES, "indices": "8x3x1", "batching": BATCHING.format(0)}, UNIQUE, False),
                ({**BATCHES, "indices": "3x8x1", "batching": BATCHING.format(1)}, UNIQUE, False),
                ({**BATCHES, "indices": "3x8x1", "batching": BATCHING.format(1), "start": "%k"}, UNIQUE, True),
            )
        ),
        (MADE, OTHER, False),  # one that is made of other indices is no excuse
    ],
)
def test_a_promise_that_was_not_made_is_looked_at(bare, told, is_ok):
    assert hl.verify(bare, told, level="regions", prove=True).exit_code == (0 if is_ok else 1)
    assert hl.verify(told, bare, level="regions").ok


N = 40
"""XLA's unstable sort of 17 elements or more differs from the stable one."""


def sort(stable, operands="%x, %y", region="%r = compare LT, %a, %b, SIGNED"):
    """A sort of two tensors."""
    return f"""sort({operands}) <dimension = 0 : i64, is_stable = {str(stable).lower()}> {{
      %a, %b, %c, %d: {region}; return %r}}"""


def sorts(*stable):
    """A module of sorts of one tensor by its values, with another one that goes along; each stable or not."""
    lines = "\n".join(f"%s{k}:2 = {sort(is_stable)}" for k, is_stable in enumerate(stable))
    return module(f"%x: {N}xi32, %y: {N}xi32", lines, ", ".join(f"%s{k}#1" for k in range(len(stable))))


def written(stable, before="", operands="%x, %y", region="%r = compare LT, %a, %b", kind="i32", results=2, n=N):
    """A module of one sort: what stands before it and within it, and which of its results are returned."""
    region += ", FLOAT" if kind[0] == "f" else ", SIGNED" if region.rpartition("%r = ")[2].startswith("compare") else ""
    body = f"{before}; %s:2 = {sort(stable, operands, region)}"
    return module(f"%x: {n}x{kind}, %y: {n}xi32", body, ", ".join(["%s#0", "%s#1"][:results]))


NUMBERS = f"%i = iota dim = 0 : {N}xi32"
MASK, LOW_BITS, HIGH_BITS = "%m = constant 3 : i32", "%u = and %a, %m", "%v = and %b, %m"
LESS = "%r = compare LT, %u, %v"


@pytest.mark.parametrize(
    ("before", "after", "is_ok"),
    [
        (sorts(True), sorts(False), False),  # it allowed one order only
        (sorts(True, False), sorts(False, False), False),  # and one may not hide behind another
        (sorts(False, True), sorts(True, False), False),  # that one is fixed does not free another one
        (sorts(False, True), sorts(True, True), True),
        (  # fa_unstable_sort: the comparator with its constant outside, and in another order
            written(False, MASK, region=f"{LOW_BITS}; {HIGH_BITS}; {LESS}"),
            written(False, region=f"{MASK}; {HIGH_BITS}; {LOW_BITS}; {LESS}"),
            True,
        ),
        (written(True, results=1), written(False, results=1), True),  # equal numbers cannot be told apart
        (written(True, results=1, kind="f32"), written(False, results=1, kind="f32"), False),  # zeros can
        (written(True, NUMBERS, "%i, %y"), written(False, NUMBERS, "%i, %y"), True),  # none are equal
        (written(True, NUMBERS, "%x, %i"), written(False, NUMBERS, "%x, %i"), False),
        (written(False), written(False, region="%r = compare GT, %b, %a"), True),
        # not b <= a, which is no other name for a < b of floats, and is one of integers
        (written(False), written(False, region="%q = compare LE, %b, %a, SIGNED; %r = not %q"), True),
    ],
)
def test_what_a_sort_allows_is_a_property_of_it(before, after, is_ok):
    """A comparator is a function, however it is written, and a lost stability counts where it can make a difference."""
    assert hl.verify(before, after, level="regions").ok is is_ok


def test_another_order_that_the_first_version_allows_is_not_told_different():
    """What is sorted turned round gives equal rows in the other order: right only where any order is."""
    after = written(True, "%xt = reverse %x, dims = [0]; %yt = reverse %y, dims = [0]", "%xt, %yt")
    assert hl.verify(written(False), after).exit_code == 4
    assert hl.verify(written(True), after).exit_code == 1


def test_only_a_sort_that_stands_for_one_that_is_not_stable_is_taken_as_stable():
    """Any other one is taken in the order that a stable one does not give."""
    context = mlir.make_context()
    for before, is_turned in ((False, False), (True, True)):
        first, second = (mlir.parse_module(sorts(stable), context) for stable in (before, False))
        assert make_stable(first, second)
        text = mlir.print_module(second)
        assert "is_stable = false" not in text
        assert is_turned == ("stablehlo.reverse" in text)
        assert not make_stable(first, second)


TOTAL = """%nan = constant 0x7FC00000 : f32; %is = compare NE, %c, %c, FLOAT; %e = select %is, CHOSEN, %c
%f = compare LT, %e, %d, TOTALORDER; %less = compare LT, %a, %b, SIGNED; %alike = compare EQ, %a, %b, SIGNED
%g = and %alike, %f; %r = or %less, %g"""


def test_a_nan_that_a_comparator_no_longer_makes_positive(judged_by_runs):
    """A total order puts a NaN first that has a sign, and last one without."""
    positive, any_ = (
        module("%x: 24xi32, %y: 24xf32", f"%s:2 = {sort(True, region=TOTAL.replace('CHOSEN', chosen))}", "%s#0, %s#1")
        for chosen in ("%nan", "%c")
    )
    assert hl.verify(positive, any_).exit_code == 1
    assert hl.verify(any_, any_).exit_code == 0
