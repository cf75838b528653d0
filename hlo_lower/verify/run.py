"""Run a module through `jax.jit`: the module's bytes in the place of a stand-in with the same signature.

Export a function that has the same arguments and results, replace its serialized module, and call it.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any, Literal, cast

import jax
import jax.export
import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ir.jax_compile import compile_untouched
from hlo_lower.ops import names
from hlo_lower.verify.judges.xla_defects import (
    TREE,
    dies_of_fusion,
    takes_starts_again,
    why_xla_aborts,
    write_out_omitted,
)
from hlo_lower.verify.read.partitions import device_count, hold_at_entry, is_replicated, mesh_axes

Array = NDArray[Any]

_jax = cast(Any, jax)  # jax leaves the types of jit and its stages partly unknown

Rounding = Literal["exact", "in order", "fused", "fused in order", "quick", "unfused", "default"]
"""How a version is compiled: see `COMPILER_OPTIONS`."""

_FUSED: dict[str, str | bool | int] = {
    "xla_backend_optimization_level": 0,
    "xla_allow_excess_precision": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_use_fusion_emitters": False,
}
PASSES = "xla_disable_hlo_passes"
_NOT_SIMPLIFIED = _FUSED | {PASSES: "algsimp,reshape-mover"}
_OP_BY_OP = _FUSED | {PASSES: f"{_NOT_SIMPLIFIED[PASSES]},fusion"}

COMPILER_OPTIONS: dict[Rounding, dict[str, str | bool | int]] = {
    "exact": _OP_BY_OP,
    "in order": _OP_BY_OP,
    "fused": _NOT_SIMPLIFIED,
    "fused in order": _NOT_SIMPLIFIED,
    "quick": _FUSED,
    "unfused": _OP_BY_OP,
    "default": {},
}
"""XLA's options for each way of rounding.

"exact" is op by op: each op gives what it gives when it is compiled alone. Of 20,444 compositions of two or three ops
1,355 give another number at level 0 with XLA's algebraic simplifier and fusion: the one makes a product of a division
by a constant, x of log(exp(x)), exp(x - y) of exp(x) / exp(y), and adds constants up, so that two versions that round
differently would be compared as one; the other lets a multiply and an add of one fusion be contracted. Without both,
through XLA's older emitter, 0 of 4,089 do (`x - -0.0` aside, see `xla_omissions`). At the default level a multiply and
an add are contracted differently around different code (985 of 4,096 elements of a right lowering differed). The older
emitter compiles in half the time: 7.3 s for 90 pieces without fusion, where the other one takes 15.7, and 6.8 with
fusion and the simplifier. Without the simplifier its mover of transposes never ends: where one stands before another op
it adds three in each of 50 rounds: 2.4 s for a module of 80 ops, 0.2 without the mover. "quick" has all of them: for
what XLA makes of neighbours, as "default", and what no verdict rests on.
"unfused" differs from "exact" for complex numbers (`COMPLEX`) and above `TEMPORARIES` alone: it never fuses.
"in order" is "exact" without `TREE`, which is left out of each module that takes a start again: two versions of which
one does are both compiled so, else sums that they share would be rounded differently.
"fused" only fuses, which compiles a train step in 0.2 s where "exact" takes 1.5: of 900 programs of 2 to 7 ops 5 have
another last bit than op by op. So two versions that agree so are not asked again, and two that differ are compiled
op by op (`BothVersions`)."""

IN_STEPS = ("exact", "in order")
"""Op by op, but for complex numbers and large pieces."""


FUSED: Mapping[Rounding, Rounding] = {"exact": "fused", "in order": "fused in order"}
"""What is compiled sooner, and mostly rounds alike."""

WITHOUT_TREE = ("in order", "fused in order")


def rounding_in_steps(versions: Iterable[mlir.RawModule]) -> Rounding:
    """How versions that are compared bit for bit are compiled, all in one way."""
    return "in order" if any(map(takes_starts_again, versions)) else "exact"


TEMPORARIES = 2 << 30
"""Bytes of temporaries above which ops are fused: each result of a large piece would be held."""

OLDER = "xla_cpu_use_fusion_emitters"

PACKED, COMPLEX = re.compile(r"[<x]u?i[24]>"), "complex<"
"""Elements of less than a byte: XLA's older emitter ends the process on a pad of them. And complex numbers, products
and quotients of which XLA contracts within itself, so that their parts are fused to be compared with them."""

EXPANDED = "@Eigh("
"""What XLA expands into loops, and ends the process where its simplifier is left out (jaxlib 0.10.2)."""


@dataclass(frozen=True)
class Signature:
    """Arguments and results of a module's entry point."""

    arguments: tuple[jax.ShapeDtypeStruct, ...]
    results: tuple[jax.ShapeDtypeStruct, ...]

    @property
    def bytes(self) -> int:
        """Memory of all arguments and results; a Python integer, so nothing overflows."""
        every = (*self.arguments, *self.results)
        return sum(prod(map(int, a.shape)) * np.dtype(a.dtype).itemsize for a in every)


MEMORY_LIMIT = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 1 << 34
"""Bytes of arguments and results of one version above which nothing is run: two versions and the inputs have to fit."""


class CannotRunError(Exception):
    """A module that cannot be run here, and why."""


def read_signature(module: mlir.RawModule) -> Signature:
    """The signature of a module's entry point: @main, or its first public function.

    Raises:
      CannotRunError: it has an argument or a result that is not a tensor of static shape and a NumPy element type.
    """
    main = entry_function(module).opview
    return Signature(tuple(map(_struct, main.type.inputs)), tuple(map(_struct, main.type.results)))


def entry_function(module: mlir.RawModule) -> mlir.RawOperation:
    """The `func.func` that is run: @main, or the first public one."""
    operations = (op.operation for op in module.body.operations)
    public = [op for op in operations if op.name == "func.func" and mlir.is_public(op)]
    named = [op for op in public if mlir.symbol_name(op.attributes["sym_name"]) == "main"]
    if not public:
        raise CannotRunError("it has no public function")
    return (named or public)[0]


def _struct(raw_type: mlir.RawType) -> jax.ShapeDtypeStruct:
    tensor = mlir.read_tensor_type(raw_type)
    if tensor is None:
        raise CannotRunError(f"an argument or a result has type {raw_type}")
    if not tensor.is_static:
        raise CannotRunError(f"dynamic shape {raw_type}")
    dtype = mlir.dtype_of(tensor.element_name)
    if dtype is None:
        raise CannotRunError(f"element type {tensor.element_name}")
    if prod(size or 0 for size in tensor.shape) >= 1 << 59:  # XLA ends the process where the number of bytes overflows
        raise CannotRunError(f"{raw_type} is larger than any memory")
    return jax.ShapeDtypeStruct(cast(tuple[int, ...], tensor.shape), dtype)


def exported_from_module(source: str | bytes) -> jax.export.Exported:
    """A module as an `Exported` with flat arguments and results.

    Raises:
      CannotRunError: its signature has no form in JAX, or it is partitioned over several devices.
    """
    exported, axes, _ = _export(source)
    if axes:
        raise CannotRunError("it is partitioned over several devices")
    return exported


def _export(source: str | bytes) -> tuple[jax.export.Exported, dict[str, int], dict[str, str | bool | int]]:
    """A module as an `Exported`, its device axes (empty for one device), and options without which XLA ends the
    process.

    Raises:
      CannotRunError: its signature has no form in JAX, it runs in replicas, or it would end this process.
    """
    context = mlir.shared_context(len(source))
    with mlir.active(context):
        ready = _ready(mlir.parse_module(source, context))
        artifact = mlir.module_portable_artifact(ready.module)
    exported = replace(
        _stand_in(ready.signature),
        mlir_module_serialized=artifact,
        disabled_safety_checks=(jax.export.DisabledSafetyCheck.platform(),),
        nr_devices=ready.count,
    )
    return exported, ready.axes, ready.more


@dataclass(frozen=True)
class _Ready:
    """A module that XLA may be given, the number of its devices and their axes, and options without which its compiler
    ends the process."""

    module: mlir.RawModule
    signature: Signature
    count: int
    axes: dict[str, int]
    more: dict[str, str | bool | int]
    left_out: str  # a pass of XLA's that is not to be run; "": none


def _ready(module: mlir.RawModule) -> _Ready:
    """Make a module ready in place, in its context.

    Raises:
      CannotRunError: its signature has no form in JAX, it runs in replicas, or it would end this process.
    """
    signature = read_signature(module)
    if reason := why_xla_aborts(module):
        raise CannotRunError(f"XLA is not a judge: {reason}")
    more: dict[str, str | bool | int] = {"xla_cpu_use_fusion_emitters": False} if dies_of_fusion(module) else {}
    left_out = TREE if takes_starts_again(module) else ""
    if is_replicated(module):
        raise CannotRunError("it is replicated over several devices")
    count = device_count(module)
    axes = mesh_axes(module, count) if count > 1 else {}
    if axes:
        hold_at_entry(entry_function(module))
    name = mlir.symbol_name(entry_function(module).attributes["sym_name"])
    if name != "main":
        entry_function(module).attributes["sym_name"] = mlir.parse_attribute('"main"')
    _make_chlo_plain(module)
    if mlir.any_operation(module.operation, lambda op: mlir.call_target(op).startswith("lapack_")):
        _load_lapack()
    write_out_omitted(module)
    return _Ready(module, signature, count, axes, more, left_out)


def _make_chlo_plain(module: mlir.RawModule) -> None:
    """Write chlo ops out where XLA does not know them, in place.

    Raises:
      CannotRunError: jaxlib has no StableHLO form for one.
    """
    if mlir.XLA_TAKES_CHLO or not mlir.any_operation(module.operation, lambda op: op.name.startswith("chlo.")):
        return
    try:
        mlir.run_pass(module.operation, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
    except mlir.PassError as error:
        raise CannotRunError(f"chlo is not written out: {error}") from None


@lru_cache(maxsize=1)
def _load_lapack() -> None:
    """Trace a call of LAPACK, which is what loads it: a call that was read from a file ends the process before."""
    cholesky = _jax.jit(_jax.numpy.linalg.cholesky)
    jax.export.export(cholesky, platforms=["cpu"])(jax.ShapeDtypeStruct((1, 1), "float32"))


@lru_cache(maxsize=256)
def _stand_in(signature: Signature) -> jax.export.Exported:
    """An `Exported` of this signature; what it computes is replaced."""

    def zeros(*_: Any) -> list[Any]:
        return [_jax.numpy.zeros(s.shape, s.dtype) for s in signature.results]

    with mlir.plain_jax():
        return jax.export.export(_jax.jit(zeros, keep_unused=True), platforms=["cpu"])(*signature.arguments)


SMALL = 1 << 13
"""Characters of a text that is compiled once, however often it is asked for: pieces of modules often are alike."""


class Executable:
    """A module compiled for the CPU, on as many devices as it is partitioned over.

    Args:
      source: the module, text or bytes.
      rounding: which of `COMPILER_OPTIONS` it is compiled with.

    Attributes:
      arguments: their types.
      is_op_by_op: whether it is compiled as it is where nothing may be fused ("unfused").

    Raises:
      CannotRunError: its signature has no form in JAX, there are too few devices, or XLA refuses to compile it.
    """

    def __init__(self, source: str | bytes, rounding: Rounding) -> None:
        made = _made_once if len(source) <= SMALL else _compile_source
        self.arguments, self._compiled, self.is_op_by_op = made(source, rounding)

    def run(self, arguments: Sequence[Array]) -> list[Array]:
        """The results, as NumPy arrays.

        Raises:
          CannotRunError: XLA fails at run time.
        """
        with mlir.enable_x64(True), jax.default_device(_jax.devices("cpu")[0]):
            try:
                return [np.asarray(r) for r in self._compiled(*arguments)]
            except Exception as error:  # as above
                raise CannotRunError(f"XLA does not run it: {str(error).splitlines()[0][:300]}") from None


def are_op_by_op(*runnables: object) -> bool:
    """Whether modules are compiled here, and as "unfused": a second look at a difference would show the same."""
    return all(isinstance(one, Executable) and one.is_op_by_op for one in runnables)


def _compile_source(source: str | bytes, rounding: Rounding) -> tuple[Sequence[Any], Any, bool]:
    """The types of a module's arguments, XLA's executable, and whether it is compiled as "unfused" is."""
    context = mlir.shared_context(len(source))
    with mlir.active(context):
        ready = _ready(mlir.parse_module(source, context))
    if rounding in WITHOUT_TREE:
        ready = replace(ready, left_out=TREE)
    needed = ready.signature.bytes
    if needed > MEMORY_LIMIT:
        raise CannotRunError(
            f"{needed / 2**30:,.0f} GiB of arguments and results, more than half of this machine's memory"
        )
    options = _options(source, rounding) | ready.more
    compiled, temporary = _whole(source, ready, options)
    is_op_by_op = rounding != "in order" and options == _options(source, "unfused") | ready.more
    if rounding in IN_STEPS and temporary > TEMPORARIES:
        is_op_by_op = False
        compiled, temporary = _whole(source, ready, options | {PASSES: _NOT_SIMPLIFIED[PASSES]})
    if needed + temporary > MEMORY_LIMIT:
        raise CannotRunError(
            f"{(needed + temporary) / 2**30:,.0f} GiB for a run, more than half of this machine's memory"
        )
    return ready.signature.arguments, compiled, is_op_by_op


def _whole(source: str | bytes, ready: _Ready, options: Mapping[str, Any]) -> tuple[Any, int]:
    """What XLA makes of a module for its devices, and the bytes of temporaries of a run."""
    if ready.left_out:
        options = {**options, PASSES: ",".join(filter(None, [str(options.get(PASSES, "")), ready.left_out]))}
    if ready.axes:
        sharding = _everywhere(ready.axes)
        structs = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in ready.signature.arguments]
        compiled = _compile_exported(_export(source)[0], structs, options)
        return compiled, int(compiled.memory_analysis().temp_size_in_bytes)
    try:
        compiled = mlir.CompiledOnCpu(ready.module, ready.signature.arguments, options)
    except Exception as error:  # as below
        raise CannotRunError(f"XLA does not compile it: {str(error).splitlines()[0][:300]}") from None
    return compiled, compiled.temporaries


def _options(source: str | bytes, rounding: Rounding) -> dict[str, str | bool | int]:
    """The options for a module; see `PACKED` for what differs with its types."""
    text = source if isinstance(source, str) else mlir.print_module(mlir.parse_module(source))
    is_fused = rounding in (*FUSED, *FUSED.values()) and COMPLEX in text
    is_fused |= rounding != "default" and EXPANDED in text
    options = _FUSED if is_fused else COMPILER_OPTIONS[rounding]
    return options if PACKED.search(text) is None else {k: v for k, v in options.items() if k != OLDER}


_made_once = lru_cache(maxsize=128)(_compile_source)


def temporaries(source: str | bytes) -> int:
    """Bytes of temporaries that XLA plans for a module, compiled as this process's XLA_FLAGS say.

    Raises:
      CannotRunError: its signature has no form in JAX, it is for several devices, or XLA refuses to compile it.
    """
    exported = exported_from_module(source)
    return int(_compile_exported(exported, exported.in_avals).memory_analysis().temp_size_in_bytes)


def _compile_exported(
    exported: jax.export.Exported, structs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Any:
    """Compile a module for the CPU for arguments of these shapes.

    Raises:
      CannotRunError: XLA refuses to compile it.
    """
    with mlir.enable_x64(True), jax.default_device(_jax.devices("cpu")[0]):
        try:
            with compile_untouched():  # what is native stays native under hl.install
                return _jax.jit(cast(Any, exported).call).lower(*structs).compile(compiler_options=cast(Any, options))
        except Exception as error:  # XLA's errors have no common public class
            raise CannotRunError(f"XLA does not compile it: {str(error).splitlines()[0][:300]}") from None


def _everywhere(axes: dict[str, int]) -> jax.sharding.NamedSharding:
    """Arguments whole on each device of a mesh; the module's own shardings take them apart."""
    count, devices = prod(axes.values()), _jax.devices("cpu")
    if count > len(devices):
        raise CannotRunError(f"it is partitioned over {count} devices, and this process has {len(devices)}")
    grid = np.asarray(devices[:count], object).reshape(tuple(axes.values()))
    mesh = jax.sharding.Mesh(grid, tuple(axes))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())


def parse_or_refuse(source: str | bytes, what: str, context: mlir.RawContext | None = None) -> mlir.RawModule:
    """Parse one of the two versions, by default in the shared context.

    Raises:
      InputError: it does not parse.
    """
    try:
        return mlir.parse_module(source, context)
    except mlir.MlirSyntaxError as error:
        first = error.diagnostics[0]
        raise InputError(f"{what}:{first.line}:{first.column}", first.message) from None


# --- large constants ---
#
# Constants that are too large to be run: nothing that a verdict needs may be many times as large as the module.
#
# Whatever runs a module, or a piece of one, holds its constants several times: as text, parsed, as an artifact, as HLO
# and in the executable, of both versions. That was measured to take some twelve times as much memory as they have.


MEMORY_BUDGET = 2 << 30
"""Bytes up to which the whole module is run by default, and up to which a region's pieces are."""

COPIES = 12


def over_budget(operations: Iterable[mlir.RawOperation], budget: int = MEMORY_BUDGET) -> str:
    """Why the constants among operations are too large to be run, "" where they are not; splats are small."""
    size = sum(_bytes_of(op) for op in operations if op.name == names.CONSTANT and not mlir.is_splat(op))
    if size * COPIES <= budget:
        return ""
    return f"{size / 2**30:.1f} GiB of constants, of which a run takes {COPIES} times, more than {budget / 2**30:.1f}"


def module_over_budget(module: mlir.RawModule, budget: int = MEMORY_BUDGET) -> str:
    """The same of all constants of a module."""
    return over_budget(mlir.find_named(module.operation, {names.CONSTANT})[0], budget)


def _bytes_of(constant: mlir.RawOperation) -> int:
    tensor = mlir.read_tensor_type(constant.results[0].type)
    dtype = None if tensor is None else mlir.dtype_of(tensor.element_name)
    return 0 if tensor is None else prod(size or 0 for size in tensor.shape) * (1 if dtype is None else dtype.itemsize)
