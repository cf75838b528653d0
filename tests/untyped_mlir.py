"""MLIR in which nothing is said twice: without types that follow, brackets of tensors and the dialect's name.

`module("%x: 8xf32", "%z = constant 0.0 : 8xf32; %r = maximum %x, %z", "%r")` is a module. A statement ends with its
line or with a semicolon; the type of what it gives stands behind an arrow where it does not follow from its operands.
Regions stand in braces: `while(%i = %z) cond { .. } do { .. }`, `if(%p) { .. } { .. }`, and with the names of their
arguments `sort(%k) <dimension = 0> {%a, %b: .. }`; `{add}` is one of a single operation on two arguments.
A statement that has its types stays as it is.
"""

import re

NUMBERS = {
    "points": "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    "point": "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
    "tile": "update_window_dims = [0], scatter_dims_to_operand_dims = [0]",
    "rows": "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
}
FUNCTIONAL = (
    "bitcast_convert broadcast broadcast_in_dim compare concatenate convert convolution custom_call dot_general "
    "dynamic_slice dynamic_update_slice fft call get_dimension_size imag is_finite pad real reduce reshape rng "
    "slice transpose"
)
"""Operations that are written with an arrow, whatever their types."""
WITHOUT_OPERANDS = "constant", "iota", "create_token", "partition_id"
OF_REGIONS = "while", "if", "case", "scatter", "sort", "map", "reduce", "reduce_window", "gather"


def module(arguments: str, body: str, returned: str, more: str = "") -> str:
    """A module of the public function @main, and what stands behind it."""
    return function("public @main", arguments, body, returned) + more


def function(name: str, arguments: str, body: str, returned: str) -> str:
    """A function."""
    kinds = dict(re.findall(r"(%\w+): ([^\s,]+)", arguments))
    declared = re.sub(r"(%\w+: )([^\s,]+)", lambda found: found[1] + tensor(found[2]), arguments)
    lines = block(body, kinds)
    results = typed(returned, kinds)
    made = f"({results})" if ", " in results else results
    return f"func.func {name}({declared}) -> {made} {{\n{lines}\nreturn {returned} : {results}\n}}\n"


def tensor(kind: str) -> str:
    """A type with the brackets of a tensor."""
    return kind if kind.startswith(("tensor<", "!")) else f"tensor<{kind}>"


def bare(kind: str) -> str:
    """A type without them."""
    return kind[7:-1] if kind.startswith("tensor<") else kind


def typed(values: str, kinds: dict[str, str]) -> str:
    """The types of values."""
    return ", ".join(tensor(kinds[value]) for value in re.findall(r"%[\w#]+", values))


def split(kind: str) -> tuple[list[str], str]:
    """The sizes of a type, and its element."""
    sizes, element = re.fullmatch(r"((?:(?:\d+|\?)x)*)(.+)", bare(kind)).groups()
    return sizes.split("x")[:-1], element


def parts_of(text: str, ends: str) -> list[str]:
    """The parts of a text between these characters, where no bracket is open."""
    depth, start, found = 0, 0, []
    for k, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>" and text[k - 1] != "-")
        if character in ends and depth == 0:
            found.append(text[start:k])
            start = k + 1
    return [part.strip() for part in (*found, text[start:]) if part.strip()]


def block(body: str, kinds: dict[str, str]) -> str:
    """The statements of a body with their types; those of its values are added to the known ones."""
    return "\n".join(statement(line, kinds) for line in parts_of(body, ";\n"))


def statement(line: str, kinds: dict[str, str]) -> str:
    """A statement with its types."""
    left, _, right = line.partition(" = ") if line[0] == "%" else ("", "", line)
    name, rest = re.fullmatch(r'([\w."]+) ?(.*)', right, re.DOTALL).groups()
    full = name if "." in name else f"func.{name}" if name == "call" else f"stablehlo.{name}"
    if name == "return":
        return f"{full} {rest}" + (f" : {typed(rest, kinds)}" if rest else "")
    if name == "gather" or (name in OF_REGIONS and "{" in rest):
        text, results = of_regions(name, rest, kinds)
    elif re.search(r": (\(|tensor|!)", rest):
        text, results = f"{full} {rest}", parts_of(re.split(r"-> | : ", rest)[-1].strip("()"), ",")
    else:
        text, results = plain(name, rest, kinds)
        text = f"{full} {text}"
    values = left.split(", ") if ":" not in left else [f"{left.split(':')[0]}#{k}" for k in range(int(left[-1]))]
    kinds.update(zip(values, map(bare, results), strict=bool(left)))
    return f"{left} = {text}" if left else text


def plain(name: str, rest: str, kinds: dict[str, str]) -> tuple[str, list[str]]:
    """A statement without regions, and the types of what it gives."""
    if name in WITHOUT_OPERANDS:
        head, _, kind = rest.rpartition(": ")
        return f"{f'dense<{head.rstrip()}>' if name == 'constant' else head} : {tensor(kind)}", [kind]
    head, arrow, told = rest.partition(" -> ")
    values = re.findall(r"%[\w#]+", head)
    if name == "reduce":
        values = values[::2] + values[1::2]
    given = [kinds[value] for value in values]
    results = parts_of(told.strip("()"), ",") if arrow else [result_of(name, head, given)]
    if name == "select":
        return f"{head} : {tensor(given[0])}, {tensor(given[1])}", results
    if name not in FUNCTIONAL.split() and len({*given, *results}) == 1:
        return f"{head} : {tensor(results[0])}", results
    of, to = (", ".join(map(tensor, types)) for types in (given, results))
    return f"{head} : ({of}) -> {to if len(results) == 1 else f'({to})'}", results


def result_of(name: str, head: str, given: list[str]) -> str:
    """The type that follows from those of the operands."""
    sizes, element = split(given[0])
    listed = [part.split(", ") for part in re.findall(r"\[([^\]]*)\]", head)]
    if name == "compare":
        return "x".join([*sizes, "i1"])
    if name in ("select", "clamp"):
        return given[1]
    if name == "get_dimension_size":
        return "i32"
    if name == "slice":
        ends = [[*map(int, run.split(":")), 1][:3] for run in listed[0]]
        sizes = [str(-((begin - end) // step)) for begin, end, step in ends]
    if name == "dynamic_slice":
        sizes = listed[0]
    if name == "transpose":
        sizes = [sizes[int(dim)] for dim in listed[0]]
    if name == "reduce":
        sizes = [size for dim, size in enumerate(sizes) if str(dim) not in listed[0]]
    if name == "dot_general":
        dims = [[int(dim) for dim in part if dim] for part in listed]
        left, right, first, second = dims[:4] if "batching_dims" in head else ([], [], *dims[:2])
        others = split(given[1])[0]
        batch = [sizes[dim] for dim in left]
        sizes = [size for dim, size in enumerate(sizes) if dim not in (*left, *first)]
        sizes = batch + sizes + [size for dim, size in enumerate(others) if dim not in (*right, *second)]
    return "x".join([*sizes, element])


def of_regions(name: str, rest: str, kinds: dict[str, str]) -> tuple[str, list[str]]:
    """A statement with regions, and the types of what it gives."""
    depth, start, regions = 0, 0, []
    for k, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        start = k + 1 if character == "{" and depth == 1 else start
        regions += [rest[start:k]] if character == "}" and depth == 0 else []
    operands, rest = rest[1:].split(")", 1)
    values = re.findall(r"%[\w#]+", operands)
    if name == "while":
        given = [kinds[value] for value in values[1::2]]
        kinds.update(zip(values[::2], given, strict=True))
        cond, turn = (block(region, dict(kinds)) for region in regions)
        types = ", ".join(map(tensor, given))
        return f"stablehlo.while({operands}) : {types} cond {{\n{cond}\n}} do {{\n{turn}\n}}", given
    given = [kinds[value] for value in values]
    told, half = rest.partition("{")[0], len(given) // 2
    results = {"sort": given, "map": given[:1], "reduce": []}.get(name, given[:half])
    written = []
    if name in ("if", "case"):
        for region in regions:
            within = dict(kinds)
            written.append(f"{{\n{block(region, within)}\n}}")
            results = [within[value] for value in re.findall(r"%[\w#]+", region.rpartition("return")[2])]
    elif regions:
        elements = [split(kind)[1] for kind in given]
        taken = {"sort": [e for e in elements for _ in "ab"], "map": elements, "scatter": elements[:half] * 2}
        names, colon, body = regions[0].partition(":") if regions[0].lstrip()[0] == "%" else ("%lhs, %rhs", "", "")
        body = body if colon else f"%both = {regions[0]} %lhs, %rhs; return %both"
        own = dict(zip(names.strip().split(", "), taken.get(name, elements[half:] * 2), strict=True))
        declared = ", ".join(f"{value}: {tensor(kind)}" for value, kind in own.items())
        written = [f"{{\n^bb0({declared}):\n{block(body, kinds | own)}\n}}"]
    head, arrow, of_results = rest.rpartition("}")[2].rpartition(" -> ")
    if arrow:
        results = parts_of(of_results.strip("()"), ",")
    told = told if regions else head
    told = told.strip().removeprefix("<").removesuffix(">")
    prefix = "" if name == "gather" else "scatter_"
    for word, numbers in NUMBERS.items():
        told = re.sub(rf"\b{word}\b", f"{prefix}dimension_numbers = #stablehlo.{name}<{numbers}>", told)
    attributes = f" <{{{told}}}>" if told else ""
    of, to = (", ".join(map(tensor, types)) for types in (given, results))
    body = f" ({', '.join(written)})" if written else ""
    return f'"stablehlo.{name}"({operands}){attributes}{body} : ({of}) -> ({to})', results
