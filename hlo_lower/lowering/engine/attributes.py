"""Attributes of other dialects: shardings are moved to what gives a result now, and what no reader knows is removed.

The sharding of a lowered scatter is moved to what gives its results (trap 30).

A partitioned module says of some values how they are spread over the devices: by `sdy.sharding` (Shardy), by
`mhlo.sharding` (GSPMD), or by `xla.sdy.sharding` among `mhlo.frontend_attributes` (Shardy within HLO). On a scatter it
speaks of each of its results. None is dropped, and none is put on a value that it was not meant for:

- a result that a new operation with no other result gives: the sharding becomes that operation's;
- any other one, a result of a loop, the operand or an update itself, or a value that stands for two results: the value
  is wrapped, `sdy.sharding_constraint` or `stablehlo.custom_call @Sharding`, as JAX writes `with_sharding_constraint`.
  What else uses that value is not constrained by it.

What a scatter did not say is not invented: the partitioner propagates shardings through what was built, as it would
have through the scatter. One thing it must not propagate: that a result is unreduced (trap 50). It can split the sum
of a scatter, and calls other operations unreduced without splitting anything; so in front of whatever says unreduced
stands a constraint that leaves every dim open and names no such axis. Behind it the partitioner makes of the whole a
value that is unreduced: the whole on one device, zeros on the others.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.facts.scatter.shardings import is_partitioned
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import CUSTOM_CALL
from hlo_lower.ops.spec import FRONTEND, GSPMD, SHARDY
from hlo_lower.ops.targets.target import Target

SHARDY_IN_HLO = "xla.sdy.sharding"
SHARDINGS = frozenset({SHARDY, GSPMD, FRONTEND})

_PER_VALUE = "#sdy.sharding_per_value<["
_OPENING, _CLOSING = "<[{(", ">]})"

Attributes = dict[str, mlir.RawAttribute]


def keep_attributes(
    scatter: Node, values: Sequence[Value], build: Builder, own: frozenset[str], *, mesh: str | None = None
) -> tuple[Value, ...]:
    """Move the attributes of a scatter that are not its own to what gives its results.

    Args:
      scatter: the scatter.
      values: what replaces its results.
      build: what built them.
      own: names of the attributes that make it a scatter, which are dropped.
      mesh: of the sharding that calls a result unreduced; None where none does.

    Returns:
      The values, wrapped where a sharding has no other place. Attributes other than shardings stay where a new
      operation with as many results can take them.
    """
    if mesh is not None:
        values = [_constrain_reduced(build, value, mesh) for value in values]
    extra = {name: value for name, value in mlir.attributes_of(scatter.raw).items() if name not in own}
    if not extra:
        return tuple(values)
    kept: list[Value] = []
    for number, value in enumerate(values):
        attributes, node = _of_result(extra, number, len(values)), value.node
        is_new = node is not None and node in build.built and node.name != "sdy.sharding_constraint"
        present = mlir.attributes_of(node.raw) if node is not None and is_new else Attributes()
        if all(name in present and present[name] == attribute for name, attribute in attributes.items()):
            pass  # a copy of the operation has them already
        elif node is not None and is_new and len(node.results) == 1 and not _is_sharded(present):
            for name, attribute in attributes.items():
                node.raw.attributes[name] = attribute
        elif _is_sharded(attributes):
            value = _constrain_sharding(build, value, attributes)
        elif node is not None and is_new and len(node.results) == len(values):
            for name, attribute in attributes.items():
                node.raw.attributes[name] = attribute
        kept.append(value)
    return tuple(kept)


def _is_sharded(attributes: Attributes) -> bool:
    return SHARDY in attributes or GSPMD in attributes or SHARDY_IN_HLO in str(attributes.get(FRONTEND, ""))


def _of_result(extra: Attributes, number: int, arity: int) -> Attributes:
    """The attributes as one result of several has them: shardings are lists with an entry for each."""
    if arity == 1:
        return extra
    own = dict(extra)
    if SHARDY in own:
        own[SHARDY] = mlir.parse_attribute(_one_of(str(own[SHARDY]), number))
    if GSPMD in own:
        text = mlir.symbol_name(own[GSPMD])
        entries = _entries(text[1:-1]) if text.startswith("{{") else [text] * arity  # one for all of them
        own[GSPMD] = mlir.parse_attribute(f'"{entries[number]}"')
    if FRONTEND in own:
        text = str(own[FRONTEND])
        own[FRONTEND] = mlir.parse_attribute(
            re.sub(
                rf'({re.escape(SHARDY_IN_HLO)} = )("(?:[^"\\]|\\.)*")',
                lambda m: f"{m[1]}{_quote(_one_of(_unquote(m[2]), number))}",
                text,
            )
        )
    return own


def _one_of(per_value: str, number: int) -> str:
    entries = _entries(per_value.removeprefix(_PER_VALUE).removesuffix("]>"))
    return f"{_PER_VALUE}{entries[number]}]>"


def _entries(text: str) -> list[str]:
    """The parts between commas outside of brackets and strings; `<=` and `->` close and open none."""
    found: list[str] = []
    depth, begin, is_string = 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            is_string = not is_string
        elif is_string or text[at : at + 2] == "<=" or text[at - 1 : at + 1] == "->":
            continue
        elif letter in _OPENING or letter in _CLOSING:
            depth += 1 if letter in _OPENING else -1
        elif letter == "," and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
    return [*found, text[begin:].strip()]


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', "\\22")
    return f'"{escaped}"'


def _unquote(text: str) -> str:
    return text[1:-1].replace("\\22", '"').replace('\\"', '"').replace("\\\\", "\\")


def _constrain_reduced(build: Builder, value: Value, mesh: str) -> Value:
    """A value under a constraint that leaves its dims open, with no axis that it is unreduced over."""
    dims = ", ".join(["{?}"] * len(value.shape))
    sharding = mlir.parse_attribute(f"#sdy.sharding<{mesh}, [{dims}]>")
    return build.op("sdy.sharding_constraint", [value], [value.raw.type], {"sharding": sharding}).result()


def _constrain_sharding(build: Builder, value: Value, attributes: Attributes) -> Value:
    types = [value.raw.type]
    if SHARDY in attributes:
        inner = str(attributes[SHARDY]).removeprefix(_PER_VALUE).removesuffix("]>")
        sharding = mlir.parse_attribute(f"#sdy.sharding{inner}")
        return build.op("sdy.sharding_constraint", [value], types, {"sharding": sharding}).results[0]
    call = {"call_target_name": mlir.parse_attribute('"Sharding"'), **attributes}
    return build.op(CUSTOM_CALL, [value], types, call).results[0]


# --- attributes whose dialects a consumer does not read, and the meshes that only these named ---
#
# A reader without Shardy's dialect fails on a `#sdy.sharding`, a linalg reader on StableHLO's attributes, too.
# Attributes whose values are plain, as those that say which buffers are donated (`tf.aliasing_output`,
# `jax.buffer_donor`), stay: every reader takes them.
#
# Shardings say where values live, not what they are (Shardy, "Sharding Representation"). A module for one device has
# one place for them, so that without its shardings it means what it meant. JAX writes them there nevertheless: a mesh
# without axes for arguments that were put on a device, one of device 0 for a callback.


ON_VALUES = ("arg_attrs", "res_attrs")

Foreign: TypeAlias = tuple[re.Pattern[str], re.Pattern[str]]
"""How the names of attributes begin, and how attributes of other names are printed."""


def remove_placement(graph: Graph, target: Target) -> tuple[Change, ...]:
    """Take shardings off a module for one device, in place, where its target does not know them."""
    if not graph.has_shardy or target.refuses_op(mlir.MESH) is None or is_partitioned(graph.module.operation):
        return ()
    removed = remove_foreign(graph, of_dialects("sdy"))
    where = str(graph.location(Node(graph.module.operation)))
    return tuple(Change(Outcome.LOWERED, name, Code.PLACED_ON_ONE_DEVICE(), where, n) for name, n in removed)


def of_dialects(*dialects: str) -> Foreign:
    """The attributes of some dialects, by their own name or that of their type."""
    told = "|".join(sorted(dialects))
    return re.compile(rf"({told})\."), re.compile(rf"#({told})\b")


def remove_foreign(
    graph: Graph, foreign: Foreign, is_left: Callable[[Node], bool] = lambda node: False
) -> tuple[tuple[str, int], ...]:
    """Take some attributes off a module, its functions, their arguments and results, and operations.

    Args:
      graph: the module.
      foreign: how their names begin, and how they are printed.
      is_left: operations that keep theirs.

    Returns:
      Their names and how many there were; with them the meshes, which nothing names any more.
    """
    found = _Foreign(*foreign)

    with mlir.active(graph.context):
        for node in graph.nodes():
            if node.name != mlir.MESH and (node.name == "builtin.module" or not is_left(node)):
                found.remove(node)
    if not _names_a_mesh(graph):
        for mesh in mlir.meshes(graph.module.operation):
            found.removed[mlir.MESH] += 1
            mesh.erase()
    return tuple(sorted(found.removed.items()))


class _Foreign:
    """Attributes by their name or how they are printed, and how many of each are removed."""

    def __init__(self, name: re.Pattern[str], value: re.Pattern[str]) -> None:
        self.removed: Counter[str] = Counter()
        self._name, self._value = name, value

    def remove(self, node: Node) -> None:
        """Take them off an operation."""
        attributes = node.raw.attributes
        for name in mlir.attribute_names(node.raw):
            if name in ON_VALUES:
                attributes[name] = self._without(attributes[name])
            elif self._name.match(name) or ("." in name and self._value.match(str(attributes[name]))):
                self.removed[name] += 1
                del attributes[name]

    def _without(self, dictionaries: Any) -> mlir.RawAttribute:
        """The dictionaries of a function's arguments or results without the foreign entries."""
        told: list[str] = []
        for dictionary in dictionaries:
            kept: list[str] = []
            for name, attribute in mlir.entries_of(dictionary).items():
                value = str(attribute)
                if self._name.match(name) or self._value.match(value):
                    self.removed[name] += 1
                else:
                    kept.append(f"{name} = {value}")
            told.append(f"{{{', '.join(kept)}}}")
        return mlir.parse_attribute(f"[{', '.join(told)}]")


def _names_a_mesh(graph: Graph) -> bool:
    module = graph.module.operation
    return mlir.any_operation(module, lambda raw: str(raw.name).startswith("sdy.") and raw.name != mlir.MESH)
