"""Modules of one call to LAPACK, as JAX exports it, or of StableHLO's own factorization."""

LAYOUTS = {
    "m": lambda rank: [rank - 2, rank - 1, *reversed(range(rank - 2))],
    "v": lambda rank: [*reversed(range(rank))],
}
ROUTINES = {
    "potrf": ("m", "ms"),
    "getrf": ("m", "mvs"),
    "geqrf": ("m", "mv"),
    "orgqr": ("mv", "m"),
    "trsm": ("mm", "m"),
    "syevd": ("m", "mvs"),
}
LETTERS = {"f32": "s", "f64": "d"}


def tensor(shape, element):
    """The type of a tensor."""
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def call(routine, shapes, element="f32", **config):
    """A module that returns all results of one call.

    Args:
      routine: its name without the letter of the element type.
      shapes: of the operands.
      element: of the matrices.
      config: letters by key ("uplo": "L").
    """
    takes, gives = ROUTINES[routine]
    *batch, m, n = shapes[0]
    own = {"m": (m, n), "v": (min(m, n),), "s": ()}
    results = [(*batch, *own[kind]) for kind in gives]
    if routine == "trsm":
        results = [shapes[1]]
    integers = {"getrf": (1, 2), "potrf": (1,), "syevd": (2,)}.get(routine, ())
    types = [tensor(shape, "i32" if k in integers else element) for k, shape in enumerate(results)]
    given = [tensor(shape, element) for shape in shapes]
    names = [f"%x{k}" for k in range(len(shapes))]
    layouts = [
        ", ".join(_layout(kind, len(shape)) for kind, shape in zip(kinds, of, strict=True))
        for kinds, of in ((takes, shapes), (gives, results))
    ]
    letters = ", ".join(f"{key} = {ord(letter)} : ui8" for key, letter in config.items())
    return f"""func.func public @main({", ".join(f"{x}: {t}" for x, t in zip(names, given, strict=True))})
    -> ({", ".join(types)}) {{
  %r:{len(types)} = stablehlo.custom_call @lapack_{LETTERS[element]}{routine}_ffi({", ".join(names)})
    {{mhlo.backend_config = {{{letters}}}, operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]}}
    : ({", ".join(given)}) -> ({", ".join(types)})
  return {", ".join(f"%r#{k}" for k in range(len(types)))} : {", ".join(types)}
}}
"""


def _layout(kind, rank):
    dims = LAYOUTS.get(kind, LAYOUTS["v"])(rank)
    return f"dense<{dims if dims else ''}> : tensor<{len(dims)}xindex>"


def cholesky(shape, *, lower=True, element="f32"):
    """A module of one `stablehlo.cholesky`."""
    of = tensor(shape, element)
    return f"""func.func public @main(%x: {of}) -> {of} {{
  %r = stablehlo.cholesky %x, lower = {str(lower).lower()} : {of}
  return %r : {of}
}}
"""


def triangular_solve(n, columns, *, left=True, lower=True, unit=False, transposed=False):
    """A module of one `stablehlo.triangular_solve`."""
    a, b = tensor((n, n), "f32"), tensor((n, columns) if left else (columns, n), "f32")
    flags = {"left_side": left, "lower": lower, "unit_diagonal": unit}
    told = ", ".join(f"{key} = {str(value).lower()}" for key, value in flags.items())
    how = "TRANSPOSE" if transposed else "NO_TRANSPOSE"
    return f"""func.func public @main(%a: {a}, %b: {b}) -> {b} {{
  %r = "stablehlo.triangular_solve"(%a, %b) <{{{told}, transpose_a = #stablehlo<transpose {how}>}}> : ({a}, {b}) -> {b}
  return %r : {b}
}}
"""
