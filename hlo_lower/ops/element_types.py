"""Element types: what each holds."""

from functools import lru_cache


@lru_cache(maxsize=64)
def type_range(element_type: str) -> tuple[int, int] | None:
    """Least and greatest value of an integer or boolean element type, `index` as i64; None for others."""
    if element_type == "i1":
        return 0, 1
    if element_type == "index":
        element_type = "i64"
    signed = element_type.startswith("i")
    digits = element_type.removeprefix("ui").removeprefix("i")
    if not digits.isdigit() or element_type.startswith(("f", "b", "c")):
        return None
    width = int(digits)
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
