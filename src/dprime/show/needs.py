"""Checks that an extra is installed, with an error that says how to install it."""

from __future__ import annotations

from importlib.util import find_spec

from dprime import text, validate


def check_drawing() -> None:
    """Refuse to draw without the libraries that draw."""
    _check("a drawing", ("vl_convert",), "show")


def check_report() -> None:
    """Refuse to write a report without the libraries that write it."""
    _check("a report", ("vl_convert", "jinja2"), "show")


def check_server() -> None:
    """Refuse to serve the explorer without the libraries that serve and draw it."""
    _check("the explorer", ("fastapi", "uvicorn", "vl_convert"), "web")


def _check(what: str, modules: tuple[str, ...], extra: str) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        lacking = f"without {', '.join(missing)}"
        wanted = f"installed for {what}"
        raise validate.invalid_input(f"dprime[{extra}]", lacking, wanted, text.install(extra))
