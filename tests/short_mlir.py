"""StableHLO in short: ops without their dialect, types only where nothing implies them, constants in place.

    function("%x: 8xf32, %i: i32, %u: 3xf32", '''
        %start = clamp 0, %i, 5
        %at = reshape %start -> 1xi32
        %r = scatter %x, %at, %u, window=[0], to=[0] { %c, %v:
          %n = multiply %c, %v
          return %n
        }''')

A line may give the type of its result after " -> ", or all of its types after " : "; "; " ends a line as well. With no
`return`, `%r` is returned. A region follows `if %p {` and `case %k {` (more after `}, {`), `while %i = %a, %j = %b {`
(its body after `} do {`), and `scatter`, `sort`, `reduce` with `{ %a, %b:`, the names of its arguments. A region of one
op is `{add}`, of another element type `{add f32}`; one that returns the update is `{assign}`, and a comparator `{LT}`.
Any other op with a region is written as MLIR has it: `"stablehlo.map"(%a) <{...}> ({`, `^bb0(%b: f32):`, and after its
lines `}) : (6xf32) -> 6xf32`.
"""

import re
from collections.abc import Callable, Sequence

NUMBERS = {
    "window": "update_window_dims",
    "inserted": "inserted_window_dims",
    "batching": "input_batching_dims",
    "indices_batching": "scatter_indices_batching_dims",
    "to": "scatter_dims_to_operand_dims",
    "ivd": "index_vector_dim",
}
ELEMENT = r"(?:(?:ui|i|bf|f)\d+\w*|complex<\w+>|index)"
VALUE = r"%[\w$.]+(?:#\d+)?"
NUMBER = r"(?:-?\d[\w.+-]*|true|false)"


def full(text: str) -> str:
    """Types in full: `6xf32` is `tensor<6xf32>`."""
    return re.sub(rf"(?<![\w<@%.])((?:(?:\d+|\?)x)*{ELEMENT})(?![\w>])", r"tensor<\1>", text)


def parted(kind: str) -> tuple[list[str], str]:
    """The sizes and the element type of a type."""
    sizes, element = re.fullmatch(r"((?:(?:\d+|\?)x)*)(.+)", kind).groups()
    return sizes.split("x")[:-1], element


def of(sizes: Sequence[object], element: str) -> str:
    """A type of these sizes."""
    return "x".join([*map(str, sizes), element])


def function(arguments: str, lines: str, name: str = "main", visibility: str = "") -> str:
    """A function of these arguments and lines; only @main is public."""
    writer = _Writer()
    found = re.findall(r"(%\w+): ([^\s,]+)((?: \{[^}]*\})?)", arguments)
    writer.types.update((argument, kind) for argument, kind, _ in found)
    for line in re.split(r"\n|; ", lines):
        writer.add(line.strip())
    if not writer.returned:
        writer.add("return %r")
    header = ", ".join(f"{argument}: {full(kind)}{notes}" for argument, kind, notes in found)
    visibility = visibility or ("public" if name == "main" else "private")
    results = full(", ".join(writer.returned))
    body = "\n".join(writer.written)
    return f"func.func {visibility} @{name}({header}) -> ({results}) {{\n{body}\n}}\n"


class _Writer:
    def __init__(self):
        self.types: dict[str, str] = {}
        self.written: list[str] = []
        self.open: list[tuple[str, Callable[[list[str]], tuple[str, list[str]]]]] = []
        self.returned: list[str] = []

    def add(self, line: str) -> None:
        """Write one line in full."""
        assigned = re.match(r"((?:%[\w$.]+(?::\d+)?(?:, )?)+) = (.*)", line)
        if line.startswith("return"):
            self.give(re.findall(VALUE, line))
        elif line == "}" and self.open:
            names, end = self.open.pop()
            text, results = end(self.returned)
            self.written.append(text)
            self.name(names, results)
            self.returned = []
        elif line.startswith("^"):
            self.types.update(re.findall(r"(%\w+): ([^\s,)]+)", line))
            self.written.append(full(line))
        elif line.startswith("})"):
            names, _ = self.open.pop()
            self.written.append(full(line))
            self.name(names, line.rsplit("-> ", 1)[1].strip("()").split(", "))
            self.returned = []
        elif assigned:
            self.assign(*assigned.groups())
        else:
            self.written.append(line)

    def give(self, values: list[str]) -> None:
        """Return values from the function or region."""
        self.returned = [self.types[value] for value in values]
        told = f" {', '.join(values)} : {full(', '.join(self.returned))}" if values else ""
        self.written.append(f"{'stablehlo.' if self.open else ''}return{told}")

    def name(self, names: str, kinds: Sequence[str]) -> None:
        """Note the types of results."""
        if ":" in names:
            self.types.update((f"{names.split(':')[0]}#{n}", kind) for n, kind in enumerate(kinds))
        else:
            self.types.update(zip(names.split(", "), kinds, strict=True))

    def assign(self, names: str, text: str) -> None:
        """Write a line that defines something."""
        if constant := re.fullmatch(rf"({NUMBER}|\[.*\]) : (.+)", text):
            value = "" if constant[1] == "[]" else constant[1]
            self.written.append(f"{names} = stablehlo.constant dense<{value}> : {full(constant[2])}")
            return self.name(names, [constant[2]])
        if text.startswith('"') and text.endswith("({"):
            self.open.append((names, lambda _: ("", [])))
            self.written.append(f"{names} = {text}")
            return None
        op, rest = text.split(" ", 1)
        if text.endswith(("{", ":")) or (text.endswith("}") and op in ("scatter", "sort", "reduce")):
            return self.region(names, op, rest)
        rest = self.with_constants(op, rest)
        operands = [self.types.get(value, "") for value in re.findall(VALUE, f"{op} {rest}")]
        if " : " in rest:
            rest, kinds = rest.rsplit(" : ", 1)
            kinds = re.sub(r"^([^()]+) ->", r"(\1) ->", kinds)
            results = kinds.rsplit("-> ", 1)[-1].strip("()").split(", ")
            results = results if "->" in kinds else [results[-1]] * max(1, names.count("%"))
        elif " -> " in rest:
            rest, result = rest.rsplit(" -> ", 1)
            kinds, results = f"({', '.join(operands)}) -> {result}", result.strip("()").split(", ")
        else:
            kinds, results = _implied(op, rest, operands)
        dialect = "func." if op == "call" else "" if "." in op or op.startswith('"') else "stablehlo."
        self.written.append(f"{names} = {dialect}{op} {rest} : {full(kinds)}")
        return self.name(names, [re.sub(r"^tensor<(.*)>$", r"\1", kind) for kind in results])

    def with_constants(self, op: str, rest: str) -> str:
        """Give the numbers among the operands names."""
        values = re.findall(VALUE, rest)
        if not values or " : " in rest:
            return rest
        kind = "i32" if op.startswith("dynamic_") else self.types[values[-1 if op == "select" else 0]]

        def named(number: re.Match[str]) -> str:
            name = f"%_{len(self.written)}"
            self.assign(name, f"{number[2]} : {kind}")
            return number[1] + name

        operands, attributes = re.fullmatch(r"(.*?)((?:, \w+ = | ?[\[{]).*)?", rest).groups()
        return re.sub(rf"(^|, )({NUMBER})(?=,|$)", named, operands) + (attributes or "")

    def region(self, names: str, op: str, rest: str) -> None:
        """Begin an op that has regions; one of a single op is written at once."""
        if op == "while":
            carried = re.findall(rf"(%\w+) = ({VALUE})", rest)
            kinds = [self.types[value] for _, value in carried]
            self.types.update(zip((name for name, _ in carried), kinds, strict=True))
            self.open.append((names, lambda _: ("}", kinds)))
            head = ", ".join(f"{name} = {value}" for name, value in carried)
            self.written.append(f"{names} = stablehlo.while({head}) : {full(', '.join(kinds))} cond {{")
            return
        operands, inner = re.fullmatch(r"(.*?) ?\{ ?(.*?)[:}]?", rest).groups()
        values = re.findall(VALUE, operands)
        given, short = [self.types[value] for value in values], re.fullmatch(r"(\w+)( \S+)?", inner)
        scalars = _scalars(op, given)
        if short and short[2]:
            scalars = [short[2].strip()] * len(scalars)
        arguments = [f"%_{len(self.written)}_{n}" for n in range(len(scalars))] if short else inner.split(", ")
        self.types.update(zip(arguments, scalars, strict=bool(scalars)))
        attributes = f" <{{{_attributes(op, operands)}}}>" if scalars else ""
        self.written.append(f'{names} = "stablehlo.{op}"({", ".join(values)}){attributes} ({{')
        if scalars:
            block = (f"{name}: {full(kind)}" for name, kind in zip(arguments, scalars, strict=True))
            self.written.append(f"^bb0({', '.join(block)}):")

        def end(returned: list[str]) -> tuple[str, list[str]]:
            results = _results(op, operands, given, returned)
            return f"}}) : ({full(', '.join(given))}) -> ({full(', '.join(results))})", results

        self.open.append((names, end))
        if short:
            self.body(short[1], arguments)
            self.add("}")

    def body(self, combiner: str, arguments: list[str]) -> None:
        """The body of a region of one op for each pair, or of a comparison of the first pair."""
        half = len(arguments) // 2
        pairs = list(zip(arguments[:half], arguments[half:], strict=True))
        if combiner == "assign":
            results = arguments[half:]
        elif combiner.isupper():
            results = [f"{arguments[0]}_"]
            self.add(f"{results[0]} = compare {combiner}, {arguments[0]}, {arguments[1]}")
        else:
            results = [f"{left}_" for left, _ in pairs]
            for left, right in pairs:
                self.add(f"{left}_ = {combiner} {left}, {right}")
        self.give(results)


def _scalars(op: str, given: Sequence[str]) -> list[str]:
    """The types of the arguments of an op's region."""
    elements = [parted(kind)[1] for kind in given]
    if op == "scatter":
        return [*elements[: len(given) // 2], *elements[len(given) // 2 + 1 :]]
    return {"sort": [e for e in elements for _ in range(2)], "reduce": elements}.get(op, [])


def _field(text: str, name: str) -> str:
    """The value of `name=value`, or nothing."""
    found = re.search(rf"\b{name} ?= ?(\[[^\]]*\]|\w+)", text)
    return found[1] if found else ""


def _attributes(op: str, text: str) -> str:
    """The attributes of an op with a region, of `name=value`."""
    if op == "sort":
        return f"dimension = {_field(text, 'dim') or 0} : i64" + ", is_stable = true" * ("is_stable" in text)
    if op == "reduce":
        return f"dimensions = array<i64: {_field(text, 'dims').strip('[]')}>"
    numbers = [f"{name} = {_field(text, key)}" for key, name in NUMBERS.items() if _field(text, key)]
    flags = [f"{name} = {_field(text, name)}" for name in ("unique_indices", "indices_are_sorted") if name in text]
    return ", ".join([f"scatter_dimension_numbers = #stablehlo.scatter<{', '.join(numbers)}>", *flags])


def _results(op: str, text: str, given: Sequence[str], returned: Sequence[str]) -> list[str]:
    """The types of the results of an op with regions."""
    if op == "scatter":
        return [of(parted(kind)[0], parted(e)[1]) for kind, e in zip(given, returned, strict=False)]
    if op == "reduce":
        dims = _field(text, "dims").strip("[]").split(", ")
        kept = [[size for n, size in enumerate(parted(kind)[0]) if str(n) not in dims] for kind in given]
        return [of(sizes, element) for sizes, element in zip(kept, returned, strict=False)]
    return list(given if op == "sort" else returned)


def _implied(op: str, rest: str, operands: Sequence[str]) -> tuple[str, list[str]]:
    """The types of a line that gives none, and those of its results."""
    first = operands[0]
    sizes, element = parted(first)
    lists = [part.split(", ") for part in re.findall(r"\[([^\]]*)\]", rest)]
    if op == "compare":
        result = of(sizes, "i1")
    elif op == "slice":
        bounds = [[int(n) for n in part.split(":")] for part in lists[0]]
        result = of([len(range(*bound)) for bound in bounds], element)
    elif op == "transpose":
        result = of([sizes[int(n)] for n in lists[0]], element)
    elif op == "dynamic_slice":
        result = of(lists[0], element)
    elif op == "concatenate":
        dim = int(_field(rest, "dim"))
        sizes[dim] = str(sum(int(parted(kind)[0][dim]) for kind in operands))
        result = of(sizes, element)
    elif op == "dynamic_update_slice" or (op == "clamp" and len(set(operands)) > 1):
        result = operands[op == "clamp"]
    elif op == "select":
        return f"{first}, {operands[1]}", [operands[1]]
    elif op == "optimization_barrier":
        return ", ".join(operands), list(operands)
    else:
        return first, [first]
    return f"({', '.join(operands)}) -> {result}", [result]
