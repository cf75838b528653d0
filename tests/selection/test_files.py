"""Which modules files and folders name."""

import os

import pytest

from hlo_lower.api.many.files import Selected, select
from hlo_lower.base.errors import InputError


def touch(*paths):
    """Make empty files and their folders."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def names(*paths):
    """The names under which reports show what paths name."""
    return [module.file for module in select(paths)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_searched_to_the_bottom_in_order(here):
    """Files come sorted, before the sorted subfolders, whatever the order on the disk. Groups are folders: below the
    only one that was given they are relative to it; among several paths as reports name them."""
    touch(here / "t/b/x.mlir", here / "t/z.mlir", here / "t/a/c/y.mlir", here / "t/a/y.mlir", here / "t/B.mlir")
    assert names("t") == ["t/B.mlir", "t/z.mlir", "t/a/y.mlir", "t/a/c/y.mlir", "t/b/x.mlir"]
    assert [module.group for module in select(["t"])] == [".", ".", "a", "a/c", "b"]
    groups = ["t", "t", "t/a", "t/a/c", "t/b", "o", "."]
    assert [module.group for module in select(["t", "o/z.mlir", "w.mlir"])] == groups
    assert [module.group for module in select(["."])] == groups[:5]


def test_suffixes_decide(here):
    """Modules are known by their suffix in any case; other files, hidden ones and hidden folders are not taken."""
    suffixes = (".mlir", ".mlirbc", ".stablehlo", ".vhlo", ".portable", ".exported", ".jax_exported", ".jax", ".MLIR")
    good = [f"{number}{suffix}" for number, suffix in enumerate(suffixes)]
    touch(*(here / "t" / name for name in [*good, "readme.md", "mlir", ".hidden.mlir", ".git/x.mlir", "x.mlir.txt"]))
    assert names("t") == [f"t/{name}" for name in good]


def test_what_is_looked_into(here):
    """Under suffixes that other formats have too, LLVM bitcode and weights are left out and MLIR bytecode is taken. A
    named file is taken whatever it is called; that it is not there is found when it is read."""
    for suffix in (".bc", ".bin"):
        touch(here / f"t{suffix}/x.mlir", here / f"t{suffix}/empty{suffix}")
        (here / f"t{suffix}/module{suffix}").write_bytes(b"ML\xefR\x06")
        (here / f"t{suffix}/other{suffix}").write_bytes(b"BC\xc0\xde")
        assert names(f"t{suffix}") == [f"t{suffix}/module{suffix}", f"t{suffix}/x.mlir"]
    touch(here / "notes.txt")
    assert names("notes.txt", "missing.mlir", ".hidden") == ["notes.txt", "missing.mlir", ".hidden"]


def test_a_module_is_taken_once(here):
    """A file that is named and found, or found through a link, counts once, under its first name."""
    touch(here / "t/x.mlir")
    (here / "t/y.mlir").symlink_to("x.mlir")
    assert names("t/x.mlir", "t", "./t/x.mlir") == ["t/x.mlir"]


def test_links_and_pipes(here):
    """Linked folders are searched, each once, also if they lead back. A link to nowhere is not dropped silently; a
    pipe, which would block, is no module."""
    touch(here / "t/a/x.mlir", here / "o/y.mlir")
    (here / "t/a/up").symlink_to("..")
    (here / "t/self").symlink_to(".")
    (here / "t/z").symlink_to(here / "o")
    (here / "t/gone.mlir").symlink_to("nowhere")
    os.mkfifo(here / "t/pipe.mlir")
    assert names("t") == ["t/gone.mlir", "t/a/x.mlir", "t/z/y.mlir"]


def test_an_empty_folder_is_an_error(here):
    """Alone it is raised; among others it is an entry with the reason; a folder that is named twice is not empty."""
    touch(here / "t/notes.txt", here / "x.mlir", here / "o/x.mlir")
    with pytest.raises(InputError, match=r"t: is a directory without a module in it\n  facts: .*[.]mlirbc"):
        select(["t"])
    module, other = select(["t", "x.mlir"])
    assert "without a module" in str(module.error)
    assert (other.file, other.error) == ("x.mlir", None)
    assert [module.error for module in select(["o", "o/"])] == [None]


def test_names_that_are_no_text_are_shown_as_escapes(here):
    """A name of arbitrary bytes can be written in a report, and the file still be opened."""
    (here / "t").mkdir()
    (here / os.fsdecode(b"t/\xff.mlir")).write_bytes(b"x")
    (module,) = select(["t"])
    assert module.file == "t/\\xff.mlir"
    assert module.source.read_bytes() == b"x"


def test_standard_input_is_kept(here):
    """What is selected already stays where it stands."""
    touch(here / "t/x.mlir")
    assert [module.file for module in select([Selected("-", ".", b"module"), "t"])] == ["-", "t/x.mlir"]
