"""Bind the symbols of a module's shapes to sizes: a module of static shapes, by jaxlib's own shape refinement."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice, product

from hlo_lower import mlir
from hlo_lower.shapes.expressions import ExpressionError, evaluate
from hlo_lower.shapes.specification import Specification, is_place, specification_of


class SizesError(ValueError):
    """Sizes that cannot be given to a module: what is wrong, and what the module knows of its shapes."""

    def __init__(self, what: str, facts: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what, self.facts, self.next_step = what, facts, next_step


MAX_DIGITS = 40
"""Digits of a size on the command line: twice as many as any size has."""

A_SIZE = "a size is a whole number from 0 to 2^63 - 1"


def _short(text: str) -> str:
    """The beginning of what a user wrote."""
    return text if len(text) <= MAX_DIGITS else f"{text[:MAX_DIGITS]}..."


def parse_sizes(text: str) -> dict[str, int]:
    """Sizes as the command line gives them: "b=4,s=16", "arg1.0=7" for a dim, "arg0=7" for an integer argument.

    Raises:
      SizesError: a part is no NAME=SIZE, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*(?:\.\d+)?)\s*=\s*(\d+)\s*", part)
        if match is None:
            raise SizesError(f"{_short(part.strip())!r} is no NAME=SIZE", next_step="write --bind b=4,s=16")
        if len(match[2]) > MAX_DIGITS:
            raise SizesError(f"{_short(match[1])} has {len(match[2]):,} digits and is no size", next_step=A_SIZE)
        if match[1] in sizes:
            raise SizesError(f"{match[1]} is bound twice", next_step="give each name one size")
        sizes[match[1]] = int(match[2])
    return sizes


def bind_module(
    module: mlir.RawModule, sizes: Mapping[str, int], specification: Specification | None = None
) -> mlir.RawModule:
    """A copy of a module with static shapes.

    Args:
      module: the module; it is left as it is.
      sizes: a size for each symbol; dims also by place ("arg1.0"), integer scalar arguments by number ("arg0"), unless
        a symbol has that name.
      specification: what the dims are called; by default what the module says.

    Raises:
      SizesError: a name is unknown or missing, or the sizes contradict the module.
    """
    specification = specification or specification_of(module)
    if specification is None:
        raise SizesError("the module has no function @main", next_step="rename its entry point to @main")
    types = _types(specification, sizes)
    fixed = {int(name[3:]): sizes[name] for name in specification.scalars if name in sizes}
    try:
        return mlir.refine_shapes(module, types, fixed=fixed)
    except mlir.RefinementError as error:
        _refuse_open_functions(module)
        told = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise SizesError(
            f"the sizes {told} do not fit the module: {_reason(str(error))}",
            facts="; ".join(specification.lines()),
            next_step="choose sizes for which this holds",
        ) from None


def _types(specification: Specification, sizes: Mapping[str, int]) -> list[str]:
    """The static type of each argument."""
    places = {f"arg{n}.{i}" for n, dims in enumerate(specification.dims) for i, _ in enumerate(dims or ())}
    facts = "; ".join(specification.lines()) or "every argument has a static shape"
    for name, size in sizes.items():
        if name in specification.scalars:
            _refuse_value(name, size, specification.elements[int(name[3:])])
        elif type(size) is not int or not 0 <= size < 1 << 63:
            raise SizesError(f"{name} = {size!r} is no size", next_step=A_SIZE)
    known = {*specification.symbols, *places, *specification.scalars}
    unknown = sorted(set(sizes) - known)
    if unknown:
        named = ", ".join((*specification.symbols, *specification.scalars)) or "none"
        raise SizesError(
            f"the module has no size called {', '.join(unknown)}", facts=facts, next_step=f"names are: {named}"
        )
    missing = [s for s in specification.symbols if s not in sizes and not _is_placed(specification, s, sizes)]
    if missing:
        wanted = ",".join(f"{name}=..." for name in missing)
        raise SizesError(f"no size is given for {', '.join(missing)}", facts=facts, next_step=f"add --bind {wanted}")
    types: list[str] = []
    for n, (text, dims) in enumerate(zip(specification.arguments, specification.dims, strict=True)):
        if dims is None:
            types.append(text)
        else:
            found = [str(_size(n, i, dim, sizes)) for i, dim in enumerate(dims)]
            types.append(f"tensor<{'x'.join((*found, specification.elements[n]))}>")
    return types


def _refuse_value(name: str, value: object, element: str) -> None:
    """Refuse a value that an integer scalar argument of an element type cannot have."""
    bits = int(element.lstrip("sui"))
    low, high = (0, 2**bits - 1) if element.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if type(value) is not int or not low <= value <= high:
        raise SizesError(
            f"{name} = {value!r} is no value of {element}", next_step=f"it is a whole number from {low} to {high}"
        )


def _refuse_open_functions(module: mlir.RawModule) -> None:
    """Say so where a public function besides @main has dynamic shapes: only @main is given sizes."""
    for op in module.body.operations:
        function = op.operation
        if function.name != "func.func" or "sym_visibility" in function.attributes:  # public is what has none
            continue
        name, signature = mlir.symbol_name(function.attributes["sym_name"]), function.opview.type
        tensors = [mlir.read_tensor_type(t) for t in (*signature.inputs, *signature.results)]
        if name != "main" and any(t is not None and not t.is_static for t in tensors):
            raise SizesError(
                f"only @main is given sizes, and the public function @{name} has dynamic shapes, too",
                facts=f"@{name} is {signature}",
                next_step=f"take @{name} out of the module, or make it private",
            )


def _is_placed(specification: Specification, symbol: str, sizes: Mapping[str, int]) -> bool:
    """Whether each dim that a symbol stands in is given by its place."""
    places = [
        f"arg{n}.{i}"
        for n, dims in enumerate(specification.dims)
        for i, dim in enumerate(dims or ())
        if symbol in re.findall(r"[A-Za-z_]\w*", dim)
    ]
    return bool(places) and all(place in sizes for place in places)


def _size(argument: int, dim: int, expression: str, sizes: Mapping[str, int]) -> int:
    place = f"arg{argument}.{dim}"
    if is_place(expression):
        return sizes[expression]
    try:
        size = sizes[place] if place in sizes else evaluate(expression, sizes)
        if place in sizes and all(name in sizes for name in re.findall(r"[A-Za-z_]\w*", expression)):
            found = evaluate(expression, sizes)
            if found != size:
                raise SizesError(f"{place} = {expression} is {found}, not {size}", next_step="give one of them")
    except ExpressionError as error:
        raise SizesError(f"dim {dim} of argument {argument}: {error}") from None
    if size < 0:
        raise SizesError(f"dim {dim} of argument {argument} = {expression} is {size}")
    return size


def _reason(message: str) -> str:
    """The line of jaxlib's message that says what is wrong: the assertion's own words, or the op that does not fit."""
    found = re.search(r"specification\. (.*?) Using the following", message, re.DOTALL)
    if found:
        obtained = re.search(r"Obtained dimension variables: (.*?)\. Please see", message, re.DOTALL)
        told = obtained.group(1).strip(" ,") if obtained else ""
        return found.group(1).rstrip(".") + (f" ({told})" if told else "")
    errors = re.findall(r"error: (?:\"[^\"]*\":\S+ )?(.*)", message)
    return errors[0] if errors else message.splitlines()[0]


def instances(specification: Specification, module: mlir.RawModule, limit: int) -> list[dict[str, int]]:
    """Sizes that fit a module, at most `limit` of them: small ones, apart from each other where that is allowed."""
    return list(islice((s for s in _distinct(_candidates(specification)) if _fits(module, specification, s)), limit))


def _distinct(candidates: Iterator[dict[str, int]]) -> Iterator[dict[str, int]]:
    seen: list[dict[str, int]] = []
    for sizes in candidates:
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def _fits(module: mlir.RawModule, specification: Specification, sizes: Mapping[str, int]) -> bool:
    try:
        bind_module(module, sizes, specification)
    except SizesError:
        return False
    return True


def _candidates(specification: Specification) -> Iterator[dict[str, int]]:
    """Sizes to try, the telling ones first: all different, all equal, multiples of 4 and 16, 1, and sizes that stand
    in the module, which a size may have to be equal to."""
    symbols = specification.symbols
    primes = (3, 2, 5, 7, 11, 13, 17, 19)
    yield {s: primes[i % len(primes)] for i, s in enumerate(symbols)}
    yield {s: primes[-1 - i % len(primes)] for i, s in enumerate(symbols)}
    for size in (4, 1, 2, 6, 8, 16, 32, 64, 128):
        yield dict.fromkeys(symbols, size)
    for k in range(24):
        yield {s: (1, 2, 3, 4, 5, 8)[(k * (i + 1) + i) % 6] for i, s in enumerate(symbols)}
    static = sorted({int(n) for text in specification.arguments for n in re.findall(r"(?<=[<x])\d+(?=x)", text)})
    for chosen in islice(product(static, repeat=len(symbols)), 64):
        yield dict(zip(symbols, chosen, strict=True))
