"""Batches that are chosen by what is in them: each loop was certified once."""

import pytest
import torch
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

from dprime import DPSGD
from dprime.monitor import PrivacyWarning, checks
from dprime.monitor.problems import Problem
from watching import RATE, reason, refused, trained, watch, watch_shuffled


def has_large(records):
    return bool((records > 2.2).any())


def warned(monitor, train, *sentences):
    """That training goes on certified, under these conditions."""
    with pytest.warns(PrivacyWarning):
        train()
    assert monitor.warnings[-len(sentences) :] == [*sentences]
    assert not reason(monitor)


def evaluate(made):
    made.model.eval()
    for records, _ in made.loader:
        made.model(records)
    made.model.train()


class TestChosenPasses:
    @pytest.mark.parametrize(
        ("poisson", "keeps"), [(True, False), (True, True), (False, False)],
        ids=["poisson", "loops kept", "shuffled"],
    )  # fmt: skip
    def test_batches_that_are_drawn_until_one_is_liked(self, private, poisson, keeps):
        made = private(loader=private.loader(shuffle=True), poisson_sampling=poisson)
        monitor = (watch if poisson else watch_shuffled)(made)
        kept = []

        def chosen():
            while True:
                records, labels = next(loop := iter(made.loader))
                if has_large(records):
                    return records, labels
                kept.extend([loop] * keeps)

        train = lambda: made.train(loader=(chosen() for _ in range(12)))  # noqa: E731
        refused(monitor, train, Problem.SKIPPED)

    def test_batches_that_are_chosen_by_their_loss(self, private):
        monitor = watch(made := private())

        def chosen():
            while True:
                records, labels = next(iter(made.loader))
                with torch.no_grad():
                    if made.criterion(made.model(records), labels) < 0.7:
                        return records, labels

        batches = (chosen() for _ in range(12))
        warned(monitor, lambda: made.train(loader=batches), checks.CHOSEN)

    def test_whole_passes_that_are_drawn_until_one_is_liked(self, private):
        monitor = watch(made := private())

        def chosen():
            while True:
                batches = list(made.loader)
                if has_large(batches[0][0]):
                    return batches

        batches = (batch for _ in range(4) for batch in chosen())
        warned(monitor, lambda: made.train(loader=batches), checks.CHOSEN)

    def test_one_pass_that_is_drawn_until_it_is_liked(self, private):
        monitor = watch(made := private())
        _ = list(made.loader), list(made.loader)
        warned(monitor, made.train, checks.CHOSEN)

    @pytest.mark.parametrize("way", ["each", "looks", "evaluates", "left", "prefetches"])
    def test_what_is_no_choice_stays_certified(self, private, way):
        monitor = watch(made := private())
        _ = list(made.loader)  # say for their mean
        next(iter(made.loader)), next(iter(made.loader))
        for number in range(6):
            if way == "each":
                for _ in range(6):
                    made.step(*next(iter(made.loader)))
            elif way == "looks" and number % 3 == 0:
                next(iter(made.loader))
            elif way == "left" and number in (2, 4):
                next(iter(made.loader))
                made.step(*next(iter(made.loader)))
            if way == "evaluates" and number % 3 < 2:
                evaluate(made)
                evaluate(made)
            if way != "each":
                made.train(loader=list(made.loader) if way == "prefetches" else None)
            if way == "each":
                evaluate(made)
        steps = 38 if way == "left" else 36
        assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, steps)
        assert monitor.warnings == []


class TestRecordsThatAreLeftOut:
    """A batch has fewer records than were drawn, so its size does not tell which one it is."""

    @staticmethod
    def made(private):
        """Of 400 records with batches of 80, about."""
        generator = torch.Generator().manual_seed(5)
        records = torch.randn(400, 4, generator=generator)
        return private(loader=DataLoader(TensorDataset(records, records[:, 0].gt(0).long()), 80))

    @staticmethod
    def positive(made, passes, skips=lambda number, records: False):
        """Batches, half of whose records are left out."""
        for _ in range(4):
            for number, (records, labels) in enumerate(passes(made.loader)):
                if not skips(number, records):
                    yield records[labels > 0], labels[labels > 0]

    @pytest.mark.parametrize("skips", [
        lambda _, records: records.max() > 2.9, lambda number, _: number == 4,
        lambda number, _: number == 0,
    ], ids=["some", "last", "first"])  # fmt: skip
    @pytest.mark.filterwarnings("ignore:A step had fewer records")
    def test_batches_that_are_skipped_are_seen(self, private, skips):
        made = self.made(private)
        monitor = watch(made)
        positive = self.positive(made, iter, skips)
        refused(monitor, lambda: made.train(loader=positive), Problem.SKIPPED)

    @pytest.mark.parametrize("passes", [iter, list])
    def test_none_is_skipped(self, private, passes):
        made = self.made(private)
        monitor = watch(made)
        evaluate(made)
        positive = self.positive(made, passes)
        warned(monitor, lambda: made.train(loader=positive), checks.FEWER)
        evaluate(made)
        made.train(loader=self.positive(made, passes))
        assert monitor.warnings == [checks.FEWER]


class TestOrder:
    def test_shuffled_batches_that_are_sorted(self, private):
        monitor = watch_shuffled(made := private(poisson_sampling=False))
        batches = sorted(made.loader, key=lambda batch: float(batch[0].sum()))
        warned(monitor, lambda: made.train(loader=batches), checks.ORDERED)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_batches_in_the_order_in_which_they_come(self, private, workers):
        """Also where a framework looks whether a batch is the last one."""
        made = private(loader=private.loader(num_workers=workers), poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.train()
        loop = iter(made.loader)
        batch = next(loop)
        for following in loop:
            made.step(*batch)
            batch = following
        made.step(*batch)
        assert monitor.warnings[1:] == []


class TestDrawnFrom:
    @pytest.mark.parametrize("within", [False, True])
    def test_the_number_of_records_of_a_poisson_sampler(self, private, within):
        made, monitor = trained(private())
        loop = iter(made.loader)
        if within:
            made.step(*next(loop))
        made.loader.batch_sampler.num_samples = 20
        refused(monitor, lambda: made.train(loader=loop), Problem.ALTERED)

    def test_the_indices_of_a_sampler(self, private):
        sampler = SubsetRandomSampler(range(30))
        made = private(loader=private.loader(sampler=sampler), poisson_sampling=False)
        monitor = watch_shuffled(made)
        made.train()
        sampler.indices = range(30, 60)
        refused(monitor, made.train, Problem.ALTERED)


def test_batches_of_the_same_size_stand_in_for_those_that_were_drawn(private):
    monitor = watch(made := private(loader=private.loader(batch_size=30)))
    made.train(32)  # from here on not all batches are looked at
    kept = {}

    def again():
        for _ in range(30):
            for records, labels in made.loader:
                yield kept.setdefault(len(records), (records, labels))

    refused(monitor, lambda: made.train(loader=again()), Problem.REPEATED)


class TestSeveralCalls:
    """Calls of the model in one step, whose gradients Opacus adds up record by record."""

    @staticmethod
    def train(made, other):
        before, data = None, made.loader.dataset.tensors[0]
        for _ in range(4):
            for records, labels in made.loader:
                made.optimizer.zero_grad()
                loss = made.criterion(made.model(records), labels)
                for others in other(records, before, data):
                    loss = loss + made.criterion(made.model(others), labels)
                loss.backward()
                made.optimizer.step()
                before = records

    @pytest.mark.parametrize("epochs", [0, 14])
    def test_records_of_the_batch_before(self, private, epochs):
        made, monitor = trained(private(), passes=epochs)

        def other(records, before, _):
            enough = before is not None and len(before) >= len(records) > 0
            return [before[: len(records)]] if enough else []

        refused(monitor, lambda: self.train(made, other), Problem.REPEATED)

    @pytest.mark.parametrize("other", [
        lambda records, *_: [records], lambda records, *_: [records.flip(1), 2.0 * records],
        lambda records, *_: [torch.randn(records.shape)],
        lambda records, *_: [torch.arange(240.0).reshape(60, 4)[: len(records)]],
        lambda records, *_: [records.sign()],
        lambda records, _, data: [data[torch.randint(60, records.shape[:1])]],
    ], ids=["twice", "views", "random", "fixed", "few kinds", "pairs"])  # fmt: skip
    @pytest.mark.parametrize("batch", [10, 60])
    def test_records_of_the_batch_itself_or_none(self, private, other, batch):
        monitor = watch(made := private(loader=private.loader(batch_size=batch)))
        self.train(made, other)
        assert (reason(monitor), monitor.warnings) == ("", [])
