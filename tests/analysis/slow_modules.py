"""Modules of which an analysis that follows every way, or keeps nothing, would never come back."""

from itertools import pairwise

from untyped_mlir import function, module


def scattered(lines, index, functions=""):
    """A module that writes at the indices that these lines compute from %v, %n and %m."""
    lines = f"""%zero = constant 0 : i32; %one = constant 1 : i32; %ones = constant 1 : 16xi32
        {lines}
        %at = reshape {index} -> 16x1xi32
        %r = scatter(%x, %at, %u) <inserted=[0], to=[0], ivd=1> {{assign}}"""
    return functions + module("%x: 64xf32, %u: 16xf32, %v: 16xi32, %n: i32, %m: 16xi1", lines)


def chain(count, first="%v"):
    """x + x, so often: there are 2^count ways from the last to the first."""
    names = [first, *(f"%t{k}" for k in range(count))]
    return "\n".join(f"{b} = add {a}, {a}" for a, b in pairwise(names))


def deep(count):
    """The chain outside of loops."""
    return scattered(chain(count), f"%t{count - 1}")


def diamonds(count):
    """Two different ways at each step, chosen between."""
    lines = "%c0 = add %v, 0\n"
    for k in range(count):
        lines += f"%a{k} = negate %c{k}; %b{k} = multiply %c{k}, %c{k}; %c{k + 1} = select %m, %a{k}, %b{k}\n"
    return scattered(lines, f"%c{count}")


def loop(body, returned, initial):
    """A loop from 0 to %n that carries vectors %w0, %w1, ... beside its counter."""
    carried = ", ".join(["%i = %zero", *(f"%w{k} = {value}" for k, value in enumerate(initial))])
    return f"""%w:{len(initial) + 1} = while({carried}) cond {{
          %go = compare LT, %i, %n; return %go
        }} do {{
          {body}
          %next = add %i, %one; return {", ".join(["%next", *returned])}
        }}"""


def in_a_loop(count):
    """The chain as the body of a loop that carries its end."""
    return scattered(loop(chain(count, "%w0"), [f"%t{count - 1}"], ["%v"]), "%w#1")


def entangled(count):
    """A loop in which each carried vector becomes a sum of all of them."""
    lines = "%s1 = add %w0, %w1\n"
    lines += "".join(f"%s{k} = add %s{k - 1}, %w{k}\n" for k in range(2, count))
    lines += "".join(f"%q{k} = minimum %s{count - 1}, %w{k}\n" for k in range(count))
    return scattered(loop(lines, [f"%q{k}" for k in range(count)], ["%ones"] * count), "%w#1")


ANOTHER_ARGUMENT = "%e = add %a, {k}; %c = call @f{below}(%e) -> 16xi32"
OF_THE_FIRST = "%c = call @f{below}(%b) -> 16xi32"


def calls(count, second="%c = call @f{below}(%a) -> 16xi32", body="%r = add %a, %a", joined="add"):
    """f_k(x) = f_{k-1}(x) + f_{k-1}(x): 2^count ways to call f_0; or another second call."""
    functions = function("private @f0", "%a: 16xi32", body)
    for k in range(1, count + 1):
        lines = f"%b = call @f{k - 1}(%a) -> 16xi32; {second.format(below=k - 1, k=k)}; %r = {joined} %b, %c"
        functions += function(f"private @f{k}", "%a: 16xi32", lines)
    return scattered(f"%w = call @f{count}(%v) -> 16xi32", "%w", functions)


def normalised(count):
    """Sums of two normalised negative indices, each of the sum before: forms that hold one form in two places."""
    lines = "%z = constant 0 : 16xi32; %k = constant 64 : 16xi32; %e0 = add %v, %z\n"
    for n in range(count):
        lines += f"%p{n} = compare LT, %e{n}, %z; %a{n} = add %e{n}, %k; %b{n} = add %a{n}, %ones\n"
        lines += f"%c{n} = select %p{n}, %a{n}, %e{n}; %d{n} = select %p{n}, %b{n}, %e{n}\n"
        lines += f"%e{n + 1} = add %c{n}, %d{n}\n"
    return scattered(lines, f"%e{count}")


def masks(count):
    """A comparison of known floats that are chosen again and again from themselves."""
    lines = "%f0 = constant 1.0 : 16xf32; %always = constant true : 16xi1\n"
    lines += "".join(f"%f{k + 1} = select %always, %f{k}, %f{k}\n" for k in range(count))
    return scattered(f"{lines}%same = compare EQ, %f{count}, 0.0; %i = convert %same -> 16xi32", "%i")


def splat(rows=1 << 28):
    """Indices that are a slice of a constant of one value, of 1 GiB."""
    return scattered(f"%c = constant 3 : {rows}xi32; %s = slice %c [16:32]", "%s")
