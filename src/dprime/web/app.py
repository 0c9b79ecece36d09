"""The explorer as an application: routes, and nothing that computes.

Every route is a GET and is described truly in /openapi.json. Numbers come from `answers`, runs from
`runs`, files from `files`; `guard` stands before all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response

import dprime
from dprime import option, validate
from dprime.option import Option, nearest
from dprime.request import ADDRESS, NAMES
from dprime.web import files, models
from dprime.web.answers import Answers
from dprime.web.guard import REPORT_POLICY, Guard, checked_token, refusal
from dprime.web.options import FREE, GOALS, OVER, SPECIFIED, options
from dprime.web.runs import Runs, UnknownRunError, checked_folder

WORKERS = 2
"""Processes that compute beside the server."""

THREADS = 64
"""Answers that may be waited for at the same time."""

HOSTS = ("127.0.0.1", "localhost")
"""What the explorer is called on its own machine."""

PLAIN: TypeAdapter[Any] = TypeAdapter(Any)
"""Writes plain values as JSON."""

Theme = Literal["light", "dark"]


def _number(about: str, example: str) -> Any:
    return Query(description=about, examples=[example], max_length=100)


def _word(about: str, words: Sequence[str]) -> Any:
    """A word out of a list; which one is wrong is said in the command line's own sentence."""
    return Query(description=about, json_schema_extra={"enum": list(words)})


def _query(option: Option) -> Any:
    if option.choices:
        return _word(option.line(), option.choices)
    return _number(option.line(), EXAMPLES.get(option.name, str(option.default)))


EXAMPLES = {"noise_multiplier": "1.1", "sample_rate": "0.004", "steps": "14000", "prior": "0.1"}
"""Where an option has no default that could be one."""

takes = partial(option.takes, annotate=_query)
"""Gives a route its parameters."""

Over = Annotated[str, _word("What `risk` is drawn over.", OVER)]
Figures = Annotated[
    str,
    Query(
        description="Comma list out of trade-off, trade-off-log, risk, precision, bayes-security.",
        examples=["trade-off,risk"],
        max_length=200,
    ),
]

REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"model": models.Refused, "description": "The token is missing or wrong."},
    405: {"model": models.Refused, "description": "Only GET is answered."},
    413: {"model": models.Refused, "description": "The body is above 16 KB."},
    421: {"model": models.Refused, "description": "The Host header names another machine."},
    422: {
        "model": models.Refused,
        "description": "An input is not right; the sentence says which.",
    },
}
UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": models.Refused, "description": "There is no such thing."}
}


def create_app(
    folder: str | os.PathLike[str],
    *,
    token: str | None = None,
    hosts: Sequence[str] = HOSTS,
    workers: int = WORKERS,
) -> FastAPI:
    """The explorer of a folder of runs.

    Args:
        folder: where the runs are; nothing else of the disk can be reached.
        token: what everybody must show, or None where only this machine can ask.
        hosts: the names under which it may be asked for.
        workers: processes that compute beside the server, from its start to its end; with 0 the
            server's own threads do.
    """
    app = FastAPI(
        title="dprime explorer",
        version=dprime.__version__,
        description="Certified risks of private trainings, and the runs that test them.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=REFUSALS,
        lifespan=_lifespan,
    )
    app.state.answers, app.state.runs = Answers(workers), Runs(checked_folder(folder))
    _add_errors(app)
    _add_page(app)
    _add_risks(app, app.state.answers)
    _add_runs(app, app.state.runs)
    app.add_middleware(Guard, hosts=hosts, token=token if token is None else checked_token(token))
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Answer once the processes are awake; what the first page will ask for is made meanwhile."""
    threading.Thread(target=files.vega, daemon=True).start()
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    app.state.answers.start()
    await to_thread.run_sync(app.state.answers.wait)
    yield
    app.state.answers.stop()


def _add_page(app: FastAPI) -> None:
    """The page and its files."""

    @app.get(
        "/",
        response_class=Response,
        responses={
            200: {"content": {"text/html": {}}, "description": "The page."},
            303: {"description": "The token was right: go on without it."},
        },
    )
    def page() -> Response:
        """The page; its state is in its address."""
        return _file(files.index(), None)

    @app.get(
        "/static/{file}",
        response_class=Response,
        responses={
            200: {
                "content": {kind.partition(";")[0]: {} for kind in files.KINDS.values()},
                "description": "The file.",
            },
            304: {"description": "The browser has it already."},
            **UNKNOWN,
        },
    )
    def static(file: str, request: Request) -> Response:
        """A file of the page."""
        found = files.static(file)
        if found is None:
            raise HTTPException(404, f"file must be one of the page's, but it is {file!r}.")
        return _file(found, request.headers.get("if-none-match"))


def _file(file: files.File, known: str | None) -> Response:
    """A file, or word that the browser has it already."""
    headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
    if known == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.contents, headers={**headers, "Content-Type": file.kind})


def _add_risks(app: FastAPI, answers: Answers) -> None:
    """Options, risks, choices and empty drawings."""

    @app.get("/api/options", response_class=Response, responses=_ok(models.Options))
    def api_options() -> Response:
        """Positions of the sliders, targets, figures."""
        return _json(options())

    @app.get("/api/risk", response_class=Response, responses=_ok(models.Risk))
    @takes(*ADDRESS)
    def api_risk(
        request: Request,
        over: Over = "noise_multiplier",
        figures: Figures = "",
        **given: str,
    ) -> Response:
        """What no attacker can beat: `dprime risk`, with figures."""
        _check_known(request, ("over", "figures"))
        return _json(answers.risk(given, over=over, figures=_names(figures)))

    @app.get("/api/choose", response_class=Response, responses=_ok(models.Choice))
    @takes(*ADDRESS)
    def api_choose(
        request: Request,
        target: Annotated[str, _word("The risk to keep.", tuple(GOALS))],
        value: Annotated[str, _number("At most this (Bayes security: at least).", "0.1")],
        free: Annotated[str, _word("The parameter to choose.", tuple(FREE))],
        over: Over = "noise_multiplier",
        figures: Figures = "",
        **given: str,
    ) -> Response:
        """The parameter that keeps a risk: `dprime choose`, with figures."""
        _check_known(request, ("target", "value", "free", "over", "figures"))
        found = answers.choose(given, target, value, free, over=over, figures=_names(figures))
        return _json(found)

    @app.get(
        "/api/figures/{name}", response_class=Response, responses={**_ok(models.Plain), **UNKNOWN}
    )
    def api_figure(name: str, theme: Theme = "light") -> Response:
        """The empty Vega-Lite specification of a figure; its data set is called `rows`."""
        if name not in SPECIFIED:
            raise HTTPException(404, f"figure must be one of {', '.join(SPECIFIED)}.")
        return _json(answers.specification(name, theme))


def _add_runs(app: FastAPI, runs: Runs) -> None:
    """The list of runs, their cards and reports."""

    @app.get("/api/runs", response_class=Response, responses=_ok(models.RunList))
    def api_runs() -> Response:
        """The runs in the folder with their progress."""
        return _json(runs.listed())

    @app.get(
        "/api/runs/{name}/card",
        response_class=Response,
        responses={**_ok(models.Plain), **UNKNOWN},
    )
    def api_card(name: str) -> Response:
        """The privacy card of a finished run."""
        return _json(runs.card(name))

    @app.get(
        "/runs/{name}/report",
        response_class=Response,
        responses={200: {"content": {"text/html": {}}, "description": "The report."}, **UNKNOWN},
    )
    def report(name: str) -> Response:
        """The report of a finished run."""
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(runs.report(name), headers=headers, media_type="text/html")


def _ok(model: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model, "description": "The answer."}}


def _json(value: Any) -> Response:
    return Response(PLAIN.dump_json(value), media_type="application/json")


def _names(figures: str) -> list[str]:
    return [name for name in figures.split(",") if name]


def _check_known(request: Request, others: Sequence[str]) -> None:
    """Refuse a name that nothing goes by, instead of passing it over."""
    known = (*NAMES, *others)
    for name in request.query_params:
        if name not in known:
            remedy = nearest(name, known, "leave it out").rstrip("?.")
            raise validate.invalid_value("parameter", name, "known", remedy)


def _add_errors(app: FastAPI) -> None:
    """Every refusal is one sentence."""

    @app.exception_handler(ValueError)
    def bad_input(_: Request, error: Exception) -> Response:
        unknown = isinstance(error, UnknownRunError)
        return refusal(404 if unknown else 422, " ".join(str(error).split()))

    @app.exception_handler(RequestValidationError)
    def bad_request(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return refusal(422, _sentence(error.errors()[0]))

    @app.exception_handler(HTTPException)
    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = SENTENCES.get(error.detail, error.detail)
        return refusal(error.status_code, sentence, dict(error.headers or {}))


def _sentence(problem: dict[str, Any]) -> str:
    """What is wrong with a parameter, in the words of `validate`."""
    name, given, limits = problem["loc"][-1], problem.get("input"), problem.get("ctx", {})
    if problem["type"] == "missing":
        return str(validate.invalid_input(name, "missing", "given", "add it to the address"))
    if problem["type"] == "string_too_long":
        wanted = f"at most {limits['max_length']} characters"
        return str(validate.invalid_input(name, f"{len(str(given))}", wanted, "give it shorter"))
    return str(
        validate.invalid_value(name, given, f"{limits.get('expected', 'right')}", "give that")
    )


SENTENCES = {
    "Not Found": "There is nothing at this address: open / for the page.",
    "Method Not Allowed": "Only GET is answered here.",
}
