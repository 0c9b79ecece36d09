"""The monitor's numbers are the core's for what was really run, whatever the loop does."""

import re
import warnings
from types import SimpleNamespace

import pytest
import torch
from opacus.schedulers import ExponentialGradClip, StepNoise
from opacus.utils.batch_memory_manager import BatchMemoryManager

from dprime import DPSGD, Composition
from dprime.interop import from_opacus
from dprime.mechanisms import Gaussian
from dprime.monitor import Monitor, PrivacyWarning, Watcher
from dprime.monitor.ledger import StepRecord
from dprime.text import round_up
from told import one_line
from watching import ASK, MODES, RATE, certified, trained, values, watch, watch_shuffled, watcher


class TestTruth:
    @pytest.mark.parametrize("mode", MODES)
    def test_the_numbers_are_those_of_the_core(self, private, mode):
        made, monitor = trained(private(mode), passes=2)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)
        assert monitor.ledger.mechanism() == from_opacus(
            made.engine.accountant.history, public_constants=True
        )
        assert monitor.curve().advantage() == certified(DPSGD(1.0, RATE, 12)).curve().advantage()
        assert monitor.warnings == []

    @pytest.mark.parametrize("mode", MODES)
    def test_the_noise_that_is_counted_is_the_noise_that_was_added(self, private, mode):
        noise = []

        def measure(training):
            parts = zip(training.noisy(), training.summed(), strict=True)
            noise.append(torch.cat([noisy - clean for noisy, clean in parts]))

        made = private(mode, net=private.network(200), noise=1.7, norm=0.3)
        _, monitor = trained(made, watchers=[watcher(after_noise=measure)])
        counted = monitor.ledger.mechanism().noise_multiplier
        found = torch.cat(noise).std() / 0.3  # of 8,412 draws: 0.8 % off at one deviation
        assert counted == pytest.approx(float(found), rel=0.04)

    def test_the_noise_of_every_step_is_read(self, private):
        made = private()
        schedule = StepNoise(made.optimizer, step_size=1, gamma=1.5)
        monitor = watch(made)
        made.train()
        schedule.step()
        with pytest.warns(PrivacyWarning, match="The noise multiplier was changed"):
            made.train()
        assert monitor.ledger.mechanism() == Composition(DPSGD(1.0, RATE, 6), DPSGD(1.5, RATE, 6))
        other = from_opacus(made.engine.accountant.history, public_constants=True)
        assert monitor.curve().epsilon(1e-3) == certified(*other.mechanisms).curve().epsilon(1e-3)

    @pytest.mark.parametrize("mode", ["hooks", "ghost"])
    def test_a_batch_in_parts_is_one_step(self, private, mode):
        monitor = watch(made := private(mode))
        with BatchMemoryManager(
            data_loader=made.loader, max_physical_batch_size=3, optimizer=made.optimizer
        ) as parts:
            made.train(loader=parts)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)
        assert monitor.warnings == []

    def test_empty_batches_are_steps_too(self, private):
        monitor = watch(made := private(loader=private.loader(batch_size=1)))
        sizes = []
        for records, labels in made.loader:
            sizes.append(len(records))
            made.step(records, labels)
        assert 0 in sizes
        assert monitor.ledger.steps == len(made.loader)

    def test_the_training_is_the_same_as_without(self, private):
        weights = []
        for watched in (False, True):
            made = private()
            if watched:
                watch(made, epochs=2, show=lambda _: None)
            made.train(2)
            weights.append(torch.cat([p.flatten() for p in made.model.parameters()]))
        assert torch.equal(*weights)

    def test_what_else_was_read_from_the_data_is_composed(self, private):
        _, monitor = trained(private(), other_mechanisms=[Gaussian(20.0)])
        assert monitor.ledger.mechanism(Gaussian(20.0)) == Composition(
            Gaussian(20.0), DPSGD(1.0, RATE, 6)
        )

    def test_the_norm_that_records_are_clipped_to_counts(self, private):
        """In ghost mode a schedule changes the noise, but not the clipping."""
        made, monitor = trained(private("ghost"), epochs=3)
        ExponentialGradClip(made.optimizer, gamma=0.5).step()
        with pytest.warns(PrivacyWarning, match="clipping norm was changed"):
            made.train()
        assert monitor.ledger.mechanism() == Composition(DPSGD(1.0, RATE, 6), DPSGD(0.5, RATE, 6))
        end = certified(DPSGD(1.0, RATE, 6), DPSGD(0.5, RATE, 12)).curve().advantage()
        assert values(monitor.forecast())["advantage"] == end
        assert len(monitor.warnings) == 1  # the accountant has what the optimizer said

    def test_a_changed_clipping_norm_costs_nothing_where_it_clips_too(self, private):
        made, monitor = trained(private())
        made.optimizer.max_grad_norm = 0.5
        with pytest.warns(PrivacyWarning, match="fixed without looking at the data"):
            monitor.accept_changes()
        made.train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)

    def test_a_norm_changed_between_the_parts_of_a_batch_counts(self, private):
        monitor = watch(made := private(noise=2.0))
        records, labels = next(iter(made.loader))
        half = len(records) // 2
        made.optimizer.signal_skip_step(do_skip=True)
        made.optimizer.signal_skip_step(do_skip=False)
        made.step(records[:half], labels[:half])
        made.optimizer.max_grad_norm = 0.5
        made.step(records[half:], labels[half:])
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 1)

    def test_steps_before_attaching_are_taken_over(self, private):
        made = private()
        made.train()
        monitor = watch(made)
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)
        with pytest.warns(PrivacyWarning, match="had recorded 6 steps before"):
            made.train()
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)


class TestShown:
    def test_the_forecast_is_the_core_at_the_planned_end(self, private):
        monitor = watch(made := private(noise=2.0), epochs=5)
        before = values(monitor.forecast())
        assert before["advantage"] == certified(DPSGD(2.0, RATE, 30)).curve().advantage()
        assert values(monitor.risk())["advantage"] == 0.0
        made.train(2)
        assert values(monitor.forecast()) == before
        made.optimizer.noise_multiplier = 4.0
        mixed = certified(DPSGD(2.0, RATE, 12), DPSGD(4.0, RATE, 18))
        assert values(monitor.forecast())["advantage"] == mixed.curve().advantage()

    def test_a_forecast_needs_a_planned_end(self, private):
        with pytest.raises(ValueError, match="the planned end must be known for a forecast"):
            watch(private()).forecast()

    def test_what_cannot_be_certified_has_no_limit_and_ends_nothing(self, private):
        made = private(noise=0.001)
        lines = []
        monitor = watch(made, show=lines.append, metric="epsilon")
        monitor.ledger.add(StepRecord(0.001, 0.3, batches=4000), 6)  # mixes too many Gaussians
        made.engine.accountant.history = [(0.001, 1200.0, 6)]
        made.train()
        assert lines[-1].endswith("ε at δ 0.001 no limit now.")
        assert monitor.curve().advantage() == 1.0

    def test_the_forecast_of_passes_that_are_left_is_what_comes(self, private):
        monitor = watch_shuffled(made := private(poisson_sampling=False), epochs=3)
        forecasts = []
        for _ in range(6):
            for number, (records, labels) in enumerate(made.loader):
                if number == 3:
                    break
                made.step(records, labels)
            forecasts.append(values(monitor.forecast())["epsilon"])
        assert forecasts == pytest.approx([values(monitor.risk())["epsilon"]] * 6)
        expected = certified(Gaussian(1.0, steps=6)).curve("replace").epsilon(1e-3)
        assert forecasts[0] == pytest.approx(expected)

    def test_past_the_planned_end(self, private):
        made, monitor = trained(private(), steps=6)
        assert monitor.warnings == []
        with pytest.warns(PrivacyWarning, match="past its planned end"):
            made.train()
        assert values(monitor.forecast()) == values(monitor.risk())

    def test_a_line_for_each_epoch(self, private):
        made, lines = private(), []
        watch(made, show=lines.append, steps=18, metric="bayes_security")
        made.train(2)
        first, end = (
            certified(DPSGD(1.0, RATE, steps)).curve().bayes_security() for steps in (6, 18)
        )
        assert len(lines) == 2
        found = re.fullmatch(
            r"epoch 1 of 3, step 6 of 18: Bayes security at least (\S+) now, "
            r"at least (\S+) at the planned end\.",
            lines[0],
        )
        assert 0 <= first - float(found[1]) < 1e-4
        assert 0 <= end - float(found[2]) < 1e-4

    def test_lines_go_to_stderr(self, private, capsys):
        made = private()
        Monitor(made.engine, **made.named(), conditions=ASK)
        made.train()
        bound = round_up(certified(DPSGD(1.0, RATE, 6)).curve().advantage())
        expected = f"dprime: epoch 1, step 6: Membership advantage at most {bound} now.\n"
        assert capsys.readouterr() == ("", expected)

    def test_no_lines(self, private, capsys):
        made = private()
        Monitor(made.engine, **made.named(), conditions=ASK, show=None)
        made.train()
        assert capsys.readouterr() == ("", "")

    def test_the_history_is_the_metric_at_each_epoch(self, private):
        _, monitor = trained(private(), passes=3, metric="epsilon")
        expected = [
            certified(DPSGD(1.0, RATE, steps)).curve().epsilon(1e-3) for steps in (6, 12, 18)
        ]
        assert [answer.value for answer in monitor.history()] == expected
        assert all(one_line(at) for at in (*monitor.history(), monitor.ledger))

    def test_the_report(self, private):
        finder = watcher("finder", report=lambda: "The finder found 3.\n")
        _, monitor = trained(private(), epochs=2, watchers=[finder])
        text = monitor.report()
        assert text.startswith("Privacy of this training (epoch 1 of 2, step 6 of 12)\nDP-SGD, ")
        assert text.endswith("\n\nThe finder found 3.")
        now, end = (round_up(certified(DPSGD(1.0, RATE, s)).curve().advantage()) for s in (6, 12))
        assert re.search(rf"^Membership advantage +{now} +{end}$", text, re.MULTILINE)
        assert "Warnings" not in text

    def test_what_is_printed_does_not_look_at_what_watchers_found(self, private):
        """A canary test may be looked at once, and its numbers may not be ready."""

        once = watcher("once", report=lambda: 1 / 0)
        made, monitor = trained(private(), epochs=2, watchers=[once])
        made.engine.accountant.history.clear()  # a comparison with it would warn
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            printed = []
            monitor._repr_pretty_(SimpleNamespace(text=printed.append), cycle=False)
            assert printed == [str(monitor)]
        assert str(monitor).endswith("\n\nNot looked at: once; see report().")
        with pytest.raises(PrivacyWarning, match="has recorded 0 steps"):
            monitor.report()

    def test_a_notebook_shows_what_print_shows_and_an_error_one_line(self, private):
        monitor = watch(private(), epochs=2)
        assert repr(monitor) == "<Monitor: epoch 0 of 2, step 0 of 12>"
        printed = []
        monitor._repr_pretty_(SimpleNamespace(text=printed.append), cycle=False)
        assert printed == [str(monitor)]

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            ({"metric": "secret_success"}, "metric must be one of advantage"),
            ({"epochs": 2, "steps": 12}, "Exactly one of epochs, steps must be given"),
            ({"steps": 0}, "steps must be at least 1"),
            ({"adjacency": "both"}, "adjacency must be one of"),
            ({"show": True}, "show must be a function that takes a line, or None, but it is True"),
            ({"other_mechanisms": [3]}, "other_mechanisms must be a list of mechanisms"),
            ({"conditions": 1e-6}, "conditions must be a mapping of names to numbers"),
            ({"conditions": {"colour": 1}}, "colour must be left out"),
            ({"watchers": [Watcher]}, "watchers must be a list of watchers"),
            ({"watchers": Watcher()}, "watchers must be a list of watchers"),
        ],
    )
    def test_bad_options(self, private, wrong, sentence):
        with pytest.raises(ValueError, match=sentence):
            watch(private(), **wrong)


class TestWatchers:
    def test_moments_come_in_order(self, private):
        seen, made = [], private()

        def batch(records, targets):
            assert len(records) == len(targets)
            seen.append("batch")

        order = watcher(
            needs_batches=True, batch=batch, start=lambda _: seen.append("start"),
            before_noise=lambda _: seen.append("before"),
            after_noise=lambda _: seen.append("after"),
        )  # fmt: skip
        monitor = watch(made, watchers=[order])
        with BatchMemoryManager(
            data_loader=made.loader, max_physical_batch_size=100, optimizer=made.optimizer
        ) as parts:
            made.train(loader=parts)
        assert seen == ["start", *("batch", "before", "after") * 6]
        made.model.eval()
        made.criterion(made.model(torch.zeros(2, 4)), torch.zeros(2, dtype=torch.long))
        monitor.detach()
        made.model.train()
        made.train()
        assert seen.count("batch") == 6

    def test_a_watcher_can_ask_what_is_claimed(self, private):
        claims, made = [], private(noise=1.0)
        asks = watcher(after_noise=lambda training: claims.append(training.claim()))
        monitor = watch(made, watchers=[asks], other_mechanisms=[Gaussian(20.0)])
        made.train()
        assert claims[0] == Gaussian(20.0)
        claim = Composition(Gaussian(20.0), *certified(DPSGD(1.0, RATE, 3)).mechanisms)
        assert claims[3] == claim
        made.optimizer.noise_multiplier = 0.0
        with pytest.warns(PrivacyWarning, match="no noise"):
            made.train()
        assert (
            monitor.training.claim()
            == monitor.mechanism()
            == claims[-1].__class__(12, "no noise was added")
        )

    def test_an_error_of_a_watcher_is_raised_and_spends_nothing(self, private):
        bad = watcher("bad", before_noise=lambda _: 1 / 0)
        monitor = watch(made := private(), watchers=[bad])
        before = [p.clone() for p in made.model.parameters()]
        with pytest.raises(ZeroDivisionError) as caught:
            made.train()
        assert caught.value.__notes__ == ["This was raised by a watcher of the monitor, Bad."]
        assert monitor.ledger.steps == len(made.engine.accountant.history) == 0
        assert all(map(torch.equal, before, made.model.parameters()))
        monitor.detach()
        made.train()
