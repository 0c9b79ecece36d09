"""Hooks are taken off whole, and stay behind where objects are copied or saved."""

import copy
import gc
import io
import pickle
import warnings
import weakref

import opacus
import pytest
import torch
from torch.optim.optimizer import _global_optimizer_pre_hooks

from dprime import DPSGD
from dprime.monitor import PrivacyWarning
from dprime.monitor.hooks import MARK, Hooks, _Listener
from watching import RATE, trained, watch, watcher


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, through_a_file])
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_whole_model_is_copied_without_the_monitor(private, mode, copied):
    made, monitor = trained(private(mode))
    other = copied(made.model)
    records = torch.ones(2, 4)
    assert torch.equal(other.eval()(records), made.model.eval()(records))
    if mode == "ghost":
        assert other.get_clipping_coef.__self__ is other
        assert other.enable_hooks.__func__ is type(other).enable_hooks
    made.model.train()
    made.train()
    assert monitor.ledger.steps == 12


def test_a_marked_engine_can_be_saved(private):
    made = private()
    watch(made)
    other = pickle.loads(pickle.dumps(made.engine))
    getattr(other, MARK).detach()
    assert hasattr(made.engine, MARK)


def twice(number):
    return 2 * number


def test_a_method_that_was_replaced_before_is_what_a_copy_has():
    class Owner:
        def act(self, number):
            return number

    owner, hooks = Owner(), Hooks()
    owner.act = twice
    hooks.wrap(owner, "act", lambda original, number: original(number) + 1)
    assert owner.act(3) == 7
    assert copy.deepcopy(owner).act is twice
    hooks.remove()
    assert owner.act is twice


def test_a_training_that_is_over_is_let_go(private):
    made = private()
    watch(made)
    made.train()
    model = weakref.ref(made.model)
    del made
    gc.collect()
    assert model() is None


def objects(made):
    """What a monitor touches, as it is now."""
    criterion = getattr(made.criterion, "criterion", made.criterion)
    return (
        set(vars(made.optimizer)), set(vars(made.engine)), type(made.loader.batch_sampler),
        len(made.model._module._forward_pre_hooks), len(criterion._forward_pre_hooks),
        set(vars(made.model)), len(_global_optimizer_pre_hooks),
    )  # fmt: skip


@pytest.mark.skipif(opacus.__version__ < "1.6", reason="came with Opacus 1.6")
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_model_that_is_not_wrapped(private, mode):
    net = private.network()
    made = private(mode, net=net, wrap_model=False)
    seen = []

    sizes = watcher(needs_batches=True, batch=lambda records, _: seen.append(len(records)))
    monitor = watch(made, watchers=[sizes])
    hooks, made.model = made.model, net
    made.train()
    hooks.cleanup()
    assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)
    assert len(seen) == 6


def test_twice_is_refused(private):
    made = private()
    first = watch(made)
    with pytest.raises(ValueError, match=r"already attached: take .* with (\S+)\.$") as caught:
        watch(made)
    remedy = str(caught.value).rsplit(" ", 1)[-1].removesuffix(".")
    eval(remedy, {"privacy_engine": made.engine})  # what the sentence says
    made.train()
    assert first.ledger.steps == 0
    watch(made)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_detaching_leaves_nothing_behind(private, mode):
    made = private(mode)
    before = objects(made)
    with watch(made, watchers=[watcher(needs_batches=True)]) as monitor:
        assert objects(made) != before
        made.train()
    assert objects(made) == before
    assert "detached" not in str(watch(private(mode)))
    made.train()
    assert monitor.ledger.steps == 6
    assert "step 6; detached there: later steps are not in these numbers)" in str(monitor)
    assert "Warnings" not in str(monitor)


def test_copies_of_the_model_are_not_watched(private):
    monitor = watch(made := private())
    plain = private.network()
    plain.load_state_dict(made.model._module.state_dict())
    for copied in (
        copy.deepcopy(made.model._module),
        pickle.loads(pickle.dumps(made.model._module)),
    ):
        answers = copied.eval()(torch.ones(2, 4))
        assert torch.equal(answers, plain(torch.ones(2, 4)))
        assert not any(isinstance(hook, _Listener) for hook in copied._forward_pre_hooks.values())
    made.train()
    assert monitor.ledger.mechanism() == DPSGD(1.0, RATE, 6)


def test_detaching_does_not_undo_what_others_did(private):
    monitor = watch(made := private())

    def own():
        pass

    made.optimizer.add_noise = own
    monitor.detach()
    assert made.optimizer.add_noise is own


def test_a_failed_attempt_leaves_nothing_behind(private):
    made = private()
    before = objects(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning, match="δ"):
            watch(made, conditions={"delta": 0.5})
    assert objects(made) == before
