"""The explorer as an application: routes, and nothing that computes.

Every route is described truly in /openapi.json, and is a GET but for the one that reads a file.
Numbers come from `service`, runs from `runs`, files from `files`; `guard` stands before all of
them. A route that computes runs in a thread, so that the server goes on listening.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

import dprime
from dprime import validate
from dprime.option import Option, nearest, takes
from dprime.privacy_loss import CostlyError
from dprime.request import ADDRESS, MECHANISM, RISK_ADDRESS
from dprime.web import files
from dprime.web.guard import AT_ONCE, REPORT_POLICY, Guard, checked_token, come_again, refusal
from dprime.web.options import CHARTS, DEFAULTS, PAGE_OPTIONS, TARGET_SLIDERS, PageOptions
from dprime.web.runs import RunList, Runs, UnknownRunError, checked_folder
from dprime.web.service import EMPTY, ChartRows, ExplorerService, RiskAnswer
from dprime.web.workers import BusyError, TooLongError, Workers

WORKERS = 2
"""Processes that compute beside the server."""

HOSTS = ("127.0.0.1", "localhost")
"""What the explorer is called on its own machine."""

PLAIN: TypeAdapter[Any] = TypeAdapter(Any)
"""Writes plain values and dataclasses as JSON."""

Described = dict[int | str, dict[str, Any]]
Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Refused:
    """One sentence that says what would be right."""

    detail: str


def _refused(status: int, about: str) -> Described:
    return {status: {"model": Refused, "description": about}}


REFUSALS = {
    **_refused(401, "The token is missing or wrong."),
    **_refused(405, "Only GET is answered, and POST where a file is read."),
    **_refused(413, "The body is above 16 KB."),
    **_refused(414, "The address is above 16 KB."),
    **_refused(421, "The Host header names another machine."),
    **_refused(422, "An input is not right; the sentence says which."),
    **_refused(500, "A mistake of dprime's; the explorer's terminal says more."),
    **_refused(503, "Too much to do: ask again after Retry-After seconds."),
}
UNKNOWN = _refused(404, "There is no such thing.")
HTML: Described = {200: {"content": {"text/html": {}}}}


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
        workers: processes that compute beside the server; with 0 the thread that asks does.
    """
    folder, pool = checked_folder(folder), Workers(workers)
    service = ExplorerService(pool)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = AT_ONCE  # who waits for an answer holds one
        for work in (files.vega, service.prepare):  # what the first page asks for
            threading.Thread(target=work, daemon=True).start()
        yield
        pool.stop()

    app = FastAPI(
        title="dprime explorer",
        version=dprime.__version__,
        description="Certified risks of private trainings, and the runs that test them.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=REFUSALS,
        lifespan=lifespan,
        exception_handlers={  # every refusal is one sentence
            ValueError: _bad_input,
            BusyError: _busy,
            RequestValidationError: _bad_request,
            HTTPException: _no_route,
        },
    )
    app.state.service, app.state.runs = service, Runs(folder, pool)
    app.include_router(ROUTES)
    app.add_middleware(Guard, hosts=hosts, token=token if token is None else checked_token(token))
    return app


ROUTES = APIRouter()


# The page and its files.


@ROUTES.get(
    "/",
    response_class=Response,
    responses={**HTML, 303: {"description": "The token was right: go on without it."}},
)
def page() -> Response:
    """The page; its state is in its address."""
    return _file(files.index(), None)


@ROUTES.get(
    "/static/{file}",
    response_class=Response,
    responses={
        200: {"content": {kind.partition(";")[0]: {} for kind in files.KINDS.values()}},
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


# Options, risks, choices and charts.


def _number(about: str, example: object) -> Any:
    return Query(description=about, examples=[str(example)], max_length=100)


def _word(about: str, words: Sequence[str]) -> Any:
    """A word out of a list; a wrong one gets the command line's sentence."""
    return Query(description=about, json_schema_extra={"enum": list(words)})


def _query(option: Option) -> Any:
    """How an option is described: as the command line says it."""
    if option.choices:
        return _word(option.line(), option.choices)
    return _number(option.line(), DEFAULTS.get(option.name, option.default))


async def _only_known(request: Request) -> None:
    """Refuse a name that the route does not read."""
    known = [each.name for each in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            remedy = nearest(name, known, "leave it out").rstrip("?.")
            raise validate.invalid_value("parameter", name, "known", remedy)


ASKED = [Depends(_only_known)]
Charts = Annotated[
    str, Query(description=f"Comma list out of {', '.join(CHARTS)}.", max_length=200)
]


EVERY_CHART = ",".join(CHARTS)


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


@ROUTES.get("/api/options", response_model=PageOptions)
def api_options() -> Response:
    """Positions of the sliders, targets, charts."""
    return _json(PAGE_OPTIONS)


@ROUTES.get("/api/risk", response_model=RiskAnswer, dependencies=ASKED)
@takes(*RISK_ADDRESS, annotate=_query)
def api_risk(request: Request, charts: Charts = "", **texts: str) -> Response:
    """What no attacker can beat: `dprime risk`."""
    return _json(_service(request).risk(texts, _names(charts)))


@ROUTES.get("/api/choose", response_model=RiskAnswer, dependencies=ASKED)
@takes(*ADDRESS, annotate=_query)
def api_choose(
    request: Request,
    target: Annotated[str, _word("The risk to keep.", tuple(TARGET_SLIDERS))],
    value: Annotated[str, _number("At most this (Bayes security: at least).", 0.1)],
    free: Annotated[str, _word("The parameter to choose.", MECHANISM)],
    charts: Charts = "",
    **texts: str,
) -> Response:
    """The parameter that keeps a risk: `dprime choose`."""
    return _json(_service(request).choose(texts, target, value, free, _names(charts)))


@ROUTES.get("/api/charts", response_model=dict[str, ChartRows], dependencies=ASKED)
@takes(*RISK_ADDRESS, annotate=_query)
def api_charts(
    request: Request,
    charts: Charts = EVERY_CHART,
    over: Annotated[str, _word("What `risk` is drawn over.", MECHANISM)] = MECHANISM[0],
    fine: Annotated[bool, Query(description="Whether `risk` has its points close.")] = False,
    **texts: str,
) -> Response:
    """The charts of a setting by name."""
    return _json(_service(request).charts(texts, _names(charts), over, fine=fine))


COMPARED = Query(description="Whether it is for two settings, A and B.")


@ROUTES.get("/api/charts/{name}", response_model=dict[str, Any], responses=UNKNOWN)
def api_specification(
    request: Request,
    name: str,
    theme: Theme = "light",
    compared: Annotated[bool, COMPARED] = False,
) -> Response:
    """The empty Vega-Lite specification of a chart; its data set is called `rows`."""
    if name not in EMPTY:
        raise HTTPException(404, f"chart must be one of {', '.join(EMPTY)}.")
    return _json(_service(request).specification(name, theme, compared))


@ROUTES.post(
    "/api/read",
    response_model=dict[str, str],
    openapi_extra={"requestBody": {"required": True, "content": {"text/plain": {}}}},
)
async def api_read(request: Request) -> Response:
    """The setting that a file holds; the file is read as data, and not kept."""
    return _json(await run_in_threadpool(_service(request).read, await request.body()))


def _service(request: Request) -> ExplorerService:
    service: ExplorerService = request.app.state.service
    return service


# The list of runs, their cards and reports.


@ROUTES.get("/api/runs", response_model=RunList)
def api_runs(request: Request) -> Response:
    """The runs in the folder with their progress."""
    return _json(request.app.state.runs.listed())


@ROUTES.get("/api/runs/{name:path}/card", response_model=dict[str, Any], responses=UNKNOWN)
def api_card(request: Request, name: str) -> Response:
    """The privacy card of a finished run."""
    return _json(request.app.state.runs.card(name))


@ROUTES.get("/runs/{name:path}/report", response_class=Response, responses={**HTML, **UNKNOWN})
def report(request: Request, name: str) -> Response:
    """The report of a finished run."""
    headers = {"Content-Security-Policy": REPORT_POLICY}
    return HTMLResponse(request.app.state.runs.report(name), headers=headers)


def _json(value: Any) -> Response:
    return Response(PLAIN.dump_json(value), media_type="application/json")


# Refusals.


async def _bad_input(_: Request, error: Exception) -> Response:
    unknown, sentence = isinstance(error, UnknownRunError), " ".join(str(error).split())
    if isinstance(error, CostlyError):
        sentence = f"{sentence.rstrip('.')}, or ask the command line, which takes its time."
    sentence = sentence.replace("that can be certified", "that the explorer can certify")
    return refusal(404 if unknown else 422, sentence)


async def _busy(_: Request, error: Exception) -> Response:
    return come_again(str(error), 60 if isinstance(error, TooLongError) else 1)


async def _bad_request(_: Request, error: Exception) -> Response:
    """What is wrong with a parameter, in the words of `validate`."""
    assert isinstance(error, RequestValidationError)
    problem: dict[str, Any] = error.errors()[0]
    name, given, limits = problem["loc"][-1], problem.get("input"), problem.get("ctx", {})
    if problem["type"] == "missing":
        why = validate.invalid_input(name, "missing", "given", "add it to the address")
    elif problem["type"] == "string_too_long":
        wanted = f"at most {limits['max_length']} characters"
        why = validate.invalid_input(name, f"{len(str(given))}", wanted, "give it shorter")
    else:
        wanted = f"{limits.get('expected', 'right')}"
        why = validate.invalid_value(name, given, wanted, "give that")
    return refusal(422, str(why))


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = SENTENCES.get(error.detail, error.detail)
    return refusal(error.status_code, sentence, dict(error.headers or {}))


SENTENCES = {
    "Not Found": "There is nothing at this address: open / for the page.",
    "Method Not Allowed": "This method is not answered here.",
}
