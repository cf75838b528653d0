"""The forms that a module is written in: text, MLIR bytecode, a portable artifact, a serialized `Exported`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax.export

    from hlo_lower.ir.writer import Writable
    from hlo_lower.lowering.lowered import Lowered

FORMS = ("text", "bytecode", "portable", "exported")
MODULE_FORMS = FORMS[:3]
"""Those of a module that is not called from JAX."""

FORM_BY_SUFFIX = {
    ".mlir": "text",
    ".mlirbc": "bytecode",
    ".vhlo": "portable",
    ".portable": "portable",
    ".exported": "exported",
    ".jax_exported": "exported",
}


def form_for(output: str) -> str:
    """The form that an output's suffix asks for; text where it asks for none."""
    return FORM_BY_SUFFIX.get(Path(output).suffix, "text")


def written_bytes(module: "Lowered | Writable", form: str) -> bytes:
    """A module as text, bytecode or a portable artifact."""
    if form == "text":
        return module.text.encode()
    return module.bytecode() if form == "bytecode" else module.portable()


def lowered_bytes(lowered: "Lowered", form: str) -> bytes:
    """A lowered module in a form."""
    return bytes(lowered.exported.serialize()) if form == "exported" else written_bytes(lowered, form)


def exported_bytes(exported: "jax.export.Exported", form: str) -> bytes:
    """An exported function in a form."""
    from hlo_lower.ir.export.trace import exported_text
    from hlo_lower.ir.reader import read
    from hlo_lower.ir.writer import to_bytecode, to_portable_artifact

    if form == "text":
        return exported_text(exported).encode()
    if form == "exported":
        return bytes(exported.serialize())
    graph = read(exported)
    return to_bytecode(graph) if form == "bytecode" else to_portable_artifact(graph)
