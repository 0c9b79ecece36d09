"""A monitor on small trainings, and how its answers are compared."""

from dataclasses import replace

import pytest

from dprime import DPSGD, Composition
from dprime.monitor import Monitor, PrivacyWarning, Watcher
from dprime.monitor.tails import FLOAT32_END, NoiseTails

RATE = 1 / 6
MODES = ("hooks", "functorch", "ew", "ghost")
ASK = {"delta": 1e-3}
ADAPTIVE = {
    "clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 2.0,
}  # fmt: skip


def watch(made, **options):
    return Monitor(made.engine, **made.named(), **{"conditions": ASK, "show": None, **options})


def watch_shuffled(made, **options):
    with pytest.warns(PrivacyWarning, match="not drawn by Poisson sampling"):
        return watch(made, **options)


def trained(made, passes=1, **options):
    """A training and its monitor after some epochs."""
    monitor = watch(made, **options)
    made.train(passes)
    return made, monitor


def watcher(name="own", *, needs_batches=False, **moments):
    """A watcher that does this at each moment."""
    known = {moment: staticmethod(act) for moment, act in moments.items()}
    kind = type(name.title(), (Watcher,), known)
    kind.name, kind.needs_batches = name, needs_batches
    return kind()


def reason(monitor):
    """Why nothing is certified; empty where something is."""
    return getattr(monitor.ledger.mechanism(), "reason", "")


def reasons(monitor):
    """Those of all steps."""
    return {step.problem for step, _ in monitor.ledger.entries} - {""}


def refused(monitor, act, problem):
    """That what is done now leaves no certificate, for this reason, with a warning."""
    with pytest.warns(PrivacyWarning):
        act()
    assert reason(monitor) == problem
    assert problem.warning in monitor.warnings


def values(answers):
    return {answer.name: answer.value for answer in answers}


def certified(*parts, weights=44):
    """Trainings or releases of a sum together, with the tails that float32 noise lacks.

    Opacus counts the records for the trainings. `weights` are those of the small network in
    conftest.
    """
    phases = tuple(
        (part.noise_multiplier, part.sample_rate if isinstance(part, DPSGD) else 1.0, part.steps, 1)
        for part in parts
    )
    parts = [replace(p, public_size=True) if isinstance(p, DPSGD) else p for p in parts]
    return Composition(*parts, NoiseTails(FLOAT32_END, weights + 1, phases))
