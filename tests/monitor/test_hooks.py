"""What a monitor puts on objects stays behind where they are copied or saved."""

import copy
import gc
import io
import pickle
import weakref

import pytest
import torch

from dprime.monitor.hooks import MARK, Hooks
from watching import watch

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing")


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, through_a_file])
@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_whole_model_is_copied_without_the_monitor(private, mode, copied):
    made = private(mode)
    monitor = watch(made)
    made.train()
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
