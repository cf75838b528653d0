"""What an estimate measures in the place of XLA, which is a process of its own for each; CHECK lines of modules."""

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from small_tiles import HERE, live

from hlo_lower.tile import plan_search


@pytest.fixture
def estimated(monkeypatch):
    """A search measures by the estimate of what is live."""
    monkeypatch.setattr(
        plan_search, "measure_temporaries", lambda texts, seconds=0.0: ((n, live(t)) for n, t in enumerate(texts))
    )


@pytest.fixture
def check(tmp_path, capsys):
    """Check that a text has the CHECK lines of a module's file."""

    def run(name, text):
        (tmp_path / name).write_text(text)
        options = Options(match_filename=str(HERE / name), input_file=str(tmp_path / name))
        assert Matcher.from_opts(options).run() == 0, capsys.readouterr().err + text

    return run
