"""Modules of which an analysis that follows every way, or keeps nothing, would never come back."""

from itertools import pairwise

VECTOR = "tensor<16xi32>"
SCATTER = """"stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
  inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>): stablehlo.return %q : tensor<f32>
}) : (tensor<64xf32>, tensor<16x1xi32>, tensor<16xf32>) -> tensor<64xf32>"""


def scattered(lines, index, functions=""):
    """A module that writes at the indices that these lines compute from %v, %n and %m."""
    return f"""module {{
{functions}
func.func public @main(%x: tensor<64xf32>, %u: tensor<16xf32>, %v: {VECTOR}, %n: tensor<i32>, %m: tensor<16xi1>)
    -> tensor<64xf32> {{
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%ones = stablehlo.constant dense<1> : {VECTOR}
{lines}
%at = stablehlo.reshape {index} : ({VECTOR}) -> tensor<16x1xi32>
%r = {SCATTER}
return %r : tensor<64xf32>
}}
}}"""


def chain(count, first="%v", name="t"):
    """x + x, so often: there are 2^count ways from the last to the first."""
    names = [first, *(f"%{name}{k}" for k in range(count))]
    return "\n".join(f"{b} = stablehlo.add {a}, {a} : {VECTOR}" for a, b in pairwise(names))


def deep(count):
    """The chain outside of loops."""
    return scattered(chain(count), f"%t{count - 1}")


def diamonds(count):
    """Two different ways at each step, chosen between."""
    lines, last = "", "%v"
    for k in range(count):
        lines += f"%a{k} = stablehlo.negate {last} : {VECTOR}\n%b{k} = stablehlo.multiply {last}, {last} : {VECTOR}\n"
        lines += f"%c{k} = stablehlo.select %m, %a{k}, %b{k} : tensor<16xi1>, {VECTOR}\n"
        last = f"%c{k}"
    return scattered(lines, last)


def loop(body, returned, initial):
    """A loop from 0 to %n that carries vectors %w0, %w1, ... beside its counter."""
    types = ", ".join(["tensor<i32>", *[VECTOR] * len(initial)])
    names = [f"%w{k}" for k in range(len(initial))]

    def arguments(mark):
        return ", ".join([f"%i{mark}: tensor<i32>", *(f"{name}{mark}: {VECTOR}" for name in names)])

    return f"""%w:{len(initial) + 1} = "stablehlo.while"({", ".join(["%zero", *initial])}) ({{ ^bb0({arguments("c")}):
  %go = stablehlo.compare LT, %ic, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %go : tensor<i1>
}}, {{ ^bb0({arguments("")}):
  {body}
  %next = stablehlo.add %i, %one : tensor<i32>
  stablehlo.return {", ".join(["%next", *returned])} : {types}
}}) : ({types}) -> ({types})"""


def in_a_loop(count):
    """The chain as the body of a loop that carries its end."""
    return scattered(loop(chain(count, "%w0"), [f"%t{count - 1}"], ["%v"]), "%w#1")


def entangled(count):
    """A loop in which each carried vector becomes a sum of all of them."""
    lines = f"%s1 = stablehlo.add %w0, %w1 : {VECTOR}\n"
    lines += "".join(f"%s{k} = stablehlo.add %s{k - 1}, %w{k} : {VECTOR}\n" for k in range(2, count))
    lines += "".join(f"%q{k} = stablehlo.minimum %s{count - 1}, %w{k} : {VECTOR}\n" for k in range(count))
    return scattered(loop(lines, [f"%q{k}" for k in range(count)], ["%ones"] * count), "%w#1")


def calls(count, second="%c = call @f{below}(%a) : ({t}) -> {t}", body="%b = stablehlo.add %a, %a : {t}"):
    """f_k(x) = f_{k-1}(x) + f_{k-1}(x): 2^count ways to call f_0; or another second call."""

    def function(k, lines, result):
        text = lines.format(below=k - 1, k=k, t=VECTOR)
        return f"func.func private @f{k}(%a: {VECTOR}) -> {VECTOR} {{\n{text}\nreturn {result} : {VECTOR}\n}}\n"

    both = "%b = call @f{below}(%a) : ({t}) -> {t}\n" + second + "\n%d = stablehlo.add %b, %c : {t}"
    functions = function(0, body, "%b") + "".join(function(k, both, "%d") for k in range(1, count + 1))
    return scattered(f"%w = call @f{count}(%v) : ({VECTOR}) -> {VECTOR}", "%w", functions)


ANOTHER_ARGUMENT = "%k = stablehlo.constant dense<{k}> : {t}\n%e = stablehlo.add %a, %k : {t}\n"
ANOTHER_ARGUMENT += "%c = call @f{below}(%e) : ({t}) -> {t}"
OF_THE_FIRST = "%c = call @f{below}(%b) : ({t}) -> {t}"


def normalised(count):
    """Sums of two normalised negative indices, each of the sum before: forms that hold one form in two places."""
    lines, last = f"%z = stablehlo.constant dense<0> : {VECTOR}\n%k = stablehlo.constant dense<64> : {VECTOR}\n", "%v"
    for n in range(count):
        lines += f"""%p{n} = stablehlo.compare LT, {last}, %z : ({VECTOR}, {VECTOR}) -> tensor<16xi1>
%a{n} = stablehlo.add {last}, %k : {VECTOR}
%b{n} = stablehlo.add %a{n}, %ones : {VECTOR}
%c{n} = stablehlo.select %p{n}, %a{n}, {last} : tensor<16xi1>, {VECTOR}
%d{n} = stablehlo.select %p{n}, %b{n}, {last} : tensor<16xi1>, {VECTOR}
%e{n} = stablehlo.add %c{n}, %d{n} : {VECTOR}
"""
        last = f"%e{n}"
    return scattered(lines, last)


def masks(count):
    """A comparison of known floats that are chosen again and again from themselves."""
    lines = """%f0 = stablehlo.constant dense<1.0> : tensor<16xf32>
%g = stablehlo.constant dense<0.0> : tensor<16xf32>
%always = stablehlo.constant dense<true> : tensor<16xi1>
"""
    for k in range(count):
        lines += f"%f{k + 1} = stablehlo.select %always, %f{k}, %f{k} : tensor<16xi1>, tensor<16xf32>\n"
    lines += f"%same = stablehlo.compare EQ, %f{count}, %g : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xi1>\n"
    return scattered(lines + f"%i = stablehlo.convert %same : (tensor<16xi1>) -> {VECTOR}", "%i")


def splat(rows=1 << 28):
    """Indices that are a slice of a constant of one value, of 1 GiB."""
    lines = f"""%c = stablehlo.constant dense<3> : tensor<{rows}xi32>
%s = stablehlo.slice %c [16:32] : (tensor<{rows}xi32>) -> {VECTOR}"""
    return scattered(lines, "%s")
