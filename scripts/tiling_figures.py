"""Draw the figures of docs/tiling.md: a program's memory before and after, a loop with its subsets, and the workloads.

    python scripts/tiling_figures.py --out docs/figures --json memory.json

The last one is drawn from what `scripts/bench_memory.py --json` wrote, if it is given.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags
from benchmark.memory_chart import memory_chart

import hlo_lower as hl
from hlo_lower.report.memory_svg import memory_svg

_OUT = flags.DEFINE_string("out", "docs/figures", "Folder.")
_JSON = flags.DEFINE_list("json", [], "Figures of scripts/bench_memory.py, later files for workloads of earlier ones.")

PROGRAM = """\
func.func public @main(%x: tensor<2048x64xf32>, %w: tensor<64x32000xf32>)
    -> (tensor<2048xf32>, tensor<64x32000xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2048x64xf32>, tensor<64x32000xf32>) -> tensor<2048x32000xf32>
  %likely = stablehlo.exponential %logits : tensor<2048x32000xf32>
  %sums = stablehlo.reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<2048x32000xf32>, tensor<f32>) -> tensor<2048xf32>
  %dw = stablehlo.dot_general %x, %likely, contracting_dims = [0] x [0]
    : (tensor<2048x64xf32>, tensor<2048x32000xf32>) -> tensor<64x32000xf32>
  return %sums, %dw : tensor<2048xf32>, tensor<64x32000xf32>
}
"""
"""The program of docs/tiling.md, section "Before and after"."""

BOUND = 64 << 20

TENSORS = (
    ("x", "2048x64", 20, 60, 22, 140, None),
    ("w", "64x32000", 110, 60, 200, 22, 4),
    ("logits", "2048x32000", 110, 130, 200, 140, 4),
    ("likely", "2048x32000", 400, 130, 200, 140, 4),
    ("sums", "2048", 670, 130, 12, 140, None),
    ("dw", "64x32000", 400, 320, 200, 22, 4),
)
"""Name, type, left, top, width and height of each tensor, and the tenth that an iteration takes; None: all of it."""

STEPS = (
    ("M48,130 C80,130 80,180 106,190", 48, 206, "dot"),
    ("M200,84 V126", 206, 104, "slice i:+2000"),
    ("M314,200 H396", 318, 194, "exponential"),
    ("M604,200 H666", 606, 194, "add to it"),
    ("M490,274 V316", 496, 298, "write i:+2000"),
)
"""How the tile of one follows from that of another, and where that is said."""


def loop_svg() -> str:
    """One iteration: the tile of each tensor that is sliced, computed, written or accumulated."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 370" role="img" font-family="system-ui, sans-serif" '
        'font-size="12" aria-label="a loop over columns and the subsets that an iteration takes">',
        '<defs><marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0L8,4L0,8z" fill="#333"/></marker></defs>',
        '<text x="20" y="24">an iteration: columns [:, i:+2000] of 2048x32000; dashed tensors are never stored</text>',
    ]
    for name, shape, x, y, width, height, tile in TENSORS:
        stored = "" if name in ("x", "w", "sums", "dw") else ' stroke-dasharray="5 4"'
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="#f4f1ea" stroke="#666"{stored}/>')
        left, size = (x, width) if tile is None else (x + tile * width // 10, width // 10)
        color = "#c98a1b" if name == "sums" else "#2f6f9f"
        parts.append(f'<rect x="{left}" y="{y}" width="{size}" height="{height}" fill="{color}" fill-opacity="0.8"/>')
        label = y + height + 16 if name in ("logits", "dw") else y - 6
        parts.append(f'<text x="{x}" y="{label}">{name} {shape}</text>')
    for path, x, y, told in STEPS:
        parts.append(f'<path d="{path}" fill="none" stroke="#333" marker-end="url(#a)"/>')
        parts.append(f'<text x="{x}" y="{y}">{told}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main(_: Sequence[str]) -> None:
    """Draw."""
    out = Path(_OUT.value)
    out.mkdir(parents=True, exist_ok=True)
    tiled = hl.tile(PROGRAM, max_temp=BOUND, name="loss.mlir")
    (out / "tiling_memory.svg").write_text(memory_svg(tiled.memory, BOUND, alone=True) + "\n")
    (out / "tiling_loop.svg").write_text(loop_svg())
    entries = {e["workload"]: e for path in _JSON.value for e in json.loads(Path(path).read_text())["workloads"]}
    if entries:
        (out / "tiling_workloads.svg").write_text(memory_chart(list(entries.values())))


if __name__ == "__main__":
    app.run(main)
