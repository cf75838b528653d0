"""StableHLO in short: MLIR without the dialect's name, without `tensor<..>`, and without types that follow.

    module("%x: 8xf32, %i: i32, %u: 3xf32", '''
        %start = clamp 0, %i, 5
        %at = reshape %start -> 1xi32
        %s = scatter(%x, %at, %u) <window=[0], to=[0]> {%c, %d: %n = multiply %c, %d; return %n}
        %zero = constant 0 : i32
        %w:2 = while(%k = %zero, %v = %s) cond { %p = compare LT, %k, 9; return %p } do {
          %next = add %k, 1; %y = negate %v
          return %next, %y
        }
        return %w#1''')

A text is read as MLIR is, with these differences:

1. A statement ends with its line or with a semicolon, where no bracket is open.
2. `8xf32` is `tensor<8xf32>`. The operations of StableHLO are written without `stablehlo.`.
3. Types are left out where they follow from those of the operands. Where they do not, the type of the result stands
   behind an arrow (`reshape %a -> 1xi32`, `call @f(%a) -> (f32, i32)`), or all types stand behind a colon, as in MLIR.
4. A constant needs no `dense<..>`: `constant 0.0 : 8xf32`, and `constant [] : 0xi32` for the empty one.
5. A number among the operands is a constant of the type of the last operand that has a name, or an i32 where it is a
   start of `dynamic_slice` and `dynamic_update_slice`.
6. Regions stand in braces: `while(%i = %z) cond {..} do {..}`, `if(%p) {..} {..}`, `case(%k) {..} {..} {..}`, and with
   the names of their arguments `sort(%k) <dimension = 0> {%a, %b: ..}`; so do those of `map`, `reduce`, `reduce_window`
   and `scatter`. Arguments of other types than the operands' are written as in MLIR: `{^bb0(%a: f32, %b: f32): ..}`.
7. `{add}` is a region of that operation on the first argument and the second (or, of several operands, on each pair),
   `{assign}` returns the second, and `{LT}` compares the first two.
8. Between `<` and `>` stand the attributes; a scatter's dimension numbers may be shortened as in `SHORT_NUMBERS`.
9. A function without `return` returns what its caller names, by default `%r`.

What does not keep to this is a `NotationError`, which quotes the statement. The types that stand in the text are left
to MLIR's parser to check.
"""

import re
from collections.abc import Sequence

SHORT_NUMBERS = {
    "window": "update_window_dims",
    "inserted": "inserted_window_dims",
    "batching": "input_batching_dims",
    "indices_batching": "scatter_indices_batching_dims",
    "to": "scatter_dims_to_operand_dims",
    "ivd": "index_vector_dim",
}
"""How a scatter's dimension numbers are shortened: `window=[0]` is `update_window_dims = [0]`."""
NAMED = (
    "bitcast_convert broadcast broadcast_in_dim call composite convert convolution custom_call "
    "dynamic_broadcast_in_dim dynamic_iota dynamic_reshape fft gather imag map pad real reduce_window reshape rng"
)
"""Operations whose result has a type that is written behind an arrow."""
FUNCTIONAL = (
    f"{NAMED} compare concatenate dot_general dynamic_slice dynamic_update_slice get_dimension_size is_finite reduce "
    "slice transpose"
)
"""Operations that MLIR writes with an arrow, whatever their types."""
WITHOUT_OPERANDS = "constant", "iota", "create_token", "partition_id"
OF_REGIONS = "while", "if", "case", "scatter", "sort", "map", "reduce", "reduce_window", "gather"
VALUE = r"%[\w$.]+(?:#\d+)?"
NUMBER = r"(?:-?\d[\w.+-]*|true|false)"
ELEMENT = r"(?:(?:ui|i|bf|f)\d+\w*|complex<\w+>|index)"


class NotationError(ValueError):
    """A text that is no module in this notation: what is wrong, and the statement in which it is."""

    def __init__(self, reason: str, line: str = ""):
        super().__init__(f"{reason}: {line}" if line else reason)
        self.line = line


def module(arguments: str, body: str, returned: str = "%r", more: str = "") -> str:
    """A module of the public function @main, and the text of what stands behind it."""
    return function("public @main", arguments, body, returned) + more


def function(name: str, arguments: str, body: str, returned: str = "%r") -> str:
    """A function, of a name such as `private @f`."""
    kinds = dict(re.findall(r"(%\w+): ([^\s,]+)", arguments))
    declared = re.sub(r"(%\w+: )([^\s,]+)", lambda found: found[1] + tensor(found[2]), arguments)
    statements = parts_of(body, ";\n")
    if statements and re.match(r"return\b", statements[-1]):
        returned = statements.pop()[len("return") :].strip()
    lines = "\n".join(statement(line, kinds) for line in statements)
    try:
        results = known(returned, kinds)
    except NotationError as error:
        raise NotationError(str(error), f"return {returned}") from None
    types = ", ".join(map(tensor, results))
    told = f"return {returned} : {types}" if results else "return"
    made = types if len(results) == 1 else f"({types})"
    return f"func.func {name}({declared}) -> {made} {{\n{lines}\n{told}\n}}\n"


def of(sizes: Sequence[object], element: str) -> str:
    """A type of these sizes."""
    return "x".join([*map(str, sizes), element])


def split(kind: str) -> tuple[list[str], str]:
    """The sizes of a type, and its element."""
    sizes, element = re.fullmatch(r"((?:(?:\d+|\?)x)*)(.+)", bare(kind)).groups()
    return sizes.split("x")[:-1], element


def tensor(kind: str) -> str:
    """A type with the brackets of a tensor."""
    return kind if kind.startswith(("tensor<", "tuple<", "!")) else f"tensor<{kind}>"


def bare(kind: str) -> str:
    """A type without them."""
    return kind[7:-1] if kind.startswith("tensor<") else kind


def in_full(types: str) -> str:
    """A text of types with the brackets of each tensor."""
    return re.sub(rf"(?<![\w<@%.])((?:(?:\d+|\?)x)*{ELEMENT})(?![\w>])", r"tensor<\1>", types)


def known(text: str, kinds: dict[str, str]) -> list[str]:
    """The types of the values that a text names."""
    values = re.findall(VALUE, text)
    for value in values:
        if value not in kinds:
            raise NotationError(f"nothing defines {value} before")
    return [kinds[value] for value in values]


def parts_of(text: str, ends: str) -> list[str]:
    """The parts of a text between these characters, where no bracket is open."""
    depth, start, found = 0, 0, []
    for k, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>" and text[k - 1] != "-")
        if depth < 0:
            raise NotationError("a bracket is closed that is not open", text[start : k + 1].strip())
        if character in ends and depth == 0:
            found.append(text[start:k])
            start = k + 1
    if depth:
        raise NotationError("a bracket is not closed", text[start:].strip())
    return [part.strip() for part in (*found, text[start:]) if part.strip()]


def types_of(rest: str) -> str:
    """What stands behind the colon of a statement, where no bracket is open; nothing where there is none."""
    *before, last = parts_of(rest, ":")
    return last if before and rest.endswith(f" : {last}") else ""


def block(body: str, kinds: dict[str, str]) -> str:
    """The statements of a region with their types; those of its values are added to the known ones."""
    return "\n".join(statement(line, kinds) for line in parts_of(body, ";\n"))


def statement(line: str, kinds: dict[str, str]) -> str:
    """A statement with its types."""
    try:
        return _statement(line, kinds)
    except NotationError as error:
        raise error if error.line else NotationError(str(error), line) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise NotationError("this is not understood", line) from error


def _statement(line: str, kinds: dict[str, str]) -> str:
    left, _, right = line.partition(" = ") if line[0] == "%" else ("", "", line)
    name, rest = re.fullmatch(r'([\w."]+) ?(.*)', right, re.DOTALL).groups()
    full = name if "." in name else f"func.{name}" if name == "call" else f"stablehlo.{name}"
    if name == "return":
        given = ", ".join(map(tensor, known(line, kinds)))
        return f"{full} {rest}" + (f" : {given}" if given else "")
    values = left.split(", ") if left else []
    if ":" in left:
        values = [f"{left.split(':')[0]}#{k}" for k in range(int(left.split(":")[1]))]
    constants = ""
    if name in OF_REGIONS and ("{" in rest or name == "gather"):
        text, results = of_regions(name, rest, kinds)
    elif name not in WITHOUT_OPERANDS and (types := types_of(rest)):
        text = f"{full} {rest.removesuffix(types)}{in_full(types)}"
        results = parts_of(types.rpartition("-> ")[2].strip("()"), ",")
        results = results if len(results) == len(values) else results[-1:] * len(values)
    else:
        constants, rest = with_constants(name, rest, kinds)
        text, results = plain(name, rest, kinds)
        text = f"{full} {text}"
    if left and len(values) != len(results):
        raise NotationError(f"names for {len(values)} results, but there are {len(results)}")
    kinds.update(zip(values, map(bare, results), strict=bool(left)))
    return constants + (f"{left} = {text}" if left else text)


def with_constants(name: str, rest: str, kinds: dict[str, str]) -> tuple[str, str]:
    """The constants among the operands of a statement, each a line, and the statement's rest with their names."""
    values, lines = re.findall(VALUE, rest), []
    if name in WITHOUT_OPERANDS or not values:
        return "", rest
    parts = parts_of(rest, ",")
    for k, part in enumerate(parts):
        if re.fullmatch(NUMBER, part):
            kind = "i32" if name.startswith("dynamic_") else known(rest, kinds)[-1]
            parts[k] = f"%_{len(kinds)}"
            lines.append(_statement(f"{parts[k]} = constant {part} : {kind}", kinds) + "\n")
    return "".join(lines), ", ".join(parts) if lines else rest


def plain(name: str, rest: str, kinds: dict[str, str]) -> tuple[str, list[str]]:
    """A statement without regions, and the types of what it gives."""
    if name in WITHOUT_OPERANDS:
        head, _, kind = rest.rpartition(": ")
        head = head.rstrip()
        if name == "constant" and "dense<" not in head:
            head = "dense<>" if head == "[]" else f"dense<{head}>"
        return f"{head} : {tensor(kind)}", [kind]
    head, arrow, told = rest.partition(" -> ")
    given = known(head, kinds)
    if name == "reduce":
        given = given[::2] + given[1::2]
    if name == "optimization_barrier":
        return f"{head} : {', '.join(map(tensor, given))}", given
    if name in NAMED.split() and not arrow:
        raise NotationError("the type of the result is wanted behind an arrow")
    results = parts_of(told.strip("()"), ",") if arrow else [result_of(name, head, given)]
    if name == "select":
        return f"{head} : {tensor(given[0])}, {tensor(given[1])}", results
    if name not in FUNCTIONAL.split() and len({*given, *results}) == 1:
        return f"{head} : {tensor(results[0])}", results
    before, to = (", ".join(map(tensor, types)) for types in (given, results))
    return f"{head} : ({before}) -> {to if len(results) == 1 else f'({to})'}", results


def result_of(name: str, head: str, given: list[str]) -> str:
    """The type that follows from those of the operands."""
    sizes, element = split(given[0])
    listed = [part.split(", ") for part in re.findall(r"\[([^\]]*)\]", head)]
    if name in ("compare", "is_finite"):
        return of(sizes, "i1")
    if name in ("select", "clamp"):
        return given[1]
    if name == "get_dimension_size":
        return "i32"
    if name == "slice":
        ends = [[*map(int, run.split(":")), 1][:3] for run in listed[0]]
        sizes = [-((begin - end) // step) for begin, end, step in ends]
    if name == "dynamic_slice":
        sizes = listed[0]
    if name == "transpose":
        sizes = [sizes[int(dim)] for dim in listed[0]]
    if name == "concatenate":
        dim = int(re.search(r"dim = (\d+)", head)[1])
        sizes[dim] = sum(int(split(kind)[0][dim]) for kind in given)
    if name == "reduce":
        sizes = [size for dim, size in enumerate(sizes) if str(dim) not in listed[0]]
    if name == "dot_general":
        dims = [[int(dim) for dim in part if dim] for part in listed]
        left, right, first, second = dims[:4] if "batching_dims" in head else ([], [], *dims[:2])
        others = split(given[1])[0]
        batch = [sizes[dim] for dim in left]
        sizes = [size for dim, size in enumerate(sizes) if dim not in (*left, *first)]
        sizes = batch + sizes + [size for dim, size in enumerate(others) if dim not in (*right, *second)]
    return of(sizes, element)


def of_regions(name: str, rest: str, kinds: dict[str, str]) -> tuple[str, list[str]]:
    """A statement with regions, and the types of what it gives."""
    depth, start, regions = 0, 0, []
    for k, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        start = k + 1 if character == "{" and depth == 1 else start
        regions += [rest[start:k]] if character == "}" and depth == 0 else []
    if rest[0] != "(":
        raise NotationError("the operands are wanted in brackets")
    operands, rest = rest[1:].split(")", 1)
    if name == "while":
        given = known(", ".join(re.findall(rf"= ({VALUE})", operands)), kinds)
        within = {**kinds, **dict(zip(re.findall(rf"({VALUE}) =", operands), given, strict=True))}
        cond, turn = (block(region, dict(within)) for region in regions)
        types = ", ".join(map(tensor, given))
        return f"stablehlo.while({operands}) : {types} cond {{\n{cond}\n}} do {{\n{turn}\n}}", given
    given = known(operands, kinds)
    told, half = rest.partition("{")[0], len(given) // 2
    results = {"sort": given, "map": given[:1], "scatter": given[:half]}.get(name, [])
    written = []
    if name in ("if", "case"):
        for region in regions:
            within = dict(kinds)
            written.append(f"{{\n{block(region, within)}\n}}")
            results = [within[value] for value in re.findall(VALUE, region.rpartition("return")[2])]
    elif regions:
        elements = [split(kind)[1] for kind in given]
        taken = {"sort": [e for e in elements for _ in "ab"], "map": elements, "scatter": elements[:half] * 2}
        written = [region_of(regions[0], taken.get(name, elements[half:] * 2), kinds)]
    head, arrow, of_results = rest.rpartition("}")[2].rpartition(" -> ")
    if arrow:
        results = parts_of(of_results.strip("()"), ",")
    elif not results and name not in ("if", "case"):
        raise NotationError("the type of the result is wanted behind an arrow")
    told = (told if regions else head).strip().removeprefix("<").removesuffix(">")
    attributes = f" <{{{numbers_of(told)}}}>" if told else ""
    before, to = (", ".join(map(tensor, types)) for types in (given, results))
    body = f" ({', '.join(written)})" if written else ""
    return f'"stablehlo.{name}"({operands}){attributes}{body} : ({before}) -> ({to})', results


def region_of(text: str, elements: list[str], kinds: dict[str, str]) -> str:
    """A region with arguments: of these elements, unless it says others."""
    if declared := re.match(r"\s*\^bb0\((.*?)\):", text):
        own, body = dict(re.findall(r"(%\w+): ([^\s,]+)", declared[1])), text[declared.end() :]
    elif named := re.match(rf"\s*((?:{VALUE}(?:, )?)+):", text):
        names, body = named[1].split(", "), text[named.end() :]
        if len(names) != len(elements):
            raise NotationError(f"names for {len(names)} arguments of a region, but it has {len(elements)}")
        own = dict(zip(names, elements, strict=True))
    elif re.fullmatch(r"\s*\w+\s*", text):
        own = {f"%_{len(kinds)}_{k}": element for k, element in enumerate(elements)}
        body = combined(text.strip(), list(own))
    else:
        raise NotationError("a region begins with the names of its arguments, or is one word")
    header = ", ".join(f"{value}: {tensor(kind)}" for value, kind in own.items())
    return f"{{\n^bb0({header}):\n{block(body, {**kinds, **own})}\n}}"


def combined(word: str, arguments: list[str]) -> str:
    """The body of a region of one word."""
    firsts, seconds = arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]
    if word == "assign":
        return f"return {', '.join(seconds)}"
    if word.isupper():
        return f"{arguments[0]}_ = compare {word}, {arguments[0]}, {arguments[1]}; return {arguments[0]}_"
    lines = [f"{one}_ = {word} {one}, {two}" for one, two in zip(firsts, seconds, strict=True)]
    return "; ".join([*lines, f"return {', '.join(f'{one}_' for one in firsts)}"])


def numbers_of(attributes: str) -> str:
    """Attributes with the dimension numbers of a scatter, where they are shortened, in full."""
    parts = parts_of(attributes, ",")
    short = [part.partition("=") for part in parts if part.partition("=")[0] in SHORT_NUMBERS]
    if not short:
        return attributes
    numbers = ", ".join(f"{SHORT_NUMBERS[name]} = {value}" for name, _, value in short)
    rest = [part for part in parts if part.partition("=")[0] not in SHORT_NUMBERS]
    return ", ".join([f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>", *rest])
