"""Bind the symbols of a module's shapes to sizes: a module of static shapes, by jaxlib's own shape refinement."""

import re
from collections.abc import Mapping
from itertools import islice

from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.candidates import candidates
from hlo_lower.ir.shapes.constraints import check_constraints, complete_sizes, sizes_text
from hlo_lower.ir.shapes.expressions import ExpressionError, evaluate, rewritten, symbols_of
from hlo_lower.ir.shapes.given_sizes import A_SIZE, LIMIT, SizesError, named_sizes, shorten, without_places
from hlo_lower.ir.shapes.partial_binding import refine_partly
from hlo_lower.ir.shapes.specification import Specification, is_place, specification_of

MAX_TRIED = 200
"""Choices of sizes that are tried on a module: each takes a refinement."""


def bind_module(
    module: mlir.RawModule, sizes: Mapping[str, int], specification: Specification | None = None
) -> mlir.RawModule:
    """A copy of a module with static shapes, or, where names are left out, with those open.

    Args:
      module: the module; it is left as it is.
      sizes: a size for each symbol; dims also by place ("arg1.0"), integer scalar arguments by number ("arg0"), unless
        a symbol has that name. A symbol that follows from the others and from dims may be left out.
      specification: what the dims are called; by default what the module says.

    Raises:
      SizesError: a name is unknown or missing, or the sizes contradict the module.
    """
    return bind_and_complete(module, sizes, specification)[0]


def bind_and_complete(
    module: mlir.RawModule, sizes: Mapping[str, int], specification: Specification | None = None
) -> tuple[mlir.RawModule, dict[str, int]]:
    """What `bind_module` gives, and the sizes with those that follow from them; it raises as that does."""
    sizes = named_sizes(sizes)
    specification = specification or specification_of(module)
    if specification is None:
        raise SizesError("the module has no function @main", next_step="rename its entry point to @main")
    _check_names(specification, sizes)
    known = complete_sizes(specification.dims, sizes)
    types = _types(specification, sizes, known)
    fixed = {int(name[3:]): sizes[name] for name in specification.scalars if name in sizes}
    try:
        if any("?" in text for text in types):
            return refine_partly(module, types, fixed, specification, known), known
        return mlir.refine_shapes(module, types, fixed=fixed), known
    except mlir.RefinementError as error:
        _refuse_open_functions(module)
        raise SizesError(
            f"the sizes {sizes_text(tuple(sizes), sizes)} do not fit the module: {_reason(str(error))}",
            facts="; ".join(specification.lines()),
            next_step="choose sizes for which this holds",
        ) from None


def _check_names(specification: Specification, sizes: Mapping[str, int]) -> None:
    """Refuse what is not a size or no value, names that the module does not have, and other sizes for static dims."""
    places = specification.places()
    for name, size in sizes.items():
        if name in specification.scalars:
            _refuse_value(name, size, specification.elements[int(name[3:])])
        elif type(size) is not int or not 0 <= size < LIMIT:
            raise SizesError(f"{name} = {shorten(repr(size))} is not a size", next_step=A_SIZE)
    names = {*specification.symbols, *places, *specification.scalars}
    unknown = sorted(set(sizes) - names)
    if unknown:
        named = ", ".join((*specification.symbols, *specification.scalars)) or "none"
        raise SizesError(
            f"the module has no size called {', '.join(unknown)}",
            facts=_facts(specification),
            next_step=f"names are: {named}",
        )
    for place, dim in places.items():
        if dim.isdigit() and sizes.get(place, int(dim)) != int(dim):
            raise SizesError(
                f"{place} is {dim} in the module, not {sizes[place]}",
                facts=_facts(specification),
                next_step=f"leave {place} out",
            )


def _facts(specification: Specification) -> str:
    return "; ".join(specification.lines()) or "every argument has a static shape"


def _types(specification: Specification, sizes: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """The static type of each argument; the known sizes are the given ones and those that follow."""
    facts = _facts(specification)
    for name in specification.symbols:
        if specification.is_given and not is_place(name) and known.get(name, 1) < 1:
            raise SizesError(f"{name} = {known[name]}: every name is a size of 1 or more", facts=facts)
    missing = [s for s in specification.symbols if s not in known and not _is_placed(specification, s, sizes)]
    if missing and not _may_stay_open(specification, known):
        wanted = ",".join(f"{name}=..." for name in missing)
        raise SizesError(f"no size is given for {', '.join(missing)}", facts=facts, next_step=f"add --bind {wanted}")
    check_constraints(specification.constraints, known, facts)
    types: list[str] = []
    for n, (text, dims) in enumerate(zip(specification.arguments, specification.dims, strict=True)):
        if dims is None:
            types.append(text)
        else:
            found = [_size(n, i, dim, known) for i, dim in enumerate(dims)]
            types.append(f"tensor<{'x'.join((*found, specification.elements[n]))}>")
    return types


def _may_stay_open(specification: Specification, sizes: Mapping[str, int]) -> bool:
    """Whether the names without a size can be left open: the module has names, some have sizes, and no dim has a size
    without its names."""
    names = set(specification.symbols)
    placed = [dim for place, dim in specification.places().items() if place in sizes]
    solved = specification.is_given and all(set(symbols_of(dim)) <= set(sizes) for dim in placed)
    return solved and bool(names & set(sizes))


def _refuse_value(name: str, value: int, element: str) -> None:
    """Refuse a value that an integer scalar argument of an element type cannot have."""
    low, high = type_range(element.removeprefix("s")) or (0, 0)
    if type(value) is not int or not low <= value <= high:
        raise SizesError(
            f"{name} = {shorten(repr(value))} is not a value of {element}",
            next_step=f"it is a whole number from {low} to {high}",
        )


def _refuse_open_functions(module: mlir.RawModule) -> None:
    """Say so where a public function besides @main has dynamic shapes: only @main is given sizes."""
    for op in module.body.operations:
        function = op.operation
        if function.name != "func.func" or not mlir.is_public(function):
            continue
        name, signature = mlir.symbol_name(function.attributes["sym_name"]), function.opview.type
        tensors = [mlir.read_tensor_type(t) for t in (*signature.inputs, *signature.results)]
        if name != "main" and any(t is not None and not t.is_static for t in tensors):
            raise SizesError(
                f"only @main is given sizes, and the public function @{name} has dynamic shapes, too",
                facts=f"@{name} is {signature}",
                next_step=f"take @{name} from the module, or make it private",
            )


def _is_placed(specification: Specification, symbol: str, sizes: Mapping[str, int]) -> bool:
    """Whether each dim that a symbol stands in is given by its place."""
    places = [place for place, dim in specification.places().items() if not is_place(dim) and symbol in symbols_of(dim)]
    return bool(places) and all(place in sizes for place in places)


def _size(argument: int, dim: int, expression: str, sizes: Mapping[str, int]) -> str:
    """The size of a dim, "?" where it stays open; the sizes have what follows from those that were given, too."""
    place = f"arg{argument}.{dim}"
    if is_place(expression):
        return str(sizes[expression])
    names = symbols_of(expression)
    if any(name not in sizes for name in names):  # every dim that the missing one stands in is given by its place
        return str(sizes.get(place, "?"))
    given = "" if expression in names else f" for {sizes_text(names, sizes)}"
    try:
        size = evaluate(expression, sizes)
    except ExpressionError as error:
        raise SizesError(f"dim {dim} of argument {argument} = {rewritten(expression)}{given}: {error}") from None
    if sizes.get(place, size) != size:
        raise SizesError(
            f"{rewritten(expression)} = {sizes[place]} ({place}) does not hold: it is {size}{given}",
            facts="a name has one size everywhere, and the size of a dim gives its name one too",
            next_step="choose sizes for which this holds",
        )
    if not 0 <= size < LIMIT:
        told_dim = f"dim {dim} of argument {argument} = {rewritten(expression)}"
        raise SizesError(f"{told_dim} is {size}{given}, which is not a size", next_step=A_SIZE)
    return str(size)


def _reason(message: str) -> str:
    """The line of jaxlib's message that says what is wrong: the assertion's own words, or the op that does not fit."""
    found = re.search(r"specification\. (.*?) Using the following", message, re.DOTALL)
    if found:
        obtained = re.search(r"Obtained dimension variables: (.*?)\. Please see", message, re.DOTALL)
        told = without_places(obtained.group(1)).strip(" ,") if obtained else ""
        if re.search(r"\{\d+\}", told):  # sizes that were not put in
            told = ""
        return without_places(found.group(1)).rstrip(".") + (f" ({told})" if told else "")
    errors = re.findall(r"error: (?:\"[^\"]*\":\S+ )?(.*)", message)
    return errors[0] if errors else message.splitlines()[0]


def instances(specification: Specification, module: mlir.RawModule, limit: int) -> list[dict[str, int]]:
    """Sizes that fit a module, at most `limit` of them: small ones, apart from each other where that is allowed.

    Where none fit as they are, the module may take a size as a number, as JAX's older exports do: so its integer scalar
    arguments are one of the sizes, too.
    """
    choices = list(islice(candidates(specification), MAX_TRIED))
    as_numbers = (
        {**sizes, **dict.fromkeys(specification.scalars, size)}
        for sizes in choices
        for size in dict.fromkeys(sizes.values())
    )
    alone = list(islice((sizes for sizes in choices if fits(module, specification, sizes)), limit))
    if alone or not specification.scalars:
        return alone
    tried = islice(as_numbers, MAX_TRIED)
    return list(islice((sizes for sizes in tried if fits(module, specification, sizes)), limit))


def fits(module: mlir.RawModule, specification: Specification, sizes: Mapping[str, int]) -> bool:
    """Whether a module can be bound to sizes."""
    try:
        bind_module(module, sizes, specification)
    except SizesError:
        return False
    return True
