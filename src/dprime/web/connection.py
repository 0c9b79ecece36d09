"""Uvicorn's connection with limits: how many there are, and how long each may take.

waiting for a request ──► request comes in ──► answer is computed and taken ──► waiting …
     KEEP_ALIVE                REQUEST                   TAKEN
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from dprime.web.guard import HEADERS, come_again, refusal

MOST = 160
"""Open connections; a new one takes the place of that which has waited longest."""

KEEP_ALIVE, REQUEST, TAKEN = 75.0, 10.0, 120.0
"""Seconds that a connection stays open. One that is idle stays longer than clients keep theirs, so
that none is closed just when it is used again.
"""


class SteadyConnection(H11Protocol):
    """A connection that keeps pace, or is closed."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, in the place of another where there are too many."""
        super().connection_made(transport)
        self._within(KEEP_ALIVE)
        if len(self.connections) > MOST:
            others = [each for each in self.connections if isinstance(each, SteadyConnection)]
            waiting = [each for each in others if each is not self and each._waits()]
            if waiting:
                min(waiting, key=lambda each: each._since).transport.abort()
            else:
                self._refuse(come_again("All connections are in use: come again."))

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request, all of which must follow soon."""
        idle = self._idle()
        super().data_received(data)
        self._go_on(begun=idle)

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have come in already."""
        super().on_response_complete()
        self._go_on(begun=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what HTTP does not allow."""
        self._refuse(refusal(400, "HTTP allows no such request: open the explorer's page."))

    def _idle(self) -> bool:
        """Whether nothing of a request has come in."""
        return self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def _waits(self) -> bool:
        """Whether nothing was asked that is still to be answered."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and not self.transport.is_closing()

    def _go_on(self, *, begun: bool) -> None:
        """Allow the time for what comes next; a request has it once, from its first byte."""
        if self._idle():
            self._within(KEEP_ALIVE)
        elif self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._within(TAKEN)
        elif begun:
            self._within(REQUEST)

    def _within(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._since = self.loop.time()
        self._timer = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """It took too long; who asked for half a page is told."""
        if self._waits() and not self._idle():
            self._refuse(refusal(408, f"The request took more than {REQUEST:g} seconds to come."))
            self._timer = self.loop.call_later(1.0, self.transport.abort)
        else:
            self.transport.abort()

    def _refuse(self, answer: Response) -> None:
        """Answer without the application, and close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        for name, value in {**HEADERS, "Connection": "close"}.items():
            answer.headers[name] = value
        reason, status = HTTPStatus(answer.status_code).phrase, answer.status_code
        head = h11.Response(status_code=status, headers=answer.raw_headers, reason=reason.encode())
        for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
