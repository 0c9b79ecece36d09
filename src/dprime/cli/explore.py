"""`dprime explore`: the page on which people move sliders and read risks."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dprime import validate
from dprime.cli.options import FOLDER, AsJson
from dprime.show.needs import check_server

PORT = "8765"


def _named(help_text: str) -> Any:
    return typer.Option(help=help_text, show_default=False)


def explore(
    folder: Annotated[Path | None, typer.Argument(help="Where the runs are; else runs/.")] = None,
    host: Annotated[
        str | None, _named("Listen on this address; everybody then needs the token.")
    ] = None,
    port: Annotated[str, _named("Listen on this port; 0 takes any that is free [8765].")] = PORT,
    token: Annotated[
        str | None, _named("What everybody must show; with --host one is drawn if none is given.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    as_json: AsJson = False,
) -> None:
    """Explore risks with sliders, on a page that this machine serves. Ctrl-C ends it."""
    check_server()
    from dprime.web.runs import checked_folder  # noqa: PLC0415
    from dprime.web.serve import listening, place_for, run  # noqa: PLC0415  it needs an extra

    place = place_for(host, _port(port), token)
    there = checked_folder(_folder(folder))
    with listening(place) as listener:
        place = place.on(listener)
        _say(place.address, place.token, there, as_json)
        try:
            run(there, place, listener, open_browser=browser)
        except KeyboardInterrupt:
            Console(stderr=True).print("Ended.", style="dim")


def _say(address: str, token: str | None, folder: Path, as_json: bool) -> None:
    """Where the page is, at once: somebody may wait for this line."""
    if as_json:
        print(json.dumps({"address": address, "token": token, "folder": str(folder)}), flush=True)
        return
    console = Console()
    console.print(f"The explorer is at {address}", highlight=False, soft_wrap=True)
    place = folder.absolute()
    console.print(
        f"Runs are in {place}. End it with Ctrl-C.", style="dim", highlight=False, markup=False
    )


def _port(text: str) -> int:
    number = validate.parse("port", text)
    if not number.is_integer():
        raise validate.invalid_value("port", text, "a whole number", f"give for example {PORT}")
    return int(number)


def _folder(folder: Path | None) -> Path:
    """The folder that was named; the usual one is made where it is not there yet."""
    if folder is None:
        folder = Path(FOLDER)
        with contextlib.suppress(OSError):  # what is in the way is said where the folder is opened
            folder.mkdir(exist_ok=True)
    return folder
