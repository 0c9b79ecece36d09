"""Runs the blocks of a stored run, one after the other, whatever happens to single ones.

A block that ends is stored at once. A block that fails is recorded with its error, and the rest
goes on; it is tried again at the end. Killed or interrupted, the run is resumed by calling
`run_blocks` again: finished blocks are not run twice.
"""

from __future__ import annotations

import sysconfig
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dprime import validate
from dprime.audit.store import State, Store

Work = Callable[[int], Mapping[str, NDArray[Any]]]
"""Runs a block, given its number, and returns its arrays, each with the trial first."""

HOPELESS = 3
"""When so many blocks have failed for one reason and none has succeeded, the rest is not tried."""

LONGEST_MESSAGE = 400
"""Characters of an error's message that are kept."""

LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")),
)
"""Where code lies that the user did not write."""


class BlocksFailedError(ValueError):
    """The work fails for a reason that concerns every block."""


def run_blocks(
    store: Store,
    work: Work,
    *,
    attempts: int = 2,
    on_block: Callable[[int, State], None] | None = None,
) -> None:
    """Run the pending blocks in order and store each as it ends.

    Args:
        store: the run; nobody else may work on it meanwhile.
        work: runs one block. The same block must give the same arrays, so draw every random number
            from the run's seed and the block's number.
        attempts: how often a block is tried in this call before it is left as failed.
        on_block: called after each block with its number and the state of the run.

    Raises:
        BlocksFailedError: when the first three blocks all fail for the same reason.

    >>> import tempfile
    >>> import numpy as np
    >>> def work(block):
    ...     return {"scores": np.random.default_rng([7, block]).normal(size=100)}
    >>> with Store.create(tempfile.mkdtemp() + "/a.run", {"seed": 7}, blocks=5) as store:
    ...     run_blocks(store, work)
    ...     store.state().trials
    500
    """
    limit = validate.whole("attempts", attempts, example=2)
    with store.working():
        waiting = deque(store.pending())
        tries: Counter[int] = Counter()
        first_errors: list[str] = []
        while waiting:
            block = waiting.popleft()
            tries[block] += 1
            error = _try(store, work, block)
            if error is not None and tries[block] < limit:
                waiting.append(block)
            if on_block is not None:
                on_block(block, store.state())
            if len(first_errors) < HOPELESS:
                first_errors.append(error or "")
                _stop_if_hopeless(first_errors, tries)


def _try(store: Store, work: Work, block: int) -> str | None:
    """Run a block once and store how it ended; returns what went wrong."""
    start = time.perf_counter()
    try:
        arrays = work(block)
        store.check(arrays)
    except Exception as error:  # whatever the user's code raises is a state of the block
        reason = describe(error)
    else:
        try:
            store.finish(block, arrays, time.perf_counter() - start)
        except MemoryError as error:
            reason = describe(error)
        else:
            return None
    store.fail(block, reason)
    return reason


def _stop_if_hopeless(errors: list[str], tries: Counter[int]) -> None:
    """Give up when the first blocks all fail for one reason; each is tried once until then."""
    if len(errors) == HOPELESS == len(tries) and len(set(errors)) == 1 and errors[0]:
        raise BlocksFailedError(
            f"work must succeed on one of the first {HOPELESS} blocks, but it failed on each with "
            f"{errors[0]}: mend that and resume the run, which keeps every finished block."
        )


def describe(error: Exception) -> str:
    """An error in one line: its type, its message, and the last line of the user's own code.

    >>> try:
    ...     [].pop()
    ... except IndexError as error:
    ...     describe(error).split(" (")[0]
    'IndexError: pop from empty list'
    """
    message = " ".join(str(error).split())
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frame = _users_frame(traceback.extract_tb(error.__traceback__))
    if frame is None:
        return what
    line = f": {frame.line}" if frame.line else ""
    return f"{what} ({Path(frame.filename).name}, line {frame.lineno}{line})"


def _users_frame(frames: traceback.StackSummary) -> traceback.FrameSummary | None:
    """The innermost place in the user's code; where there is none, the innermost of all."""
    own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)]
    return next(reversed(own or frames), None)
