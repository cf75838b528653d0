"""How long a conversion takes beside jaxlib's own parse and print, and that it grows with the module, no faster."""

from dataclasses import dataclass
from functools import partial

import hlo_lower as hl
from benchmark.decoder import decode_step
from benchmark.sizes import Sizes
from benchmark.synthetic import synthetic_module
from benchmark.timing import Timing, interleave, shown
from hlo_lower.ir import mlir
from hlo_lower.ir.export.trace import exported_text
from hlo_lower.named.take_out.listing import listing_of


@dataclass(frozen=True)
class Conversion:
    """`hl.lower` from text to text, without verification, beside a parse and a print of the same text.

    Attributes:
      operations: about how many, by the lines that define a value.
      kilobytes: of the text.
    """

    scatters: int
    operations: int
    kilobytes: float
    jaxlib: Timing
    hlo_lower: Timing

    @property
    def what(self) -> str:
        """The module, for a reader."""
        return f"convert {self.kilobytes:,.0f} kB, about {self.operations:,} ops"

    @property
    def microseconds_per_operation(self) -> float:
        """Of `hl.lower`, which stays the same where the time grows with the module and no faster."""
        return self.hlo_lower.median * 1e6 / self.operations


def conversion(text: str, rounds: int, sample: float) -> Conversion:
    """Measure the conversion of one module, each run in a context of its own."""

    def convert() -> None:
        _ = hl.lower(text).text

    timings = interleave({"jaxlib": partial(_parse_and_print, text), "hlo_lower": convert}, rounds, sample=sample)
    operations = sum(" = " in line and not line.startswith("#") for line in text.splitlines())
    scatters = text.count('"stablehlo.scatter"(')
    return Conversion(scatters, operations, len(text) / 1e3, timings["jaxlib"], timings["hlo_lower"])


def decoder_text(layers: int) -> str:
    """The decode step of models/llama.py, as text."""
    return exported_text(decode_step(layers=layers)[0])


def raising(text: str, rounds: int, sample: float) -> tuple[Timing, Timing]:
    """jaxlib's parse and print of a module, and `hl.raise_named` from text to text."""

    def raise_all() -> None:
        _ = hl.raise_named(text).text

    timings = interleave({"jaxlib": partial(_parse_and_print, text), "raised": raise_all}, rounds, sample=sample)
    return timings["jaxlib"], timings["raised"]


def listing(text: str, rounds: int, sample: float) -> tuple[Timing, Timing]:
    """jaxlib's parse and print of a module, and what is told of each op of its main function, which `hl.raise_named`
    finds alike layers by, of a module that is read."""
    graph = hl.read(text)  # which keeps its functions alive
    function = graph.main.node.raw

    def list_ops() -> None:
        if listing_of(function, mlir.body_of(function)) is None:
            raise ValueError("the function is not listed")

    timings = interleave({"jaxlib": partial(_parse_and_print, text), "listed": list_ops}, rounds, sample=sample)
    return timings["jaxlib"], timings["listed"]


def _parse_and_print(text: str) -> None:
    mlir.print_module(mlir.parse_module(text), locations="loc(" in text)


def growth(sizes: Sizes, rounds: int) -> list[Conversion]:
    """The synthetic module at a quarter, a half and the whole of its length."""
    parts = ((sizes.operations // part, sizes.scatters // part) for part in (4, 2, 1))
    return [conversion(synthetic_module(*part), rounds, sizes.sample) for part in parts]


def growth_lines(rows: list[Conversion]) -> list[str]:
    """The growth as a table: microseconds per operation stay the same where it is linear."""
    title = "conversion without verification of a synthetic module, as it grows"
    heads = f"  {'ops':>9}{'scatters':>10}{'kB':>9}   {'parse + print ms':34}{'hl.lower ms':34}"
    return [title, f"{heads}{'ratio':>6}{'us per op':>11}"] + [
        f"  {r.operations:>9,}{r.scatters:>10,}{r.kilobytes:>9,.0f}   {shown(r.jaxlib):34}{shown(r.hlo_lower):34}"
        f"{r.hlo_lower.median / r.jaxlib.median:>6.2f}{r.microseconds_per_operation:>11.1f}"
        for r in rows
    ]
