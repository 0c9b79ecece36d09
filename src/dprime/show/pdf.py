"""The report as PDF, printed by a Chromium that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from dprime import atomic, validate

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge", "msedge",
)  # fmt: skip
"""Names under which Chromium and its relatives are installed."""

ELSEWHERE = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
"""Where macOS keeps them."""

OFFLINE = ("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND")
"""Printing needs no address, so none is looked up."""

PATIENCE = 120.0
"""Seconds until a browser that does not answer is given up."""


def chromium() -> str:
    """The path of an installed Chromium; refused with what to install where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    found = found or next((path for path in ELSEWHERE if Path(path).exists()), None)
    if found is None:
        remedy = (
            "install it (apt install chromium, or brew install --cask chromium) or print the HTML "
            "file from any browser"
        )
        raise validate.invalid_input("Chromium", "missing", "installed for a PDF", remedy)
    return found


def write_pdf(html: str | Path, pdf: str | Path) -> Path:
    """Print an HTML file, which stays as it is, and write the PDF."""
    atomic.write("pdf", Path(pdf), printed(html))
    return Path(pdf)


def printed(html: str | Path) -> bytes:
    """The PDF of an HTML file."""
    source = Path(html).resolve()
    if not source.is_file():
        raise validate.invalid_value("html", str(html), "a file", "write the report first")
    browser = chromium()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "report.pdf"
        done = _run(browser, source, made, Path(folder) / "profile")
        if done.returncode or not made.is_file():
            reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise validate.invalid_input(
                "Chromium", f"one that printed nothing ({reason})", "able to print the report",
                "print the HTML file from a browser",
            )  # fmt: skip
        return made.read_bytes()


def _run(
    browser: str, source: Path, printed: Path, profile: Path
) -> subprocess.CompletedProcess[str]:
    words = [
        browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", *OFFLINE,
        f"--user-data-dir={profile}", "--no-pdf-header-footer",
        "--generate-pdf-document-outline", f"--print-to-pdf={printed}",
    ]  # fmt: skip
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        words.append("--no-sandbox")  # root has no sandbox to print in
    try:
        return subprocess.run(
            [*words, source.as_uri()], capture_output=True, text=True, errors="replace",
            check=False, timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"no answer in {PATIENCE:g} seconds")
    except OSError as error:
        return subprocess.CompletedProcess(words, 1, "", str(error))
