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
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

import dprime
from dprime import validate
from dprime.option import Option, nearest
from dprime.privacy_loss import CostlyError
from dprime.request import ADDRESS, MECHANISM, RISK_ADDRESS
from dprime.web import files
from dprime.web.guard import AT_ONCE, REPORT_POLICY, Guard, checked_token, come_again, refusal
from dprime.web.options import CHARTS, PAGE_OPTIONS, TARGET_SLIDERS, PageOptions
from dprime.web.runs import RunList, Runs, UnknownRunError, checked_folder
from dprime.web.service import EMPTY, ChartRows, ExplorerService, RiskAnswer
from dprime.web.workers import BusyError, TooLongError, Workers

WORKERS = 2
"""Processes that compute beside the server."""

HOSTS = ("127.0.0.1", "localhost")
"""What the explorer is called on its own machine."""

PLAIN: TypeAdapter[Any] = TypeAdapter(Any)
"""Writes plain values and dataclasses as JSON."""

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Refused:
    """One sentence that says what would be right."""

    detail: str


def _number(about: str, example: object) -> Any:
    return Query(description=about, examples=[str(example)], max_length=100)


def _word(about: str, words: Sequence[str]) -> Any:
    """A word out of a list; a wrong one gets the command line's sentence."""
    return Query(description=about, json_schema_extra={"enum": list(words)})


def _query(option: Option) -> Any:
    """How an option is described: as the command line says it."""
    if option.choices:
        return _word(option.line(), option.choices)
    return _number(option.line(), EXAMPLES.get(option.name, option.default))


OF_CURVE = Query(description=f"Comma list out of {', '.join(CHARTS)}.", max_length=200)
COMPARED = Query(description="Whether it is for two settings, A and B.")


def _names(listed: str) -> list[str]:
    return [name for name in listed.split(",") if name]


EXAMPLES = {"noise_multiplier": 1.1, "sample_rate": 0.004, "steps": 14000, "prior": 0.1}
"""Where an option has no default that could be one."""


def _texts_beside(*others: str, given_as: Sequence[Option] = RISK_ADDRESS) -> Any:
    """What an address gives of the question; a name that nothing goes by is refused.

    `others` are the names that a route reads itself.
    """
    known = (*(option.name for option in given_as), *others)

    async def given(request: Request, **texts: str | None) -> dict[str, str]:
        for name in request.query_params:
            if name not in known:
                remedy = nearest(name, known, "leave it out").rstrip("?.")
                raise validate.invalid_value("parameter", name, "known", remedy)
        return {name: text for name, text in texts.items() if text is not None}

    named = {option.name: Annotated[str | None, _query(option)] for option in given_as}
    given.__signature__ = Signature([  # type: ignore[attr-defined]
        Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request),
        *(Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=each)
          for name, each in named.items()),
    ])  # fmt: skip
    return Depends(given)


def _answer(model: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model, "description": "The answer."}}


def _refused(status: int, about: str) -> dict[int | str, dict[str, Any]]:
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
    service, runs = ExplorerService(pool), Runs(folder, pool)

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
        default_response_class=Response,
        lifespan=lifespan,
    )
    _add_errors(app)
    _add_page(app)
    _add_risks(app, service)
    _add_start(app, service)
    _add_runs(app, runs)
    app.add_middleware(Guard, hosts=hosts, token=token if token is None else checked_token(token))
    return app


def _add_page(app: FastAPI) -> None:
    """The page and its files."""

    @app.get(
        "/",
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


def _add_risks(app: FastAPI, service: ExplorerService) -> None:
    """Options, risks, choices and charts."""

    @app.get("/api/options", responses=_answer(PageOptions))
    def api_options() -> Response:
        """Positions of the sliders, targets, charts."""
        return _json(PAGE_OPTIONS)

    @app.get("/api/risk", responses=_answer(RiskAnswer))
    def api_risk(
        texts: Annotated[dict[str, str], _texts_beside("charts")],
        charts: Annotated[str, OF_CURVE] = "",
    ) -> Response:
        """What no attacker can beat: `dprime risk`."""
        return _json(service.risk(texts, _names(charts)))

    @app.get("/api/choose", responses=_answer(RiskAnswer))
    def api_choose(
        texts: Annotated[
            dict[str, str], _texts_beside("target", "value", "free", "charts", given_as=ADDRESS)
        ],
        target: Annotated[str, _word("The risk to keep.", tuple(TARGET_SLIDERS))],
        value: Annotated[str, _number("At most this (Bayes security: at least).", 0.1)],
        free: Annotated[str, _word("The parameter to choose.", MECHANISM)],
        charts: Annotated[str, OF_CURVE] = "",
    ) -> Response:
        """The parameter that keeps a risk: `dprime choose`."""
        return _json(service.choose(texts, target, value, free, _names(charts)))

    @app.get("/api/charts", responses=_answer(dict[str, ChartRows]))
    def api_charts(
        texts: Annotated[dict[str, str], _texts_beside("charts", "over", "fine")],
        charts: Annotated[str, OF_CURVE] = ",".join(CHARTS),
        over: Annotated[str, _word("What `risk` is drawn over.", MECHANISM)] = MECHANISM[0],
        fine: Annotated[bool, Query(description="Whether `risk` has its points close.")] = False,
    ) -> Response:
        """The charts of a setting by name."""
        return _json(service.charts(texts, _names(charts), over, fine=fine))

    @app.get(
        "/api/charts/{name}",
        responses={**_answer(dict[str, Any]), **UNKNOWN},
    )
    def api_specification(
        name: str, theme: Theme = "light", compared: Annotated[bool, COMPARED] = False
    ) -> Response:
        """The empty Vega-Lite specification of a chart; its data set is called `rows`."""
        if name not in EMPTY:
            raise HTTPException(404, f"chart must be one of {', '.join(EMPTY)}.")
        return _json(service.specification(name, theme, compared))


def _add_start(app: FastAPI, service: ExplorerService) -> None:
    """A file as a setting to start from."""

    @app.post(
        "/api/read",
        responses=_answer(dict[str, str]),
        openapi_extra={"requestBody": {"required": True, "content": {"text/plain": {}}}},
    )
    async def api_read(request: Request) -> Response:
        """The setting that a file holds; the file is read as data, and not kept."""
        return _json(await run_in_threadpool(service.read, await request.body()))


def _add_runs(app: FastAPI, runs: Runs) -> None:
    """The list of runs, their cards and reports."""

    @app.get("/api/runs", responses=_answer(RunList))
    def api_runs() -> Response:
        """The runs in the folder with their progress."""
        return _json(runs.listed())

    @app.get(
        "/api/runs/{name:path}/card",
        responses={**_answer(dict[str, Any]), **UNKNOWN},
    )
    def api_card(name: str) -> Response:
        """The privacy card of a finished run."""
        return _json(runs.card(name))

    @app.get(
        "/runs/{name:path}/report",
        responses={200: {"content": {"text/html": {}}, "description": "The report."}, **UNKNOWN},
    )
    def report(name: str) -> Response:
        """The report of a finished run."""
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(runs.report(name), headers=headers, media_type="text/html")


def _json(value: Any) -> Response:
    return Response(PLAIN.dump_json(value), media_type="application/json")


def _add_errors(app: FastAPI) -> None:
    """Every refusal is one sentence."""

    @app.exception_handler(ValueError)
    def bad_input(_: Request, error: Exception) -> Response:
        unknown, sentence = isinstance(error, UnknownRunError), " ".join(str(error).split())
        if isinstance(error, CostlyError):
            sentence = f"{sentence.rstrip('.')}, or ask the command line, which takes its time."
        sentence = sentence.replace("that can be certified", "that the explorer can certify")
        return refusal(404 if unknown else 422, sentence)

    @app.exception_handler(BusyError)
    def busy(_: Request, error: Exception) -> Response:
        return come_again(str(error), 60 if isinstance(error, TooLongError) else 1)

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
    "Method Not Allowed": "This method is not answered here.",
}
