"""The modules that wrong lowerings are made for: one scatter each, small, each of another class."""

from dataclasses import dataclass

from untyped_mlir import module


@dataclass(frozen=True)
class Module:
    """A module of one scatter, in short notation (see untyped_mlir).

    Attributes:
      operand, indices, updates: their types.
      numbers: dimension numbers, and flags.
      body: the region.
      more: element type of a second operand and its updates, "" for none.
      producers: ops in front of the scatter.
      scattered: what is scattered, and where, instead of the arguments.
      promoted: element type of the region, which adds, where it is not the operand's.
    """

    operand: str
    indices: str
    updates: str
    numbers: str
    body: str = "assign"
    more: str = ""
    producers: str = ""
    scattered: str = "%o, %i, %up"
    promoted: str = ""

    @property
    def text(self) -> str:
        """The module."""
        shape, windows = (kind.rpartition("x")[0] for kind in (self.operand, self.updates))
        operands, updates = [f"%o: {self.operand}"], [f"%up: {self.updates}"]
        scattered, names, body, result = self.scattered, "%r", self.body, ""
        if self.more:
            operands.append(f"%p: {shape}x{self.more}")
            updates.append(f"%vp: {windows}x{self.more}")
            scattered, names = "%o, %p, %i, %up, %vp", "%r, %s"
        if self.promoted:
            body = f"^bb0(%c: {self.promoted}, %u: {self.promoted}): %n = {body} %c, %u; return %n"
            result = f" -> {shape}x{self.promoted}"
        lines = f"{self.producers}\n{names} = scatter({scattered}) <{self.numbers}> {{{body}}}{result}"
        return module(", ".join([*operands, f"%i: {self.indices}", *updates]), lines, names)


ROW_NUMBERS = "window=[0], inserted=[0], to=[0]"
POINT_NUMBERS = "inserted=[0], to=[0], ivd=1"
PAIR_NUMBERS = "inserted=[0, 1], to=[0, 1], ivd=1"
RUN = """%k = iota dim = 0 : 3xi32; %b = broadcast_in_dim %i, dims = [] -> 3xi32
  %s = add %b, %k; %j = reshape %s -> 3x1xi32"""
NUMBERED = "%k = iota dim = 0 : 3x1xi32; %j = concatenate %k, %i, dim = 1"

ROW = Module("8x4xf32", "1xi32", "4xf32", ROW_NUMBERS)
ROW_SUBTRACTED = Module("8x4xf32", "1xi32", "4xf32", ROW_NUMBERS, "subtract")
WINDOW = Module("8xf32", "1xi32", "3xf32", "window=[0], to=[0]")
BYTES = Module("200xf32", "1xui8", "f32", "inserted=[0], to=[0]")
POINTS = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS)
POINTS_ADDED = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, "add")
POINTS_MAXIMUM = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, "maximum")
CLAIMED_UNIQUE = Module("8xi32", "6x1xi32", "6xi32", f"{POINT_NUMBERS}, unique_indices = true", "add")
BFLOATS = Module("8xbf16", "6x1xi32", "6xbf16", POINT_NUMBERS, "add")
PROMOTED = Module("8xbf16", "6x1xi32", "6xbf16", POINT_NUMBERS, "add", promoted="f32")
PAIRS = Module("6x4xf32", "5x2xi32", "5xf32", PAIR_NUMBERS)
TWO = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, more="i32")
ROWS = Module(
    *("8x4xf32", "i32", "3x4xf32", "window=[1], inserted=[0], to=[0], ivd=1"), producers=RUN, scattered="%o, %j, %up"
)
BATCH = Module("3x5xf32", "3x1xi32", "3xf32", PAIR_NUMBERS, producers=NUMBERED, scattered="%o, %j, %up")
