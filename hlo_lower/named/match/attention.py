"""attention(query, key, value, mask) = softmax(scale * query . key, masked) . value, for each batch and head.

    scores = dot_general(query, key)          over the elements of a head
    scores = c * tanh(scores / c)             softcap
    scores masked                             see `attention_masks`
    out    = dot_general(softmax(scores), value)

Whatever lies between: heads before or behind positions, merged into the batch, groups of queries that share a key
(repeated, broadcast, or kept as an axis), scale on the query, the key or the scores, f32 for the softmax. All of that
is read from atoms of axes (`axis_atoms`), so there is one matcher and no list of layouts. It is attention and nothing
else:

- the softmax goes over exactly the positions over which the second product sums, and these are the free axes of the key
  in the first product: not those of the query, of heads, or of elements;
- what only the query has (its positions, groups of heads) is not in key or value; what else the scores have is in both;
- between the products stand nothing but numbers, a softcap of one constant, and masks.

A causal mask goes over one axis of the queries' own and over the keys' positions: letters q and k of the layout. One
over several axes, as of rows that are groups and positions, is a mask like others, and so is a second one over another
axis. What masks are left once the causal one is proved are operands: `mask`, boolean or additive, and `bias`, further
sums. A causal mask that others take as well is the operand `causal_mask`; whoever knows `causal` and `window` need not
read it.

The operands are taken where heads, positions and elements are axes of their own; the layout that this leaves them in is
the attribute `layout`, as in an einsum, "bnqh,bnkh,bnkv->bnqv", masks behind the value: b, n, ... are what query, key
and value share (batch, heads), q, g, ... what only the query has, k positions of keys, h elements of query and key, v
elements of values; 1 is an axis of one, and "(ng)" one that is a product, n the outer. `empty_rows` is that of softmax.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.named.match.arithmetic import uncast, with_constant
from hlo_lower.named.match.axis_atoms import LAYOUT, Atom, Axis, View, are_same, dealt, fresh, leaves
from hlo_lower.named.match.matches import AttributeValue, Found, Match, NearMiss, matchers
from hlo_lower.named.match.pointwise import value_at, varying_dims
from hlo_lower.named.match.rows import reduction_of
from hlo_lower.named.match.softmax import shifted_of, softmax, through
from hlo_lower.named.match.terms import Term, above, is_rounded
from hlo_lower.ops.names import EXPONENTIAL

LOW = -1e4
"""What hides at least: its exponential is 0 in every float type."""

AT_ONCE = 1 << 22
"""Most places of a mask that are computed together."""

MOST = 1 << 30
"""Most places of a mask that is computed at all."""


@dataclass(frozen=True)
class Mask:
    """A mask."""

    kind: str  # "boolean" or "additive"
    view: View  # the predicate, or what is added, with the atoms of the scores
    hides: bool = False  # of a predicate, whether it is true where a position is hidden
    is_infinite: bool = False  # whether what is hidden is -inf, which no scale changes

    @cached_property
    def operand(self) -> View:
        """The mask beneath layout, as far as no other attention takes what the layout makes of it."""
        at, below = self.view, self.view.beneath()
        while below is not None and not at.term.has_several_users:
            at, below = below, below.beneath()
        return at

    @property
    def term(self) -> Term:
        """The same as the value that it is."""
        return self.operand.term


def mask_of(scores: View) -> tuple[Mask, View] | None:
    """A mask that is applied, and the scores beneath it."""
    term = scores.term
    if term.op == "select":
        predicate, first, second = term.operands
        for low, other, hides in ((second, first, False), (first, second, True)):
            number = low.scalar
            if number is not None and float(number) <= LOW:
                at = scores.on(predicate) if predicate.shape else View(predicate, ())
                return Mask("boolean", at, hides, bool(number == -np.inf)), scores.on(other)
    return None


def added_masks(scores: View, is_score: "object") -> tuple[Mask, View] | None:
    """What is added to the scores, and the scores; which of the two they are is asked."""
    assert callable(is_score)
    if scores.term.op != "add":
        return None
    first, second = scores.term.operands
    for value, other in ((first, second), (second, first)):
        if is_score(scores.on(value)):
            return Mask("additive", scores.on(other)), scores.on(value)
    return None


@dataclass(frozen=True)
class Causal:
    """A causal mask: how many positions back are seen, 0 for all, and the atoms that are counted as positions."""

    window: int
    positions: Axis


def causal_of(mask: Mask, rows: Axis, keys: Axis) -> Causal | None:
    """A mask as the causal one over the keys' positions and one atom of `rows`, what only queries have; None of
    others."""
    view = mask.view.root()
    looked_at = varying_dims(view.term)
    if looked_at is None:
        return None
    row_dims = [d for d in sorted(looked_at) if set(view.axis(d)) and set(view.axis(d)) <= set(rows)]
    key_dims = [d for d in sorted(looked_at) if set(view.axis(d)) and set(view.axis(d)) <= set(keys)]
    if len(row_dims) != 1 or len(key_dims) != 1 or len(looked_at) != 2 or view.axis(key_dims[0]) != keys:
        return None
    known: list[tuple[Term, str, int | None]] = view.term.terms.found.setdefault(
        ("masks", row_dims[0], key_dims[0]), []
    )
    kind = f"{mask.kind} {mask.hides}"
    windows = [window for other, its, window in known if its == kind and other.is_same(view.term)]
    if not windows:
        windows = [_pattern(mask, view.term, row_dims[0], key_dims[0])]
        known.append((view.term, kind, windows[0]))
    return None if windows[0] is None else Causal(windows[0], view.axis(row_dims[0]))


def _pattern(mask: Mask, term: Term, row_dim: int, key_dim: int) -> int | None:
    """The window of a causal mask, 0 for all; None where one place is another."""
    rows, keys = term.shape[row_dim], term.shape[key_dim]
    if rows * keys > MOST:
        return None
    window: int | None = None
    step = max(1, AT_ONCE // keys)
    for first in reversed(range(0, rows, step)):  # the last rows tell the window
        q, k = np.arange(first, min(first + step, rows))[:, None], np.arange(keys)[None, :]
        places = [np.zeros((1, 1), np.int64)] * len(term.shape)
        places[row_dim], places[key_dim] = q, k
        found = value_at(term, tuple(places))
        seen = None if found is None else _visible_positions(mask, np.broadcast_to(found, (len(q), keys)))
        if seen is None:
            return None
        if window is None:
            # How many positions the last query sees where it does not see all up to itself: the window; else 0.
            last = seen[-1]
            count = int(last.sum())
            window = 0 if count == min(rows, keys) else count or None
            if window is None:
                return None
        expected = (k <= q) & (k > q - window) if window else k <= q
        if not np.array_equal(seen, np.broadcast_to(expected, seen.shape)):
            return None
    return window


def _visible_positions(mask: Mask, found: "np.ndarray") -> "np.ndarray | None":  # pyright: ignore[reportMissingTypeArgument]
    if mask.kind == "boolean":
        return ~found if mask.hides else found
    values = found.astype(np.float64)
    return values == 0 if bool(np.all((values == 0) | (values <= LOW))) else None


OPERANDS = ("query", "key", "value")

LETTERS = {"b": "bncd", "q": "qgpr", "k": "klm", "h": "hij", "v": "vwx"}
"""Letters of atoms by their roles: of `layout`."""

MASKS = ("mask", "bias")
"""Names of the operands that mask."""


@dataclass(frozen=True)
class Product:
    """A `dot_general`, its operands with the atoms of its result and new ones along what is summed."""

    result: View
    left: View
    right: View
    summed: Axis


@dataclass
class Scores:
    """The scores of an attention, from the softmax up to the product of query and key."""

    masks: list[Mask] = field(default_factory=list[Mask])  # what is applied to them, the last first
    scale: float = 1.0  # what they are multiplied by
    softcap: float = 0.0  # the c of c * tanh(scores / c); 0 where there is none
    product: Product | None = None  # the product


def product_of(view: View) -> Product:
    """A `dot_general` opened: what its operands' axes are made of."""
    node = view.term.node
    numbers = mlir.dot_dimension_numbers(node.raw)
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    axes = iter(view.axes)
    shared = [next(axes) for _ in batch]
    new = fresh(view.term.operands[0].shape[int(a)] for a, _ in summed)
    sides: list[View] = []
    for number, operand in enumerate(view.term.operands):
        own: dict[int, Axis] = {pair[number]: axis for pair, axis in zip(batch, shared, strict=True)}
        own.update({pair[number]: axis for pair, axis in zip(summed, new, strict=True)})
        sides.append(View(operand, tuple(own[d] if d in own else next(axes) for d in range(len(operand.shape)))))
    left, right = sides
    return Product(view, left, right, tuple(atom for axis in new for atom in axis))


@matchers.finds("attention", at=(EXPONENTIAL,))
def attention(anchor: Term) -> Found:
    """The product with the values of a softmax of scores."""
    found = softmax(anchor)
    if found is None:
        return _with_late_division(anchor)
    if not isinstance(found, Match) or found.name != "softmax":
        return None
    [weights] = found.results
    missed: NearMiss | None = None
    for user in (weights, *through(weights, LAYOUT | {"convert"})):
        if user.op != "dot_general":
            continue
        tried = _of_product(View.of(user), found)
        if isinstance(tried, Match):
            return tried
        missed = missed or (None if tried is None else NearMiss("attention", tried, user))
    return missed


def _with_late_division(anchor: Term) -> Match | None:
    """An attention whose sum of exponentials divides the product with the values."""
    shifted = shifted_of(anchor)
    if shifted is None or (attributes := shifted.attributes) is None:
        return None
    softmaxed = Match("softmax", {"x": shifted.x}, [anchor], {**attributes, "empty_rows": "nan"})
    for user in anchor.users:
        quotient = user.only_user if user.op == "dot_general" else None
        if quotient is None or quotient.op != "divide" or quotient.operands[0] is not user:
            continue
        view = View.of(quotient)
        second, total = product_of(view.on(user)), reduction_of(view.on(quotient.operands[1]), "add")
        side = next((s for s in (second.left, second.right) if s.term is anchor), None)
        summed = None if total is None else total.operand.root(until=anchor)  # it may be summed in a wider type
        if side is None or total is None or summed is None or summed.term is not anchor:
            continue
        alike = zip(side.axes, summed.axes, strict=True)
        if all(set(b) <= set(total.new) if set(a) & set(second.summed) else are_same(a, b) for a, b in alike):
            found = _of_product(view.on(user), softmaxed)
            if isinstance(found, Match) and list(found.results) == [user]:
                return replace(found, results=[quotient])
    return None


def _of_product(view: View, softmaxed: Match) -> Match | Cause | None:
    """The attention that a product of weights and values ends."""
    [weights], axis = softmaxed.results, softmaxed.attributes.get("axis")
    second = product_of(view)
    for side, other in ((second.left, second.right), (second.right, second.left)):
        at = side.root(until=weights)
        if at.term is not weights or not isinstance(axis, int):
            continue
        found = _scores(at.on(softmaxed.inputs["x"]))
        if (seen := softmaxed.inputs.get("where")) is not None:
            found.masks.insert(0, Mask("boolean", at.on(seen) if seen.shape else View(seen, ()), is_infinite=True))
        if found.product is None:
            return None
        if set(at.axis(axis)) != set(leaves(second.summed)):
            return Code.OTHER_AXES("the softmax", "the product with the values")
        return _of_scores(found, second, other, at.axis(axis), softmaxed.attributes["empty_rows"])
    return None


def _scores(view: View) -> Scores:
    """The scale, masks and softcap of scores, down to the product; no product where the scores are something else."""
    found = Scores()
    scaled = False
    for _ in range(40):
        term = view.term
        if term.op == "dot_general":
            found.product = product_of(view)
            return found
        if term.op == "convert" or term.op in LAYOUT:
            below = view.under()
            if below is None:
                return found
            view = below
            continue
        if (masked := mask_of(view) or added_masks(view, _leads_to_product)) is not None:
            mask, below = masked
            if (scaled and not (mask.is_infinite and found.scale > 0)) or found.softcap:
                return found
            view = below
            found.masks.append(mask)
            continue
        if (capped := _softcap(term)) is not None and not found.softcap and not scaled:
            found.softcap, inner = capped
            view = view.on(inner)
            continue
        if (factor := _scale(term)) is not None:
            inner, number = factor
            found.scale *= number
            view, scaled = view.on(inner), True
            continue
        low = with_constant(term, "maximum")
        if low is None or float(low[1]) > element_type_of(low[1].dtype).least:
            return found
        view = view.on(low[0])
    return found


def _scale(term: Term) -> tuple[Term, float] | None:
    found = with_constant(term, "multiply")
    if found is not None:
        return found[0], float(found[1])
    if term.op == "divide" and (number := term.operands[1].scalar) is not None and float(number):
        return term.operands[0], 1 / float(number)
    return None


def _softcap(term: Term) -> tuple[float, Term] | None:
    """The c and the value of c * tanh(value / c)."""
    found = with_constant(term, "multiply")
    if found is None or uncast(found[0]).op != "tanh":
        return None
    c, below = float(found[1]), uncast(found[0]).operands[0]
    if below.op == "divide" and below.operands[1].is_number(c):
        return c, below.operands[0]
    inner = with_constant(below, "multiply")
    return (c, inner[0]) if inner is not None and c and is_rounded(inner[1], 1 / c) else None


def _leads_to_product(view: View) -> bool:
    """Whether scores stand above: a product, beneath layout, numbers, masks and a softcap."""
    term, steps = view.term, 30
    while steps:
        steps -= 1
        if term.op == "dot_general":
            return True
        if term.op in ("convert", "tanh") or term.op in LAYOUT:
            term = term.operands[0]
        elif term.op in ("multiply", "divide", "maximum") and (found := with_constant(term, term.op)) is not None:
            term = found[0]
        elif (masked := mask_of(View(term, fresh(term.shape)))) is not None:
            term = masked[1].term
        elif term.op == "add":
            return any(_leads_to_product(View(operand, fresh(operand.shape))) for operand in term.operands)
        else:
            return False
    return False


def _of_scores(
    found: Scores, second: Product, value: View, keys: Axis, empty_rows: AttributeValue
) -> Match | Cause | None:
    """The attention, once scores and values are known; `keys` are the atoms of the keys' positions."""
    assert found.product is not None
    first, keys = found.product, leaves(keys)
    sides = [(_Side.of(first.left), _Side.of(first.right)), (_Side.of(first.right), _Side.of(first.left))]
    for query, key in sides:
        if set(keys) <= set(key.atoms) and not set(keys) & set(query.atoms):
            break
    else:
        return Code.OTHER_AXES("the softmax", "the positions of the key")
    values = _Side.of(value, scales=False)
    elements = set(leaves(first.summed))
    shared = [atom for atom in first.result.atoms if atom in key.atoms and atom not in keys]
    rows = tuple(atom for atom in first.result.atoms if atom not in shared and atom not in keys)
    if not elements <= set(query.atoms) or not elements <= set(key.atoms) or not set(keys) <= set(values.atoms):
        return None
    if set(rows) & set(values.atoms) or not set(rows) <= set(query.atoms):
        return Code.OTHER_AXES("the queries", "the values")
    own = tuple(atom for atom in values.atoms if atom not in shared and atom not in keys)
    if not set(own) <= set(second.result.atoms) or set(own) & set(first.result.atoms):
        return None
    roles = dict.fromkeys(shared, "b") | dict.fromkeys(rows, "q") | dict.fromkeys(keys, "k")
    roles |= dict.fromkeys(elements, "h") | dict.fromkeys(own, "v")
    return _attention(found, second, (query, key, values), roles, rows, keys, empty_rows)


@dataclass(frozen=True)
class _Side:
    """An operand of a product, and what it is beneath layout, conversions and scale."""

    # the values that it can be taken as, from the product up: all of them behind the last scale
    views: tuple[View, ...]
    scale: float  # what it is multiplied by

    @classmethod
    def of(cls, view: View, *, scales: bool = True) -> "_Side":
        views: list[View] = [view]
        scale = factor = 1.0
        for _ in range(30):
            term = view.term
            if (below := view.under()) is not None:
                view = below
            elif scales and (found := _scale(term)) is not None:
                view, factor = view.on(found[0]), factor * found[1]
                views, scale = [view], factor
                continue
            else:
                break
            views.append(view)
        return cls(tuple(views), scale)

    @property
    def atoms(self) -> Axis:
        """The atoms on which it depends."""
        return self.views[-1].atoms

    def operand_view(self, roles: dict[Atom, str], last: str) -> View:
        """The view to pass as the operand: elements and positions are axes of their own, and nothing is repeated."""

        def is_fit(view: View) -> bool:
            letters = [{roles.get(atom, "?") for atom in view.axis(d)} for d in range(len(view.axes))]
            return all(len(axis) <= 1 or axis == {"b", "q"} for axis in letters) and set(view.atoms) == set(self.atoms)

        fit = [view for view in self.views if is_fit(view)] or [self.views[-1]]
        fewest = min(abs(len(view.axes) - 4) for view in fit)
        fit = [view for view in fit if abs(len(view.axes) - 4) == fewest]
        behind = [view for view in fit if view.axes and {roles.get(a) for a in view.axis(len(view.axes) - 1)} == {last}]
        return (behind or fit)[0]


def _followers(views: Sequence[View], roles: dict[Atom, str]) -> frozenset[Atom]:
    """Atoms that always come right behind the same other one, as of elements turned by pairs: both are one."""
    before: dict[Atom, set[Atom | None]] = {}
    behind: dict[Atom, set[Atom | None]] = {}
    for axis in (view.axis(dim) for view in views for dim in range(len(view.axes))):
        for atom, first, second in zip(axis, (None, *axis), (*axis[1:], None), strict=False):
            before.setdefault(atom, set()).add(first)
            behind.setdefault(atom, set()).add(second)
    pairs = ((atom, *firsts) for atom, firsts in before.items() if len(firsts) == 1)
    return frozenset(
        atom for atom, first in pairs if first and behind[first] == {atom} and roles.get(atom) == roles.get(first)
    )


def _names(roles: dict[Atom, str], atoms: Axis) -> dict[Atom, str]:
    """A letter for each atom, by its role, in the order in which they come."""
    named: dict[Atom, str] = {}
    for atom in dict.fromkeys(atoms):
        letters = LETTERS.get(roles.get(atom, ""), "z")
        taken = sum(1 for other in named if roles.get(other) == roles.get(atom))
        named[atom] = letters[taken] if taken < len(letters) else f"{letters[-1]}{taken}"
    return named


def _letters(view: View, names: dict[Atom, str]) -> str:
    """The layout of a value: for each axis the letter of what it is made of, in brackets where it is several."""
    axes = ([names.get(atom, "?") for atom in view.axis(d)] for d in range(len(view.axes)))
    axes = ([letter for letter in axis if letter] for axis in axes)
    return "".join("1" if not axis else axis[0] if len(axis) == 1 else f"({''.join(axis)})" for axis in axes)


def _attention(
    found: Scores,
    second: Product,
    sides: tuple[_Side, _Side, _Side],
    roles: dict[Atom, str],
    rows: Axis,
    keys: Axis,
    empty_rows: AttributeValue,
    *,
    is_causal: bool = True,
) -> Match | Cause:
    query, key, value = sides
    views = [query.operand_view(roles, "h"), key.operand_view(roles, "h"), value.operand_view(roles, "v")]
    inputs: dict[str, Term] = {name: view.term for name, view in zip(OPERANDS, views, strict=True)}
    causal = _along_one_axis([(mask, causal_of(mask, rows, keys)) for mask in found.masks] if is_causal else [])
    windows = [one.window for _, one in causal if one.window]
    attributes: dict[str, AttributeValue] = {
        "scale": found.scale * query.scale * key.scale,
        "causal": bool(causal),
        "mask": "none",
        "softcap": found.softcap,
        "window": min(windows, default=0),
        "empty_rows": empty_rows,
    }
    given = [mask for mask in found.masks if not any(mask is one for one, _ in causal)]
    for mask, _ in causal:
        if _is_shared(mask.view):
            inputs["causal_mask"] = mask.term
    boolean = [mask for mask in given if mask.kind == "boolean"]
    if len(boolean) > 1:
        return Code.NAMED_OP_LACKS("a single boolean mask")
    given = [*boolean, *(mask for mask in given if mask.kind == "additive")]
    if given:
        attributes["mask"] = given[0].kind
        if boolean:
            attributes["mask_hides"] = boolean[0].hides
        inputs.update({MASKS[n] if n < len(MASKS) else f"bias_{n}": mask.term for n, mask in enumerate(given)})
    result = _with_final_split(second.result)
    views += [mask.operand for mask in given]
    atoms = (*second.result.atoms, *(atom for view in views for atom in view.atoms))
    followers = _followers((*views, result), roles)
    positions = tuple(atom for atom in (causal[0][1].positions if causal else ()) if atom not in followers)
    if causal and (len(positions) != 1 or len(set(keys) - followers) != 1):  # no letter says what is counted
        return _attention(found, second, sides, roles, rows, keys, empty_rows, is_causal=False)
    named = (*positions, *(atom for atom in atoms if atom not in followers))
    names = dict.fromkeys(followers, "") | _names(roles, named)
    attributes["layout"] = ",".join(_letters(view, names) for view in views) + "->" + _letters(result, names)
    if "causal_mask" in inputs:
        inputs["causal_mask"] = inputs.pop("causal_mask")  # the last one
    return Match("attention", inputs, [result.term], attributes)


def _along_one_axis(masks: Sequence[tuple[Mask, Causal | None]]) -> list[tuple[Mask, Causal]]:
    """The causal masks that count along the same axis as the first."""
    causal = [(mask, found) for mask, found in masks if found is not None]
    return [(mask, found) for mask, found in causal if found.positions == causal[0][1].positions]


def _is_shared(view: View) -> bool:
    made = above(view.term, lambda term: () if _is_constant(term) else term.operands, 40)
    return any(term.has_several_users for term in made if term.surface is not None and not _is_constant(term))


def _is_constant(term: Term) -> bool:
    return term.op in ("constant", "iota", "argument") or term.scalar is not None


def _with_final_split(view: View) -> View:
    """The result behind the reshape that splits batch and heads again, if there is one."""
    user = view.term.only_user
    axes = dealt(view.atoms, user.shape) if user is not None and _splits(view.term, user) else None
    if user is None or axes is None or any(len(leaves(axis)) > 1 for axis in axes):
        return view
    return View(user, axes)


def _splits(term: Term, user: Term) -> bool:
    """Whether what follows only tells axes apart: a reshape, or a broadcast that adds axes of 1."""
    if user.op not in ("reshape", "broadcast_in_dim") or len(user.shape) <= len(term.shape):
        return False
    return user.shape[-1:] == term.shape[-1:] and prod(user.shape) == prod(term.shape)
