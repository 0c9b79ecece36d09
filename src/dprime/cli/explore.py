"""`dprime explore`: the page on which people move sliders and read risks."""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.progress import track

from dprime import options, validate
from dprime.cli.command import HERE, argument, say, starting, takes
from dprime.option import read
from dprime.show.needs import check_server

SERVING = (options.HOST, options.PORT, options.TOKEN, options.NO_BROWSER)


@takes(*SERVING, options.STATIC, options.WORKERS.here(note="For --static."), options.JSON)
def explore(
    folder: Annotated[Path, argument("FOLDER", "Folder of the runs.")] = HERE, **given: str
) -> None:
    """Serve the interactive explorer on this machine, until Ctrl-C."""
    port = read([options.PORT], given).get("port", options.PORT.default)
    check_server()
    if "static" in given:
        _write(given)
        return
    starting("Starting the explorer", given)
    from dprime.web.runs import checked_folder  # noqa: PLC0415
    from dprime.web.serve import listening, place_for, run  # noqa: PLC0415  it needs an extra

    place = place_for(given.get("host"), port, given.get("token"))
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


def _write(given: dict[str, str]) -> None:
    """Write the page as files, and say how large they are and how long it took."""
    from dprime.web import site  # noqa: PLC0415  it needs an extra

    for each in SERVING:
        if each.name in given:
            raise validate.invalid_input(each.name, "given", "left out with static", "leave it out")
    asked, began = read((options.STATIC, options.WORKERS), given), time.monotonic()
    workers = validate.whole("workers", asked.get("workers", os.cpu_count()), example=2)
    shown = partial(track, description="Tables", console=Console(stderr=True), transient=True)
    size = site.write(asked["static"], workers, track=shown)
    minutes = (time.monotonic() - began) / 60
    if "json" in given:
        print(json.dumps({"folder": given["static"], "bytes": size, "minutes": minutes}))
        return
    say(f"The page is in {given['static']}: {size / 1e6:.2f} MB, made in {minutes:.0f} minutes.")
    say("Any web server can have it, at any path; it asks no other.", "dim")
