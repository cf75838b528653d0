"""Custom calls whose decomposition a declaration states: their rules are judged against it, as those of a composite."""

import jax.numpy as jnp
import numpy as np
import pytest
from legalized import results
from test_variants import Sign, call, composite, registry

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.plain.stated import Stated
from hlo_lower.ops.targets.target import Target

SOURCE = call('"sign=minus; factor=2"')


def signed(x, *, sign, factor):
    """What the custom call means."""
    return x * (-factor if sign is Sign.MINUS else factor)


AS_TEXT = """
func.func public @less(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = func.call @twice(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %n = stablehlo.negate %r : tensor<2x3xf32>
  return %n : tensor<2x3xf32>
}
func.func private @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.add %x, %x : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
"""


def judged(decomposition, source=SOURCE, **options):
    """The verdict on what becomes of a custom call of that decomposition."""
    lowered = hl.lower(source, registry=registry(decomposition=decomposition), **options)
    return hl.verify(source, lowered)


WAYS = [(signed, {}), (AS_TEXT, {"legalize": True})]


@pytest.mark.parametrize(("decomposition", "options"), WAYS, ids=["JAX", "text, plain form"])
def test_a_rule_is_judged_against_what_is_stated(decomposition, options):
    """A right one is verified, also where a plain form is compared; the verdict says what it rests on."""
    verdict = judged(decomposition, **options)
    assert verdict.ok
    assert verdict.assumed == "custom calls compute what is declared of my.sign, which is not verified"


def test_a_rule_that_computes_something_else_differs():
    """What it builds is held against the decomposition, with the parameters of this call; without one nothing is."""
    assert judged(lambda x, sign, factor: x * factor).differs
    verdict = judged(AS_TEXT.replace("add %x, %x", "multiply %x, %x"), legalize=True)
    assert (verdict.differs, verdict.plain.status) == (True, "differs")
    verdict = judged(None)
    assert (verdict.ok, verdict.differs, verdict.assumed) == (False, False, "")


WRONG = [
    (lambda x, **_: x.sum(), "its decomposition is (tensor<2x3xf32>) -> (tensor<f32>), and the custom call (tensor<"),
    (lambda x, **_: 1 / 0, "its decomposition raised ZeroDivisionError: division by zero"),
    (lambda x: x, "its decomposition raised TypeError: "),
    ("func.func", "its decomposition cannot be read: "),
    (AS_TEXT.replace("private", "public"), "its decomposition has 2 public functions, not one"),
]


@pytest.mark.parametrize(("decomposition", "told"), WRONG, ids=[told[18:40] for _, told in WRONG])
def test_a_decomposition_that_does_not_fit(decomposition, told):
    """It is an error that names the custom call and the declaration."""
    with pytest.raises(hl.InputError) as error:
        judged(decomposition)
    first, facts = str(error.value).splitlines()[:2]
    assert first.startswith("<module>:3: custom_call @my.sign: ")
    assert told in first
    assert facts.startswith("  facts:   declared at ")


def test_what_is_declared_has_a_meaning():
    """A decomposition is a function or a text, no parameter is called so, and two declarations agree on it."""
    own = registry(decomposition=signed)
    with pytest.raises(hl.RegistryError, match="must be a function or the text of a module"):
        registry(decomposition=3)
    own.declare("my.sign", sign=Sign, factor=float, defaults={"factor": 1}, decomposition=signed)
    with pytest.raises(hl.RegistryError, match="is declared otherwise"):
        own.declare("my.sign", sign=Sign, factor=float, defaults={"factor": 1}, decomposition=AS_TEXT)


TWO = """
func.func public @main(%x: tensor<4xi64>, %y: tensor<2xf32>) -> (tensor<4xi64>, tensor<2xf32>, tensor<2xf32>) {
  %a = stablehlo.custom_call @my.scale(%x) {backend_config = "by=3"} : (tensor<4xi64>) -> tensor<4xi64>
  %b = func.call @inner(%y) : (tensor<2xf32>) -> tensor<2xf32>
  %c = stablehlo.custom_call @my.scale(%y) {backend_config = "by=2"} : (tensor<2xf32>) -> tensor<2xf32>
  return %a, %b, %c : tensor<4xi64>, tensor<2xf32>, tensor<2xf32>
}
func.func private @inner(%y: tensor<2xf32>) -> tensor<2xf32> {
  %b = stablehlo.custom_call @my.scale(%y) {backend_config = "by=3"} : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
"""


def test_each_variant_has_its_own():
    """Calls of other types and parameters, 64 bits among them, call functions of their own; others stay."""
    own = default_registry()
    own.declare("my.scale", by=int, target={"npu"}, decomposition=lambda x, by: jnp.where(x > 0, x * by, x * by))
    stated = Stated(own, Target("npu"))
    text = stated.of(TWO)
    assert "custom_call" not in text
    wide, narrow = np.array([2**40, -1, 0, 7]), np.array([-1, 2], np.float32)
    assert [a.tolist() for a in results(text, wide, narrow)] == [[3 * 2**40, -3, 0, 21], [-3, 6], [-2, 4]]
    assert [text.count(f"call @my.scale.decomposition{n}.main") for n in ("", 1, 2)] == [1, 1, 1]
    assert Stated(own, Target("gpu")).of(TWO) == TWO
    for other in ("by=x", "by=3, axis=1"):
        assert Stated(own, Target("npu")).of(TWO.replace("by=3", other)).count("custom_call") == 2
    assert (
        Stated(own, Target("npu")).of(TWO.replace('"by=3"}', '"by=3", has_side_effect = true}')).count("custom_call")
        == 2
    )


def test_a_rule_may_build_a_custom_call():
    """A composite that becomes a custom call of the target is judged by what that is stated to compute."""

    def minus_to_kernel(op):
        attributes = {"call_target_name": mlir.string_attribute("my.kernel")}
        return op.build.op("stablehlo.custom_call", op.node.operands, [op.node.result().raw.type], attributes).results

    for means, legalize in ((lambda x: -x, False), (lambda x: x, False), (lambda x: -x, True)):
        own = default_registry()
        own.declare("my.sign", sign=Sign)
        own.declare("my.kernel", decomposition=means)
        own.register("my.sign", minus_to_kernel)
        source = composite('sign = "minus"')
        lowered = hl.lower(source, registry=own, legalize=legalize)
        assert "custom_call @my.kernel" in lowered.text
        verdict = hl.verify(source, lowered)
        is_right = means(1) == -1
        assert (verdict.ok, verdict.differs) == (is_right, not is_right)
        assert "my.kernel" in verdict.assumed
        assert verdict.plain is None if not legalize else verdict.plain.status == "equal"


OPEN = SOURCE.replace("2x3xf32", "?x3xf32")


def open_registry(decomposition, **how):
    """A rule for one variant alone, that knows no sizes."""
    own = default_registry()
    own.declare("my.sign", sign=Sign, factor=float, defaults={"factor": 1}, decomposition=decomposition, **how)

    def my_sign_to_sum(op):
        double = op.build.add(op.node.operand(0), op.node.operand(0))
        return [op.build.elementwise("negate", double)]

    own.register("my.sign", my_sign_to_sum, sign="minus")
    return own


AS_OPEN_TEXT = AS_TEXT.replace("2x3xf32", "?x3xf32")


@pytest.mark.parametrize("decomposition", [signed, AS_OPEN_TEXT], ids=["JAX", "text"])
def test_one_of_open_sizes_is_judged_as_one_of_known_ones(decomposition):
    """For all sizes; a rule that computes something else differs."""
    own = open_registry(decomposition)
    lowered = hl.lower(OPEN, registry=own)
    assert "custom_call" not in lowered.text
    verdict = hl.verify(OPEN, lowered, registry=own)
    assert verdict.ok, verdict.lines()
    assert "my.sign" in verdict.assumed
    other = open_registry(lambda x, sign, factor: x + factor)
    assert hl.verify(OPEN, lowered, registry=other).differs


def test_open_sizes_of_two_operands_are_one_where_they_must_be():
    """JAX does not add what may be of two sizes."""
    own = default_registry()
    own.declare("my.plus", decomposition=lambda x, y: x + y)
    source = """func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %r = stablehlo.custom_call @my.plus(%x, %y) : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
      return %r : tensor<?x3xf32>
    }"""
    text = Stated(own, Target("npu")).of(source)
    assert "custom_call" not in text
    assert "stablehlo.add" in text


@pytest.mark.parametrize("source", [SOURCE, OPEN], ids=["static", "open"])
def test_a_variant_without_a_rule_is_called_where_that_is_asked_for(source):
    """The stated decomposition is written into the module; without one, or another answer asked for, it is an error."""
    plus = source.replace("sign=minus", "sign=plus")
    own = open_registry(signed, otherwise="call")
    lowered = hl.lower(plus, registry=own)
    assert "custom_call" not in lowered.text
    assert "call @my.sign.decomposition.main" in lowered.text
    assert "a call of its stated decomposition" in str(lowered.changes[0])
    assert hl.verify(plus, lowered, registry=own).ok
    if source is SOURCE:
        given = np.ones((2, 3), np.float32)
        assert results(lowered.text, given)[0].tolist() == (2 * given).tolist()
    for without in (open_registry(None, otherwise="call"), open_registry(signed)):
        with pytest.raises(hl.NotLoweredError, match="my"):
            hl.lower(plus, registry=without)
