"""The one file that imports jax.extend, jax.interpreters and jaxlib.

It names what hlo_lower needs of jaxlib's MLIR and gives it types. jaxlib's stubs leave `Operation`, `Value` and their
kin partly unknown, so the raw objects are `Any` here; `hlo_lower.ir` puts a typed view over them.

Only public names are used, and where two jax releases of the tested range differ, the difference is settled here.
"""

import io
import json
import mmap
import os
import re
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, repeat
from math import prod
from types import ModuleType
from typing import Any, TypeVar, cast

import jax
import ml_dtypes
import numpy as np
from jax.extend import backend as jax_extend_backend
from jax.extend import mlir as jax_extend_mlir
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.interpreters import mlir as jax_interpreters_mlir

from hlo_lower.base.element_types import element_type

XLA_TAKES_CHLO = jax.__version_info__ >= (0, 10)
"""Whether XLA reads chlo ops in a portable artifact; before, JAX wrote them out."""

BINDINGS_OF_8 = jax.__version_info__ >= (0, 8)
"""Whether MLIR's bindings are those of jaxlib 0.8 or later: complex elements raise an error and do not end the
process, an operation can be given a location, and XLA takes a module that is not bytes."""

enable_x64: Callable[[bool], AbstractContextManager[None]] = (
    cast(Any, jax).enable_x64 if BINDINGS_OF_8 else cast(Any, import_module("jax.experimental")).enable_x64
)
"""`jax.enable_x64`, which had another name before 0.8."""


@contextmanager
def plain_jax() -> Generator[None]:
    """Trace a function of hlo_lower's own with 64-bit types, and without the user's mesh and strict settings."""
    settings, sharding = cast(Any, jax), cast(Any, jax.sharding)
    promotion = settings.numpy_rank_promotion("allow"), settings.numpy_dtype_promotion("standard")
    has_meshes = hasattr(sharding, "use_abstract_mesh")  # since 0.8
    no_mesh = sharding.use_abstract_mesh(sharding.AbstractMesh((), ())) if has_meshes else nullcontext()
    with enable_x64(True), promotion[0], promotion[1], no_mesh:
        yield


XLA_PLANS_MEMORY = jax.__version_info__ >= (0, 10)
"""Whether XLA has the flags xla_cpu_scheduler_type and xla_cpu_experimental_ynn_fusion_type; one that it does not have
ends the process."""


RawContext = Any
RawModule = Any
RawOperation = Any
RawBlock = Any
RawValue = Any
RawType = Any
RawAttribute = Any
RawLocation = Any

BYTECODE_MAGIC = b"ML\xefR"
PORTABLE_PRODUCER = b"StableHLO_v"
PARSE_BUFFER = "-"


@dataclass(frozen=True)
class Diagnostic:
    """One line of what the parser or the verifier says: line and column count from 1; 0 where unknown."""

    message: str
    line: int
    column: int


class MlirSyntaxError(ValueError):
    """jaxlib refuses the module: its diagnostics, the first one first."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = tuple(diagnostics)


# --- contexts ---------------------------------------------------------------------------------------------------


WITHOUT_A_MODULE = ("affine", "bufferization", "check", "complex", "linalg", "shape", "tensor", "ub")
"""Dialects for which jaxlib has no Python module. For each operation of one that the bindings hand out they look for
the module again, which takes 80 us; an empty module ends that."""


@cache
def _make_dialect_modules() -> None:
    package = ".".join(cast(Any, ir.Module).__module__.split(".")[:2])
    for name in (f"{package}.dialects.{dialect}" for dialect in WITHOUT_A_MODULE):
        if find_spec(name) is None:
            sys.modules[name] = ModuleType(name, "Empty: jaxlib has no module for this dialect.")


def make_context() -> RawContext:
    """Make a context with the dialects that JAX registers (builtin, func, stablehlo, chlo, sdy, mhlo, ...)."""
    _make_dialect_modules()
    _tensor_types.clear()  # types keep their context alive
    return jax_interpreters_mlir.make_ir_context()


SHARED_CHARACTERS = 1 << 18
"""How much text is read into one shared context: what it has read stays in it (types, attributes, constants)."""


_left_behind: list[tuple[RawContext, int]] = []
"""Shared contexts of threads that have ended, for those that begin, and how much text may still be read into each."""


class _Shared:
    """The context of a thread for its texts: to parse most of them takes less time than to make one (3 ms)."""

    context: RawContext = None
    left: int = 0

    def __init__(self) -> None:
        with suppress(IndexError):
            self.context, self.left = _left_behind.pop()

    def __del__(self, left_behind: list[tuple[RawContext, int]] = _left_behind) -> None:
        left_behind.append((self.context, self.left))


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.shared = _Shared()


_of_thread = _OfThread()


def shared_context(size: int) -> RawContext:
    """A context for a text of so many characters: one for several texts of this thread, or one of its own."""
    if size > SHARED_CHARACTERS or not BINDINGS_OF_8:  # those before may take an operation for one that is gone
        return make_context()
    shared = _of_thread.shared
    if shared.context is None or size > shared.left:
        shared.context, shared.left = make_context(), SHARED_CHARACTERS
    shared.left -= size
    return shared.context


def structured_context() -> RawContext:
    """A context that knows linalg, scf and tensor, too: jaxlib registers none of them, and its pass to linalg loads
    them."""
    context = make_context()
    load_linalg(context)
    return context


def load_linalg(context: RawContext) -> None:
    """Make a context know linalg, scf and tensor."""
    run_pass(parse_module("module {}", context).operation, "builtin.module(stablehlo-legalize-to-linalg)")


@contextmanager
def active(context: RawContext) -> Generator[None]:
    """Make a context current, with the unknown location as the default: types and attributes are built inside."""
    with context, cast(Any, ir.Location).unknown(context=context):
        yield


def unknown_location(context: RawContext) -> RawLocation:
    """The unknown location of a context."""
    return cast(Any, ir.Location).unknown(context=context)


# --- reading and writing ----------------------------------------------------------------------------------------


def is_bytecode(data: bytes) -> bool:
    """Whether data starts as MLIR bytecode does (portable artifacts included)."""
    return data.startswith(BYTECODE_MAGIC)


def is_portable_artifact(data: bytes) -> bool:
    """Whether data is a StableHLO portable artifact: MLIR bytecode whose producer is a StableHLO version."""
    return is_bytecode(data) and PORTABLE_PRODUCER in data[:64]


def parse_module(source: str | bytes, context: RawContext | None = None) -> RawModule:
    """Parse and verify text, bytecode or a portable artifact, by default in `shared_context`.

    Long i1 constants of text may be written as another MLIR writes them. A custom call that gives a tuple is read as
    one of several results, `mhlo.copy` as what it copies, and `mhlo.erf` as chlo's.

    Raises:
      MlirSyntaxError: with jaxlib's own diagnostics.
    """
    context = shared_context(len(source)) if context is None else context
    module = _parse(source, context)
    if _may_hold("stablehlo.get_tuple_element", source):
        _plain_results(module)
    if any(_may_hold(name, source) for name in OF_HLO):
        _without_hlo(module)
    return module


OF_HLO = COPY, ERF = "mhlo.copy", "mhlo.erf"
"""Operations that TensorFlow exports which are none of StableHLO."""


def _may_hold(name: str, source: str | bytes) -> bool:
    """Whether a text may hold an operation, or bytecode, which has the name of the dialect apart."""
    return name in source if isinstance(source, str) else name.partition(".")[2].encode() in source


def _parse(source: str | bytes, context: RawContext) -> RawModule:
    if isinstance(source, bytes) and is_portable_artifact(source):
        return _deserialize(source, context)
    if ("!quant." in source) if isinstance(source, str) else (b"quant" in source):
        _load_quant(context)
    try:
        return cast(Any, ir.Module).parse(source, context=context)
    except ir.MLIRError as error:
        found = list(_diagnostics(error))
        if isinstance(source, str) and found[0].message.startswith(WRONG_HEX_SIZE):
            written = _LONG_MASK.sub(lambda mask: _as_written_here(mask, context), source)
            if written != source:
                return _parse(written, context)
        raise MlirSyntaxError(found) from None
    except (ValueError, RuntimeError) as error:
        raise MlirSyntaxError([Diagnostic(str(error).splitlines()[0], 0, 0)]) from None


def _plain_results(module: RawModule) -> None:
    """Give a custom call the elements of its tuple as results, where the tuple is only taken apart.

    TensorFlow writes a tuple, JAX several results. XLA compiles both to the same call.
    """
    calls = [op for op in operations_within(module.operation) if call_target(op) and len(op.results) == 1]
    for op in [op for op in calls if str(op.results[0].type).startswith("tuple<")]:
        parts = [use.owner.operation for use in op.results[0].uses]
        if not all(part.name == "stablehlo.get_tuple_element" for part in parts):
            continue
        whole = cast(Any, ir.TupleType)(op.results[0].type)
        types = [whole.get_type(number) for number in range(whole.num_types)]
        place = insert_before(op)
        told = {name: value for name, value in attributes_of(op).items() if name != "xla_shape"}  # of the tuple
        made = create_operation(op.name, list(op.operands), types, told, location=op.location, insertion_point=place)
        for part in parts:
            part.results[0].replace_all_uses_with(made.results[integer_of(part.attributes["index"])])
            part.erase()
        op.erase()


def _without_hlo(module: RawModule) -> None:
    """Take what `mhlo.copy` copies for it, a layout, of which a tensor has none in StableHLO; and chlo's erf."""
    for op in find_named(module.operation, OF_HLO)[0]:
        values, place = list(op.operands), insert_before(op)
        if op.name == ERF:
            made = [values[0].type]
            values = create_operation("chlo.erf", values, made, location=op.location, insertion_point=place).results
        replace_results(op, list(values))
        op.erase()


WRONG_HEX_SIZE = "elements hex data size is invalid"
_LONG_MASK = re.compile(r'dense<"0x((?:[0-9A-Fa-f]{2})+)"> : tensor<((?:\d+x)+)i1>')


def _as_written_here(mask: re.Match[str], context: RawContext) -> str:
    """A long i1 constant as this MLIR reads it; one whose size is neither that of bits nor of bytes as it stands.

    MLIR printed eight truth values in a byte, the lowest bit first, until jaxlib 0.9 (and in TensorFlow 2.21); since
    then each has its own byte.
    """
    raw, sizes = np.frombuffer(bytes.fromhex(mask[1]), np.uint8), mask[2]
    count = prod(int(size) for size in sizes.split("x")[:-1])
    if raw.size == (count + 7) // 8 and not _packs_bits(context):
        raw = np.unpackbits(raw, count=count, bitorder="little")
    elif raw.size == count and _packs_bits(context):
        raw = np.packbits(raw, bitorder="little")
    return f'dense<"0x{raw.tobytes().hex().upper()}"> : tensor<{sizes}i1>'


def _packs_bits(context: RawContext) -> bool:
    """Whether raw data of this MLIR have eight truth values in a byte."""
    try:
        cast(Any, ir.Attribute).parse('dense<"0x0102"> : tensor<16xi1>', context=context)
    except ir.MLIRError:
        return False
    return True


def _load_quant(context: RawContext) -> None:
    """Load the dialect of quantized types, which JAX does not register: a pass that depends on it, over nothing."""
    stablehlo.register_stablehlo_passes()
    empty = cast(Any, ir.Module).parse("module {}", context=context)
    with context:
        cast(Any, passmanager.PassManager).parse("builtin.module(vhlo-legalize-to-stablehlo)").run(empty.operation)


def _deserialize(artifact: bytes, context: RawContext) -> RawModule:
    """Read a portable artifact; what jaxlib would print on standard error goes into the exception."""
    said: list[str] = []

    def listen(diagnostic: Any) -> bool:
        said.append(str(diagnostic.message))
        return True

    handler = context.attach_diagnostic_handler(listen)
    module = None
    try:
        with context:
            module = cast(Any, stablehlo).deserialize_portable_artifact(context, artifact)
    except (ValueError, RuntimeError, ir.MLIRError):
        pass
    finally:
        handler.detach()
    if module is None:
        messages = said or ["the portable artifact cannot be deserialized"]
        raise MlirSyntaxError([Diagnostic(message, 0, 0) for message in messages])
    return module


_PLACE = re.compile(r'loc\("(?:[^"\\]|\\.)*":(\d+):(\d+)')


def _diagnostics(error: Any) -> Iterator[Diagnostic]:
    found = False
    for diagnostic in error.error_diagnostics:
        # Read in its printed form: the bindings do not give a diagnostic's location its class.
        place = _PLACE.match(str(diagnostic.location))
        found = True
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        yield Diagnostic(str(diagnostic.message), line, column)
    if not found:
        yield Diagnostic(str(error).splitlines()[0], 0, 0)


def verify_module(module: RawModule) -> str | None:
    """None if the module verifies, else the verifier's message."""
    try:
        if module.operation.verify():
            return None
    except ir.MLIRError as error:
        return str(error)
    return "the module does not verify"


def print_module(
    module: RawModule,
    *,
    locations: bool = False,
    generic: bool = False,
    is_verified: bool = False,
    longest: int | None = None,
) -> str:
    """Print a module as jaxlib prints it; with locations, as `get_asm(enable_debug_info=True)` does.

    Args:
      module: the module.
      locations, generic: with locations, and in the generic form.
      is_verified: whether it is known to verify; else that is looked at once more, to choose the form.
      longest: elements beyond which a constant is `__elided__`; None writes all of them.
    """
    return _print_text(
        module.operation,
        print_generic_op_form=generic,
        enable_debug_info=locations,
        assume_verified=is_verified,
        **({} if longest is None else {"large_elements_limit": longest}),
    )


def print_operation(operation: RawOperation, *, longest: int) -> str:
    """An operation that verifies as text, constants of more elements than `longest` as `__elided__`."""
    return _print_text(operation, large_elements_limit=longest, assume_verified=True)


def _print_text(operation: RawOperation, **form: bool | int) -> str:
    """An operation as text.

    The bindings call a Python object for every three letters that they print, which takes as long as the printing; a
    file that has a name they write themselves. So it is one in memory, where the system has such files.
    """
    if sys.platform == "linux":
        with suppress(OSError, ValueError), open(os.memfd_create("module"), "rb") as file:  # the latter without /proc
            operation.print(file=f"/proc/self/fd/{file.fileno()}", binary=True, **form)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return str(text, "utf-8")
    return str(operation.get_asm(**form))


def module_bytecode(module: RawModule) -> bytes:
    """MLIR bytecode of a module; keeps locations."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def module_portable_artifact(module: RawModule, version: str | None = None) -> bytes:
    """Serialize a module as a portable artifact (VHLO) of a StableHLO version, by default the current one.

    Dialects that VHLO does not cover (sdy) are kept as they are.
    """
    target = version or stablehlo.get_current_version()
    copy = parse_module(module_bytecode(module), module.context)  # jaxlib leaves what it serializes as VHLO
    return bytes(cast(Any, stablehlo).serialize_portable_artifact(copy, target, True))


class CompiledOnCpu:
    """A module compiled by XLA for the first CPU device, as `jax.jit` would: a trip through that takes half the time.

    Args:
      module: with an entry point @main; it is left as it is.
      arguments: their types.
      options: XLA's, by name.

    Raises:
      Exception: whatever XLA raises where it refuses the module.
    """

    def __init__(
        self, module: RawModule, arguments: Sequence[jax.ShapeDtypeStruct], options: Mapping[str, str | bool | int]
    ) -> None:
        self._device = cast(Any, jax).devices("cpu")[0]
        made = cast(Any, jax_extend_backend).get_compile_options(
            1, 1, [[self._device.id]], env_options_overrides=dict(options)
        )
        self._sharding = cast(Any, jax.sharding.SingleDeviceSharding(self._device))
        given, here = module, self._sharding._internal_device_list
        if not BINDINGS_OF_8:
            given, here = module_bytecode(module), [self._device]
        client = cast(Any, jax_extend_backend).get_backend("cpu")
        self._compiled = client.compile_and_load(given, executable_devices=here, compile_options=made)
        self._arguments = [(tuple(one.shape), np.dtype(one.dtype)) for one in arguments]

    def __call__(self, *arguments: Any) -> list[Any]:
        """The results, as arrays of JAX; 64 bits need `jax.enable_x64`. It may be called within a trace.

        Raises:
          TypeError: an argument has another type than the module's.
        """
        given = [np.asarray(argument) for argument in arguments]
        for (shape, dtype), array in zip(self._arguments, given, strict=True):
            if (array.shape, array.dtype) != (shape, dtype):
                raise TypeError(f"{array.dtype}{list(array.shape)} in the place of {dtype}{list(shape)}")
        return self._compiled.execute([self._put(array) for array in given])

    def _put(self, array: Any) -> Any:
        """An array on the device; it takes half the time of `jax.device_put`, which takes longer than a small run."""
        make = cast(Any, jax).make_array_from_callback
        return make(array.shape, self._sharding, lambda _: array)  # pyright: ignore[reportUnknownLambdaType]

    @property
    def temporaries(self) -> int:
        """Bytes that a run takes beside arguments and results."""
        return int(self._compiled.get_compiled_memory_stats().temp_size_in_bytes)


class RefinementError(ValueError):
    """Sizes do not fit a module: what jaxlib says, and whether it is one of the module's own assertions."""


def _call_dynamic_composites(module: RawModule) -> None:
    """Write composites of dynamic shapes as calls of their decompositions, in place."""
    for op in find_named(module.operation, ("stablehlo.composite",))[0]:
        if not all(is_static(value.type) for value in (*op.operands, *op.results)):
            put_instead(op, "func.call", {"callee": op.attributes["decomposition"]})
            op.erase()


def refine_shapes(
    module: RawModule, types: Sequence[str], *, fixed: Mapping[int, int] | None = None, is_partial: bool = False
) -> RawModule:
    """A copy of a module with static shapes, after its @main has been given these argument types.

    It is jaxlib's own shape refinement: private functions are specialised and inlined, `get_dimension_size` becomes a
    constant, dynamic ops become their static forms, and shape assertions are checked and removed. It stops at
    composites of dynamic shapes, which become calls of their decompositions first.

    Args:
      module: a module whose entry point is @main; it is left as it is.
      types: a static tensor type for each argument of @main, as printed.
      fixed: values of scalar integer arguments, by number; their uses become constants, the arguments stay.
      is_partial: whether the types may have dims of unknown size; then shapes stay dynamic that depend on them, and
        shape assertions are removed without a look at them.

    Raises:
      RefinementError: the sizes contradict each other or an assertion of the module, or a shape stays dynamic.
    """
    stablehlo.register_stablehlo_passes()
    context = module.context
    copy = parse_module(module_bytecode(module), context)
    functions = (op.operation for op in copy.body.operations if op.operation.name == "func.func")
    main = next(op for op in functions if symbol_name(op.attributes["sym_name"]) == "main")
    block = main.regions[0].blocks[0]
    with active(context):
        _call_dynamic_composites(copy)
        for number, value in (fixed or {}).items():
            argument = block.arguments[number]
            constant = create_operation(
                "stablehlo.constant",
                [],
                [argument.type],
                {"value": parse_attribute(f"dense<{value}> : {argument.type}")},
                location=main.location,
                insertion_point=ir.InsertionPoint.at_block_begin(block),
            )
            argument.replace_all_uses_with(constant.results[0])
        try:
            pass_text = f"stablehlo-refine-arguments{{types={','.join(types)}}}"
            cast(Any, passmanager.PassManager).parse(f"builtin.module({pass_text})").run(copy.operation)
            refined = cast(Any, jax_extend_mlir).refine_polymorphic_shapes(
                module_bytecode(copy), enable_shape_assertions=not is_partial, validate_static_shapes=not is_partial
            )
            return parse_module(bytes(refined), context)
        except (ir.MLIRError, MlirSyntaxError, ValueError, RuntimeError) as error:
            raise RefinementError(str(error)) from None


# --- moving -----------------------------------------------------------------------------------------------------


def dynamic_size() -> int:
    """The number that stands for a dynamic size or offset in an attribute."""
    return int(ir.ShapedType.get_dynamic_size())


def parse_type(text: str) -> RawType:
    """A type from its printed form, in the current context."""
    return cast(Any, ir.Type).parse(text)


def insert_at_begin(block: RawBlock) -> Any:
    """The insertion point at the beginning of a block."""
    return cast(Any, ir.InsertionPoint).at_block_begin(block)


def has_symbol(module: RawModule, name: str) -> bool:
    """Whether a module has a function or another symbol of this name."""
    return name in cast(Any, ir.SymbolTable)(module.operation)


# --- walking ----------------------------------------------------------------------------------------------------


def find_named(operation: RawOperation, names: Collection[str]) -> tuple[list[RawOperation], int]:
    """The operations of these names, below and including this one, in the order in which they are printed; and how many
    there are of any name."""
    advance, found, count = ir.WalkResult.ADVANCE, list[RawOperation](), 0

    def callback(op: RawOperation) -> Any:
        nonlocal count
        count += 1
        if op.name in names:
            found.append(op)
        return advance

    operation.operation.walk(callback, ir.WalkOrder.PRE_ORDER)
    return found, count


def body_of(function: RawOperation) -> list[RawOperation]:
    """The operations of the blocks of a function, what stands in their regions left out.

    A walk makes half of the objects that a block does which is asked for them.
    """
    found = list[RawOperation]()
    told = chain([ir.WalkResult.ADVANCE], repeat(ir.WalkResult.SKIP))

    def callback(op: RawOperation) -> Any:
        found.append(op)
        return next(told)

    function.operation.walk(callback, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def any_operation(operation: RawOperation, holds: Callable[[RawOperation], bool]) -> bool:
    """Whether something holds of any operation below and including this one; stops at the first."""
    found = False

    def callback(op: RawOperation) -> Any:
        nonlocal found
        found = holds(op)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    operation.operation.walk(callback, ir.WalkOrder.PRE_ORDER)
    return found


def is_block_argument(value: RawValue) -> bool:
    """Whether a value is a block argument rather than the result of an operation."""
    return isinstance(value.owner, ir.Block)  # jax 0.9 does not downcast values


def producer(value: RawValue) -> RawOperation | None:
    """The operation whose result a value is; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def is_used(value: RawValue) -> bool:
    """Whether any operation takes a value."""
    return next(iter(value.uses), None) is not None


def argument_number(value: RawValue) -> int:
    """The position of a block argument in its block."""
    return int(cast(Any, ir.BlockArgument)(value).arg_number)


def result_number(value: RawValue) -> int:
    """The position of an operation's result among its results."""
    number = getattr(value, "result_number", None)  # jax 0.9 does not downcast values
    return int(cast(Any, ir.OpResult)(value).result_number) if number is None else number


def scatter_dimension_numbers(operation: RawOperation) -> Any:
    """`#stablehlo.scatter<...>` of a scatter, with its fields as lists of int."""
    attribute = operation.attributes["scatter_dimension_numbers"]
    return cast(Any, stablehlo).ScatterDimensionNumbers(attribute)


Numbers = TypeVar("Numbers")


def _fields_of(read: Any, kind: type[Numbers]) -> Numbers:
    """Dimension numbers as a dataclass whose fields have the names of the specification; jaxlib's differ a little."""
    names = [field.name for field in fields(cast(Any, kind))]
    others = {"scatter_dims_to_operand_dims": "scattered_dims_to_operand_dims"}
    values = [getattr(read, others.get(name, name)) for name in names]
    return kind(*(value if isinstance(value, int) else tuple(value) for value in values))


@dataclass(frozen=True)
class ScatterNumbers:
    """The scatter dimension numbers, named as in the specification."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int

    @classmethod
    def of(cls, operation: RawOperation) -> "ScatterNumbers":
        """The dimension numbers of a `stablehlo.scatter`."""
        return _fields_of(scatter_dimension_numbers(operation), cls)


@dataclass(frozen=True)
class GatherNumbers:
    """`#stablehlo.gather<...>`, named as in the StableHLO specification, section gather."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int


def gather_dimension_numbers(operation: RawOperation) -> GatherNumbers:
    """The dimension numbers of a gather."""
    read = cast(Any, stablehlo).GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    return _fields_of(read, GatherNumbers)


def dot_dimension_numbers(operation: RawOperation) -> Any:
    """`#stablehlo.dot<...>` of a `dot_general`, with its fields as lists of int."""
    return cast(Any, stablehlo).DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])


def turned_dot_attributes(operation: RawOperation) -> dict[str, RawAttribute] | None:
    """The attributes of a `dot_general` whose operands are exchanged; None where it has one that is not understood."""
    numbers = dot_dimension_numbers(operation)
    batching = numbers.rhs_batching_dimensions, numbers.lhs_batching_dimensions
    contracting = numbers.rhs_contracting_dimensions, numbers.lhs_contracting_dimensions
    return dot_attributes(operation, batching, contracting, is_turned=True)


def dot_attributes(
    operation: RawOperation,
    batching: tuple[Sequence[int], Sequence[int]],
    contracting: tuple[Sequence[int], Sequence[int]],
    *,
    is_turned: bool,
) -> dict[str, RawAttribute] | None:
    """The attributes of a `dot_general` over other dims of its operands, which may be exchanged; None where it has one
    that is not understood."""
    found = attributes_of(operation)
    if set(found) - {"dot_dimension_numbers", "precision_config"}:
        return None
    found["dot_dimension_numbers"] = cast(Any, stablehlo).DotDimensionNumbers.get(
        lhs_batching_dimensions=list(batching[0]),
        rhs_batching_dimensions=list(batching[1]),
        lhs_contracting_dimensions=list(contracting[0]),
        rhs_contracting_dimensions=list(contracting[1]),
    )
    if "precision_config" in found and is_turned:
        found["precision_config"] = cast(Any, ir.ArrayAttr).get(list(reversed(list(found["precision_config"]))))
    return found


def dot_algorithm(operation: RawOperation) -> dict[str, str]:
    """What the algorithm of a product says, by its names ("accumulation_type": "f32"); empty without one."""
    return dict(re.findall(r"(\w+) = (\w+)", str(attributes_of(operation).get("algorithm", ""))))


@dataclass(frozen=True)
class ConvolutionNumbers:
    """The dims of a convolution's batch and features, in its input, kernel and output."""

    input_batch: int
    kernel_output_feature: int
    output_batch: int
    output_feature: int
    input_feature: int
    kernel_input_feature: int


def convolution_dimension_numbers(operation: RawOperation) -> ConvolutionNumbers:
    """The dimension numbers of a `stablehlo.convolution`."""
    read = cast(Any, stablehlo).ConvDimensionNumbers(operation.attributes["dimension_numbers"])
    return ConvolutionNumbers(*(int(getattr(read, f"{field.name}_dimension")) for field in fields(ConvolutionNumbers)))


# --- locations --------------------------------------------------------------------------------------------------


def convolution_spatial_dimensions(operation: RawOperation) -> tuple[tuple[int, int, int], ...]:
    """The spatial dims of a `stablehlo.convolution`, each as those of its input, kernel and output."""
    read = cast(Any, stablehlo).ConvDimensionNumbers(operation.attributes["dimension_numbers"])
    lists = (read.input_spatial_dimensions, read.kernel_spatial_dimensions, read.output_spatial_dimensions)
    return tuple((int(a), int(b), int(c)) for a, b, c in zip(*lists, strict=True))


def plain_convolution_numbers(operation: RawOperation) -> RawAttribute:
    """The same dimension numbers with batch, spatial dims and features of input and output in this order."""
    read = cast(Any, stablehlo).ConvDimensionNumbers(operation.attributes["dimension_numbers"])
    spatial = list(range(1, len(read.input_spatial_dimensions) + 1))
    kernel = read.kernel_input_feature_dimension, read.kernel_output_feature_dimension, read.kernel_spatial_dimensions
    ends = 0, len(spatial) + 1, spatial
    return cast(Any, stablehlo).ConvDimensionNumbers.get(*ends, *kernel, *ends)


def _location_kind(location: Any) -> str:
    """ "name", "callsite", "file", "fused" or "" (unknown): classes in jax 0.10, predicates in jax 0.9."""
    kind = type(location).__name__
    if kind != "Location":
        return {"NameLoc": "name", "CallSiteLoc": "callsite", "FileLineColLoc": "file", "FusedLoc": "fused"}.get(
            kind, ""
        )
    if not hasattr(location, "is_a_name"):
        return ""
    kinds = (("name", location.is_a_name), ("callsite", location.is_a_callsite))
    kinds += (("file", location.is_a_file), ("fused", location.is_a_fused))
    return next((name for name, holds in kinds if (holds() if callable(holds) else holds)), "")


def read_location(location: RawLocation) -> tuple[tuple[str, int, int], tuple[str, ...]]:
    """The innermost file, line and column of a location and its names, outermost first.

    The place is ("", 0, 0) where the location names none.

    The accessors are used, not the printed form: printing the traceback of one location takes milliseconds.
    """
    names: list[str] = []
    pending = [location]
    while pending:
        current = pending.pop()
        kind = _location_kind(current)
        if kind == "name":
            names.append(str(current.name_str))
            pending.append(current.child_loc)
        elif kind == "callsite":
            pending.append(current.callee)
        elif kind == "fused":
            pending.extend(reversed(list(current.locations)))
        elif kind == "file":
            return (str(current.filename), int(current.start_line), int(current.start_col)), tuple(names)
    return ("", 0, 0), tuple(names)


def file_position(location: RawLocation) -> tuple[str, int, int]:
    """The innermost file, line and column of a location: ("", 0, 0) where it names none."""
    return read_location(location)[0]


@contextmanager
def numbered_once(module: RawModule) -> Generator[None]:
    """Let a module number its values once for all `get_name()` of them, at the first one; it must not change then.

    Each call verifies and numbers the whole module otherwise: 2 ms for 1,100 lines.
    """
    value_type, state_of = cast(Any, ir.Value), cache(lambda: ir.AsmState(module.operation))
    own = value_type.get_name

    def get_name(value: RawValue) -> str:
        return own(value, state_of())

    value_type.get_name = get_name
    try:
        yield
    finally:
        value_type.get_name = own


def value_name(value: RawValue) -> str:
    """The name that a block argument's location gives it ("pos"), or ""."""
    location = getattr(value, "location", None)
    return str(location.name_str) if location is not None and _location_kind(location) == "name" else ""


# --- types ------------------------------------------------------------------------------------------------------


def dtype_of(name: str) -> np.dtype[Any] | None:
    """The NumPy dtype of an MLIR element type as printed ("bf16", "ui32"); None if NumPy has none (quantized)."""
    return element_type(name).dtype


@dataclass(frozen=True)
class TensorType:
    """A ranked tensor type, read once.

    Attributes:
      shape: sizes, None for a dynamic one.
      element: the raw element type.
      element_name: the element type as printed ("f32", "ui8", "!quant.uniform<...>").
      is_static: whether all sizes are known.
    """

    shape: tuple[int | None, ...]
    element: RawType
    element_name: str
    is_static: bool


_tensor_types: dict[RawType, TensorType | None] = {}
"""Types read since the last context was made: the bindings take 10 us to print an element type, and without this,
lowering a decode or training step takes 6 to 13 % longer."""


def read_tensor_type(raw_type: RawType) -> TensorType | None:
    """A type's shape and element type if it is a ranked tensor, else None (tokens, tuples)."""
    try:
        return _tensor_types[raw_type]
    except KeyError:
        pass
    found = None
    if isinstance(raw_type, ir.RankedTensorType):
        dynamic = ir.ShapedType.get_dynamic_size()
        tensor = cast(Any, raw_type)
        shape = tuple(None if size == dynamic else int(size) for size in tensor.shape)
        found = TensorType(shape, tensor.element_type, str(tensor.element_type), None not in shape)
    _tensor_types[raw_type] = found
    return found


def bounds_of(raw_type: RawType) -> tuple[int | None, ...]:
    """The bound of each dim of a ranked tensor, as `#stablehlo.bounds<8, ?>` says it; None of one without."""
    tensor: Any = raw_type
    found = re.search(r"\.bounds<([^>]*)>", str(tensor.encoding))
    told = found.group(1).split(",") if found else ["?"] * len(tensor.shape)
    return tuple(int(bound) if bound.strip().isdigit() else None for bound in told)


def is_ranked_tensor(raw_type: RawType) -> bool:
    """Whether a type is a ranked tensor."""
    return read_tensor_type(raw_type) is not None


def is_static(raw_type: RawType) -> bool:
    """Whether a type is a ranked tensor whose sizes are all known."""
    tensor = read_tensor_type(raw_type)
    return tensor is not None and tensor.is_static


def _tensor(raw_type: RawType) -> TensorType:
    found = read_tensor_type(raw_type)
    if found is None:
        raise TypeError(f"{raw_type} is not a ranked tensor")
    return found


def tensor_shape(raw_type: RawType) -> tuple[int | None, ...]:
    """The shape of a ranked tensor type, None for a dynamic dim."""
    return _tensor(raw_type).shape


def static_shape(raw_type: RawType) -> tuple[int, ...]:
    """The shape of a tensor type without dynamic dims."""
    return tuple(int(size or 0) for size in tensor_shape(raw_type))


def tensor_element(raw_type: RawType) -> RawType:
    """The element type of a ranked tensor type."""
    return _tensor(raw_type).element


def tensor_element_name(raw_type: RawType) -> str:
    """The element type of a ranked tensor type as printed."""
    return _tensor(raw_type).element_name


def tensor_encoding(raw_type: RawType) -> str:
    """What a ranked tensor type says beside its shape and element type, a text without its quotes; "" if nothing."""
    encoding = raw_type.encoding
    return "" if encoding is None else str(encoding).strip('"')


def tensor_type(shape: Sequence[int | None], element: RawType | str) -> RawType:
    """`tensor<shape x element>` in the current context; element as a type or as printed."""
    dynamic = ir.ShapedType.get_dynamic_size()
    raw_element: Any = cast(Any, ir.Type).parse(element) if isinstance(element, str) else element
    return cast(Any, ir.RankedTensorType).get([dynamic if d is None else d for d in shape], raw_element)


# --- attributes -------------------------------------------------------------------------------------------------


def parse_attribute(text: str) -> RawAttribute:
    """An attribute from its printed form, in the current context."""
    return cast(Any, ir.Attribute).parse(text)


def dense_i64(values: Sequence[int]) -> RawAttribute:
    """`array<i64: values>`, the form of permutations, slice bounds and padding."""
    return cast(Any, ir.DenseI64ArrayAttr).get(list(values))


def i64_attribute(value: int) -> RawAttribute:
    """`value : i64`."""
    return cast(Any, ir.IntegerAttr).get(cast(Any, ir.IntegerType).get_signless(64), value)


def string_attribute(text: str) -> RawAttribute:
    """A string attribute of the active context, whatever letters the text has."""
    return cast(Any, ir.StringAttr).get(text)


def plain_attribute(value: bool | int | float | str | Sequence[Any]) -> RawAttribute:
    """A plain value as an export under `hl.named` has it: i64, f64, strings, and lists of these."""
    if isinstance(value, bool):
        return cast(Any, ir.BoolAttr).get(value)
    if isinstance(value, int):
        return i64_attribute(value)
    if isinstance(value, float):
        return cast(Any, ir.FloatAttr).get_f64(value)
    if isinstance(value, str):
        return string_attribute(value)
    return cast(Any, ir.ArrayAttr).get([plain_attribute(one) for one in value])


def plain_value(attribute: RawAttribute) -> object:
    """The plain value of an attribute that `plain_attribute` makes, a list as a tuple; how any other is printed."""
    if isinstance(attribute, ir.ArrayAttr | ir.DenseI64ArrayAttr):
        return tuple(plain_value(one) if isinstance(one, ir.Attribute) else one for one in cast(Any, attribute))
    is_plain = isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr)
    return cast(Any, attribute).value if is_plain else str(attribute)


def dictionary_attribute(entries: Mapping[str, RawAttribute]) -> RawAttribute:
    """A dictionary of attributes by name."""
    return cast(Any, ir.DictAttr).get(dict(entries))


def is_true(operation: RawOperation, name: str) -> bool:
    """Whether an operation has a boolean attribute of a name, and it is true."""
    attributes = operation.attributes
    return name in attributes and str(attributes[name]) == "true"


def is_public(function: RawOperation) -> bool:
    """Whether a function is visible from outside the module; one without a visibility is."""
    attributes = function.attributes
    return "sym_visibility" not in attributes or symbol_name(attributes["sym_visibility"]) == "public"


def make_private(function: RawOperation) -> None:
    """Hide a function from outside the module."""
    function.attributes["sym_visibility"] = string_attribute("private")


def symbol_name(attribute: RawAttribute) -> str:
    """The name in a `@symbol` reference or a string attribute."""
    return str(attribute.value)


def call_target(operation: RawOperation) -> str:
    """What a `stablehlo.custom_call` calls; "" for any other operation."""
    is_call = operation.name == "stablehlo.custom_call"
    return symbol_name(operation.attributes["call_target_name"]) if is_call else ""


_PYTHON_CALLBACK = re.compile(r"xla_(ffi_(partitioned_)?|buffer_)?python_[a-z]+_callback")


def calls_python(operation: RawOperation) -> bool:
    """Whether an operation calls back into the Python process that traced it, as JAX's host callbacks do, on each
    platform and in each calling convention. Any other process dies of running it: what is called is an address."""
    return _PYTHON_CALLBACK.fullmatch(call_target(operation)) is not None


def attributes_of(operation: RawOperation) -> dict[str, RawAttribute]:
    """All attributes of an operation, inherent and discardable, by name.

    One that the bindings have no class for (dense complex elements) stands as the text of the operation, its result's
    name aside.
    """
    found: dict[str, RawAttribute] = {}
    for name in attribute_names(operation):  # by number, the bindings abort the process where they have no class
        try:
            found[name] = _attribute(operation, name)
        except TypeError:
            found[name] = str(operation).split(" = ", 1)[-1]
    return found


def attribute_names(operation: RawOperation) -> list[str]:
    """The names of all attributes."""
    return [one if isinstance(one, str) else str(one.name) for one in operation.attributes]  # names since 0.8.1


def _attribute(operation: RawOperation, name: str) -> RawAttribute:
    """An attribute; TypeError where the bindings have no class for it."""
    if not BINDINGS_OF_8 and name == "value" and "complex<" in str(operation.results[0].type):
        raise TypeError(name)
    return operation.attributes[name]


def attribute_key(operation: RawOperation) -> tuple[object, ...]:
    """The same as something to compare by, in the order in which they stand."""
    if not len(operation.attributes):
        return ()
    try:
        return tuple([(name, _attribute(operation, name)) for name in attribute_names(operation)])
    except TypeError:
        return tuple(attributes_of(operation).items())


def symbols_in(operation: RawOperation) -> set[str]:
    """The `@symbols` that an operation's attributes name, at any depth; quoted ones (`@"<lambda>"`) without quotes."""
    found = re.findall(r'@(?:"([^"]*)"|([\w.$-]+))', str(operation.get_asm(skip_regions=True)))
    return {quoted or plain for quoted, plain in found}


def symbol_attribute(name: str) -> RawAttribute:
    """The reference to a function of a name, which may hold any character but quotes, as `jit(lambda)` makes it."""
    return parse_attribute(f'@"{name}"')


def enum_value(attribute: RawAttribute) -> str:
    """The keyword of an enum attribute ("LT" of `#stablehlo<comparison_direction LT>`)."""
    value = getattr(attribute, "value", None)
    return value if isinstance(value, str) else str(attribute).rsplit(" ", 1)[-1].rstrip(">")


def integers_of(attribute: RawAttribute) -> tuple[int, ...]:
    """The integers of an `array<i64: ...>`."""
    return tuple(int(v) for v in attribute)


def float_of(attribute: RawAttribute) -> float:
    """The number of a float attribute (an epsilon)."""
    return float(attribute.value)


def integer_of(attribute: RawAttribute) -> int:
    """The integer of an integer attribute (an iota dimension, a concatenate dimension)."""
    return int(attribute.value)


def dense_value(attribute: RawAttribute, shape: Sequence[int], element_type: str) -> np.ndarray[Any, Any] | None:
    """The content of a dense elements attribute as an array of this shape; a splat is broadcast, not copied.

    None where NumPy has no dtype for it, or where the content is a resource that is not in the module.
    """
    dtype = dtype_of(element_type)
    if dtype is None or not isinstance(attribute, ir.DenseElementsAttr):
        return None
    attribute = cast(Any, attribute)
    if dtype.kind in "iuf" and not attribute.is_splat and dtype.name in np.sctypeDict:
        array = np.array(attribute)  # through the buffer protocol
        if array.dtype == dtype:
            return array.reshape(tuple(shape))
    array = parse_dense(str(attribute), dtype, prod(shape))
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), tuple(shape))
    return array.reshape(tuple(shape))


def constant_value(operation: RawOperation, *, is_complex: bool = False) -> np.ndarray[Any, Any] | None:
    """The value of a `stablehlo.constant` of static shape, or None where NumPy or the bindings have no form for it.

    Args:
      operation: the constant.
      is_complex: whether one of complex numbers is read, too, which the bindings have no class for: from its text.
    """
    raw_type = operation.results[0].type
    if not is_ranked_tensor(raw_type) or None in tensor_shape(raw_type):
        return None
    shape = [int(d) for d in tensor_shape(raw_type) if d is not None]
    try:
        attribute = _attribute(operation, "value")
    except TypeError:  # the bindings have no class for dense complex and f8E5M2 elements
        return _complex_value(operation, shape) if is_complex else None
    return dense_value(attribute, shape, str(tensor_element(raw_type)))


def _complex_value(operation: RawOperation, shape: Sequence[int]) -> np.ndarray[Any, Any] | None:
    """The same of a `dense<...>` of complex numbers that stands in the operation's text."""
    dtype = dtype_of(tensor_element_name(operation.results[0].type))
    found = re.search(r"dense<.*?> : ", str(operation), re.DOTALL)
    if dtype is None or dtype.kind != "c" or found is None:
        return None
    array = parse_dense(found[0], dtype, prod(shape))
    return np.broadcast_to(array.reshape(()), tuple(shape)) if array.size == 1 else array.reshape(tuple(shape))


def is_splat(operation: RawOperation) -> bool:
    """Whether a `stablehlo.constant` has the same value everywhere, as far as its attribute says so."""
    try:
        attribute = _attribute(operation, "value")
    except TypeError:  # as in `constant_value`
        return False
    return isinstance(attribute, ir.DenseElementsAttr) and bool(cast(Any, attribute).is_splat)


def splat_value(attribute: RawAttribute) -> RawAttribute:
    """The value of a splat, an attribute by itself."""
    return attribute.get_splat_value()


def resplat(attribute: RawAttribute, raw_type: RawType) -> RawAttribute:
    """A splat of the same value and another type."""
    splat = attribute.get_splat_value()
    return cast(Any, ir.DenseElementsAttr).get_splat(raw_type, splat)


def dense_integers(attribute: RawAttribute) -> tuple[int, ...]:
    """The integers of a `dense<...> : tensor<...xi64>` (padding of windows), flat."""
    return tuple(int(v) for v in np.array(attribute).reshape(-1))


_DENSE_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")


def parse_dense(text: str, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """The elements of a printed `dense<...> : type`, flat: `"0x..."` is raw data, `0x...` the bits of one element.

    Of i1 raw data are bytes, or, as MLIR packed them until jaxlib 0.9, bits, the lowest first.
    """
    body = text[text.index("<") + 1 : text.rindex("> : ")]
    if body.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(body[3:-1]), dtype=np.uint8)
        is_packed = dtype == np.bool_ and raw.size < count
        return np.unpackbits(raw, count=count, bitorder="little").view(dtype) if is_packed else raw.view(dtype)
    part: np.dtype[Any] = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    bits: np.dtype[Any] = np.dtype(f"u{part.itemsize}")
    tokens = _DENSE_TOKEN.findall(body)
    values = np.zeros(len(tokens), part)
    for i, token in enumerate(tokens):
        if token in ("true", "false"):
            values[i] = token == "true"
        elif token.startswith("0x"):
            values[i : i + 1] = np.array([int(token, 16)], bits).view(part)
        else:
            values[i] = np.array(int(token) if dtype.kind in "iu" else float(token)).astype(part)
    return values.view(dtype)


def float_text(value: float, element: str) -> str:
    """A float as `dense<...>` of an element type takes it: by its bits, so that none is lost."""
    bits = np.array(value).astype(dtype_of(element))
    return f"0x{int(bits.view(f'u{bits.itemsize}')):0{2 * bits.itemsize}X}"


def dense_attribute(array: np.ndarray[Any, Any], raw_type: RawType) -> RawAttribute:
    """A dense elements attribute of this tensor type from an array, in the current context; one element is a splat."""
    if array.size == 0:
        return parse_attribute(f"dense<> : {raw_type}")
    if array.dtype == np.bool_:
        return parse_attribute(f"dense<{json.dumps(array.tolist())}> : {raw_type}")
    return parse_attribute(f'dense<"0x{np.ascontiguousarray(array).tobytes().hex()}"> : {raw_type}')


# --- passes and types, in place -----------------------------------------------------------------------------------


class PassError(ValueError):
    """A pass of jaxlib fails: what it says."""


def run_pass(operation: RawOperation, pipeline: str) -> None:
    """Run passes of jaxlib over an operation in place ("func.func(chlo-legalize-to-stablehlo)" over a function).

    Raises:
      PassError: a pass fails; what the operation holds then is unfinished.
    """
    stablehlo.register_stablehlo_passes()
    with operation.context:
        try:
            cast(Any, passmanager.PassManager).parse(pipeline).run(operation)
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            raise PassError(_first_error(str(error))) from None


def _first_error(message: str) -> str:
    """What a pass complains of: the first diagnostic, which stands behind a line that says only that one failed."""
    found = re.search(r"error: (?:\"[^\"]*\":\d+:\d+: )?(.*)", message)
    return found[1].strip() if found else message.splitlines()[0]


MESH = "sdy.mesh"
_MESH_AXES = re.compile(r'"?([A-Za-z_][\w.$-]*)"?\s*=\s*(\d+)')


def meshes(module: RawOperation) -> list[RawOperation]:
    """The meshes that a module names (`sdy.mesh`)."""
    return [op.operation for op in module.regions[0].blocks[0].operations if op.operation.name == MESH]


def mesh_axes(module: RawOperation) -> list[dict[str, int]]:
    """The sizes of the axes of each mesh that a module names, by the axes' names."""
    printed = (str(mesh.attributes["mesh"]) for mesh in meshes(module))
    return [{name: int(size) for name, size in _MESH_AXES.findall(text)} for text in printed]


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid: its axes with their sizes, the slowest first, and the devices where they are in no order."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class TensorSharding:
    """A sharding of Shardy: its mesh, and for each dim the axes over which that is spread, the slowest first; a part of
    an axis is named "x:(1)2". unreduced: axes over which it is to be summed."""

    mesh: Mesh
    dims: tuple[tuple[str, ...], ...]
    unreduced: tuple[str, ...]


def tensor_shardings(operation: RawOperation, name: str) -> list[TensorSharding]:
    """The shardings that an attribute of an operation gives, one for each value; a mesh that the module does not hold
    has no axes."""
    module = operation
    while module.parent is not None:
        module = module.parent.operation
    known = {symbol_name(mesh.attributes["sym_name"]): mesh.attributes["mesh"] for mesh in meshes(module)}
    dialect = cast(Any, sdy)
    found: list[TensorSharding] = []
    for raw in dialect.TensorShardingPerValueAttr(operation.attributes[name]).shardings:
        sharding = dialect.TensorShardingAttr(raw)
        reference = sharding.mesh_or_ref
        text = str(reference)
        attribute = known.get(text.strip('@"')) if text.startswith("@") else reference
        mesh = Mesh(()) if attribute is None else _mesh_of(dialect.MeshAttr(attribute))
        dims = (map(_axis_name, dialect.DimensionShardingAttr(dim).axes) for dim in sharding.dimension_shardings)
        unreduced = tuple(map(_axis_name, sharding.unreduced_axes))
        found.append(TensorSharding(mesh, tuple(map(tuple, dims)), unreduced))
    return found


def _mesh_of(raw: Any) -> Mesh:
    axes = tuple((axis.name, axis.size) for axis in map(cast(Any, sdy).MeshAxisAttr, raw.axes))
    return Mesh(axes, tuple(raw.device_ids))


def _axis_name(raw: RawAttribute) -> str:
    axis = cast(Any, sdy).AxisRefAttr(raw)
    part = axis.sub_axis_info
    return axis.name if part is None else f"{axis.name}:{part}"


def manual_axes(operation: RawOperation) -> tuple[str, ...]:
    """The axes for whose places the body of an `sdy.manual_computation` is written."""
    return tuple(str(name).strip('"') for name in cast(Any, sdy).ManualAxesAttr(operation.attributes["manual_axes"]))


def channel_of(operation: RawOperation) -> int:
    """The channel of a collective; 0 where it has none."""
    attributes = operation.attributes
    if "channel_handle" not in attributes:
        return 0
    return int(cast(Any, stablehlo).ChannelHandle(attributes["channel_handle"]).handle)


def entries_of(attribute: RawAttribute) -> dict[str, RawAttribute]:
    """The entries of a dictionary attribute by name."""
    dictionary = cast(Any, ir.DictAttr)(attribute)
    return {str(named.name): named.attr for named in (dictionary[i] for i in range(len(dictionary)))}


def plain_entries(attribute: RawAttribute) -> dict[str, object]:
    """The plain values of a dictionary attribute by name."""
    return {name: plain_value(value) for name, value in entries_of(attribute).items()}


def set_type(value: RawValue, raw_type: RawType) -> None:
    """Give a value another type; whoever uses it sees the new one."""
    value.set_type(raw_type)


def set_signature(function: RawOperation) -> None:
    """Give a `func.func` the type that its block and its return now have."""
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation
    types = [a.type for a in block.arguments], [v.type for v in returned.operands]
    function.attributes["function_type"] = cast(Any, ir.TypeAttr).get(cast(Any, ir.FunctionType).get(*types))


def set_declared_signature(function: RawOperation, retyped: Callable[[RawType], RawType]) -> None:
    """Change each type of the signature of a `func.func` without a body."""
    declared = function.attributes["function_type"].value
    types = [retyped(t) for t in declared.inputs], [retyped(t) for t in declared.results]
    function.attributes["function_type"] = cast(Any, ir.TypeAttr).get(cast(Any, ir.FunctionType).get(*types))


# --- building ---------------------------------------------------------------------------------------------------


def create_operation(
    name: str,
    operands: Sequence[RawValue],
    result_types: Sequence[RawType],
    attributes: dict[str, RawAttribute] | None = None,
    *,
    regions: int = 0,
    location: RawLocation,
    insertion_point: Any,
) -> RawOperation:
    """Create an operation at an insertion point."""
    return cast(Any, ir.Operation).create(
        name,
        results=list(result_types),
        operands=list(operands),
        attributes=attributes or {},
        regions=regions,
        loc=location,
        ip=insertion_point,
    )


def put_instead(operation: RawOperation, name: str, attributes: dict[str, RawAttribute]) -> RawOperation:
    """Create an operation on the same operands before another one, and give its results to who takes those of that."""
    types, point = [result.type for result in operation.results], insert_before(operation)
    location, operands = operation.location, list(operation.operands)
    found = create_operation(name, operands, types, attributes, location=location, insertion_point=point)
    replace_results(operation, found.results)
    return found


def private_function(
    module: RawModule, name: str, types: Sequence[RawType], location: RawLocation
) -> tuple[RawOperation, RawBlock]:
    """Create a private function at the end of a module, and its block with arguments of these types; once that returns
    what it gives, `set_signature` tells its type."""
    attributes = {
        "sym_name": string_attribute(name),
        "function_type": parse_attribute("() -> ()"),
        "sym_visibility": string_attribute("private"),
    }
    point = insert_at_end(module.body)
    function = create_operation("func.func", [], [], attributes, regions=1, location=location, insertion_point=point)
    return function, append_block(function, 0, types, location)


def insert_before(operation: RawOperation) -> Any:
    """The insertion point before an operation."""
    return cast(Any, ir.InsertionPoint)(operation)


def insert_after(operation: RawOperation) -> Any:
    """The insertion point after an operation."""
    if BINDINGS_OF_8:
        return cast(Any, ir.InsertionPoint).after(operation)
    block = operation.operation.block
    beside = [one.operation for one in block.operations]
    following = beside[beside.index(operation.operation) + 1 :]
    return cast(Any, ir.InsertionPoint)(following[0] if following else block)


def insert_at_end(block: RawBlock) -> Any:
    """The insertion point at the end of a block."""
    return cast(Any, ir.InsertionPoint)(block)


def block_of(operation: RawOperation) -> RawBlock:
    """The block that an operation stands in."""
    return insert_before(operation).block


def append_block(operation: RawOperation, region: int, types: Sequence[RawType], location: RawLocation) -> RawBlock:
    """Append a block with arguments of these types to a region of an operation."""
    return operation.regions[region].blocks.append(*types, arg_locs=[location] * len(types))


def move_block(block: RawBlock, operation: RawOperation, region: int) -> None:
    """Move a block into an empty region of another operation."""
    block.append_to(operation.regions[region])


def add_argument(block: RawBlock, raw_type: RawType, location: RawLocation) -> RawValue:
    """Give a block one more argument, behind its own."""
    return block.add_argument(raw_type, location)


def clone_at(operation: RawOperation, insertion_point: Any, location: RawLocation) -> RawOperation:
    """A copy of an operation without operands, at an insertion point."""
    copy = operation.clone(ip=insertion_point).operation
    _set_location(copy, location)
    return copy


def clone_on(
    operation: RawOperation,
    insertion_point: Any,
    location: RawLocation,
    operands: Sequence[RawValue],
    result_types: Sequence[RawType],
) -> RawOperation:
    """A copy of an operation, regions included, on other operands and with other types of its results."""
    copy = operation.clone(ip=insertion_point).operation
    _set_location(copy, location)
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    for result, raw_type in zip(copy.results, result_types, strict=True):
        result.set_type(raw_type)
    return copy


def clone_into(operation: RawOperation, block: RawBlock, replacements: dict[RawValue, RawValue]) -> RawOperation:
    """Append a copy of an operation, regions included, to a block, with some of the values that it reads replaced."""
    return clone_to(operation, insert_at_end(block), replacements)


def clone_before(operation: RawOperation, other: RawOperation, replacements: dict[RawValue, RawValue]) -> RawOperation:
    """Put such a copy before another operation."""
    return clone_to(operation, insert_before(other), replacements)


def clone_to(operation: RawOperation, insertion_point: Any, replacements: dict[RawValue, RawValue]) -> RawOperation:
    """Put such a copy at an insertion point."""
    copy = operation.clone(ip=insertion_point)

    for inner in operations_within(copy.operation):
        for i, operand in enumerate(inner.operands):
            if operand in replacements:
                inner.operands[i] = replacements[operand]
    return copy.operation


def template_of(
    operations: Sequence[RawOperation], taken: Sequence[RawValue], given: Sequence[RawValue], location: RawLocation
) -> RawOperation:
    """A function that stands nowhere, with copies of operations of one block, for `inline_template`.

    Args:
      operations: in program order; they take results of each other, and `taken`.
      taken: what becomes the arguments; where one stands there twice, the first one counts.
      given: what it returns.
      location: of the function.
    """
    function = cast(Any, ir.Operation).create("func.func", regions=1, loc=location)
    block = append_block(function, 0, [value.type for value in taken], location)
    copies = dict(reversed(list(zip(taken, block.arguments, strict=True))))
    for operation in operations:
        copies.update(zip(operation.results, clone_into(operation, block, copies).results, strict=True))
    returned = [copies[value] for value in given]
    create_operation("func.return", returned, [], location=location, insertion_point=insert_at_end(block))
    return function


def function_text(function: Callable[..., Any], given: Sequence[RawType], name: str = "") -> str:
    """The text of a module with a JAX function of tensors of these types.

    Args:
      function: the function.
      given: the types of its arguments.
      name: what it is called where it is private; without one it is @main.
    """
    specs = [jax.ShapeDtypeStruct(static_shape(of), dtype_of(tensor_element_name(of))) for of in given]
    with plain_jax():
        text = cast(Any, jax).jit(function, keep_unused=True).lower(*specs).as_text()
    return text.replace("func.func public @main", f"func.func private @{name}") if name else text


def put_function_instead(operation: RawOperation, function: Callable[..., Any]) -> None:
    """Put what a JAX function of an operation's operands computes in the place of its results, and erase it."""
    made = parse_module(function_text(function, [v.type for v in operation.operands]), operation.context)
    [body] = made.body.operations
    replace_results(operation, inline_template(body.operation, list(operation.operands), operation)[1])
    operation.erase()


def inline_template(
    template: RawOperation, values: Sequence[RawValue], before: RawOperation
) -> tuple[list[RawOperation], list[RawValue]]:
    """Copy the operations of a template on these values in front of an operation, with its location.

    Returns the copies and the template's results."""
    function = template.clone().operation
    block = function.regions[0].blocks[0]
    for argument, value in zip(block.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    *operations, last = block.operations
    given = list(last.operands)
    location = before.location
    for operation in operations:
        operation.move_before(before)
        _set_location(operation, location)
    function.erase()
    return operations, given


def replace_results(operation: RawOperation, values: Sequence[RawValue]) -> None:
    """Let values be used in the place of an operation's results."""
    for old, new in zip(operation.results, values, strict=True):
        old.replace_all_uses_with(new)


def inline_call(call: RawOperation, function: RawOperation) -> list[RawOperation]:
    """Put the operations of a function, which are returned, in the place of a call."""
    built, given = inline_template(function, list(call.operands), call)
    replace_results(call, given)
    call.erase()
    return built


def discard(operations: Sequence[RawOperation]) -> None:
    """Erase operations of which only each other takes anything, in whatever order they stand."""
    if not operations:
        return
    location = operations[0].location
    with operations[0].context:
        function = cast(Any, ir.Operation).create("func.func", regions=1, loc=location)
    block = append_block(function, 0, [], location)
    for operation in operations:
        block.append(operation)
    function.erase()


def operations_within(operation: RawOperation) -> list[RawOperation]:
    """An operation and all operations in its regions, in program order."""
    found, pending = list[RawOperation](), [operation]
    while pending:  # a walk of the bindings takes ten times as long for a few operations
        current = pending.pop()
        found.append(current)
        if len(current.regions):
            blocks = (block for region in current.regions for block in region.blocks)
            pending += reversed([inner.operation for block in blocks for inner in block.operations])
    return found


def taken_by(operation: RawOperation) -> list[RawValue]:
    """What an operation takes: its operands, and what its regions take from around it; a value may come twice."""
    if not len(operation.regions):
        return list(operation.operands)
    inside = operations_within(operation)
    own = {value for op in inside for value in defined_by(op)}
    return [value for op in inside for value in op.operands if op is operation or value not in own]


def defined_by(operation: RawOperation) -> list[RawValue]:
    """The results of an operation, and the arguments of its blocks."""
    return [*operation.results, *_arguments(operation)]


def locations_within(operation: RawOperation) -> list[RawLocation]:
    """The locations of an operation and of all in its regions, arguments of blocks included."""
    located = (part for op in operations_within(operation) for part in (op, *_arguments(op)))
    return [part.location for part in located]


def set_locations(operation: RawOperation, locations: Sequence[RawLocation]) -> None:
    """Give an operation and all in its regions locations, in the order of `locations_within`."""
    parts = [part for op in operations_within(operation) for part in (op, *_arguments(op))]
    for part, location in zip(parts, locations, strict=True):
        _set_location(part, location)


def _set_location(part: Any, location: RawLocation) -> None:
    """Give an operation, or an argument of a block, a location; before 0.8 and 0.8.1 each keeps its own."""
    if isinstance(part, ir.BlockArgument):
        argument = cast(Any, part)
        if hasattr(argument, "set_location"):
            argument.set_location(location)
    elif BINDINGS_OF_8:
        part.location = location


def _arguments(operation: RawOperation) -> list[RawValue]:
    return [a for region in operation.regions for block in region.blocks for a in block.arguments]


# --- interpreting -----------------------------------------------------------------------------------------------


BITS_ONLY = "f8E5M2"
"""The float type of which the bindings make no constants: the interpreter gets its bits."""


def _main_of(module: RawModule) -> Any:
    """The function `main` of a module, or its first."""
    functions = [f for f in module.body.operations if f.operation.name == "func.func"]
    named = (f for f in functions if symbol_name(f.operation.attributes["sym_name"]) == "main")
    return next(named, functions[0])


def _with_bits(module: RawModule, main: Any) -> str:
    """The text of a module that has a `main` of bytes in the place of BITS_ONLY, which calls the one that was."""
    inputs, results = ([str(raw_type) for raw_type in types] for types in (main.type.inputs, main.type.results))
    main.operation.attributes["sym_name"] = parse_attribute('"main_of_floats"')

    def bits(types: Sequence[str]) -> list[str]:
        return [one.replace(BITS_ONLY, "ui8") for one in types]

    def converted(name: str, came: Sequence[str], goes: Sequence[str]) -> tuple[list[str], str]:
        pairs = list(enumerate(zip(came, goes, strict=True)))
        lines = [f"%{name}_{k} = stablehlo.bitcast_convert %{name}{k} : ({a}) -> {b}" for k, (a, b) in pairs if a != b]
        return lines, ", ".join(f"%{name}_{k}" if a != b else f"%{name}{k}" for k, (a, b) in pairs)

    before, given = converted("a", bits(inputs), inputs)
    after, returned = converted("r", results, bits(results))
    arguments = ", ".join(f"%a{k}: {one}" for k, one in enumerate(bits(inputs)))
    made = ", ".join(f"%r{k}" for k in range(len(results)))
    call = f"{made} = call @main_of_floats({given}) : ({', '.join(inputs)}) -> ({', '.join(results)})"
    lines = [*before, call, *after, f"return {returned} : {', '.join(bits(results))}"]
    body, _, _ = str(module).rpartition("}")
    outer = f"func.func @main({arguments}) -> ({', '.join(bits(results))}) {{\n{chr(10).join(lines)}\n}}"
    return f"{body}{outer}\n}}"


def interpret(text: str, arguments: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run a module's `main` in StableHLO's reference interpreter.

    An op that it does not support aborts the process: call it in a child process only.

    Raises:
      TypeError: an argument or a result is complex, which has no Python form.
    """
    context = shared_context(len(text))
    with active(context):
        module = parse_module(text, context)
        main = _main_of(module)
        types = [*main.type.inputs, *main.type.results]
        if any(element_type(tensor_element_name(raw_type)).is_complex for raw_type in types):
            raise TypeError("jaxlib has no Python form for constants of complex numbers")
        if any(tensor_element_name(raw_type) == BITS_ONLY for raw_type in types):
            types, floats = list(main.type.results), np.dtype(ml_dtypes.float8_e5m2)
            wrapped = _with_bits(module, main)
            arrays = [array.view(np.uint8) if array.dtype == floats else array for array in arguments]
            found = zip(interpret(wrapped, arrays), types, strict=True)
            return [a.view(floats) if tensor_element_name(t) == BITS_ONLY else a for a, t in found]
        signature = main.type
        values = [dense_attribute(array, raw_type) for array, raw_type in zip(arguments, signature.inputs, strict=True)]
        results = cast(Any, stablehlo).eval_module(module, values)
        arrays: list[np.ndarray[Any, Any]] = []
        for result, raw_type in zip(results, signature.results, strict=True):
            shape = [int(d) for d in cast(Any, ir.RankedTensorType)(raw_type).shape]
            array = dense_value(result, shape, str(tensor_element(raw_type)))
            if array is None:
                raise TypeError(f"a result of type {raw_type} has no NumPy form")
            arrays.append(np.array(array))
        return arrays
