"""Runs: work in blocks that can be stopped at any moment and resumed, on any backend.

config ──► Run (one file) ──► execute(run, work, backend) ──► arrays of every block ──► result
"""

from dprime.runs.backends import Local, Processes, backend_named
from dprime.runs.folder import Summary, list_runs
from dprime.runs.run import Run
from dprime.runs.runner import BlocksFailedError, execute
from dprime.runs.states import Event, State, Worker

__all__ = ["BlocksFailedError", "Event", "Local", "Processes", "Run", "State"]
__all__ += ["Summary", "Worker", "backend_named", "execute", "list_runs"]
