"""Small programs of ops besides scatters, and the codes of causes that say what becomes of them on some target."""

import hlo_lower as hl
from hlo_lower.base.causes import Code

X = "tensor<6xf32>"
SELF = "mhlo.attributes = {}, mhlo.version = 1 : i64"


def refusing(*ops, **says):
    """A target that refuses ops."""
    return hl.Target("npu", refused={f"stablehlo.{op}": "none" for op in ops}, **says)


def program(line, result=X, argument=X, functions=""):
    """A module of one function whose result a line computes from its argument."""
    main = f"func.func public @main(%x: {argument}) -> {result} {{\n%r = {line}\nreturn %r : {result}\n}}"
    return f"{functions}\n{main}\n"


def sort(compare, kind=X):
    """A sort by a comparator."""
    element = kind.partition("x")[2].rstrip(">")
    line = f""""stablehlo.sort"(%x) ({{
      ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %lt = stablehlo.compare {compare} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      }}) : ({kind}) -> {kind}"""
    return program(line, kind, kind)


def call(name, attributes=SELF, result=X):
    """A custom call."""
    return program(f"stablehlo.custom_call @{name}(%x) {{{attributes}}} : ({X}) -> {result}", result)


SIGNS = f"func.func private @own(%x: {X}) -> {X} {{\n%r = stablehlo.sign %x : {X}\nreturn %r : {X}\n}}"


def composite(name, attributes="", version="", functions=SIGNS):
    """A composite with a decomposition."""
    says = f"decomposition = @own, composite_attributes = {{{attributes}}}{version}"
    return program(f'stablehlo.composite "{name}" %x {{{says}}} : ({X}) -> {X}', functions=functions)


def loop(condition):
    """A loop that adds a value to itself, up to a condition on a counter and the value."""
    line = f"""stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, {X}
      cond {{
        {condition}
        stablehlo.return %p : tensor<i1>
      }} do {{
        %j = stablehlo.add %i, %one : tensor<i32>
        %z = stablehlo.add %y, %y : {X}
        stablehlo.return %j, %z : tensor<i32>, {X}
      }}"""
    return f"""func.func public @main(%x: {X}, %n: tensor<i32>) -> {X} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %most = stablehlo.constant dense<50> : tensor<i32>
      %r:2 = {line}
      return %r#1 : {X}
    }}"""


def until(last):
    """Whether the counter is below a value."""
    return f"%p = stablehlo.compare LT, %i, {last} : (tensor<i32>, tensor<i32>) -> tensor<i1>"


def branches(inner):
    """A branch that computes something, and one that does not."""
    return f"""func.func public @main(%x: {X}, %i: tensor<i32>) -> {X} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r = "stablehlo.case"(%i) ({{
        {inner}
        stablehlo.return %b : {X}
      }}, {{
        stablehlo.return %x : {X}
      }}) : (tensor<i32>) -> {X}
      return %r : {X}
    }}"""


EFFECT = f"%b = stablehlo.custom_call @f(%x) {{has_side_effect = true}} : ({X}) -> {X}"
ENDLESS = f"""%l:2 = stablehlo.while(%k = %i, %b = %x) : tensor<i32>, {X}
  cond {{
    %p = stablehlo.compare LT, %k, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    stablehlo.return %k, %b : tensor<i32>, {X}
  }}
  %b = stablehlo.negate %l#1 : {X}""".replace("%b = %x", "%c = %x").replace("return %k, %b", "return %k, %c")
DYNAMIC = "tensor<?xf32>"
GATHER = """"stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>"""


def gather(kind, rows="tensor<3x1xi32>"):
    """A gather of points."""
    result = f"tensor<3x{kind.partition('x')[2]}"
    return f"""func.func public @main(%x: {kind}, %i: {rows}) -> {result} {{
      %r = {GATHER} : ({kind}, {rows}) -> {result}
      return %r : {result}
    }}"""


REVERSED = program(f"stablehlo.reverse %x, dims = [0] : {X}")
SIGN = program(f"stablehlo.sign %x : {DYNAMIC}", DYNAMIC, DYNAMIC)
SUM = program("stablehlo.add %x, %x : tensor<6xui8>", "tensor<6xui8>", "tensor<6xui8>")
SMALLEST = f"""func.func public @main(%x: {X}) -> tensor<2xf32> {{
  %r:2 = stablehlo.custom_call @mhlo.topk(%x) {{
    mhlo.attributes = {{k = 2 : i64, largest = false}}, mhlo.version = 1 : i64
  }} : ({X}) -> (tensor<2xf32>, tensor<2xi32>)
  return %r#0 : tensor<2xf32>
}}"""
SOFTMAX = f"""func.func private @own(%x: {X}) -> {X} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : ({X}, tensor<f32>) -> tensor<f32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> {X}
  %d = stablehlo.subtract %x, %mb : {X}
  %e = stablehlo.exponential %d : {X}
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : ({X}, tensor<f32>) -> tensor<f32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {X}
  %r = stablehlo.divide %e, %sb : {X}
  return %r : {X}
}}
"""


def softmax(attributes, version=""):
    """A composite that is a softmax."""
    return composite("odml.softmax", attributes, version, SOFTMAX)


PLAIN = hl.Target("npu", legalize=True)
WHOLE = hl.Target("npu", legalize=True, composites={"odml.softmax"})
NO_BYTES = hl.Target("npu", op_dtypes={f"stablehlo.{op}": ["f32"] for op in ("add", "convert")})

NO_REVERSE = refusing("reverse", "slice", "gather", "concatenate")
NO_MESH = hl.Target("npu", refused={"sdy.mesh": "none"})
TOTAL, MESSAGE, QUANTIZED = "LT, %a, %b, TOTALORDER", 'error_message = "x"', "tensor<6x!quant.uniform<i8:f32, 2.0>>"
CHOLESKY = program("stablehlo.cholesky %x, lower = true : tensor<3x3xf32>", *["tensor<3x3xf32>"] * 2)
SHARDING = "{sdy.sharding = #sdy.sharding_per_value<[<@m, [{}]>]>}"
PLACED = program(f"stablehlo.sign %x {SHARDING} : {X}") + "sdy.mesh @m = <[]>"

OP_PROGRAMS = {
    "roundings": (CHOLESKY, (Code.OTHER_ROUNDINGS,), {"target": refusing("cholesky")}),
    "routine": (call("lapack_snovel_ffi", ""), (Code.ROUTINE_LEFT,), {"target": refusing("custom_call")}),
    "placed on one device": (PLACED, (Code.PLACED_ON_ONE_DEVICE,), {"target": NO_MESH}),
    "became": (REVERSED, (Code.BECAME,), {"target": refusing("reverse")}),
    "no form": (REVERSED, (Code.NO_FORM_TAKEN, Code.LACKS), {"target": NO_REVERSE}),
    "sizes": (SIGN, (Code.NEEDS_SIZES,), {"target": refusing("sign")}),
    "on types": (SUM, (Code.ON_TYPES,), {"target": NO_BYTES}),
    "comparator": (sort("LT, %a, %b, FLOAT"), (Code.COMPARATOR_NOT_READ,), {"target": refusing("sort")}),
    "key": (sort(TOTAL, "tensor<6xf8E4M3FN>"), (Code.KEY_NOT_READ,), {"target": refusing("sort")}),
    "more than i32": (sort(TOTAL, "tensor<2000000000xf32>"), (Code.MORE_THAN_I32,), {"target": refusing("sort")}),
    "unrolled": (loop(until("%most")), (Code.UNROLLED_TOO_LARGE,), {"target": refusing("while"), "max_unroll": 60}),
    "trips": (loop(until("%n")), (Code.TRIPS_NOT_KNOWN,), {"target": refusing("while")}),
    "branch with an effect": (branches(EFFECT), (Code.BRANCH_WITH_EFFECT,), {"target": refusing("case")}),
    "loop in a branch": (branches(ENDLESS), (Code.LOOP_IN_BRANCH,), {"target": refusing("case")}),
    "unknown call": (call("my.op"), (Code.CALLS_UNKNOWN,), {"target": PLAIN}),
    "version of a call": (call("mhlo.erf", "mhlo.version = 2 : i64"), (Code.ENCODED_OTHERWISE,), {"target": PLAIN}),
    "name in doubt": (call("mhlo.erf", f'{SELF}, backend_config = "a"'), (Code.NAME_IN_DOUBT,), {"target": PLAIN}),
    "not unary": (call("mhlo.erf", result="tensor<3xf32>"), (Code.NOT_UNARY,), {"target": PLAIN}),
    "no top k": (call("mhlo.topk"), (Code.NOT_TOP_K,), {"target": PLAIN}),
    "smallest": (SMALLEST, (Code.TOP_K_OF_SMALLEST,), {"target": PLAIN}),
    "check of a size": (call("shape_assertion", MESSAGE), (Code.CALLS_CHECK_OF_SIZE,), {"target": PLAIN}),
    "callback": (call("xla_ffi_python_cpu_callback"), (Code.CALLS_PYTHON,), {"target": PLAIN}),
    "no softmax": (composite("odml.softmax", "axis = 0 : i64"), (Code.NOT_SEEN_TO_BE,), {"target": PLAIN}),
    "version": (softmax("axis = 0 : i64", ", version = 7 : i32"), (Code.OTHER_VERSION,), {"target": WHOLE}),
    "attributes": (softmax("axis = 0 : i64, beta = 2.0 : f32"), (Code.OTHER_ATTRIBUTES,), {"target": WHOLE}),
    "only clamped": (gather(DYNAMIC), (Code.ONLY_CLAMPED,), {"target": refusing("gather")}),
    "gather of no form": (gather(QUANTIZED), (Code.NO_CANONICAL_GATHER,), {"target": refusing("gather")}),
}
"""Of each program its text, the codes that it is there for, and how it is lowered."""
