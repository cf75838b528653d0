"""Modules of one call to LAPACK, as JAX exports it, or of StableHLO's own factorization."""

from rewrites import main

ROUTINES = {  # matrices, vectors and scalars that it takes and gives, and which of its results are integers
    "potrf": ("m", "ms", (1,)),
    "getrf": ("m", "mvs", (1, 2)),
    "geqrf": ("m", "mv", ()),
    "orgqr": ("mv", "m", ()),
    "trsm": ("mm", "m", ()),
    "syevd": ("m", "mvs", (2,)),
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
    takes, gives, integers = ROUTINES[routine]
    *batch, m, n = shapes[-1] if routine == "trsm" else shapes[0]
    own = {"m": (m, n), "v": (min(m, n),), "s": ()}
    results = [(*batch, *own[kind]) for kind in gives]
    types = [tensor(shape, "i32" if k in integers else element) for k, shape in enumerate(results)]
    given, names = [tensor(shape, element) for shape in shapes], [f"%x{k}" for k in range(len(shapes))]
    layouts = [[_layout(*of) for of in zip(*each, strict=True)] for each in ((takes, shapes), (gives, results))]
    letters = ", ".join(f"{key} = {ord(letter)} : ui8" for key, letter in config.items())
    body = f"""%r:{len(types)} = stablehlo.custom_call @lapack_{LETTERS[element]}{routine}_ffi({", ".join(names)})
    {{mhlo.backend_config = {{{letters}}}, operand_layouts = [{", ".join(layouts[0])}],
     result_layouts = [{", ".join(layouts[1])}]}} : ({", ".join(given)}) -> ({", ".join(types)})"""
    returned = f"{', '.join(f'%r#{k}' for k in range(len(types)))} : {', '.join(types)}"
    return main(", ".join(f"{x}: {t}" for x, t in zip(names, given, strict=True)), body, returned)


def _layout(kind, shape):
    rank = len(shape)
    dims = [rank - 2, rank - 1, *reversed(range(rank - 2))] if kind == "m" else [*reversed(range(rank))]
    return f"dense<{dims or ''}> : tensor<{rank}xindex>"


def cholesky(shape):
    """A module of one `stablehlo.cholesky`."""
    x = tensor(shape, "f32")
    return main(f"%x: {x}", f"%r = stablehlo.cholesky %x, lower = true : {x}", f"%r : {x}")


def triangular_solve(n, columns, *, left, transposed):
    """A module of one `stablehlo.triangular_solve`."""
    a, b = tensor((n, n), "f32"), tensor((n, columns) if left else (columns, n), "f32")
    how = f"transpose_a = #stablehlo<transpose {'TRANSPOSE' if transposed else 'NO_TRANSPOSE'}>"
    told = f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, {how}"
    body = f'%r = "stablehlo.triangular_solve"(%a, %b) <{{{told}}}> : ({a}, {b}) -> {b}'
    return main(f"%a: {a}, %b: {b}", body, f"%r : {b}")
