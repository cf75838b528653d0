"""A case for each op with a subset rule: a line of StableHLO over arguments of small shapes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OpCase:
    """One op.

    Attributes:
      name: of the case.
      arguments: the types of its arguments.
      op: the op in the generic or pretty form, its operands %0, %1, ...
      result: the types of its results.
      axes: how many axes its rule has.
      before: lines in front of it.
    """

    name: str
    arguments: tuple[str, ...]
    op: str
    result: tuple[str, ...]
    axes: int
    before: str = ""

    def text(self, copies: int) -> str:
        """A module that computes the op several times, and returns all of it."""
        given = ", ".join(f"%{k}: tensor<{t}>" for k, t in enumerate(self.arguments))
        types = ", ".join(f"tensor<{t}>" for t in self.result * copies)
        count = f":{len(self.result)}" if len(self.result) > 1 else ""
        lines = [f"%r{k}{count} = {self.op}" for k in range(copies)]
        names = [f"%r{k}{f'#{n}' if count else ''}" for k in range(copies) for n in range(len(self.result))]
        body = "\n".join([self.before, *lines, f"return {', '.join(names)} : {types}"])
        return f"module {{ func.func public @main({given}) -> ({types}) {{\n{body}\n}} }}"


def unary(name: str, text: str, operand: str, result: str, axes: int) -> OpCase:
    """An op of one operand in the pretty form."""
    return OpCase(name, (operand,), f"{text} : (tensor<{operand}>) -> tensor<{result}>", (result,), axes)


def generic(
    name: str, dialect: str, attributes: str, types: tuple[tuple[str, ...], tuple[str, ...]], axes: int
) -> OpCase:
    """An op in the generic form."""
    operands, results = types
    ins = ", ".join(f"%{k}" for k in range(len(operands)))
    signature = ", ".join(f"tensor<{t}>" for t in operands)
    out = ", ".join(f"tensor<{t}>" for t in results)
    out = f"({out})" if len(results) > 1 else out
    return OpCase(name, operands, f'"{dialect}"({ins}) {attributes} : ({signature}) -> {out}', results, axes)


def region(op: str, element: str = "i32") -> str:
    """A region that combines two scalars."""
    t = f"tensor<{element}>"
    body = f"%c = stablehlo.{op} %a, %b : {t}" if op else ""
    return f"({{^bb0(%a: {t}, %b: {t}): {body}\nstablehlo.return {'%c' if op else '%b'} : {t} }})"


def scatter(name: str, shapes: tuple[str, str, str], numbers: str, axes: int, op: str = "add") -> OpCase:
    """A scatter of i32."""
    operand, indices, updates = shapes
    attribute = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>"
    types = f"(tensor<{operand}>, tensor<{indices}>, tensor<{updates}>) -> tensor<{operand}>"
    text = f'"stablehlo.scatter"(%0, %1, %2) <{{{attribute}}}> {region(op)} : {types}'
    return OpCase(name, shapes, text, (operand,), axes)


def reduction(name: str, op: str, initial: str, axes: int) -> OpCase:
    """A reduction of the second dim."""
    text = f"stablehlo.reduce(%0 init: %z) applies stablehlo.{op} across dimensions = [1]"
    types = "(tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>"
    return OpCase(name, ("4x6xi32",), f"{text} : {types}", ("4xi32",), axes, initial)


def padded_sum(name: str, initial: str, axes: int) -> OpCase:
    """Sums of windows that reach into padding along both dims."""
    types = "(tensor<9x7xi32>, tensor<i32>) -> tensor<8x4xi32>"
    text = f'"stablehlo.reduce_window"(%0, %z) <{{{WINDOW_PADDED}}}> {region("add")} : {types}'
    return OpCase(name, ("9x7xi32",), text, ("8x4xi32",), axes, initial)


ZERO = "%z = stablehlo.constant dense<0> : tensor<i32>"
LEAST = "%z = stablehlo.constant dense<-2147483648> : tensor<i32>"
ONE = "%z = stablehlo.constant dense<1> : tensor<i32>"
DOT = "batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xi32>, tensor<4x2x5xi32>)"
ALONG = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
GATHER = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
BATCHED = (
    "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
    "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
)
SCATTER_BATCHED = (
    "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2"
)
TWO_DIMS = (
    "update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2"
)
POINTS = (
    "update_window_dims = [1], inserted_window_dims = [0, 1], "
    "scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1"
)
POINT = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0"
ONE_OF_ONE = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
COLUMN = (
    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 0"
)
POINT_2D = "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 0"
PART = (
    "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 0"
)
ROW_OF_EACH = (
    "update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
)
BOTH = """({^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
  %m = stablehlo.maximum %a, %c : tensor<i32>
  %s = stablehlo.subtract %b, %d : tensor<i32>
  stablehlo.return %m, %s : tensor<i32>, tensor<i32>})"""
GATHER_ONE = "offset_dims = [0], start_index_map = [0, 1], collapsed_slice_dims = [0], index_vector_dim = 0"
WINDOW = "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>"
WINDOW_PADDED = (
    "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>, "
    "window_dilations = array<i64: 2, 1>, padding = dense<[[1, 2], [0, 1]]> : tensor<2x2xi64>"
)
CONV = """stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]}
  {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
  : (tensor<4x5x3xf32>, tensor<3x3x6xf32>) -> tensor<4x5x6xf32>"""
CONV_STRIDED = """stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
  window = {stride = [2, 2], pad = [[3, 1], [0, 1]], rhs_dilate = [2, 1], reverse = [true, false]}
  {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
  : (tensor<2x9x8x3xf32>, tensor<3x2x3x4xf32>) -> tensor<2x5x4x4xf32>"""
COMPARED = """({^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %c = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>})"""
SORTED = f'"stablehlo.sort"(%0) <{{dimension = 1 : i64}}> {COMPARED} : (tensor<4x6xi32>) -> tensor<4x6xi32>'
SELECTED = "stablehlo.select %0, %1, %2 : tensor<i1>, tensor<4x6xi32>"
CLAMPED = "stablehlo.clamp %0, %1, %2 : (tensor<i32>, tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4x6xi32>"
UPDATED = "stablehlo.dynamic_update_slice %0, %1, %2, %2 : (tensor<4x6xi32>, tensor<2x6xi32>, tensor<i32>, tensor<i32>)"

CASES = (
    OpCase("add", ("4x6xi32", "4x6xi32"), "stablehlo.add %0, %1 : tensor<4x6xi32>", ("4x6xi32",), 2),
    OpCase("select", ("i1", "4x6xi32", "4x6xi32"), SELECTED, ("4x6xi32",), 2),
    OpCase("clamp", ("i32", "4x6xi32", "4x6xi32"), CLAMPED, ("4x6xi32",), 2),
    unary("convert", "stablehlo.convert %0", "4x6xi32", "4x6xf32", 2),
    unary("broadcast", "stablehlo.broadcast_in_dim %0, dims = [0, 2]", "4x1xi32", "4x3x6xi32", 3),
    unary("transpose", "stablehlo.transpose %0, dims = [2, 0, 1]", "2x3x4xi32", "4x2x3xi32", 3),
    unary("merge", "stablehlo.reshape %0", "4x6x5xi32", "24x5xi32", 2),
    unary("split", "stablehlo.reshape %0", "24x5xi32", "4x6x5xi32", 2),
    unary("regroup", "stablehlo.reshape %0", "1x8x3x5xi32", "4x6x1x5xi32", 2),
    OpCase("iota", (), "stablehlo.iota dim = 1 : tensor<4x6xi32>", ("4x6xi32",), 2),
    OpCase("unsigned_iota", (), "stablehlo.iota dim = 0 : tensor<6xui8>", ("6xui8",), 1),
    OpCase("splat", (), "stablehlo.constant dense<7> : tensor<4x6xi32>", ("4x6xi32",), 2),
    OpCase("constant", (), "stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>", ("3x2xi32",), 2),
    unary("slice", "stablehlo.slice %0 [0:4, 1:5:2]", "4x6xi32", "4x2xi32", 1),
    OpCase(
        "dynamic_slice",
        ("4x6xi32", "i32"),
        "stablehlo.dynamic_slice %0, %1, %1, sizes = [4, 2] : (tensor<4x6xi32>, tensor<i32>, tensor<i32>)"
        " -> tensor<4x2xi32>",
        ("4x2xi32",),
        1,
    ),
    OpCase(
        "dynamic_update_slice",
        ("4x6xi32", "2x6xi32", "i32"),
        f"{UPDATED} -> tensor<4x6xi32>",
        ("4x6xi32",),
        1,
    ),
    OpCase(
        "pad",
        ("4x6xi32", "i32"),
        "stablehlo.pad %0, %1, low = [0, 1], high = [0, 2], interior = [0, 1]"
        " : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x14xi32>",
        ("4x14xi32",),
        1,
    ),
    OpCase(
        "concatenate",
        ("4x6xi32", "4x2xi32"),
        "stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x6xi32>, tensor<4x2xi32>) -> tensor<4x8xi32>",
        ("4x8xi32",),
        1,
    ),
    OpCase("reverse", ("4x6xi32",), "stablehlo.reverse %0, dims = [1] : tensor<4x6xi32>", ("4x6xi32",), 1),
    OpCase(
        "dot_general",
        ("2x3x4xi32", "4x2x5xi32"),
        f"stablehlo.dot_general %0, %1, {DOT} -> tensor<2x3x5xi32>",
        ("2x3x5xi32",),
        4,
    ),
    reduction("reduce_add", "add", ZERO, 2),
    reduction("reduce_max", "maximum", LEAST, 2),
    reduction("reduce_from_one", "add", ONE, 1),
    generic(
        "reduce_window",
        "stablehlo.reduce_window",
        f"<{{{WINDOW}}}> {region('add')}",
        (("4x6xi32", "i32"), ("4x2xi32",)),
        2,
    ),
    generic(
        "reduce_window_padded",
        "stablehlo.reduce_window",
        f"<{{{WINDOW_PADDED}}}> {region('maximum')}",
        (("9x7xi32", "i32"), ("8x4xi32",)),
        2,
    ),
    padded_sum("reduce_window_padded_sum", ZERO, 2),
    OpCase("sort", ("4x6xi32",), SORTED, ("4x6xi32",), 1),
    OpCase(
        "top_k",
        ("4x6xi32",),
        "chlo.top_k(%0, k = 3) : tensor<4x6xi32> -> (tensor<4x3xi32>, tensor<4x3xi32>)",
        ("4x3xi32", "4x3xi32"),
        1,
    ),
    generic(
        "gather",
        "stablehlo.gather",
        f"<{{dimension_numbers = #stablehlo.gather<{GATHER}>, slice_sizes = array<i64: 1, 6>}}>",
        (("5x6xi32", "4x3x1xi32"), ("4x3x6xi32",)),
        3,
    ),
    generic(
        "gather_batched",
        "stablehlo.gather",
        f"<{{dimension_numbers = #stablehlo.gather<{BATCHED}>, slice_sizes = array<i64: 1, 1, 6>}}>",
        (("4x5x6xi32", "4x3x1xi32"), ("4x3x6xi32",)),
        3,
    ),
    scatter("scatter_add", ("5x4xi32", "6x1xi32", "6x4xi32"), ALONG, 3),
    scatter("scatter_last", ("5x4xi32", "6x1xi32", "6x4xi32"), ALONG, 3, ""),
    scatter("scatter_two", ("5x4xi32", "3x2x1xi32", "3x2x4xi32"), TWO_DIMS, 3, ""),
    scatter("scatter_batched", ("4x5x6xi32", "4x3x1xi32", "4x3x6xi32"), SCATTER_BATCHED, 3, ""),
    scatter("scatter_points", ("5x4x3xi32", "7x2xi32", "7x3xi32"), POINTS, 4),
    scatter("scatter_point", ("6xi32", "1xi32", "i32"), POINT, 1),
    scatter("scatter_point_of_bytes", ("6xi32", "1xui8", "i32"), POINT, 1, "multiply"),
    scatter("scatter_one_of_one", ("6xi32", "1x1xi32", "1xi32"), ONE_OF_ONE, 1, ""),
    scatter("scatter_column", ("4x6xi32", "1xi32", "4xi32"), COLUMN, 2),
    scatter("scatter_point_2d", ("4x6xi32", "2xi32", "i32"), POINT_2D, 2, "minimum"),
    scatter("scatter_part", ("4x6xi32", "2xi32", "3xi32"), PART, 1, ""),
    scatter("scatter_row_of_each", ("4x5x6xi32", "4x1xi32", "4x6xi32"), ROW_OF_EACH, 3),
    generic(
        "scatter_two_operands",
        "stablehlo.scatter",
        f"<{{scatter_dimension_numbers = #stablehlo.scatter<{POINT}>}}> {BOTH}",
        (("6xi32", "6xi32", "1xi32", "i32", "i32"), ("6xi32", "6xi32")),
        1,
    ),
    generic(
        "gather_one",
        "stablehlo.gather",
        f"<{{dimension_numbers = #stablehlo.gather<{GATHER_ONE}>, slice_sizes = array<i64: 1, 6>}}>",
        (("4x6xi32", "2xi32"), ("6xi32",)),
        1,
    ),
    OpCase("convolution", ("4x5x3xf32", "3x3x6xf32"), CONV, ("4x5x6xf32",), 3),
    OpCase("convolution_strided", ("2x9x8x3xf32", "3x2x3x4xf32"), CONV_STRIDED, ("2x5x4x4xf32",), 4),
)
