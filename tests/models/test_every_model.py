"""All model programs: every export at the sizes of real models, with sizes left open, lowered, and with wrong sizes."""

import re

import pytest
from model_runs import FILES, MODELS, model, target_of, text_of

import hlo_lower as hl

WHOLE = ("scan_layers.py", "moe.py", "sampling.py", "paged_attention.py")
"""Files whose layers are not unrolled."""

MODULES = {file: model(file) for file in FILES}
ALL = [f"{file}:{function}" for file, module in MODULES.items() for function in module.EXPORTS]
ONE_OF_EACH = {f"{file}:{function}" for file, function in FILES.items()} | {"paged_attention.py:decode_open"}


def one_layer(function):
    """Settings that make an export quick."""
    return {} if function.startswith(WHOLE) else {"layers": 1}


def swept(function, *more, is_quick=None):
    """A case, for the sweep but for one of each file."""
    is_quick = function in ONE_OF_EACH if is_quick is None else is_quick
    return pytest.param(function, *more, id=function, marks=[] if is_quick else [pytest.mark.sweep])


LARGE = [
    pytest.param(f"{file}:{name}", preset, marks=[] if (name, number) == (FILES[file], 0) else pytest.mark.sweep)
    for file, module in MODULES.items()
    for name, entry in module.EXPORTS.items()
    for number, preset in enumerate(preset for preset in entry["presets"] if preset != "tiny")
]


@pytest.mark.parametrize(("function", "preset"), LARGE)
def test_a_preset_exports_and_is_read(function, preset):
    """Sizes of real models export from shapes alone, and the scatters are there to be classified."""
    exported = target_of(function, preset=preset, **one_layer(function)).export()
    assert len(hl.read(exported).scatters) > 0
    if preset == "llama_1b":
        assert ((128256, 2048), "bfloat16") in {(aval.shape, str(aval.dtype)) for aval in exported.in_avals}


KEYS = "?x2x?x16xf32"
PAGED = [*["b, _, _"] * 3, *["4*n + 4, _, _"] * 2, "b", "b, m", "b"]
FORMS = [  # exports of a file, shapes, and the type of an argument or a result that shows the names of the open sizes
    ("llama.py:decode", ["...", "b, _, t, _", "b", "..."], KEYS),
    ("llama.py:prefill", ["...", "b, _, t, _", "b, s", "..."], KEYS),
    ("ragged_decode.py:decode_vmap_slice decode_vmap_set decode_rows", ["...", "b, _, t, _", "b", "b"], KEYS),
    ("sharded_decode.py:decode decode_rows", ["...", "_, _, t, _", "...", "..."], "8x8x?x16xf32"),
    ("sharded_decode.py:prefill", ["...", "_, _, t, _", "_, s", "..."], "8x8x?x16xf32"),
    ("index_copy.py:decode", ["...", "b, _, t, _", "b, _", "..."], KEYS),
    ("index_copy.py:prefill", ["...", "b, _, t, _", "b, s", "s"], KEYS),
    ("torch_style_decode.py:index_put", ["...", "b, _, t, _", "b", "b", "b"], KEYS),
    ("torch_style_decode.py:paged", ["...", "n, _, _, _", "b", "b", "b, m", "b"], "?x?xi64"),
    ("paged_attention.py:decode", PAGED, "?x6x8xf32"),
    ("paged_attention.py:prefill", [*["b, _, _, _"] * 3, *PAGED[3:5], "b, _", "b, m", "b", "b"], "?x6x6x8xf32"),
    ("paged_attention.py:decode_planned", [*["..."] * 3, *["4*n + 44, _, _"] * 2, "...", "..."], "?x2x8xf32"),
    ("paged_attention.py:decode_open prefill_open", None, "?x2x8xf32"),
    ("paged_attention.py:write_slots", ["n, _, _", "t", "t, _, _"], "?x2x8xf32"),
    ("paged_attention.py:write_blocks", ["n, s, _, _", "t", "t", "t, _, _"], "?x?x2x8xf32"),
    ("paged_attention.py:write_pages", ["n, s, _, _", "b, c", "b, c, s, _, _"], "?x?x2x8xf32"),
    ("paged_attention.py:write_page_slots", ["n, _, _", "b, c", "b, c, s, _, _"], "?x2x8xf32"),
    ("scan_layers.py:decode_slices decode_carry", ["...", "_, b, _, t, _", "b", "..."], f"2x{KEYS}"),
    ("scan_layers.py:prefill_slices prefill_carry", ["...", "_, b, _, t, _", "b, s", "..."], f"2x{KEYS}"),
    ("moe.py:capacity sorted_tokens segments", ["...", "n, _"], "?x32xf32"),
    ("train_step.py:sgd", ["...", "b, s+1"], "?x?xi32"),
    ("train_step.py:adam", ["...", "...", "b, s+1"], "?x?xi32"),
    ("sampling.py:greedy", ["b, v", "b, h", "b, n", "m"], "?x?xf32"),
    ("sampling.py:sample_top_k", ["b, _", "b, _"], "?x64xf32"),
    ("sampling.py:sample_top_p", ["b, v", "b, v"], "?x?xf32"),
    ("sampling.py:sample_fresh", ["b, v", "b, h", "b, v"], "?x?xf32"),
]


def each(exports):
    """The exports of "moe.py:capacity segments", one by one."""
    file, _, names = exports.partition(":")
    return [f"{file}:{name}" for name in names.split()]


OPEN = {export: told for exports, *told in FORMS for export in each(exports)}


def test_every_model_file_and_export_is_here():
    assert sorted(FILES) == sorted(path.name for path in MODELS.glob("*.py"))
    assert set(ALL) == set(OPEN)


@pytest.mark.few(3)
@pytest.mark.parametrize("function", [swept(function) for function in OPEN])
def test_sizes_can_be_left_open(function):
    """With symbolic shapes the module takes arguments of open sizes and scatters as often as with fixed ones."""
    shapes, open_type = OPEN[function]
    fixed, text = text_of(function, **one_layer(function)), text_of(function, shapes, **one_layer(function))
    assert f"tensor<{open_type}>" in next(line for line in text.splitlines() if "func.func public @main" in line)
    assert text.count('"stablehlo.scatter"(') == fixed.count('"stablehlo.scatter"(') > 0
    assert '"stablehlo.scatter"(' not in hl.lower(text).text


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("function", OPEN)
def test_a_model_with_open_sizes_verifies(function, oob):
    """What a model with symbolic shapes is lowered to is verified at sizes that fit it."""
    text = text_of(function, OPEN[function][0], **one_layer(function))
    verdict = hl.verify(text, hl.lower(text, oob=oob))
    assert verdict.ok, "\n".join(verdict.lines())


def both(scatter):
    """A scatter of the keys and one of the values."""
    return f"{scatter}, {scatter}"


SMALL = {"hidden": 16, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 12, "prompt": 4}
ONE, THREE = SMALL | {"layers": 1}, SMALL | {"layers": 3}
EXPERTS = {"tokens": 12, "hidden": 8, "ffn": 6, "experts": 4, "top_k": 2, "slots": 4}
TOKENS, TRAINED = {"vocab": 32, "history": 3}, {"hidden": 8, "ffn": 8, "vocab": 16, "length": 4}
GRADIENTS = "reduction_add add 4x8, reduction_add add 16x8, reduction_add add 2x4x16"  # two tables, take_along_axis
CHANGES = "general assign 2x32, reduction_add add 2x32, general min 2x32, general assign 2x32"  # penalties, bans
LOWERED = [  # exports, sizes, whether by default, and the kinds, combiners, shapes of scatters
    ("ragged_decode.py:decode_vmap_slice", ONE, False, both("insert_slice assign 4x2x12x4")),
    (
        "ragged_decode.py:decode_vmap_set decode_rows",
        ONE,
        False,
        both("insert_slice assign 4x2x12x4"),
    ),
    ("index_copy.py:decode", ONE, True, both("insert_slice assign 2x2x12x4")),
    ("index_copy.py:prefill", ONE, False, both("general assign 2x2x12x4")),
    ("scan_layers.py:decode_slices", THREE, True, both("insert_slice assign 2x2x12x4")),
    ("scan_layers.py:prefill_slices", THREE, False, both("insert_slice assign 2x2x12x4")),
    ("scan_layers.py:decode_carry prefill_carry", THREE, False, both("insert_slice assign 3x2x2x12x4")),
    ("moe.py:capacity", EXPERTS, False, "general assign 4x4x8, reduction_add add 12x8, reduction_add add 4"),
    ("moe.py:sorted_tokens", EXPERTS, False, "reduction_add add 4, general assign 24x8"),
    ("moe.py:segments", EXPERTS, True, "reduction_add add 4, reduction_add add 12x8"),
    ("sampling.py:greedy", TOKENS, False, CHANGES),
    ("sampling.py:sample_top_k sample_top_p", TOKENS, False, "general assign 2x32"),
    ("sampling.py:sample_fresh", TOKENS, False, "general mul 2x32"),
    ("train_step.py:adam sgd", TRAINED, False, GRADIENTS),
    ("sharded_decode.py:decode", SMALL, True, both("insert_slice assign 8x8x12x4")),
    ("sharded_decode.py:decode_rows prefill", SMALL, False, both("insert_slice assign 8x8x12x4")),
]
SCATTERS = [(export, *row) for exports, *row in LOWERED for export in each(exports)]


@pytest.mark.parametrize(
    ("function", "sizes", "told"),
    [swept(name, sizes, told, is_quick=is_quick) for name, sizes, is_quick, told in SCATTERS],
)
def test_the_scatters_of_a_model_are_lowered(function, sizes, told):
    """An export holds the scatters that it is written with and no other; each is verified in all regimes."""
    exported = target_of(function, **sizes).export()
    lowered = hl.lower(exported)
    found = [f"{r.kind} {r.combiner} {'x'.join(map(str, r.operand_shape))}" for r in lowered.records]
    assert ", ".join(found) == told
    assert not hl.read(lowered.text).scatters
    if "scan_layers" in function:
        assert exported.mlir_module().count("stablehlo.while") == 1
    verdict = hl.verify(exported, lowered, level="regions", runs=1)
    assert verdict.ok, verdict


@pytest.mark.sweep
@pytest.mark.parametrize("function", ALL)
def test_a_whole_model_computes_the_same(function):
    """Each export runs as a whole before and after, on seeded inputs, with the same results."""
    exported = target_of(function, **one_layer(function)).export()
    verdict = hl.verify(exported, hl.lower(exported), level="full", runs=1)
    assert verdict.ok, verdict


DONATED = {  # arrays given away, at the default sizes
    "llama.py:decode": 4,
    "ragged_decode.py:decode_rows": 4,
    "index_copy.py:prefill": 4,
    "scan_layers.py:prefill_slices": 2,
    "scan_layers.py:prefill_carry": 2,
    "train_step.py:sgd": 10,
    "train_step.py:adam": 10 + 1 + 2 * 10,
    "sampling.py:greedy": 1,
    "moe.py:capacity": 0,
}


@pytest.mark.parametrize("function", DONATED)
def test_what_is_given_away_is_marked(function):
    """Caches, weights and optimizer state that a step replaces are aliased to its results."""
    assert text_of(function).count("tf.aliasing_output") == DONATED[function]


REFUSED = [  # one of each kind of message, and what a file alone has
    ("llama.py", {"layers": 0}, "layers=0 must be at least 1"),
    ("llama.py", {"kv_heads": 3}, "heads=4 must be a multiple of kv_heads=3"),
    ("llama.py", {"head_dim": 7}, "head_dim=7 must be even"),
    ("llama.py", {"prompt": 99}, "prompt=99 must not exceed max_length=64"),
    ("llama.py", {"dtype": "int32"}, "dtype=int32 must be a floating-point dtype"),
    ("sharded_decode.py", {"spread": "length"}, "spread=length must be one of heads, batch"),
    ("sharded_decode.py", {"kv_heads": 4}, "kv_heads=4 must be a multiple of devices=8"),
    ("sharded_decode.py", {"spread": "batch", "batch": 12}, "batch=12 must be a multiple of devices=8"),
    ("moe.py", {"top_k": 5}, "top_k=5 must not exceed experts=4"),
    ("train_step.py", {"heads": 3}, "hidden=16 must be a multiple of heads=3"),
    ("sampling.py", {"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
    ("sampling.py", {"temperature": 0.0}, "temperature=0.0 must be above 0"),
    ("paged_attention.py", {"tiers": 3}, "tiers=3 must be 1 or 2"),
    ("paged_attention.py", {"total_pool_blocks": 1}, "total_pool_blocks=1 must be at least 2"),
]


@pytest.mark.parametrize(("file", "fields", "says"), REFUSED)
def test_a_size_that_makes_no_model_is_refused(file, fields, says):
    """A config says which of its fields does not fit."""
    with pytest.raises((ValueError, hl.InputError), match=re.escape(says)):
        target_of(f"{file}:{FILES[file]}", **fields).export()
