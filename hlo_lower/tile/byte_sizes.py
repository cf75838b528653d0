"""Amounts of memory as a person writes them: 128MiB, 1.5GiB, 64KB, or bytes."""

import re

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.errors import InputError

UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def parsed_bytes(name: str, value: str | int) -> int:
    """An amount of memory in bytes, or InputError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(value)) if not isinstance(value, bool) else None
    unit = UNITS.get(found[2].upper()) if found else None
    size = int(float(found[1]) * unit) if found and unit else 0
    if size < 1:
        raise InputError(
            name,
            f"{short_repr(value)} is not an amount of memory",
            facts=f"units are {', '.join(u.replace('I', 'i') for u in UNITS if u)}",
            next_step="write it as in 128MiB",
        )
    return size
