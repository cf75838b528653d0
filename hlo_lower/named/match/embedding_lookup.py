"""embedding_lookup(table, positions) = table[positions]: rows of a table, for each position one.

    gather of whole rows            table[tokens], jnp.take(table, tokens, axis=0), beneath wraps of negatives; mapped
    one_hot(positions) @ table      where positions are out of bounds, a row of zeros

It is that and nothing else: the table has two axes, the gather takes whole rows, and puts them last; rows of a tensor
of experts' weights are no embedding. Attributes: `negative` and `outside` as of take_along_axis, with "zero" of the
product with a one_hot.
"""

from hlo_lower.ir import mlir
from hlo_lower.named.match.found import AttributeValue, Found, Match, matchers
from hlo_lower.named.match.one_hot import one_hot_of
from hlo_lower.named.match.positions import columns_of, filled, vector_of
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import DOT_GENERAL, GATHER


@matchers.finds("embedding_lookup", at=(GATHER,))
def embedding_lookup(anchor: Term) -> Found:
    """Rows of a table."""
    table, indices = anchor.operands
    if len(table.shape) != 2 or not table.is_float or anchor.integers("slice_sizes") != (1, table.shape[1]):
        return None
    numbers = mlir.gather_dimension_numbers(anchor.node.raw)
    if numbers.start_index_map == (0, 1):
        return _mapped(anchor)
    if numbers.collapsed_slice_dims != (0,) or numbers.start_index_map != (0,) or table.shape[1] == 1:
        return None
    if numbers.offset_dims != (len(anchor.shape) - 1,) or one_hot_of(table) is not None:
        return None
    places = vector_of(indices, numbers.index_vector_dim, table.shape[0])
    if places is None or places.term.scalar is not None:
        return None
    result = filled(anchor)
    attributes = places.attributes("clamp" if result is None else "fill")
    return Match("embedding_lookup", {"table": table, "positions": places.term}, [result or anchor], attributes)


def _mapped(anchor: Term) -> Found:
    """Rows by index vectors of a position and where in the row it begins, which is moved to 0; then without the axis of
    one. So a lookup of one row is mapped over positions."""
    table, indices = anchor.operands
    numbers, rank = mlir.gather_dimension_numbers(anchor.node.raw), len(anchor.shape)
    columns, result = columns_of(indices, numbers.index_vector_dim), anchor.only_user
    if len(columns) != 2 or numbers.collapsed_slice_dims or numbers.offset_dims != (rank - 2, rank - 1):
        return None
    if numbers.index_vector_dim != len(indices.shape) - 1 or result is None or result.op != "reshape":
        return None
    places = vector_of(columns[0], numbers.index_vector_dim, table.shape[0])
    if places is None or places.term.scalar is not None or result.shape != (*places.term.shape, table.shape[1]):
        return None
    inputs = {"table": table, "positions": places.term}
    return Match("embedding_lookup", inputs, [result], places.attributes("clamp"))


@matchers.finds("embedding_lookup", at=(DOT_GENERAL,))
def product_with_one_hot(anchor: Term) -> Found:
    """A one_hot times a table."""
    numbers = mlir.dot_dimension_numbers(anchor.node.raw)
    first, table = anchor.operands
    if len(numbers.lhs_batching_dimensions) or len(table.shape) != 2 or list(numbers.rhs_contracting_dimensions) != [0]:
        return None
    if list(numbers.lhs_contracting_dimensions) != [len(first.shape) - 1]:
        return None
    found = one_hot_of(first)
    if found is None or found.axis != len(first.shape) - 1 or one_hot_of(table) is not None:
        return None
    attributes: dict[str, AttributeValue] = {"negative": "outside", "outside": "zero"}
    return Match("embedding_lookup", {"table": table, "positions": found.positions}, [anchor], attributes)
