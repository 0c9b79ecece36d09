"""The real Lightning and the real Trainer of transformers, on a tiny model."""

import sys

import pytest
import torch
from opacus.accountants import RDPAccountant
from torch import nn
from torch.utils.data import DataLoader, Dataset

import dprime.monitor
from dprime import DPSGD
from dprime.monitor import Monitor
from watching import certified

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]

RATE = 1 / 6


def advantage(steps):
    return certified(DPSGD(1.0, RATE, steps)).curve().advantage()


def about(*steps):
    return pytest.approx([advantage(each) for each in steps])


def watch(made):
    return Monitor(made.engine, **made.named(), conditions={"delta": 1e-3}, show=None)


def the_whole_history_counts(made, monitor):
    """Of two epochs, the first before a resume: in Opacus' ε and in the monitor's."""
    assert made.engine.accountant.history == [(1.0, RATE, 12)]
    accountant = RDPAccountant()
    accountant.history = [(1.0, RATE, 12)]
    assert made.engine.get_epsilon(1e-3) == accountant.get_epsilon(1e-3)
    assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 12)
    assert monitor.warnings == []


class TestLightning:
    def fit(self, made, callback, folder, epochs, resumed=None, **given):
        import lightning.pytorch as pl

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = made.model
                vars(self).update(given)

            def training_step(self, batch, _):
                return made.criterion(self.net(batch[0]), batch[1])

            def configure_optimizers(self):
                return made.optimizer

        trainer = pl.Trainer(
            max_epochs=epochs, default_root_dir=folder, callbacks=[callback], accelerator="cpu",
            logger=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(Module(), made.loader, ckpt_path=resumed)
        return trainer

    def test_it_logs_and_goes_on_from_a_checkpoint(self, private, tmp_path):
        from dprime.monitor import LightningMonitor

        made = private()
        callback = LightningMonitor(watch(made))
        trainer = self.fit(made, callback, tmp_path, 1)
        logged = {name: float(each) for name, each in trainer.callback_metrics.items()}
        assert logged == callback.monitor.numbers()
        assert logged["privacy_advantage"] == pytest.approx(advantage(6))
        saved = trainer.checkpoint_callback.best_model_path

        again, callback = private(), LightningMonitor()
        monitor = watch(again)
        trainer = self.fit(again, callback, tmp_path, 2, saved, monitor=monitor)
        assert callback.monitor is monitor
        the_whole_history_counts(again, monitor)
        assert [answer.value for answer in monitor.history()] == [advantage(6), advantage(12)]
        assert float(trainer.callback_metrics["privacy_advantage"]) == pytest.approx(advantage(12))

    def test_a_monitor_must_be_there(self, private, tmp_path):
        from dprime.monitor import LightningMonitor

        with pytest.raises(ValueError, match="monitor must be given, but it is missing"):
            self.fit(private(), LightningMonitor(), tmp_path, 1)

    def test_it_looks_for_the_monitor_of_each_training(self, private):
        from dprime.monitor import LightningMonitor

        class Module:
            def log_dict(self, values):
                self.logged = values

        callback, module = LightningMonitor(), Module()
        for noise in (20.0, 1.0):
            made = private(noise=noise)
            module.monitor = watch(made)
            callback.on_fit_start(None, module)
            assert callback.state_dict() == {}
            callback.on_train_start(None, module)
            made.train()
            callback.on_train_epoch_end(None, module)
            assert module.logged == module.monitor.numbers()
            assert callback.state_dict()["ledger"] == module.monitor.state_dict()["ledger"]
        given = LightningMonitor(monitor := watch(private()))
        given.on_fit_start(None, module)
        given.on_train_start(None, module)
        assert given.monitor is monitor


class Named(Dataset):
    """Records as the Trainer wants them."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        records, labels = self.data[index]
        return {"x": records, "labels": labels}


class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels=None, **_):
        answer = self.net(x)
        return {"loss": nn.functional.cross_entropy(answer, labels), "logits": answer}


class TestTrainer:
    def train(self, made, monitor, folder, epochs, resumed=None, trial="", checkpoint=None):
        from transformers import Trainer, TrainerCallback, TrainingArguments

        from dprime.monitor import TrainerMonitor

        class Own(Trainer):
            def get_train_dataloader(self):
                return made.loader

            def _get_output_dir(self, *_, **__):
                return str(folder / trial)  # as in a hyper-parameter search

        class Clear(TrainerCallback):
            def on_step_end(self, args, state, control, **_):
                made.optimizer.zero_grad()

        schedule = torch.optim.lr_scheduler.LambdaLR(made.optimizer, lambda _: 1.0)
        options = TrainingArguments(
            output_dir=folder, num_train_epochs=epochs, report_to=[], use_cpu=True,
            save_strategy="epoch", disable_tqdm=True, max_grad_norm=0.0,
        )  # fmt: skip
        trainer = Own(
            model=made.model, args=options, train_dataset=made.loader.dataset,
            optimizers=(made.optimizer, schedule),
            callbacks=[TrainerMonitor(monitor, checkpoint), Clear()],
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=resumed)
        history = trainer.state.log_history
        return [log["privacy_advantage"] for log in history if "privacy_advantage" in log]

    def made(self, private, noise=1.0):
        loader = DataLoader(Named(private.data()), batch_size=10)
        return private(net=WithLoss(private.network()), loader=loader, noise=noise)

    def test_it_logs_and_goes_on_from_a_checkpoint(self, private, tmp_path):
        made = self.made(private)
        assert self.train(made, watch(made), tmp_path, 1) == about(6)

        again = self.made(private)
        monitor = watch(again)
        logged = self.train(again, monitor, tmp_path, 2, resumed=True)
        assert logged == about(6, 12)
        the_whole_history_counts(again, monitor)
        assert [(at.epoch, at.step) for at in monitor.history()] == [(1, 6), (2, 12)]

        (tmp_path / "checkpoint-12" / "dprime-monitor.pt").unlink()
        third = self.made(private)
        with pytest.raises(ValueError, match="the checkpoint must be one with the monitor's state"):
            self.train(third, watch(third), tmp_path, 3, resumed=True)

    def test_each_trial_of_a_search_has_its_own_state(self, private, tmp_path):
        for trial in ("run-0", "run-1"):
            made = self.made(private)
            self.train(made, watch(made), tmp_path, 1, trial=trial)
            assert (tmp_path / trial / "checkpoint-6" / "dprime-monitor.pt").is_file()
        numbers = [
            torch.load(tmp_path / trial / "checkpoint-6" / "dprime-monitor.pt")["training"]
            for trial in ("run-0", "run-1")
        ]
        assert numbers[0] != numbers[1]
        again = self.made(private)
        monitor, saved = watch(again), str(tmp_path / "run-1" / "checkpoint-6")
        logged = self.train(again, monitor, tmp_path, 2, resumed=saved, trial="run-1")
        assert logged == about(6, 12)
        the_whole_history_counts(again, monitor)

    def test_the_state_of_another_training_is_refused(self, private, tmp_path):
        """Resumed from one folder, with the checkpoint of another training in the output folder."""
        own, other = tmp_path / "own", tmp_path / "other"
        for folder, noise in ((own, 1.0), (other, 5.0)):
            made = self.made(private, noise)
            self.train(made, watch(made), folder, 1)
        resumed = str(own / "checkpoint-6")
        again = self.made(private)
        with pytest.raises(ValueError, match="or with that of another training: give its folder"):
            self.train(again, watch(again), other, 2, resumed=resumed)

        third = self.made(private)
        monitor = watch(third)
        self.train(third, monitor, other, 2, resumed=resumed, checkpoint=resumed)
        the_whole_history_counts(third, monitor)


@pytest.mark.parametrize(
    ("name", "module", "missing", "sentence"),
    [
        ("LightningMonitor", "lightning", "lightning.pytorch",
         "LightningMonitor needs Lightning: pip install lightning"),
        ("TrainerMonitor", "trainer", "transformers",
         "TrainerMonitor needs transformers: pip install transformers"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(monkeypatch, name, module, missing, sentence):
    monkeypatch.delitem(sys.modules, f"dprime.monitor.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=sentence):
        getattr(dprime.monitor, name)


def test_opacus_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setattr("dprime._lazy.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"Monitor needs Opacus: pip install 'dprime\[opacus\]'"):
        _ = dprime.monitor.Monitor


def test_every_name_is_there():
    for name in dprime.monitor.__all__:
        assert getattr(dprime.monitor, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = dprime.monitor.Nothing
