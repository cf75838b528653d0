"""Write cases as MLIR: one as a module of its own, or several as functions of one module that @main calls.

One parse, one lowering and one compilation then serve all of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.drawn_types import tensor_type
from hlo_lower.testing.fuzz.index_columns import compute
from hlo_lower.testing.fuzz.update_computations import region_text


@dataclass(frozen=True)
class CaseText:
    """A case as a function."""

    arguments: tuple[str, ...]  # types of its arguments: operands, updates, those of the indices, captured values
    results: tuple[str, ...]  # types of its results
    function: str  # the text, from "func.func" on; helper functions follow it


def case_text(case: Case, symbol: str = "main") -> CaseText:
    """Write a case as a function, public if it is @main."""
    form, region = case.form, case.region
    big, small = ([tensor_type(shape, e) for e in case.operands] for shape in (form.operand, form.updates))
    results = [tensor_type(form.operand, e) for e in region.elements]
    index = tensor_type(form.indices, case.final_index_type)
    arguments = [(f"%o{i}", t) for i, t in enumerate(big)] + [(f"%w{i}", t) for i, t in enumerate(small)]
    lines, extra, indices = _indices(case)
    arguments += extra
    captured = [f"%x{e.number}" for e in region.captured_values]
    arguments += [(f"%x{e.number}", tensor_type((), e.element)) for e in region.captured_values]
    told = region_text(region, f"{symbol}_region", captured)
    operands = [f"%o{i}" for i in range(len(big))], [f"%w{i}" for i in range(len(small))]
    names = ", ".join((*operands[0], indices, *operands[1]))
    count = f":{len(results)}" if len(results) > 1 else ""
    returned = ", ".join(f"%r#{i}" if count else "%r" for i in range(len(results)))
    visibility = "public" if symbol == "main" else "private"
    body = [
        *lines,
        *told.around,
        f'%r{count} = "stablehlo.scatter"({names}) <{{scatter_dimension_numbers = {numbers_text(case)}}}> ({{',
        *told.body,
        f"}}) : ({', '.join((*big, index, *small))}) -> {_results(results)}",
        f"return {returned} : {', '.join(results)}",
    ]
    header = f"func.func {visibility} @{symbol}({_parameter_list(arguments)}) -> {_results(results)} {{"
    text = "\n".join((header, *(f"  {line}" for line in body), "}", *told.functions))
    return CaseText(tuple(t for _, t in arguments), tuple(results), text)


def module_text(cases: Sequence[Case]) -> str:
    """A module whose @main takes the arguments of all cases, in order, and returns all their results."""
    if len(cases) == 1:
        return case_text(cases[0]).function + "\n"
    texts = [case_text(case, f"case{n}") for n, case in enumerate(cases)]
    declared, lines, returned, functions = list[tuple[str, str]](), list[str](), list[str](), list[str]()
    for n, text in enumerate(texts):
        names = [f"%a{n}_{k}" for k in range(len(text.arguments))]
        declared += zip(names, text.arguments, strict=True)
        count = len(text.results)
        suffix = f":{count}" if count > 1 else ""
        types = f"({', '.join(text.arguments)}) -> {_results(text.results)}"
        lines.append(f"  %r{n}{suffix} = func.call @case{n}({', '.join(names)}) : {types}")
        returned += [f"%r{n}#{k}" if count > 1 else f"%r{n}" for k in range(count)]
        functions.append(text.function)
    results = [t for text in texts for t in text.results]
    header = f"func.func public @main({_parameter_list(declared)}) -> {_results(results)} {{"
    end = f"  return {', '.join(returned)} : {', '.join(results)}"
    return "\n".join((header, *lines, end, "}", *functions)) + "\n"


def numbers_text(case: Case) -> str:
    """`#stablehlo.scatter<...>`."""
    numbers = case.form.numbers
    fields = {
        "update_window_dims": numbers.update_window_dims,
        "inserted_window_dims": numbers.inserted_window_dims,
        "input_batching_dims": numbers.input_batching_dims,
        "scatter_indices_batching_dims": numbers.scatter_indices_batching_dims,
        "scatter_dims_to_operand_dims": numbers.scatter_dims_to_operand_dims,
    }
    told = [f"{name} = {list(value)}" for name, value in fields.items() if value]
    return f"#stablehlo.scatter<{', '.join((*told, f'index_vector_dim = {numbers.index_vector_dim}'))}>"


def _parameter_list(arguments: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in arguments)


def _results(types: Sequence[str]) -> str:
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def _indices(case: Case) -> tuple[list[str], list[tuple[str, str]], str]:
    """Lines that compute the index tensor, the arguments that they take, and its name."""
    form, final = case.form, case.final_index_type
    if case.is_direct:
        return [], [("%i", tensor_type(form.indices, final))], "%i"
    lines, arguments, parts = list[str](), list[tuple[str, str]](), list[str]()
    positions, ivd = form.positions, form.index_vector_dim
    spread = tensor_type((*positions[:ivd], 1, *positions[ivd:]), final)
    for k, column in enumerate(form.columns):
        shape = column.argument_shape(positions)
        if shape is not None:
            arguments.append((f"%i{k}", tensor_type(shape, case.index_type)))
        told, name, _ = compute(column, positions, case.index_type, form.extent(column), (f"%i{k}", None), f"v{k}_")
        lines += told
        if case.converted:
            types = f"({tensor_type(positions, case.index_type)}) -> {tensor_type(positions, final)}"
            lines.append(f"%z{k} = stablehlo.convert {name} : {types}")
            name = f"%z{k}"
        if not form.implicit:
            dims = [d + (d >= ivd) for d in range(len(positions))]
            types = f"({tensor_type(positions, final)}) -> {spread}"
            lines.append(f"%s{k} = stablehlo.broadcast_in_dim {name}, dims = {dims} : {types}")
            name = f"%s{k}"
        parts.append(name)
    if len(parts) == 1:
        return lines, arguments, parts[0]
    index = tensor_type(form.indices, final)
    if not parts:
        return [f"%i = stablehlo.constant dense<> : {index}"], [], "%i"
    types = f"({', '.join([spread] * len(parts))}) -> {index}"
    lines.append(f"%i = stablehlo.concatenate {', '.join(parts)}, dim = {ivd} : {types}")
    return lines, arguments, "%i"
