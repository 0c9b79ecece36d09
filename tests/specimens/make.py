"""Small runs as this minor version of dprime writes them: tests list, read and resume them.

    python tests/specimens/make.py

Make them anew where a new minor version cannot read the old ones, and say so in its changelog.
"""

import contextlib
import shutil
import sqlite3
import sys
from pathlib import Path
from unittest.mock import patch

from dprime import cli
from dprime.attack.trainer import Game

HERE = Path(__file__).parent
AUDIT = "audit --epsilon 4 --max-records 50 --trials 100 --metric advantage --seed 2"
COMMANDS = {
    "finished": AUDIT,
    "interrupted": f"{AUDIT} --block 100",
    "inference": "infer --pool-size 60 --targets 2 --epochs 1 --batch-size 20"
    " --attacks attack-p,baseline --epsilon 3 --seed 1",
    "frontier": "frontier --precision 0.6 --pool-size 100 --batch-size 20 --epochs 1"
    " --sampling-probabilities 0.2,0.59 --repetitions 2 --seed 1",
}
"""What each run is of; one is interrupted in its second block."""


def copy_of(name, folder):
    """A copy of a specimen in this folder, which may be changed."""
    return Path(shutil.copy(HERE / f"{name}.run", folder))


def make(name, path):
    """A run as the command line makes it."""
    play = Game.play

    def interrupted(game, block):
        if name == "interrupted" and block == 1:
            raise KeyboardInterrupt
        return play(game, block)

    words = ["dprime", *COMMANDS[name].split(), "--run", str(path)]
    with patch.object(Game, "play", interrupted), patch.object(sys, "argv", words):
        try:
            cli.main()
        except SystemExit as stop:
            if stop.code not in (0, 130):
                raise


def shrink(path):
    """Fewer bytes for the same tables: small pages, none of them empty."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        for line in ("journal_mode = DELETE", "page_size = 512"):
            base.execute(f"PRAGMA {line}")
        base.execute("VACUUM")
    for left in HERE.glob(f"{path.name}*"):
        if left != path:
            left.unlink()


if __name__ == "__main__":
    for each in COMMANDS:
        place = HERE / f"{each}.run"
        place.unlink(missing_ok=True)
        make(each, place)
        shrink(place)
