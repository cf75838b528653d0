"""What is found at an op is found again in the other layers: the same as if each were looked at, and only then."""

import random
import re
from contextlib import suppress
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.named.match.matches import Matchers, NearMiss, matchers
from hlo_lower.named.take_out import listing, raising
from hlo_lower.named.take_out.raising import find_named, raise_graph

LAYERS, WIDTH = 8, 16
SQUARE, ROW = jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32), jax.ShapeDtypeStruct((WIDTH,), jnp.float32)


def model(x, weights):
    """Layers of attention with a causal mask that all share, then a gated product; a norm before each."""

    def normed(x, weight):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight

    rows = jnp.arange(x.shape[1])
    for first, second, query, key, gate, up, down in weights:
        seen, y = rows[:, None] >= rows, normed(x, first)
        scores = jnp.where(seen, (y @ query) @ (y @ key).swapaxes(-1, -2) * 0.25, -1e30)
        x = x + jax.nn.softmax(scores) @ y
        y = normed(x, second)
        x = x + (jax.nn.silu(y @ gate) * (y @ up)) @ down
    return x


@pytest.fixture(scope="module")
def text():
    """The module of the layers."""
    weights = [(ROW, ROW, *[SQUARE] * 5)] * LAYERS
    return jax.jit(model).lower(jax.ShapeDtypeStruct((2, 8, WIDTH), jnp.float32), weights).as_text()


@pytest.fixture(autouse=True)
def layers_are_near(monkeypatch):
    """Values of one layer are near, those of all are not, in a module as small as this one."""
    monkeypatch.setattr(listing, "NEAR", 120)


def found(source, monkeypatch, *, each, by=matchers):
    """All that is found, where, and what it is raised to; with each op looked at, or with twins."""
    with monkeypatch.context() as patch:
        if each:
            patch.setattr(raising, "listing_of", lambda *_: None)
        graph = read(source)
        with mlir.active(graph.context):
            named = find_named(graph, by)
            told = [told_of(one, block.order) for block in named.blocks for one in block.roots]
            misses = sorted((miss.name, str(miss.why), place_of(miss.at.surface)) for miss in named.misses)
            raise_graph(graph, named)
            return told, misses, to_text(graph)


def twins(source, monkeypatch, by=matchers):
    """What is found with twins, which is what looking at each op finds."""
    by_twins = found(source, monkeypatch, each=False, by=by)
    assert by_twins == found(source, monkeypatch, each=True, by=by), source
    return by_twins


def told_of(one, order):
    """A named op as data: values by where they stand."""
    region = one.region
    beside = (*region.aliases, *region.kept)
    return (
        (one.match.name, sorted(one.match.attributes.items()), list(one.match.inputs)),
        [place_of(term.surface) for term in (*one.match.inputs.values(), *one.match.results)],
        [order.place(operation) for operation in region.operations],
        [place_of(value) for value in (*region.inputs, *region.results)],
        sorted(str(place_of(value)) for value in beside),
        [told_of(inner, order) for inner in one.inner],
    )


def place_of(value):
    """Where a value is made: the line of the text, or the number of the argument."""
    if value is None:
        return None
    producer = mlir.producer(value)
    return mlir.argument_number(value) if producer is None else (str(producer.location), mlir.result_number(value))


def test_each_layer_is_as_if_it_were_looked_at(text, monkeypatch):
    """Matches, near misses, regions and the raised text are those of looking at each op, and few are looked at."""
    looked_at, look = [], raising._Search._match_at

    def counted(search, order, operation, terms):
        looked_at.append(operation)
        return look(search, order, operation, terms)

    monkeypatch.setattr(raising._Search, "_match_at", counted)
    by_twins = found(text, monkeypatch, each=False)
    few = len(looked_at)
    assert by_twins == found(text, monkeypatch, each=True)
    assert [one[0][0] for one in by_twins[0]].count("attention") == LAYERS
    assert few * 2 < len(looked_at) - few


KEEP = '    "stablehlo.custom_call"({}) {{call_target_name = "keep", has_side_effect = true}} : ({}) -> ()'


def mutated(text, choose):
    """The text with one thing changed in one layer: a number, an operand, or one more use of a value."""
    lines = text.split("\n")
    place = choose.choice([n for n, line in enumerate(lines) if re.match(r"    %\w+ = stablehlo", line)])
    line, names = lines[place], re.findall(r"%\w+", lines[place])
    kind = choose.choice(("number", "operand", "use", "op"))
    if kind == "number":
        lines[place] = re.sub(r"dense<(-?\d[^>]*)>", lambda _: f"dense<{choose.choice(['2', '0', '1'])}.0>", line)
    elif kind == "operand" and len(names) > 1:
        other = choose.choice(re.findall(r"%\w+", "\n".join(lines[max(2, place - 40) : place])))
        lines[place] = line[:8] + line[8:].replace(names[-1], other)
    elif kind == "use":
        lines.insert(place + choose.randrange(1, 20), KEEP.format(names[0], re.split("-> |: ", line)[-1]))
    else:
        other = choose.choice(("add", "subtract", "maximum"))
        lines[place] = re.sub("stablehlo.(multiply|add|subtract)", f"stablehlo.{other}", line)
    return "\n".join(lines)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(300))
def test_many_layers_that_differ(text, monkeypatch, seed):
    """The same of changes at random: the first one that leaves a valid module that differs; most leave none."""
    choose, changed = random.Random(seed), text
    while changed == text:
        with suppress(hl.HloLowerError):
            if (other := mutated(text, choose)) != text:
                read(other)
                changed = other
    twins(changed, monkeypatch)


def of_another_value(line, before):
    """A line that takes the value of the same type before the one that it takes."""
    taken = re.search(r"\((%\w+)", line)[1]
    made = [re.match(r" *(%\w+)", one)[1] for one in before if one.endswith("tensor<2x8x8xf32>")]
    return line.replace(taken, made[made.index(taken) - 1])


def with_a_use_before(line, before):
    """A line, and one more use of what was made so in the layer before."""
    op = re.search(r"stablehlo\.\w+", line)[0]
    name = [re.match(r" *(%\w+)", one)[1] for one in before if op in one][-2]
    return f"{line}\n{KEEP.format(name, line.split(': ')[-1])}"


CHANGES = {  # a line, and what its seventh one becomes, by those before it
    "an epsilon": (r"9\.99999997E-7", lambda line, _: line.replace("9.99999997E-7", "1.0e-3")),
    "the maximum of another value": (r"applies stablehlo.maximum", of_another_value),
    "the value less the maximum": (r"stablehlo.subtract", lambda s, _: re.sub(r"(%\w+), (%\w+) :", r"\2, \1 :", s)),
    "a use in another layer": (r"stablehlo.rsqrt", with_a_use_before),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_layer_that_differs_is_no_twin(text, monkeypatch, name):
    """With one thing changed in one layer, what is found is what looking at each op finds, and no longer the same."""
    pattern, instead = CHANGES[name]
    lines = text.split("\n")
    place = [n for n, line in enumerate(lines) if re.search(pattern, line)][6]
    lines[place] = instead(lines[place], lines[:place])
    assert twins("\n".join(lines), monkeypatch)[:2] != found(text, monkeypatch, each=False)[:2]


def test_a_longer_constant_of_a_layer_is_looked_at(monkeypatch):
    """Eight layers with a causal mask each, as a constant of more elements than are printed; that of the sixth lets one
    more position be seen, so it is another attention with another function."""
    rows = np.arange(16)

    def attends(x, weights):
        for number, weight in enumerate(weights):
            seen = jnp.asarray(rows[:, None] >= rows - (number == 5))
            x = x + jax.nn.softmax(jnp.where(seen, x @ weight @ x.swapaxes(-1, -2), -1e30)) @ x
        return x

    x = jax.ShapeDtypeStruct((2, 16, WIDTH), jnp.float32)
    lines = jax.jit(attends).lower(x, [SQUARE] * LAYERS).as_text().split("\n")
    constants = [line for line in lines if "tensor<16x16xi1>" in line and "constant" in line]
    assert len(constants) == LAYERS
    for constant in constants:  # each in its layer, as some exporters write them
        lines.remove(constant)
        name = constant.split()[0]
        lines.insert(next(n for n, line in enumerate(lines) if re.search(rf"{name}\b", line)), constant)
    named, *_ = twins("\n".join(lines), monkeypatch)
    causal = [dict(one[0][1])["causal"] for one in named if one[0][0] == "attention"]
    assert causal == [number != 5 for number in range(LAYERS)]


@pytest.mark.parametrize("is_end", [False, True], ids=["another op", "the end itself"])
def test_what_gathers_results_is_looked_at(monkeypatch, is_end):
    """Of two pairs that are turned alike, the second is a rope, and the first, which another op or the end itself
    takes, is none."""
    monkeypatch.setattr(listing, "NEAR", 9)
    first = "%r0 = stablehlo.broadcast_in_dim %y0, dims = [0, 1, 2] : (tensor<2x4x2xf32>) -> tensor<2x4x2xf32>"
    text = Path(__file__).with_name("turned_pairs.mlir").read_text()
    text = text.replace("FIRST", "" if is_end else first).replace("RESULT", "%y0" if is_end else "%r0")
    assert [one[0][0] for one in twins(text, monkeypatch)[0]] == ["rope"]


@pytest.mark.parametrize("number", [0, -1])
def test_who_else_takes_a_value_of_all_layers_is_looked_at(monkeypatch, number):
    """A matcher may ask for all that take a value which layers share: the answer does not move along with the layer."""
    asking = Matchers()

    @asking.finds("silu", at=("stablehlo.tanh",))
    def one_sine(anchor):
        assert anchor.only_user.operands[0].op == "sine"
        sines = [user for user in anchor.operands[0].users if user.op == "sine"]
        return NearMiss("silu", Code.NAMED_OP_LACKS(""), sines[number])

    layer = "%s{n} = sine %x; %t{n} = tanh %x; %u{n} = add %s{n}, %t{n}\n"
    text = module("%x: f32", "".join(layer.format(n=n) for n in range(4)) + "return %u0, %u1, %u2, %u3")
    monkeypatch.setattr(listing, "NEAR", 6)
    _, misses, _ = twins(text, monkeypatch, asking)
    assert len(misses) == 4
    assert one_sine is not None
