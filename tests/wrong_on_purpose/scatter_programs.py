"""The modules that wrong lowerings are made for: one scatter each, small, each of another class."""

from dataclasses import dataclass

from untyped_mlir import module


@dataclass(frozen=True)
class Module:
    """A module of one scatter."""

    text: str


POINT_NUMBERS = "inserted=[0], to=[0], ivd=1"


def of(types, numbers=POINT_NUMBERS, body="assign", *, producers="", scattered="%o, %i, %up", result=""):
    """A module of these types of operand, indices and updates, of dimension numbers, flags and a region."""
    arguments = ", ".join(f"{name}: {kind}" for name, kind in zip(("%o", "%i", "%up"), types.split(), strict=True))
    return Module(module(arguments, f"{producers}\n%r = scatter({scattered}) <{numbers}> {{{body}}}{result}"))


ROW_NUMBERS = "window=[0], inserted=[0], to=[0]"
PAIR_NUMBERS = "inserted=[0, 1], to=[0, 1], ivd=1"
RUN = """%k = iota dim = 0 : 3xi32; %b = broadcast_in_dim %i, dims = [] -> 3xi32
  %s = add %b, %k; %j = reshape %s -> 3x1xi32"""
NUMBERED = "%k = iota dim = 0 : 3x1xi32; %j = concatenate %k, %i, dim = 1"
OF_TWO = "%o: 8xf32, %p: 8xi32, %i: 6x1xi32, %up: 6xf32, %vp: 6xi32"

ROW = of("8x4xf32 1xi32 4xf32", ROW_NUMBERS)
ROW_SUBTRACTED = of("8x4xf32 1xi32 4xf32", ROW_NUMBERS, "subtract")
WINDOW = of("8xf32 1xi32 3xf32", "window=[0], to=[0]")
BYTES = of("200xf32 1xui8 f32", "inserted=[0], to=[0]")
POINTS, POINTS_ADDED, POINTS_MAXIMUM = (of("8xf32 6x1xi32 6xf32", body=body) for body in ("assign", "add", "maximum"))
CLAIMED_UNIQUE = of("8xi32 6x1xi32 6xi32", f"{POINT_NUMBERS}, unique_indices = true", "add")
BFLOATS = of("8xbf16 6x1xi32 6xbf16", body="add")
WIDER = "^bb0(%c: f32, %u: f32): %n = add %c, %u; return %n"
PROMOTED = of("8xbf16 6x1xi32 6xbf16", body=WIDER, result=" -> 8xf32")
PAIRS = of("6x4xf32 5x2xi32 5xf32", PAIR_NUMBERS)
TWO = Module(module(OF_TWO, f"%r, %s = scatter(%o, %p, %i, %up, %vp) <{POINT_NUMBERS}> {{assign}}", "%r, %s"))
ROWS = of("8x4xf32 i32 3x4xf32", "window=[1], inserted=[0], to=[0], ivd=1", producers=RUN, scattered="%o, %j, %up")
BATCH = of("3x5xf32 3x1xi32 3xf32", PAIR_NUMBERS, producers=NUMBERED, scattered="%o, %j, %up")
