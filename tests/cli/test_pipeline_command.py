"""`hlo-lower pipeline`: the passes, who wants them, and what they did to a module."""

import json

from hlo_lower.lowering.pipeline import PIPELINE


def test_every_pass_has_a_line(command):
    """The passes stand in order, each with what it does and whether the target wants it."""
    done = command("pipeline --target litert")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.out.splitlines()[2:] if not line.startswith(" ")]
    assert [line.split()[0] for line in lines] == [one.name for one in PIPELINE]
    assert all(one.sentence in done.out for one in PIPELINE)
    assert "no: --legalize is not given" in done.out


def test_an_option_makes_a_pass_wanted(command):
    """--demote-i64 wants the pass that narrows integers, which may change arguments and results."""
    passes = json.loads(command("pipeline --demote-i64 --format json").out)["passes"]
    [narrow] = [one for one in passes if one["name"] == "narrow"]
    assert (narrow["wanted"], narrow["why_not"], narrow["may_change"]) == (True, "", "arguments and results")
    assert "ran" not in narrow


def test_with_a_module_each_pass_tells_what_it_did(command):
    """The pass of scatters takes the one scatter away and builds other ops; nothing is written."""
    done = command("pipeline decode.mlir --format json")
    told = json.loads(done.out)
    passes = {one["name"]: one for one in told["passes"]}
    assert (done.code, told["module"], told["target"]) == (0, "decode.mlir", "stablehlo")
    assert passes["scatters"]["gone"]["stablehlo.scatter"] == 1
    assert passes["scatters"]["built"]["stablehlo.dynamic_update_slice"] == 1
    assert passes["scatters"]["seconds"] > 0
    assert passes["ranks"]["ran"] is False
    text = command("pipeline decode.mlir").out
    assert "-1 scatter" in text
    assert "not run: only where complex met ops" in text or "not wanted" in text
