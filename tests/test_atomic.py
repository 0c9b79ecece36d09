"""Files are written whole or not at all, whatever stops the writing."""

import ast
import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import dprime
from dprime import InputError, atomic

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs permissions and signals of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@POSIX
def test_permissions_are_those_of_a_plain_open(tmp_path):
    new, old, plain = (tmp_path / name for name in ("new", "old", "plain"))
    plain.write_text("")
    old.write_text("old")
    old.chmod(0o640)
    (tmp_path / "link").symlink_to(old)
    atomic.write("out", new, b"new")
    atomic.write("out", tmp_path / "link", "é")
    assert (mode(new), mode(old)) == (mode(plain), 0o640)
    assert (old.read_text(encoding="utf-8"), (tmp_path / "link").is_symlink()) == ("é", True)


@POSIX
def test_what_is_private_is_so_while_it_is_written_and_follows_no_link(tmp_path):
    seen, place, other = [], tmp_path / "link", tmp_path / "other"
    place.symlink_to(other)

    def look(file):
        seen.append(mode(Path(file.name)))

    atomic.write_together({"out": place}, {"out": look}, private=("out",))
    assert (seen, mode(place), names(tmp_path)) == ([0o600], 0o600, ["link"])


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failure_leaves_all_as_it_was(tmp_path, stop):
    old = tmp_path / "old"
    old.write_text("old")

    def fail(file):
        file.write(b"half of it")
        raise stop

    with pytest.raises((InputError, KeyboardInterrupt)) as refused:
        atomic.write_together(
            {"first": old, "second": tmp_path / "b"}, {"first": "new", "second": fail}
        )
    assert (names(tmp_path), old.read_text()) == (["old"], "old")
    if isinstance(stop, OSError):
        assert (refused.value.parameter, "No space left" in str(refused.value)) == ("second", True)


@POSIX
def test_folders_pipes_and_what_cannot_be_made_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "pipe", tmp_path / "folder", tmp_path / "none" / "a"):
        with pytest.raises(InputError, match="out must be a place to write to"):
            atomic.write("out", place, "new")
    assert names(tmp_path) == ["folder", "pipe"]


@POSIX
def test_a_kill_in_the_middle_leaves_the_old_file(tmp_path):
    old = tmp_path / "old.json"
    old.write_text("old")
    code = (
        "import os, pathlib, signal, sys\nfrom dprime import atomic\n"
        "def half(file):\n"
        "    file.write(b'half of it')\n    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic.write('out', pathlib.Path(sys.argv[1]), half)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, old], check=False)
    assert done.returncode == -signal.SIGKILL
    assert old.read_text() == "old"
    (left,) = {*tmp_path.iterdir()} - {old}
    assert (left.name[0], left.suffix, left.read_text()) == (".", ".part", "half of it")


WRITES = {"write_text", "write_bytes", "copyfile", "copytree", "savefig", "tofile", "savetxt"}


def test_nothing_else_in_the_package_writes_a_file():
    """Run files are SQLite's; a device that takes all is no file."""
    for path in Path(dprime.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or path.stem == "atomic":
                continue
            said = ast.unparse(node)
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            assert name not in WRITES, f"{path}: {said}"
            opens = name in ("open", "fdopen") and any(
                isinstance(each, ast.Constant) and str(each.value)[:1] in ("w", "a", "x")
                for each in (*node.args[1:], *(key.value for key in node.keywords))
            )
            assert not opens or "os.devnull" in said, f"{path}: {said}"
