"""Progress of long work."""

from hlo_lower.cli.streams import progress


def test_nothing_is_printed_where_standard_error_is_no_terminal(capfd):
    """Logs and pipes stay free of bars."""
    with progress() as tell:
        tell("scatters", 1, 2)
        tell("scatters", 2, 2)
    assert tuple(capfd.readouterr()) == ("", "")
