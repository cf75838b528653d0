"""z3, imported when it is first used: it takes a while, and everything else works without it.

Everything of z3 is `Any` here: its stubs leave most of it unknown.
"""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any

from hlo_lower.base.errors import InputError

INSTALL = "pip install z3-solver"


class _Lazy:
    """The module z3, as attributes.

    A term that is part of a cycle is freed by Python's collector, in whatever thread that runs. z3 is told so: else the
    process ends with SIGSEGV where another thread frees a term while z3 works.
    """

    def __getattr__(self, name: str) -> Any:
        """Something of z3.

        Raises:
          InputError: z3 is not installed.
        """
        require()
        module: Any = import_module("z3")
        module.Z3_enable_concurrent_dec_ref(module.main_ctx().ref())
        found = getattr(module, name)
        setattr(self, name, found)
        return found


z3: Any = _Lazy()


_ONE_AT_A_TIME = Lock()
"""z3's terms live in one context, which two threads must not use at once."""


@contextmanager
def alone() -> Generator[None]:
    """Keep other threads out of z3, but for freeing terms, which they cannot help."""
    require()
    with _ONE_AT_A_TIME:
        yield


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
