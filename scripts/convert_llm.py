"""Convert one module, an exported decoder step for example, and verify it: no scatter is left, and nothing changed.

    hlo-lower export models/llama.py:decode -o decode.mlir
    python scripts/convert_llm.py decode.mlir -o plain.mlir

The output is written only when both versions compute the same.
"""

import shutil
import sys
import time
from collections.abc import Sequence

from absl import app, flags

import hlo_lower as hl
from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_OK, HloLowerError
from hlo_lower.base.whole_files import check_writable, write_whole
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import render_text

_OUTPUT = flags.DEFINE_string(
    "output", None, "The file that is written: text, or bytecode if its name ends in .mlirbc."
)
flags.DEFINE_alias("o", "output")
_TARGET = flags.DEFINE_string(
    "target", "stablehlo", "The consumer that the module is made for, or the file of one (npu.toml)."
)
_OOB = flags.DEFINE_enum("oob", "xla", ["xla", "spec"], "What happens to updates out of bounds.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the inputs that both versions run on.")


def convert(path: str, output: str) -> int:
    """Convert, verify, report, and write the output; the exit code.

    Raises:
      HloLowerError: the input cannot be read, a scatter has no lowering, or the output cannot be written.
    """
    check_writable(output)
    lower = hl.lower  # which imports JAX, before the clock runs
    start = time.perf_counter()
    lowered = lower(path, target=_TARGET.value, oob=_OOB.value)
    data = lowered.bytecode() if output.endswith(".mlirbc") else lowered.text.encode()
    converted = time.perf_counter()
    verdict = hl.verify(path, lowered, seed=_SEED.value)
    report = ModuleReport(
        path,
        lowered.op_count,
        lowered.records,
        lowered.options.target.name,
        _OOB.value,
        scatters_left=lowered.scatters_left,
        verification=verdict.summary(),
        convert_seconds=converted - start,
        verify_seconds=time.perf_counter() - converted,
    )
    width = shutil.get_terminal_size((160, 24)).columns
    print(render_text([report], width=width, color=sys.stdout.isatty()), end="")
    if not verdict.ok:
        print("\n".join(verdict.lines()), file=sys.stderr)
        return EXIT_DIFFERS
    write_whole(output, data)
    return EXIT_OK


def main(argv: Sequence[str]) -> int:
    """Convert the file that is named; exit codes as those of `hlo-lower convert`."""
    if len(argv) != 2 or not _OUTPUT.value:
        raise app.UsageError("scripts/convert_llm.py IN -o OUT")
    try:
        return convert(argv[1], _OUTPUT.value)
    except HloLowerError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    app.run(main)
