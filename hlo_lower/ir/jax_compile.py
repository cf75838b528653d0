"""Where JAX hands modules to a backend: the one private name of JAX that hlo_lower uses.

JAX offers no public hook between tracing and compiling. All that it compiles (jit, pmap, grad, scan, callbacks,
`lower().compile()`) goes through one function, which the tests look for on the lowest and the highest release.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from typing import Any

import jax

from hlo_lower.base.errors import InputError
from hlo_lower.ir.mlir import RawModule

MODULE, FUNCTION = "jax._src.compiler", "compile_or_get_cached"
TESTED = "0.9.0 to 0.10.2"

Change = Callable[[RawModule, str], RawModule]
"""From a module and the name of its platform ("cpu", "mps") to the module that is compiled in its place."""


class Place(IntEnum):
    """When a change is made: modules are lowered first, and then reach a backend, which may refuse them."""

    LOWER = 0
    BACKEND = 1


class _Here(threading.local):
    """Whether this thread compiles modules as they are."""

    is_untouched: bool = False


_here = _Here()
_lock = threading.Lock()
_changes: dict[Place, Change] = {}
_plain: Any = None


def intercept(place: Place, change: Change) -> None:
    """Change each module that JAX compiles from now on, in all threads; what was compiled before is compiled anew.

    Args:
      place: when; a change in the same place is replaced.
      change: gets the module, which it must leave as it is, and the platform; returns it, or another one.

    Raises:
      InputError: this release of JAX compiles in another way.
    """
    global _plain
    with _lock:
        if _plain is None:
            compiler = _compiler()
            _plain = getattr(compiler, FUNCTION)
            setattr(compiler, FUNCTION, _compile)
        _changes[place] = change
    _jax.clear_caches()


def release(place: Place) -> None:
    """Make no change in this place any more; with the last one, JAX's own function is put back."""
    global _plain
    with _lock:
        found = _changes.pop(place, None)
        if not _changes and _plain is not None:
            setattr(_compiler(), FUNCTION, _plain)
            _plain = None
    if found is not None:
        _jax.clear_caches()


@contextmanager
def restore_on_exit(place: Place) -> Generator[bool]:
    """Restore a place on exit, whatever was intercepted there meanwhile; yields whether a change was there before."""
    before = _changes.get(place)
    try:
        yield before is not None
    finally:
        if before is None:
            release(place)
        else:
            intercept(place, before)


@contextmanager
def compile_untouched() -> Generator[None]:
    """Compile modules of this thread as they are: hlo_lower itself runs native versions to compare with."""
    before, _here.is_untouched = _here.is_untouched, True
    try:
        yield
    finally:
        _here.is_untouched = before


def refusal(message: str) -> Exception:
    """The error that JAX raises where a backend's compiler refuses a module."""
    return _jax.errors.JaxRuntimeError(message)


def _compile(backend: Any, computation: RawModule, *rest: Any, **named: Any) -> Any:
    plain, changes = _plain, () if _here.is_untouched else [_changes[place] for place in sorted(_changes)]
    with compile_untouched():  # a change may compile modules itself
        for change in changes:
            computation = change(computation, str(backend.platform))
    return (plain or getattr(_compiler(), FUNCTION))(backend, computation, *rest, **named)


def _compiler() -> Any:
    found = import_module(MODULE)
    if not callable(getattr(found, FUNCTION, None)):
        told = f"jax {jax.__version__} compiles in another way than hlo_lower knows: it has no {MODULE}.{FUNCTION}"
        raise InputError(
            "hl.install", told, facts=f"tested releases: {TESTED}", next_step="call hl.jit where you call jax.jit"
        )
    return found


_jax: Any = jax
