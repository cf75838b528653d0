"""A case for each op with a subset rule: a line of StableHLO in short notation over arguments of small shapes."""

from dataclasses import dataclass

from untyped_mlir import module


@dataclass(frozen=True)
class OpCase:
    """One op, of arguments %0, %1, ... of these types."""

    name: str
    arguments: tuple[str, ...]
    op: str
    axes: int  # how many axes its rule has
    before: str = ""  # lines in front of it
    count: int = 1  # of its results

    def text(self, copies: int) -> str:
        """A module that computes the op several times, and returns all of it."""
        given = ", ".join(f"%{k}: {kind}" for k, kind in enumerate(self.arguments))
        names = [[f"%r{k}_{n}" for n in range(self.count)] for k in range(copies)]
        lines = [self.before, *(f"{', '.join(own)} = {self.op}" for own in names)]
        returned = ", ".join(name for own in names for name in own)
        return module(given, "\n".join([*lines, f"return {returned}"]))


def window(attributes: str, op: str, result: str, initial: str = "%1") -> str:
    """A reduce_window of %0 from an initial value."""
    return f"reduce_window(%0, {initial}) <{attributes}> {{{op}}} -> {result}"


def gather(numbers: str, sizes: str, result: str) -> str:
    """A gather of %0 at %1."""
    attributes = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: {sizes}>"
    return f"gather(%0, %1) <{attributes}> -> {result}"


def scatter(name: str, shapes: tuple[str, str, str], numbers: str, axes: int, op: str = "add") -> OpCase:
    """A scatter of i32."""
    return OpCase(name, shapes, f"scatter(%0, %1, %2) <{numbers}> {{{op}}}", axes)


def padded_sum(name: str, initial: str, axes: int) -> OpCase:
    """Sums of windows that reach into padding along both dims."""
    return OpCase(name, ("9x7xi32",), window(WINDOW_PADDED, "add", PADDED, "%z"), axes, initial)


ZERO, LEAST, ONE = (f"%z = constant {value} : i32" for value in (0, -(2**31), 1))
TILE, TWO, ROWS = "4x6xi32", ("4x6xi32", "4x6xi32"), ("5x4xi32", "6x1xi32", "6x4xi32")
DOT = "dot_general %0, %1, batching_dims = [0] x [1], contracting_dims = [2] x [0] -> 2x3x5xi32"
GATHER = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
BATCHED = (
    "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
    "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
)
GATHER_ONE = "offset_dims = [0], start_index_map = [0, 1], collapsed_slice_dims = [0], index_vector_dim = 0"
ALONG, POINT = "window=[1], inserted=[0], to=[0], ivd=1", "inserted=[0], to=[0], ivd=0"
TWO_DIMS = "window=[2], inserted=[0], to=[0], ivd=2"
BATCH = "batching=[0], indices_batching=[0], to=[1]"
BOTH = """{ %a, %b, %c, %d:
  %m = maximum %a, %c; %s = subtract %b, %d; return %m, %s
}"""
WINDOW = "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>"
WINDOW_PADDED = (
    "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>, "
    "window_dilations = array<i64: 2, 1>, padding = dense<[[1, 2], [0, 1]]> : tensor<2x2xi64>"
)
PADDED = "8x4xi32"
GROUPS = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
CONV = f"convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}} {GROUPS}"
CONV_STRIDED = (
    "convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], "
    f"pad = [[3, 1], [0, 1]], rhs_dilate = [2, 1], reverse = [true, false]}} {GROUPS}"
)
GROUPED, PAIR = ("4x5x6xi32", "4x3x1xi32", "4x3x6xi32"), ("6xi32", "6xi32", "1xi32", "i32", "i32")
IMAGES = "2x9x8x3xf32", "3x2x3x4xf32"
TOP_K = '"chlo.top_k"(%0) <{k = 3 : i64}> : (4x6xi32) -> (4x3xi32, 4x3xi32)'

CASES = (
    OpCase("add", TWO, "add %0, %1", 2),
    OpCase("select", ("i1", *TWO), "select %0, %1, %2", 2),
    OpCase("clamp", ("i32", *TWO), "clamp %0, %1, %2", 2),
    OpCase("convert", (TILE,), "convert %0 -> 4x6xf32", 2),
    OpCase("broadcast", ("4x1xi32",), "broadcast_in_dim %0, dims = [0, 2] -> 4x3x6xi32", 3),
    OpCase("transpose", ("2x3x4xi32",), "transpose %0, dims = [2, 0, 1]", 3),
    OpCase("merge", ("4x6x5xi32",), "reshape %0 -> 24x5xi32", 2),
    OpCase("split", ("24x5xi32",), "reshape %0 -> 4x6x5xi32", 2),
    OpCase("regroup", ("1x8x3x5xi32",), "reshape %0 -> 4x6x1x5xi32", 2),
    OpCase("iota", (), "iota dim = 1 : 4x6xi32", 2),
    OpCase("unsigned_iota", (), "iota dim = 0 : 6xui8", 1),
    OpCase("splat", (), "constant 7 : 4x6xi32", 2),
    OpCase("constant", (), "constant [[1, 2], [3, 4], [5, 6]] : 3x2xi32", 2),
    OpCase("slice", (TILE,), "slice %0 [0:4, 1:5:2]", 1),
    OpCase("dynamic_slice", (TILE, "i32"), "dynamic_slice %0, %1, %1, sizes = [4, 2]", 1),
    OpCase("dynamic_update_slice", (TILE, "2x6xi32", "i32"), "dynamic_update_slice %0, %1, %2, %2", 1),
    OpCase("pad", (TILE, "i32"), "pad %0, %1, low = [0, 1], high = [0, 2], interior = [0, 1] -> 4x14xi32", 1),
    OpCase("concatenate", (TILE, "4x2xi32"), "concatenate %0, %1, dim = 1", 1),
    OpCase("reverse", (TILE,), "reverse %0, dims = [1]", 1),
    OpCase("dot_general", ("2x3x4xi32", "4x2x5xi32"), DOT, 4),
    OpCase("reduce_add", (TILE,), "reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]", 2, ZERO),
    OpCase("reduce_max", (TILE,), "reduce(%0 init: %z) applies stablehlo.maximum across dimensions = [1]", 2, LEAST),
    OpCase("reduce_from_one", (TILE,), "reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]", 2, ONE),
    OpCase("reduce_window", (TILE, "i32"), window(WINDOW, "add", "4x2xi32"), 2),
    OpCase("reduce_window_padded", ("9x7xi32", "i32"), window(WINDOW_PADDED, "maximum", PADDED), 2),
    padded_sum("reduce_window_padded_sum", ZERO, 2),
    OpCase("sort", (TILE,), "sort(%0) <dimension = 1> {LT}", 1),
    OpCase("top_k", (TILE,), TOP_K, 1, count=2),
    OpCase("gather", ("5x6xi32", "4x3x1xi32"), gather(GATHER, "1, 6", "4x3x6xi32"), 3),
    OpCase("gather_batched", ("4x5x6xi32", "4x3x1xi32"), gather(BATCHED, "1, 1, 6", "4x3x6xi32"), 3),
    scatter("scatter_add", ROWS, ALONG, 3),
    scatter("scatter_last", ROWS, ALONG, 3, "assign"),
    scatter("scatter_two", ("5x4xi32", "3x2x1xi32", "3x2x4xi32"), TWO_DIMS, 3, "assign"),
    scatter("scatter_batched", GROUPED, f"window=[2], inserted=[1], {BATCH}, ivd=2", 3, "assign"),
    scatter("scatter_points", ("5x4x3xi32", "7x2xi32", "7x3xi32"), "window=[1], inserted=[0, 1], to=[1, 0], ivd=1", 4),
    scatter("scatter_point", ("6xi32", "1xi32", "i32"), POINT, 1),
    scatter("scatter_point_of_bytes", ("6xi32", "1xui8", "i32"), POINT, 1, "multiply"),
    scatter("scatter_one_of_one", ("6xi32", "1x1xi32", "1xi32"), "inserted=[0], to=[0], ivd=1", 1, "assign"),
    scatter("scatter_column", (TILE, "1xi32", "4xi32"), "window=[0], inserted=[1], to=[1], ivd=0", 2),
    scatter("scatter_point_2d", (TILE, "2xi32", "i32"), "inserted=[0, 1], to=[1, 0], ivd=0", 2, "minimum"),
    scatter("scatter_part", (TILE, "2xi32", "3xi32"), "window=[0], inserted=[1], to=[0, 1], ivd=0", 1, "assign"),
    scatter("scatter_row_of_each", ("4x5x6xi32", "4x1xi32", "4x6xi32"), f"window=[1], inserted=[1], {BATCH}, ivd=1", 3),
    OpCase("scatter_two_operands", PAIR, f"scatter(%0, %1, %2, %3, %4) <{POINT}> {BOTH}", 1, count=2),
    OpCase("gather_one", (TILE, "2xi32"), gather(GATHER_ONE, "1, 6", "6xi32"), 1),
    OpCase("convolution_strided", IMAGES, f"{CONV_STRIDED} : ({', '.join(IMAGES)}) -> 2x5x4x4xf32", 4),
    OpCase("convolution", ("4x5x3xf32", "3x3x6xf32"), f"{CONV} : (4x5x3xf32, 3x3x6xf32) -> 4x5x6xf32", 3),
)
