"""The attacker who reads what was printed: with the seed, the noise of a training is gone.

Until version 0.10 `print(trained)` showed the seed beside "differentially private", and the report
and card of an audit showed it too.
"""

import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from dprime.attack import AttackTarget, EngineTrainer, adversary_named
from dprime.attack.trainer import Game
from dprime.audit import AuditConfig, begin, record_of, words_in
from dprime.canaries import GradientCanaries
from dprime.membership import draw
from dprime.runs.folder import summary_of
from dprime.runs.run import Run
from dprime.seeds import check_seed, fresh_seed
from dprime.show import card, card_markdown, report_html
from dprime.train import Observer, TrainingConfig, train
from games import IMAGES

SECRET = 2**256 - 987654321987654321
"""Every seed of this file, unless one is drawn."""

RECIPE = TrainingConfig(steps=10, learning_rate=2.0, clip_norm=1.0, noise_multiplier=12.0)


def network():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def trained(records=100, seed=None, **options):
    return train(network(), IMAGES.train.take(range(records)), RECIPE, seed=seed, **options)


def shown(value):
    """Everything that Python or a notebook shows of an object without being asked for more."""
    html = getattr(value, "_repr_html_", str)()
    return "\n".join([repr(value), str(value), f"{value}", html])


def hidden(text, seed):
    return str(seed) not in text and f"{seed:x}" not in text.lower()


# The attack ---------------------------------------------------------------------------------------


def distance(model, records, seed):
    """How far a training again ends from a released model."""
    again = trained(records, seed).weights[0]
    return float((again - model).norm() / model.norm())


def test_what_is_printed_does_not_give_the_weights_back():
    """Until version 0.10 the printed number did: 100 records end at distance 0, 99 at 0.01."""
    done = trained()
    for number in map(int, re.findall(r"\d+", shown(done))):
        assert distance(done.weights[0], 100, number) > 0.3


def test_whoever_knows_the_seed_knows_who_was_used():
    """Which is why nothing shows it."""
    done = trained()
    assert distance(done.weights[0], 100, done.seed) == 0
    assert distance(done.weights[0], 99, done.seed) > 0.001


def test_a_seed_is_beyond_guessing():
    done = [trained(10).seed for _ in range(8)]
    assert max(done).bit_length() > 128
    assert len(set(done)) == 8
    assert check_seed(2**256 - 1) == 2**256 - 1
    assert max(fresh_seed().bit_length() for _ in range(8)) > 240


def test_every_bit_of_a_seed_counts():
    weights = [trained(10, SECRET ^ bit).weights for bit in (0, 1, 1 << 64, 1 << 128, 1 << 255)]
    assert len({each.numpy().tobytes() for each in weights}) == 5


# Whatever holds a seed ----------------------------------------------------------------------------


class Watching(Observer):
    """Keeps what an observer is handed."""

    def begin(self, run):
        self.run = run

    def see(self, step):
        self.step = step


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "a.run"
    settings = AuditConfig.from_words(
        max_records=6, trials=20, claim={"epsilon": 4.0}, training={"steps": 2}, metric="advantage",
        seed=SECRET,
    )  # fmt: skip
    return settings, begin(settings, path, progress=False), path


def holders():
    """Objects of the public interface that hold the seed, by name."""
    watching = Watching()
    done = trained(10, SECRET, observers=[watching])
    data = IMAGES.train.take(range(6))
    setting = AttackTarget(EngineTrainer(network(), RECIPE), data, seed=SECRET)
    attack = adversary_named("di").craft(setting)
    return {
        "trained": done,
        "run": watching.run,
        "step": watching.step,
        "setting": setting,
        "attack": attack,
        "game": Game(setting.trainer, attack, 2, 4, SECRET),
        "settings of an audit": AuditConfig.from_words(claim={"epsilon": 4.0}, seed=SECRET),
        "canaries": GradientCanaries(400, seed=SECRET),
        "draw": draw(50, 0.5, seed=SECRET),
    }


def test_no_object_shows_its_seed(audited):
    _, found, path = audited
    objects = {**holders(), "audit": found, "facts": record_of(path)}
    with Run.open(path) as store:
        objects |= {"store": store, "summary": summary_of(store), "state": store.state()}
        for name, value in objects.items():
            assert hidden(shown(value), SECRET), name
            assert hidden(repr([value]), SECRET), name
        assert store.seed == SECRET  # to its last digit


def test_seeds_are_there_for_whoever_asks(audited):
    made = holders()
    for name in ("trained", "run", "setting", "game", "settings of an audit"):
        assert made[name].seed == SECRET
    assert record_of(audited[2]).config.seed == SECRET


def test_no_report_and_no_card_shows_the_seed(audited):
    facts = record_of(audited[2])
    found = card(facts)
    for text in (json.dumps(found), card_markdown(facts), report_html(facts)):
        assert hidden(text, SECRET)
    assert "seed" not in found["run"]
    assert "seed" not in found["run"]["settings"]
    assert hidden(json.dumps(audited[1].to_dict()), SECRET)
    with Run.open(audited[2]) as store:
        assert hidden(json.dumps(store.result), SECRET)


def test_no_other_dataclass_shows_a_field_that_is_a_seed():
    """The rule for what is written next: a field of that name is left out of the repr."""
    import dprime.membership.frontiers
    import dprime.membership.inference
    import dprime.membership.shadows

    modules = (
        dprime.attack.adversary, dprime.attack.trainer, dprime.audit.config, dprime.audit.record,
        dprime.train.engine, dprime.train.evaluate, dprime.membership.frontiers,
        dprime.membership.inference, dprime.membership.shadows,
    )  # fmt: skip
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }
    seeded = [each for kind in kinds for each in dataclasses.fields(kind) if each.name == "seed"]
    assert len(seeded) >= 7
    assert not any(each.repr for each in seeded)


# The command line ---------------------------------------------------------------------------------


AUDIT = ("audit", "--epsilon", 4, "--max-records", 6, "--steps", 2, "--trials", 10)


@pytest.mark.slow
def test_no_command_prints_a_seed(call, tmp_path):
    commands = [
        (*AUDIT, "--seed", SECRET, "--run", "a.run"),
        (*AUDIT, "--seed", SECRET, "--run", "b.run", "--json"),
        ("resume", "a.run"),
        ("resume", "a.run", "--json"),
        ("runs", "."),
        ("runs", ".", "--json"),
        ("report", "a.run", "--card", "a.json", "--json"),
        (*AUDIT, "--seed", SECRET, "--run", "a.run"),  # refused: it is there
    ]
    for words in commands:
        code, out, err = call(*words)
        assert code in (0, 2), err
        assert hidden(out + err, SECRET), words
    for name in ("a.json", "a.html"):
        assert hidden((tmp_path / name).read_text(), SECRET)


def test_a_run_is_repeated_from_its_file_without_seeing_the_seed(call):
    call(*AUDIT, "--run", "a.run")
    _, out, err = call(*AUDIT, "--seed-from", "a.run", "--run", "b.run")
    with Run.open("a.run") as first, Run.open("b.run") as second:
        assert first.seed == second.seed
        assert first.seed.bit_length() > 200
        assert np.array_equal(first.arrays()["score"], second.arrays()["score"])
        assert hidden(out + err, first.seed)
    code, _, err = call(*AUDIT, "--seed-from", "a.run", "--seed", 1)
    assert code == 2
    assert "--seed-from must be given without --seed" in err


# Where 256 bits are kept --------------------------------------------------------------------------


def test_a_checkpoint_keeps_every_digit(tmp_path):
    canaries, again = GradientCanaries(400, seed=SECRET), GradientCanaries(400)
    torch.save(canaries.state_dict(), tmp_path / "state.pt")
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert again.state_dict()["seed"] == SECRET


def test_a_settings_file_keeps_every_digit(tmp_path):
    place = tmp_path / "audit.toml"
    place.write_text(f"seed = {SECRET}\nclaim.epsilon = 4.0\n")
    assert AuditConfig.from_words(words_in(place)).seed == SECRET
