"""All model programs: every export at the sizes of real models, with sizes left open, and with sizes that make none."""

import re
from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text

MODELS = Path(__file__).parents[2] / "models"
FILES = {  # an export of each
    "llama.py": "decode",
    "ragged_decode.py": "decode_rows",
    "index_copy.py": "decode",
    "scan_layers.py": "decode_carry",
    "moe.py": "capacity",
    "train_step.py": "adam",
    "sampling.py": "greedy",
    "sharded_decode.py": "decode",
    "torch_style_decode.py": "index_put",
    "paged_attention.py": "decode",
}
UNROLLED = (
    "llama.py",
    "ragged_decode.py",
    "index_copy.py",
    "train_step.py",
    "sharded_decode.py",
    "torch_style_decode.py",
)
MODULES = {file: load_function(f"{MODELS}/{file}:{function}").module for file, function in FILES.items()}


def _one_layer(file):
    """Settings that make an export of a file quick."""
    return {"layers": "1"} if file in UNROLLED else {}


def test_every_model_file_is_here():
    """A model program that is added comes under these tests."""
    assert sorted(FILES) == sorted(path.name for path in MODELS.glob("*.py"))


LARGE = [
    pytest.param(
        *(file, function, preset),
        id=f"{file}:{function}-{preset}",
        marks=[] if function == FILES[file] and number == 0 else pytest.mark.sweep,
    )
    for file, module in MODULES.items()
    for function, entry in module.EXPORTS.items()
    for number, preset in enumerate(preset for preset in entry["presets"] if preset != "tiny")
]


@pytest.mark.parametrize(("file", "function", "preset"), LARGE)
def test_a_preset_exports_and_is_read(file, function, preset):
    """Sizes of real models export from shapes alone, and the scatters are there to be classified."""
    exported = load_function(f"{MODELS}/{file}:{function}", {"preset": preset, **_one_layer(file)}).export()
    assert len(hl.read(exported).scatters) > 0


ALL = [f"{file}:{function}" for file, module in MODULES.items() for function in module.EXPORTS]


@pytest.mark.sweep
@pytest.mark.parametrize("function", ALL)
def test_a_whole_model_computes_the_same(function, lowered_and_verified):
    """Each export runs as a whole before and after, on seeded inputs, with the same results."""
    lowered_and_verified(function, "full", **_one_layer(function.split(":")[0]))


OPEN = [  # the shape of an argument or of a result that shows the names of the open sizes
    ("llama.py:decode", ["...", "b, _, t, _", "b", "..."], "?x2x?x16xf32"),
    ("llama.py:prefill", ["...", "b, _, t, _", "b, s", "..."], "?x2x?x16xf32"),
    ("ragged_decode.py:decode_vmap_slice", ["...", "b, _, t, _", "b", "b"], "?x2x?x16xf32"),
    ("ragged_decode.py:decode_vmap_set", ["...", "b, _, t, _", "b", "b"], "?x2x?x16xf32"),
    ("ragged_decode.py:decode_rows", ["...", "b, _, t, _", "b", "b"], "?x2x?x16xf32"),
    ("sharded_decode.py:decode", ["...", "_, _, t, _", "...", "..."], "8x8x?x16xf32"),
    ("sharded_decode.py:decode_rows", ["...", "_, _, t, _", "...", "..."], "8x8x?x16xf32"),
    ("sharded_decode.py:prefill", ["...", "_, _, t, _", "_, s", "..."], "8x8x?x16xf32"),
    ("index_copy.py:decode", ["...", "b, _, t, _", "b, _", "..."], "?x2x?x16xf32"),
    ("index_copy.py:prefill", ["...", "b, _, t, _", "b, s", "s"], "?x2x?x16xf32"),
    ("torch_style_decode.py:index_put", ["...", "b, _, t, _", "b", "b", "b"], "?x2x?x16xf32"),
    ("torch_style_decode.py:paged", ["...", "n, _, _, _", "b", "b", "b, m", "b"], "?x?xi64"),
    ("paged_attention.py:decode", [*["b, _, _"] * 3, *["4*n + 4, _, _"] * 2, "b", "b, m", "b"], "?x6x8xf32"),
    (
        "paged_attention.py:prefill",
        [*["b, _, _, _"] * 3, *["4*n + 4, _, _"] * 2, "b, _", "b, m", "b", "b"],
        "?x6x6x8xf32",
    ),
    ("paged_attention.py:decode_planned", [*["..."] * 3, *["4*n + 44, _, _"] * 2, "...", "..."], "?x2x8xf32"),
    ("paged_attention.py:decode_open", None, "?x2x8xf32"),
    ("paged_attention.py:prefill_open", None, "?x2x8xf32"),
    ("paged_attention.py:write_slots", ["n, _, _", "t", "t, _, _"], "?x2x8xf32"),
    ("paged_attention.py:write_blocks", ["n, s, _, _", "t", "t", "t, _, _"], "?x?x2x8xf32"),
    ("paged_attention.py:write_pages", ["n, s, _, _", "b, c", "b, c, s, _, _"], "?x?x2x8xf32"),
    ("paged_attention.py:write_page_slots", ["n, _, _", "b, c", "b, c, s, _, _"], "?x2x8xf32"),
    ("scan_layers.py:decode_slices", ["...", "_, b, _, t, _", "b", "..."], "2x?x2x?x16xf32"),
    ("scan_layers.py:decode_carry", ["...", "_, b, _, t, _", "b", "..."], "2x?x2x?x16xf32"),
    ("scan_layers.py:prefill_slices", ["...", "_, b, _, t, _", "b, s", "..."], "2x?x2x?x16xf32"),
    ("scan_layers.py:prefill_carry", ["...", "_, b, _, t, _", "b, s", "..."], "2x?x2x?x16xf32"),
    ("moe.py:capacity", ["...", "n, _"], "?x32xf32"),
    ("moe.py:sorted_tokens", ["...", "n, _"], "?x32xf32"),
    ("moe.py:segments", ["...", "n, _"], "?x32xf32"),
    ("train_step.py:sgd", ["...", "b, s+1"], "?x?xi32"),
    ("train_step.py:adam", ["...", "...", "b, s+1"], "?x?xi32"),
    ("sampling.py:greedy", ["b, v", "b, h", "b, n", "m"], "?x?xf32"),
    ("sampling.py:sample_top_k", ["b, _", "b, _"], "?x64xf32"),
    ("sampling.py:sample_top_p", ["b, v", "b, v"], "?x?xf32"),
    ("sampling.py:sample_fresh", ["b, v", "b, h", "b, v"], "?x?xf32"),
]


ONE_OF_EACH = {f"{file}:{function}" for file, function in FILES.items()} | {"paged_attention.py:decode_open"}


@pytest.mark.parametrize(
    ("function", "shapes", "open_type"),
    [pytest.param(*row, id=row[0], marks=[] if row[0] in ONE_OF_EACH else pytest.mark.sweep) for row in OPEN],
)
def test_sizes_can_be_left_open(function, shapes, open_type):
    """With symbolic shapes the module takes arguments of open sizes and scatters as often as with fixed ones."""
    target = load_function(f"{MODELS}/{function}", _one_layer(function.split(":")[0]))
    fixed, text = exported_text(target.export()), exported_text(target.export(shapes))
    signature = next(line for line in text.splitlines() if "func.func public @main" in line)
    assert f"tensor<{open_type}>" in signature
    assert text.count('"stablehlo.scatter"(') == fixed.count('"stablehlo.scatter"(') > 0
    assert '"stablehlo.scatter"(' not in hl.lower(text).text


@pytest.mark.sweep
@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize(("function", "shapes"), [row[:2] for row in OPEN], ids=[row[0] for row in OPEN])
def test_a_model_with_open_sizes_verifies(function, shapes, oob):
    """What a model with symbolic shapes is lowered to is verified at sizes that fit it."""
    text = exported_text(load_function(f"{MODELS}/{function}", _one_layer(function.split(":")[0])).export(shapes))
    verdict = hl.verify(text, hl.lower(text, oob=oob))
    assert verdict.ok, "\n".join(verdict.lines())


def test_every_export_can_be_left_open():
    """The table above has every export of every file."""
    every = {f"{file}:{function}" for file, module in MODULES.items() for function in module.EXPORTS}
    assert every == {function for function, _, _ in OPEN}


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
    text = exported_text(load_function(f"{MODELS}/{function}").export())
    assert text.count("tf.aliasing_output") == DONATED[function]


REFUSED = [
    ("moe.py", {"slots": 0}, "slots=0 must be at least 1"),
    ("moe.py", {"top_k": 5}, "top_k=5 must not exceed experts=4"),
    ("moe.py", {"dtype": "int32"}, "dtype=int32 must be a floating-point dtype"),
    ("train_step.py", {"length": 0}, "length=0 must be at least 1"),
    ("train_step.py", {"heads": 3}, "hidden=16 must be a multiple of heads=3"),
    ("train_step.py", {"dtype": "bool"}, "dtype=bool must be a floating-point dtype"),
    ("sampling.py", {"vocab": 0}, "vocab=0 must be at least 1"),
    ("sampling.py", {"top_k": 65}, "top_k=65 must not exceed vocab=64"),
    ("sampling.py", {"top_p": 0.0}, "top_p=0.0 must be above 0 and at most 1"),
    ("sampling.py", {"temperature": 0.0}, "temperature=0.0 must be above 0"),
]


@pytest.mark.parametrize(("file", "fields", "says"), REFUSED, ids=[f"{f}-{d}" for f, d, _ in REFUSED])
def test_a_size_that_makes_no_model_is_refused(file, fields, says):
    """A config says which of its fields does not fit."""
    with pytest.raises(ValueError, match=re.escape(says)):
        MODULES[file].Config(**fields)
