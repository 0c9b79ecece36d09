"""`dprime explore`: the page on which people move sliders and read risks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated

import typer

from dprime import options
from dprime.cli.command import FOLDER, say, starting, takes
from dprime.option import read
from dprime.show.needs import check_server


@takes(options.HOST, options.PORT, options.TOKEN, options.NO_BROWSER, options.JSON)
def explore(
    folder: Annotated[Path, typer.Argument(help="Folder of the runs.", metavar="FOLDER")] = FOLDER,
    **given: str,
) -> None:
    """Serve the interactive explorer on this machine, until Ctrl-C."""
    port = read([options.PORT], given).get("port", options.PORT.default)
    check_server()
    starting("Starting the explorer", given)
    from dprime.web.runs import checked_folder  # noqa: PLC0415
    from dprime.web.serve import listening, place_for, run  # noqa: PLC0415  it needs an extra

    place = place_for(given.get("host"), port, given.get("token"))
    if folder == FOLDER:
        with contextlib.suppress(OSError):  # what is in the way is said where it is opened
            folder.mkdir(exist_ok=True)
    there = checked_folder(folder)
    with listening(place) as listener:
        place = place.on(listener)
        if "json" in given:  # at once: somebody may wait for this line
            found = {"address": place.address, "token": place.token, "folder": str(there)}
            print(json.dumps(found), flush=True)
        else:
            say(f"The explorer is at {place.address}")
            say(f"Runs are in {there.absolute()}. End it with Ctrl-C.", "dim")
        try:
            run(there, place, listener, open_browser="no_browser" not in given)
        except KeyboardInterrupt:
            say("Ended.", "dim", error=True)
