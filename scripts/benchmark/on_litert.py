"""LiteRT as it is measured: the interpreter on one thread, its arguments set once.

It has no donated arguments: a call that writes a row into a cache copies the cache.
"""

from benchmark.in_children import FOLDER, Measured
from hlo_lower.consumers.litert import LITERT

ON_LITERT = Measured(
    "LiteRT interpreter",
    LITERT,
    FOLDER / "litert_worker.py",
    suffix="tflite",
    ordered=False,
    environment=LITERT.environment,
)
