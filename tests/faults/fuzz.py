"""Feeds damaged and hostile files to what reads them, in a process that watches itself.

    python tests/faults/fuzz.py COUNT [KIND]

Every file must be read or refused in one sentence. None of its code may run, no run may give other
numbers than it had, and no file may take long or much memory. Prints what was done as JSON.
"""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import CodeType

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "web"), str(TESTS)]

from damage import MARK, damage, saved  # noqa: E402

from commands import BEGUN  # noqa: E402
from conftest import Caller  # noqa: E402  that of the web
from dprime import InputError, cli  # noqa: E402
from dprime.audit.config import AuditConfig  # noqa: E402
from dprime.audit.words import SEVERAL, audits_in, words_in  # noqa: E402
from dprime.runs.run import Run  # noqa: E402
from dprime.web.app import create_app  # noqa: E402

ROOT = TESTS.parent
LONGEST, LARGEST = 20.0, 1 << 30
"""Seconds for a file, and bytes for all of them, one after the other."""

FORBIDDEN = {
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect",
    "socket.bind", "socket.getaddrinfo", "pickle.find_class", "ctypes.dlopen",
}  # fmt: skip


# What is watched ----------------------------------------------------------------------------------


class Watch:
    """While a file is read: what was done that must not be done."""

    folder: Path | None = None
    wrong: list[str]

    def hook(self, event, details):
        if self.folder is None:
            return
        foreign = event == "exec" and isinstance(details[0], CodeType) and MARK in str(
            (details[0].co_names, details[0].co_consts, details[0].co_filename)
        )  # fmt: skip
        outside = event == "open" and self._writes(*details)
        if event in FORBIDDEN or foreign or outside or (event == "import" and MARK in details[0]):
            self.wrong.append(f"{event} {details}"[:300])

    def _writes(self, path, mode, flags):
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        place = "" if isinstance(path, int) else os.fsdecode(path)
        return writes and place and not place.startswith((str(self.folder), os.devnull))

    @contextlib.contextmanager
    def over(self, folder):
        """Nothing forbidden, and not too long."""
        self.wrong = []
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            self.folder = folder
            yield
        finally:
            self.folder = None
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        assert not self.wrong, self.wrong


class TooLongError(BaseException):
    """Nothing that handles errors handles this."""


def stopped(*_):
    raise TooLongError


WATCH = Watch()


def command(*words):
    """A call of the command line ends in an answer, or in one sentence."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["dprime", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    said = re.sub(BEGUN, "", err.getvalue())
    assert code in (0, 1, 2), (code, said)
    if code == 2:
        assert said.startswith("Error: "), said
        assert said.count("\n") == 1, said
        assert out.getvalue() == ""
    elif "--json" in words:
        json.loads(out.getvalue(), parse_constant=lambda name: 1 / 0)


# What is read -------------------------------------------------------------------------------------


def read_run(path):
    """A run that is opened says what it said, whole or block by block."""
    with contextlib.suppress(InputError), Run.open(path) as run:
        assert told(run) == TRUE[path.name]
    command("runs", path.parent, "--json")
    copy = path.with_name("resumed.run")
    shutil.copy(path, copy)
    with contextlib.suppress(InputError), Run.open_to_go_on(copy) as run:
        config, result, blocks = told(run)
        whole = TRUE[path.name]
        assert config == whole[0]
        assert result in (None, whole[1])
        assert blocks.items() <= whole[2].items()


def read_forged(path):
    """Whoever forges the digests too may say what he likes, but nothing of it is run."""
    with contextlib.suppress(InputError), Run.open(path) as run:
        for part in ("config", "request", "result", "versions", "seed", "created"):
            with contextlib.suppress(InputError):
                getattr(run, part)
        run.arrays()
    command("runs", path.parent, "--json")
    command("report", path, "--card", path.with_name("card.json"))
    command("check", path, "--json")


def told(run):
    rows = run._db.execute("SELECT number, layout, arrays FROM blocks WHERE state = 'done'")
    return run.config, run.result, {number: rest for number, *rest in rows}


def read_settings(path):
    with contextlib.suppress(InputError):
        values = words_in(path)
        several = audits_in(values) if SEVERAL in values else {"": values}
        for each in several.values():
            AuditConfig.from_options(each, {})


def asked(path):
    """The address in a file, as an explorer is asked for it."""
    target = path.read_bytes().decode("latin-1").replace("\n", "")
    reply = CALLER.get(target if target.startswith("/") else "/" + target)
    assert reply.status < 500, (target, reply.status)
    if reply.status >= 400:
        assert "Traceback" not in reply.body.decode(errors="replace")


def cli_reader(*words):
    return lambda path: command(*(path if word == "FILE" else word for word in words))


def read_pool(path):
    command("sample", path, "--sampling-probability", "0.5", "--out", path.with_name("out.csv"),
            "--seed", "1", "--json")  # fmt: skip


# Files, as they should be -------------------------------------------------------------------------


def npz(**arrays):
    import numpy as np

    np.savez(buffer := io.BytesIO(), **arrays)
    return buffer.getvalue()


SETTINGS = b"""data = "digits"\nadversary = "gradient"\ntrials = 200\nseed = 3\nmax_records = 50
[training]\nsteps = 30\nlearning_rate = 0.1\nclip_norm = 1.0\n[claim]\nepsilon = 4.0\n"""
SEVERAL_SETTINGS = (
    b"""epsilon = 4.0\n[[audits]]\nname = "a"\ntrials = 10\n[[audits]]\nname = "b"\n"""
)
SCORES = "score,world\n" + "".join(
    f"{i % 7 + i / 100},{'in' if i % 2 else 'out'}\n" for i in range(60)
)
POOL = "id,share,name\n" + "".join(f"{i},{0.1 + i / 100},name {i}\n" for i in range(40))
DESCRIBED = {"noise_multiplier": 1.1, "sample_rate": 0.01, "steps": 2000, "delta": 1e-5}
HISTORY = {"history": [(1.1, 0.01, 2000)], "mechanism": "rdp"}
ADDRESSES = (
    b"/api/risk?noise_multiplier=1.1&sample_rate=256/60000&steps=14062&prior=0.2",
    b"/api/choose?sample_rate=0.01&steps=2000&target=advantage&value=0.1&free=noise_multiplier",
    b"/api/charts?noise_multiplier=1.1&sample_rate=0.01&steps=2000&over=steps&group_size=2",
    b"/api/runs", b"/report/finished.run", b"/api/card/finished.run", b"/static/app.js",
)  # fmt: skip


def runs():
    return {path.name: path.read_bytes() for path in (TESTS / "specimens").glob("*.run")}


def scripts():
    places = [*(ROOT / "examples").glob("*.py"), *(TESTS / "check/scripts/good").glob("*.py")]
    return {path.name: path.read_bytes() for path in places}


def notebooks():
    return {path.name: path.read_bytes() for path in (ROOT / "examples").glob("*.ipynb")}


def checkpoints():
    import numpy as np
    import torch

    state = {"w": torch.zeros(3, 2), "privacy_accountant_state_dict": HISTORY}
    return {
        "state.pt": saved(state),
        "history.pt": saved(HISTORY),
        "arrays.pt": npz(a=np.arange(9)),
    }


def pools():
    import numpy as np

    packed = npz(records=np.arange(60.0).reshape(20, 3), labels=np.arange(20))
    tabs = POOL.replace(",", "\t")
    return {"pool.csv": POOL.encode(), "pool.tsv": tabs.encode(), "pool.npz": packed}


def descriptions():
    return {
        "run.json": json.dumps(DESCRIBED).encode(),
        "history.json": json.dumps(HISTORY).encode(),
    }


KINDS = {
    "run": (runs, read_run, 2),
    "forged run": (runs, read_forged, 1),
    "settings": (lambda: {"a.toml": SETTINGS, "b.toml": SEVERAL_SETTINGS}, read_settings, 3),
    "scores": (lambda: {"scores.csv": SCORES.encode()}, cli_reader("bound", "FILE", "--json"), 3),
    "pool": (pools, read_pool, 2),
    "script": (scripts, cli_reader("check", "FILE", "--json"), 2),
    "notebook": (notebooks, cli_reader("check", "FILE", "--json"), 1),
    "description": (descriptions, cli_reader("risk", "FILE", "--json"), 2),
    "checkpoint": (checkpoints, cli_reader("risk", "FILE", "--json"), 2),
    "address": (lambda: {f"{n}.txt": each for n, each in enumerate(ADDRESSES)}, asked, 2),
}
"""What is damaged, what reads it, and its share of all files."""


# All of it ----------------------------------------------------------------------------------------


def fuzz(kind, count, folder):
    """Try so many files of a kind; the seconds that the slowest took."""
    make, read, _ = KINDS[kind]
    originals, ran = make(), folder.with_name("ran")
    slowest, tried = 0.0, 0

    @settings(max_examples=count, deadline=None, database=None, derandomize=True,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.data())
    def attempt(data):
        nonlocal slowest, tried
        tried += 1
        name = data.draw(st.sampled_from(sorted(originals)))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / f"{MARK}.py").write_text(f"open({str(ran)!r}, 'w')\ndef run(*a): pass\n")
        damage(folder / name, originals[name], kind, data.draw)
        os.chdir(folder)
        began = time.monotonic()
        try:
            with WATCH.over(folder):
                read(folder / name)
            assert not ran.exists(), "its code has run"
        except BaseException as error:
            kept = shutil.copy(folder / name, Path(tempfile.mkdtemp(prefix="dprime-fuzz-")))
            error.add_note(f"{kind}: the file is kept as {kept}")
            raise
        finally:
            os.chdir("/")
        slowest = max(slowest, time.monotonic() - began)

    for name, content in originals.items():  # what is loaded late is loaded now
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        read(folder / name)
    try:
        attempt()
    except BaseException as error:  # its notes have all of the file
        error.__notes__ = [note for note in error.__notes__ if "is kept as" in note]
        raise
    return {"files": tried, "slowest_seconds": round(slowest, 2)}


def main(count, *only):
    """Try all kinds, each with its share of the files."""
    signal.signal(signal.SIGALRM, stopped)
    sys.addaudithook(WATCH.hook)
    kinds = only or tuple(KINDS)
    shares = sum(KINDS[kind][2] for kind in kinds)
    found = {}
    with tempfile.TemporaryDirectory() as place:
        sys.path.insert(0, "")
        for kind in kinds:
            found[kind] = fuzz(kind, -(-count * KINDS[kind][2] // shares), Path(place) / "files")
            peak = most_memory()
            assert peak < LARGEST, f"{kind}: {peak:,} bytes"
    print(json.dumps({"kinds": found, "peak_megabytes": most_memory() >> 20}))


def most_memory():
    """Bytes that this program has taken; `ru_maxrss` begins with those of who started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) << 10


TRUE = {}
for _path in (TESTS / "specimens").glob("*.run"):
    with Run.open(_path) as _run:
        TRUE[_path.name] = told(_run)
CALLER = Caller(create_app(TESTS / "specimens", workers=0))

if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
