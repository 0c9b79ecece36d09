"""How files are damaged, and what is put into them: all of it drawn by Hypothesis."""

import contextlib
import io
import pickle
import re
import sqlite3
import zipfile

from hypothesis import strategies as st

from dprime.runs import run_file

MARK = "dprime_canary"  # a module in the folder of each file, which leaves a file where it is run
PAYLOAD = f"__import__('{MARK}')"


def saved(values):
    import torch

    torch.save(values, buffer := io.BytesIO())
    return buffer.getvalue()


ODD_NUMBERS = [b"1e999", b"-1", b"NaN", b"Infinity", b"0", b"-0.0", b"1e-320", b"9" * 5000, b"0x10",
               b"1e18", b"1/0", b"true", b"null", b"2.5", b'""', b"\xd9\xa3"]  # fmt: skip
ODD_TEXTS = [b"[" * 3000, b"{" * 3000, b'{"a":' * 3000, b"(" * 3000, b"\0", b"\xff\xfe", b"\r",
             b'"', b"'''", b"\x1b[31m", "\u202e\ud7ff".encode(), b"%00%n%s", b"../../etc/passwd",
             b"x" * 100_000, b"a.b." * 2000, PAYLOAD.encode(), f"{MARK}:run".encode(),
             f"\nimport {MARK}\n".encode(), b"1+" * 3000, b"not " * 3000]  # fmt: skip
NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:e-?\d+)?")


class Malicious:
    """Runs the canary where it is unpickled."""

    def __reduce__(self):
        return exec, (f"import {MARK}",)


class Large:
    """Takes ten gigabytes where it is unpickled."""

    def __reduce__(self):
        return bytearray, (10**10,)


@st.composite
def edited(draw, content):
    """A few changes at places of their own."""
    for _ in range(draw(st.integers(1, 3))):
        size = len(content)
        at = draw(st.integers(0, max(size - 1, 0)))
        upto = min(size, at + draw(st.sampled_from([1, 2, 8, 100, size])))
        how = draw(st.sampled_from(["flip", "cut", "drop", "double", "number", "text", "fill"]))
        if how == "flip" and size:
            bit = content[at] ^ 1 << draw(st.integers(0, 7))
            content = content[:at] + bytes([bit]) + content[at + 1 :]
        elif how == "cut":
            content = content[:at]
        elif how == "drop":
            content = content[:at] + content[upto:]
        elif how == "double":
            content = content[:upto] + content[at:]
        elif how == "number" and (places := [*NUMBER.finditer(content, 0, 100_000)]):
            place = draw(st.sampled_from(places))
            odd = draw(st.sampled_from(ODD_NUMBERS))
            content = content[: place.start()] + odd + content[place.end() :]
        elif how == "text":
            content = content[:at] + draw(st.sampled_from(ODD_TEXTS)) + content[at:]
        elif how == "fill":
            content = (
                content[:at] + bytes([draw(st.integers(0, 255))]) * (upto - at) + content[upto:]
            )
    return content


def repacked(content, draw):
    """A zip file with members that are changed, doubled, packed, renamed or made to be run."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = draw(st.integers(0, len(members) - 1))
    name, member = members[at]
    how = draw(st.sampled_from(["edit", "double", "bomb", "rename", "pickle", "drop"]))
    many = draw(st.sampled_from([10_000, 200_000_000 if how == "bomb" else 10_000]))
    members[at : at + 1] = {
        "edit": lambda: [(name, draw(edited(member)))],
        "double": lambda: [(name, member), (name, member[::-1])],
        "bomb": lambda: [(name, bytes(many))],
        "rename": lambda: [("../../" + name, member)],
        "pickle": lambda: [(name, pickle.dumps(Malicious(), 2))],
        "drop": list,
    }[how]()
    packing = zipfile.ZIP_DEFLATED if how == "bomb" else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", packing) as archive:
        for each in members:
            archive.writestr(*each)
    return buffer.getvalue()


SCHEMA = (
    "CREATE TRIGGER t AFTER UPDATE ON blocks BEGIN DELETE FROM events; END",
    "CREATE VIEW v AS SELECT * FROM about", "DROP TABLE events", "DELETE FROM about",
    "ALTER TABLE about RENAME TO old; CREATE VIEW about AS SELECT * FROM old",
    "ALTER TABLE blocks RENAME TO x; ALTER TABLE events RENAME TO blocks",
    "CREATE INDEX i ON blocks (state)", "DELETE FROM blocks WHERE number = 0",
    "PRAGMA application_id = 1", "PRAGMA user_version = 99",
)  # fmt: skip
VALUES = (
    "{}", "[]", "null", "[" * 5000, '{"a":' * 3000, "9" * 5000, "NaN", "\ud800", "x" * 100_000, "",
    f'{{"trainer": "{MARK}:run", "model": "{MARK}:run", "seed": 1}}',
    '{"seed": -1, "trials": 1e400}',
)  # fmt: skip


def changed_run(path, draw, forge):
    """Another table, another value in a cell, and its digest where it is forged."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        if draw(st.booleans()):
            with contextlib.suppress(sqlite3.Error):
                db.executescript(draw(st.sampled_from(SCHEMA)))
            return
        value = (
            draw(st.sampled_from(VALUES)).encode(errors="surrogatepass").decode(errors="replace")
        )
        names = [row[0] for row in db.execute("SELECT name FROM about")]
        name = draw(st.sampled_from([*names, "blocks"]))
        if name == "blocks":
            column = draw(st.sampled_from(["state", "trials", "layout", "arrays", "finished"]))
            with contextlib.suppress(sqlite3.Error):
                db.execute(f"UPDATE blocks SET {column} = ? WHERE number = 0", (value,))
                if forge:
                    (row,) = db.execute(f"SELECT {run_file.DIGESTED['blocks']} FROM blocks LIMIT 1")
                    digest = run_file.digest(*row)
                    db.execute("UPDATE blocks SET digest = ? WHERE number = ?", (digest, row[0]))
        elif forge:
            run_file.put(db, "about", name, value, changed=run_file.now())
        else:
            db.execute("UPDATE about SET value = ? WHERE name = ?", (value, name))


def damage(path, content, kind, draw):
    """Write the file, as it must not be."""
    path.write_bytes(content)
    if "run" in kind and (kind == "forged run" or draw(st.booleans())):
        changed_run(path, draw, kind == "forged run")
    elif content.startswith(b"PK") and draw(st.booleans()):
        path.write_bytes(repacked(content, draw))
    elif kind == "checkpoint" and draw(st.integers(0, 9)) == 0:
        path.write_bytes(
            draw(st.sampled_from([pickle.dumps(Malicious()), saved(Malicious()), saved(Large())]))
        )
    else:
        path.write_bytes(draw(edited(content)))
