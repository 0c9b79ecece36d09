"""Runs the pending blocks of a run, wherever they are played, whatever happens to single ones.

    pending blocks ──► queue of tasks ──► a backend's workers ──► outcomes ──► Run

A block that ends is stored at once, by the driver alone. One that fails is recorded and tried again
at the end; one whose worker died or hung is given to another, one that did not fit into memory is
given in smaller slices. Killed or interrupted, the run is resumed by calling `execute` again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import dprime
from dprime import validate
from dprime.runs.backends.base import Backend, End, Local, Outcome, Task, Work
from dprime.runs.contents import ArraysError
from dprime.runs.run import Run
from dprime.runs.states import State, describe

HOPELESS = 3  # blocks that fail for one reason, before any succeeds, that end a run
LOSSES = 3  # how often a block may be lost or late before it is left as failed
HALVINGS = 6  # how often the memory of a block is halved before it is left as failed

NAMES_CODE = ("model", "trainer")
"""What of a configuration may name a function of the user's own."""


class BlocksFailedError(validate.InputError):
    """The work fails for a reason that concerns every block."""


def execute(
    run: Run,
    work: Work,
    *,
    backend: Backend | None = None,
    attempts: int = 2,
    on_block: Callable[[int, State], None] | None = None,
) -> None:
    """Run the pending blocks and store each as it ends.

    The same block must give the same arrays, so `work` draws every random number from the run's
    seed and the block's number. A block that raises an error is tried again at the end, in all
    `attempts` times. After each try `on_block` is called with the block's number and the run's
    state.

    >>> import tempfile
    >>> import numpy as np
    >>> def work(block):
    ...     return {"scores": np.random.default_rng([7, block]).normal(size=100)}
    >>> with Run.create(tempfile.mkdtemp() + "/a.run", "audit", {"seed": 7}, blocks=5) as run:
    ...     execute(run, work)
    ...     run.state().total_trials
    500
    """
    check_version(run)
    tried = validate.whole("attempts", attempts, example=2)
    if not run.pending():  # also where nothing can be written
        return
    with run.working():
        policy = RetryPolicy(run, tried, hasattr(work, "with_compute"))
        if not policy.waiting:
            return
        with closing((backend or Local()).outcomes(work, policy.waiting)) as outcomes:
            for outcome in outcomes:
                stored = _stored(run, outcome)
                if on_block is not None:
                    on_block(stored.task.block, run.state())
                policy.judge(stored)


def code_of(run: Run) -> list[str]:
    """The Python code that resuming the run imports and calls, as "module:function"."""
    given = [each.get(name) for each in (run.config, run.request or {}) for name in NAMES_CODE]
    named = [each for each in given if isinstance(each, str) and ":" in each]
    return list(dict.fromkeys(named))


def check_code(run: Run, *, allowed: bool) -> None:
    """Refuse to run code that the file names, unless the user allows it."""
    if (code := code_of(run)) and not allowed:
        shown = f"one that imports and calls {' and '.join(map(repr, code))}"
        remedy = "if you trust the file, resume it with --allow-code (allow_code=True)"
        raise validate.invalid_input("run", shown, "allowed to run that code", remedy)


def check_version(run: Run) -> None:
    """Refuse to add to what another version has played: its trials may have other scores."""
    begun = run.versions.get("dprime", dprime.__version__)
    if run.state().done and run.pending() and begun != dprime.__version__:
        shown = f"begun by {begun} and played in part"
        remedy = f"begin it anew, or finish it with dprime {begun}"
        raise validate.invalid_input("run", shown, f"of dprime {dprime.__version__}", remedy)


def check_complete(run: Run, what: str) -> None:
    """Refuse to conclude while blocks of `what` are missing."""
    state = run.state()
    if not state.complete:
        counts = f"{state.failed} of {state.blocks} blocks of {what}"
        raise validate.InputError(f"{counts} could not be trained: {state.last_error}.")


def counting(run: Run, advance: Callable[[float], None]) -> Callable[[int, State], None]:
    """An `on_block` that moves a progress bar by the trials done since, at each block."""
    done = run.state().total_trials

    def on_block(_: int, state: State) -> None:
        nonlocal done
        advance(state.total_trials - done)
        done = state.total_trials

    return on_block


class RetryPolicy:
    """Which block comes next, and whether one is tried again."""

    def __init__(self, run: Run, attempts: int, divisible: bool) -> None:
        self.waiting = deque(Task(block) for block in run.pending())
        kept = f"go on with dprime resume {run.path}; finished blocks are kept"
        self._then = "begin again" if run.temporary else kept
        self._attempts, self._divisible = attempts, divisible
        self._failed: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._errors: dict[int, str] = {}
        self._any_done = False

    def judge(self, outcome: Outcome) -> None:
        """Put a block back if it is worth another try; stop the run if no block is."""
        task, block, end = outcome.task, outcome.task.block, outcome.end
        if end is End.UNFIT:
            raise self._stopped(outcome.error)
        if end is End.DONE:
            self._any_done = True
        elif end is End.MEMORY and self._divisible and task.halvings < HALVINGS:
            self.waiting.appendleft(replace(task, halvings=task.halvings + 1))
        elif end in (End.LOST, End.LATE):
            self._lost[block] += 1
            if self._lost[block] < LOSSES:
                self.waiting.appendleft(task)
            elif not self._any_done:
                raise self._stopped(f"Block {block} was lost {LOSSES} times: {outcome.error}")
        else:
            self._failed[block] += 1
            if self._failed[block] < self._attempts:
                self.waiting.append(task)
        if end is End.FAILED and not self._any_done:
            self._errors[block] = outcome.error
            if len(self._errors) == HOPELESS and len({*self._errors.values()}) == 1:
                raise self._stopped(f"The first {HOPELESS} blocks all failed with {outcome.error}")

    def _stopped(self, reason: str) -> BlocksFailedError:
        return BlocksFailedError(f"{reason}. Fix this, then {self._then}.")


def _stored(run: Run, outcome: Outcome) -> Outcome:
    """Store how a try ended; arrays that cannot be stored are a failure of the block."""
    block = outcome.task.block
    if outcome.end is End.DONE:
        try:
            run.finish(block, outcome.arrays or {}, outcome.seconds, outcome.worker)
        except (ArraysError, MemoryError) as error:
            outcome = replace(outcome, end=End.FAILED, error=describe(error))
    if outcome.end not in (End.DONE, End.UNFIT):
        run.fail(block, outcome.error, outcome.end.value, outcome.worker)
    return outcome
