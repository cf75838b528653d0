"""z3, imported when it is first used: it takes a while, and everything else works without it.

Everything of z3 is `Any` here: its stubs leave most of it unknown.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from hlo_lower.base.errors import InputError

INSTALL = "pip install z3-solver"


class _Lazy:
    """The module z3, as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Something of z3.

        Raises:
          InputError: z3 is not installed.
        """
        require()
        found = getattr(import_module("z3"), name)
        setattr(self, name, found)
        return found


z3: Any = _Lazy()


_ONE_AT_A_TIME = Lock()
"""z3's terms live in one context, which two threads must not use at once."""


@contextmanager
def alone() -> Generator[None]:
    """Keep other threads out of z3, but for freeing terms, which they cannot help; begin as if nothing had been asked.

    z3 orders operands by the numbers of its terms, and a number is given again where a term was freed. So the terms of
    each derivation live in a context of their own, and none is freed at a time that depends on what else a process
    does: else the steps that a question takes would differ by a factor of 5, and a verdict with them.

    What is part of a cycle is collected at the end, while the context is there: a context that goes before the terms
    that Python holds looks through all of its terms once for each level of them (76 ms where 100 terms stand within one
    another). A term that is left is freed by Python's collector later, in whatever thread that runs. z3 is told so:
    else the process ends with SIGSEGV where another thread frees a term while z3 works.
    """
    require()
    with _ONE_AT_A_TIME:
        inner: Any = import_module("z3.z3")
        inner._main_ctx = None  # where z3 keeps the context that terms are made in
        inner.Z3_enable_concurrent_dec_ref(inner.main_ctx().ref())
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            gc.collect(0)  # all that was made since is young, as nothing was collected
            if collects:
                gc.enable()


def is_installed() -> bool:
    """Whether z3 can be imported."""
    return find_spec("z3") is not None


def require() -> None:
    """Refuse to go on without z3.

    Raises:
      InputError: it is not installed.
    """
    if not is_installed():
        raise InputError(
            "prove",
            "z3 is not installed",
            facts="proofs for all index values are made by z3",
            nearest=("verify without --prove needs no z3: it runs both versions",),
            next_step=INSTALL,
        )
