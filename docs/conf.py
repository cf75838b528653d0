"""The documents as a site: `python scripts/build_docs.py` gathers the pages and builds them with this."""

import re

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

import hlo_lower


class MlirLexer(RegexLexer):
    """MLIR as text: values, symbols, ops, types, attributes."""

    name = "MLIR"
    aliases = ("mlir",)
    tokens = {  # noqa: RUF012  # as pygments has it
        "root": [
            (r"//.*$", Comment.Single),
            (r'"(\\.|[^"\\])*"', String),
            (r"%[\w.#$-]+", Name.Variable),
            (r"@[\w.$-]+", Name.Function),
            (r"[#!^][\w.]+", Name.Label),
            (r"\b(tensor|memref|vector|complex|tuple)(?=<)", Keyword.Type),
            (r"\b(bf16|f\d+|u?i\d+|s?i\d+|index)\b", Keyword.Type),
            (r"\b(func|stablehlo|chlo|linalg|tensor|scf|arith)\.[\w.]+", Name.Builtin),
            (r"-?\b\d+(\.\d+)?([eE][+-]?\d+)?\b", Number),
            (r"->|[=:]", Operator),
            (r"[\[\](){}<>,?*]", Punctuation),
            (r"\s+", Text),
            (r"[\w.]+|.", Text),
        ]
    }


project = "hlo_lower"
version = release = hlo_lower.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["doctrees"]
html_theme = "furo"
html_title = "hlo_lower"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["access.js"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 1200

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = False
default_role = "code"
maximum_signature_line_length = 88


def as_rst(_app, _what, _name, _obj, _options, lines: list[str]) -> None:
    """Docstrings are written to be read as text: what RST takes for markup is escaped, indented code is a block."""
    text = "\n".join(lines)
    told = []
    previous = ""
    for block in re.split(r"(\n\s*\n)", text):
        is_code = re.match(r" {4}\S", block) and not re.match(r" *(>>>|:|\.\.)", block) and previous[:1] not in ":."
        told.append(f"::\n\n{block}" if is_code else re.sub(r"(?<![`\w*])(\*{1,2})(?=\w)", r"\\\1", block))
        previous = block if block.strip() else previous
    lines[:] = "".join(told).split("\n")


def setup(app) -> None:
    """Register what is ours."""
    app.add_lexer("mlir", MlirLexer)
    app.connect("autodoc-process-docstring", as_rst)
