"""Bind the symbols of a module's shapes to sizes: a module of static shapes, by jaxlib's own shape refinement."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from hlo_lower import mlir
from hlo_lower.shapes.expressions import ExpressionError, evaluate
from hlo_lower.shapes.specification import Specification, is_place, specification_of


class SizesError(ValueError):
    """Sizes that cannot be given to a module: what is wrong, and what the module knows of its shapes."""

    def __init__(self, what: str, facts: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what, self.facts, self.next_step = what, facts, next_step


def parse_sizes(text: str) -> dict[str, int]:
    """Sizes as the command line gives them: "b=4,s=16", "arg1.0=7" for a dim, "arg0=7" for an integer argument.

    Raises:
      SizesError: a part is no NAME=SIZE, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*(?:\.\d+)?)\s*=\s*(\d+)\s*", part)
        if match is None:
            raise SizesError(f"{part.strip()!r} is no NAME=SIZE", next_step="write --bind b=4,s=16")
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
      sizes: a size for each symbol; dims also by place ("arg1.0"), integer scalar arguments by number ("arg0").
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
    return list(
        islice((s for s in _distinct(_candidates(specification.symbols)) if _fits(module, specification, s)), limit)
    )


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


def _candidates(symbols: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Sizes to try, the telling ones first: all different, all equal, multiples of 4 and 16, and 1."""
    primes = (3, 2, 5, 7, 11, 13, 17, 19)
    yield {s: primes[i % len(primes)] for i, s in enumerate(symbols)}
    yield {s: primes[-1 - i % len(primes)] for i, s in enumerate(symbols)}
    for size in (4, 1, 2, 6, 8, 16, 32, 64, 128):
        yield dict.fromkeys(symbols, size)
    for k in range(24):
        yield {s: (1, 2, 3, 4, 5, 8)[(k * (i + 1) + i) % 6] for i, s in enumerate(symbols)}
