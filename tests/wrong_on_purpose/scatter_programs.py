"""The modules that wrong lowerings are made for: one scatter each, small, each of another class."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A module of one scatter.

    Attributes:
      operand, indices, updates: their types without `tensor<>`; operand and updates of a variadic one share a shape.
      numbers: dimension numbers.
      body: the region on current %c and update %u, of type $t.
      more: element type of a second operand and its updates, "" for none.
      producers: ops that make the indices %j of %i; without them they are %i.
      scattered: the type of %j where it is not that of %i.
      promoted: element type of the region where it is not the operand's.
      flags: of the scatter.
    """

    operand: str
    indices: str
    updates: str
    numbers: str
    body: str = "stablehlo.return %u : $t"
    more: str = ""
    producers: str = ""
    scattered: str = ""
    promoted: str = ""
    flags: str = ""

    @property
    def text(self) -> str:
        """The module."""
        shape, _, element = self.operand.rpartition("x")
        inner = self.promoted or element
        kinds = [inner, self.more] if self.more else [inner]
        operands = [f"tensor<{self.operand}>", *(f"tensor<{shape}x{t}>" for t in kinds[1:])]
        windows = self.updates.rpartition("x")[0]
        updates = [f"tensor<{self.updates}>", *(f"tensor<{windows}x{t}>" for t in kinds[1:])]
        results = [f"tensor<{shape}x{t}>" for t in kinds]
        names = ["%o", "%p"][: len(kinds)], ["%up", "%vp"][: len(kinds)]
        given = [*zip(names[0], operands, strict=True), ("%i", f"tensor<{self.indices}>")]
        given += zip(names[1], updates, strict=True)
        index = "%j" if self.producers else "%i"
        types = [*operands, f"tensor<{self.scattered or self.indices}>", *updates]
        scalars = [f"tensor<{t}>" for t in kinds]
        block = ", ".join(
            f"{v}: {t}"
            for v, t in zip((*("%c", "%d")[: len(kinds)], *("%u", "%v")[: len(kinds)]), scalars * 2, strict=True)
        )
        returned = ", ".join(f"%r#{k}" for k in range(len(kinds))) if self.more else "%r"
        count = f":{len(kinds)}" if self.more else ""
        signature = ", ".join(f"{name}: {kind}" for name, kind in given)
        joined = ", ".join(results)
        flags = f"{self.flags}, " if self.flags else ""
        return f"""func.func public @main({signature}) -> ({joined}) {{
  {self.producers}
  %r{count} = "stablehlo.scatter"({", ".join([*names[0], index, *names[1]])}) <{{{flags}
    scatter_dimension_numbers = #stablehlo.scatter<{self.numbers}>}}> ({{
  ^bb0({block}):
    {self.body.replace("$t", scalars[0])}
  }}) : ({", ".join(types)}) -> ({joined})
  return {returned} : {joined}
}}"""


def binary(name: str) -> str:
    """A region of one operation on the current value and the update."""
    return f"%n = stablehlo.{name} %c, %u : $t stablehlo.return %n : $t"


ROW_NUMBERS = "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
POINT_NUMBERS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
PAIR_NUMBERS = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
RUN = """%k = stablehlo.iota dim = 0 : tensor<3xi32>
  %b = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %s = stablehlo.add %b, %k : tensor<3xi32>
  %j = stablehlo.reshape %s : (tensor<3xi32>) -> tensor<3x1xi32>"""
NUMBERED = """%k = stablehlo.iota dim = 0 : tensor<3x1xi32>
  %j = stablehlo.concatenate %k, %i, dim = 1 : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>"""

ROW = Module("8x4xf32", "1xi32", "4xf32", ROW_NUMBERS)
ROW_SUBTRACTED = Module("8x4xf32", "1xi32", "4xf32", ROW_NUMBERS, binary("subtract"))
WINDOW = Module("8xf32", "1xi32", "3xf32", "update_window_dims = [0], scatter_dims_to_operand_dims = [0]")
BYTES = Module("200xf32", "1xui8", "f32", "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]")
POINTS = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS)
POINTS_ADDED = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, binary("add"))
POINTS_MAXIMUM = Module("8xf32", "6x1xi32", "6xf32", POINT_NUMBERS, binary("maximum"))
CLAIMED_UNIQUE = Module("8xi32", "6x1xi32", "6xi32", POINT_NUMBERS, binary("add"), flags="unique_indices = true")
BFLOATS = Module("8xbf16", "6x1xi32", "6xbf16", POINT_NUMBERS, binary("add"))
PROMOTED = Module("8xbf16", "6x1xi32", "6xbf16", POINT_NUMBERS, binary("add"), promoted="f32")
PAIRS = Module("6x4xf32", "5x2xi32", "5xf32", PAIR_NUMBERS)
TWO = Module(
    "8xf32",
    "6x1xi32",
    "6xf32",
    POINT_NUMBERS,
    "stablehlo.return %u, %v : tensor<f32>, tensor<i32>",
    more="i32",
)
ROWS = Module(
    "8x4xf32",
    "i32",
    "3x4xf32",
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    producers=RUN,
    scattered="3x1xi32",
)
BATCH = Module("3x5xf32", "3x1xi32", "3xf32", PAIR_NUMBERS, producers=NUMBERED, scattered="3x2xi32")
