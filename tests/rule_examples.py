"""The examples of the rules: each file of tests/golden is a small module, named after the rule that has to lower it.

`RULE.mlir`, or `RULE-variant.mlir` for one more; those of scatters stand in the folder itself, others in `kinds`. The
first line gives the options of `hl.lower` ("// options: oob=spec prefer=mask;few_windows=2"), with a target of TARGETS,
a built-in one, or one without an op ("target=no_reverse"); the CHECK lines, which the package filecheck reads, say what
comes out.

    python tests/rule_examples.py      write lowering/built_ops.txt and the tables of docs/rules.md, ops.md and laws.md
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from unittest import mock

import hlo_lower as hl
from hlo_lower.base.installed import WITHOUT
from hlo_lower.lowering.engine import engine
from hlo_lower.lowering.kinds import BUILT_OPS_FILE
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.ops.targets.costs import COSTS

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).parents[1] / "docs"
TABLES = {"rules": ("rules", "stablehlo.scatter"), "ops": ("ops",), "laws": ("laws",)}
"""The pages that end with what a command prints as Markdown."""

OP_FORMS = [q.word for q in QUIRKS if any(map(q.is_cured_by, ("op", "stablehlo.gather", "stablehlo.reverse")))]
OP_FORMS.remove("gather of other than rows")  # others in order are rows then
SCATTER = {"stablehlo.scatter": "to be lowered"}
SIGNED = {f"stablehlo.{op}": ["i1", "i32", "f32"] for op in ("add", "minimum", "and", "xor", "subtract")}
NO_PAIRS = COSTS.with_entry("rank_pair", 1e9)
CONTROL = ("while", "case", "if", "map", "optimization_barrier", "custom_call")


def target(name, *refused, **more):
    """A target that refuses scatters and these ops."""
    return hl.Target(name, refused={**SCATTER, **{f"stablehlo.{op}": "none" for op in refused}}, **more)


TARGETS = {
    "no_control": target("no_control", *CONTROL),
    "few_branches": target("few_branches", refused_forms=["case of three branches"]),
    "in_bounds": target("in_bounds", gather="in_bounds"),
    "no_pairs": target("no_pairs", "sort", costs=NO_PAIRS),
    "short_text": target("short_text", "sort", costs=NO_PAIRS.with_entry("few_stages", 1).with_entry("few_windows", 1)),
    "plain": target("plain", legalize=True),
    "signed_only": target("signed_only", op_dtypes=SIGNED),
    "signed_starts": target("signed_starts", op_dtypes={"stablehlo.gather": ["i32", "f32"]}),
    "no_wide": target("no_wide", refused_dtypes={"i64": "none", "ui64": "none"}),
    "no_f64": target("no_f64", refused_dtypes={"f64": "none"}),
    "no_truths": target("no_truths", op_dtypes={"stablehlo.dot_general": ["f32"]}),
    "real_only": target("real_only", refused_dtypes={"complex<f32>": "none"}),
    "only_xor": target("only_xor", op_dtypes={"stablehlo.and": ["i1"]}),
    "no_bits": target("no_bits", op_dtypes={f"stablehlo.{op}": ["i1"] for op in ("and", "or", "xor", "not")}),
    "no_matrices": target("no_matrices", "custom_call", "cholesky", "triangular_solve"),
    "finite": target("finite", refused_forms=["constant Inf", "compare TOTALORDER"]),
    "as_numbers": target("as_numbers", "bitcast_convert", refused_forms=["compare TOTALORDER"]),
    "positive": target("positive", refused_forms=["sine or tangent below 0", "power below 0"]),
    "quadrants": target("quadrants", refused_forms=["sine, cosine or tangent of large numbers"]),
    "no_forms": target("no_forms", refused_forms=OP_FORMS),
    "any_start": target("any_start", refused_forms=["reduce from a number"]),
    "rows": target("rows", refused_forms=["gather of other than rows"]),
    "one_key": target("one_key", refused_forms=["sort by another order", "sort of several downwards"]),
    "own_top_k": target("own_top_k", "sort", composites=["chlo.top_k"], costs=COSTS.with_entry("top_k", 1e-6)),
    "few_dims": target("few_dims", max_rank={"*": 4}),
    "takes_square": target("takes_square", legalize=True, composites=["chlo.square"]),
    "wide_top_k": target("wide_top_k", "sort", composites=["chlo.top_k"], op_dtypes={"chlo.top_k": ["f32", "i32"]}),
}


def target_of(name):
    """One of TARGETS, one that refuses an op ("no_reverse"), or the name of a built-in one."""
    refused = target("npu", name.removeprefix("no_")) if name.startswith("no_") else name
    return TARGETS.get(name, refused)


@dataclass(frozen=True)
class Example:
    """A small module, in a file, and how it is lowered."""

    path: Path

    @property
    def rule(self):
        """The rule that has to lower it."""
        return self.path.stem.partition("-")[0]

    @property
    def told(self):
        """The options as they are written."""
        head, mark, told = self.path.read_text().partition("\n")[0].partition("options:")
        assert (head, mark) == ("// ", "options:"), self.path
        return dict(pair.split("=", 1) for pair in told.split())

    @property
    def options(self):
        """The keywords of `hl.lower`."""
        found = self.told
        found["target"] = target_of(found.get("target", "stablehlo"))
        if "prefer" in found:
            found["prefer"] = found["prefer"].split(";")
        if "trust_flags" in found:
            found["trust_flags"] = found["trust_flags"] == "True"
        return found

    @cached_property
    def _lowered(self):
        built, keep = set(), engine.keep_attributes

        def noting(node, values, build, *args, **kwargs):
            values = keep(node, values, build, *args, **kwargs)
            is_inlined = node.name == "stablehlo.sort"  # whose comparator becomes ops of whole tensors
            own = {inner.name for block in node.blocks for inner in block.nodes if not is_inlined}
            built.update({made.name for made in build.built} - own - {"stablehlo.return"})
            return values

        with mock.patch.object(engine, "keep_attributes", noting):
            return hl.lower(self.path, **self.options), built

    @property
    def lowered(self):
        """What it is lowered to, once in a process."""
        return self._lowered[0]

    @property
    def built(self):
        """The names of the ops that rules built, but for those of the op's own region."""
        return self._lowered[1]


SCATTERS = [Example(path) for path in sorted(GOLDEN.glob("*.mlir")) if not path.stem.startswith("refused_")]
EXAMPLES = [*SCATTERS, *(Example(path) for path in sorted(GOLDEN.glob("kinds/*.mlir")))]
"""All examples, those of scatters first."""


def examples_of(rule):
    """The examples of a rule, the plain one first ("mask" before "mask-in_parts")."""
    return sorted((example for example in EXAMPLES if example.rule == rule), key=lambda example: example.path.stem)


def built_ops():
    """For each rule the ops that it builds in its examples."""
    rules = sorted({example.rule for example in EXAMPLES})
    return {rule: set().union(*(example.built for example in examples_of(rule))) for rule in rules}


def write_tables():
    """Write the ops that rules build, and the tables of the pages, of which those of rules have them."""
    told = {rule: " ".join(op.removeprefix("stablehlo.") for op in sorted(ops)) for rule, ops in built_ops().items()}
    BUILT_OPS_FILE.write_text("".join(f"{rule}: {ops}".strip() + "\n" for rule, ops in told.items()))
    for name, words in TABLES.items():
        command = [sys.executable, "-m", "hlo_lower", *words, "--format", "markdown"]
        done = subprocess.run(command, env={**os.environ, WITHOUT: "1"}, capture_output=True, text=True, check=True)
        page = DOCS / f"{name}.md"
        head, mark, rest = page.read_text().partition(f"\n<!-- {name}")
        page.write_text(f"{head}{mark}{rest.partition(chr(10))[0]}\n\n{done.stdout.rstrip()}\n")


if __name__ == "__main__":
    write_tables()
