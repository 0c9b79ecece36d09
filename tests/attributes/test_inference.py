"""Attribute inference on real Opacus trainings: every mode, both scopes, both analyses."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dprime import InputError, estimates
from dprime.attributes.attribute import Attribute
from dprime.attributes.inference import AttributeInference
from dprime.attributes.report import ESTIMATES, LEAK, lines
from dprime.attributes.risks import AttributeRisk
from dprime.attributes.worst_pair import membership_term
from dprime.curve import Estimate
from dprime.data import Dataset
from dprime.mechanisms import DPSGD, Gaussian
from dprime.monitor.checks import PrivacyWarning
from dprime.monitor.monitor import Monitor
from dprime.shapes import GaussianShape
from private_training import Maker
from told import refuses
from watching import certified

pytestmark = [pytest.mark.filterwarnings("ignore::dprime.monitor.checks.PrivacyWarning")]

VALUES = [-1.0, 0.0, 2.0]
FEW = Attribute.column(0, VALUES, name="few")
MANY = Attribute.column(1, [value / 10 for value in range(-20, 21)], name="many")
X, Y = Maker.data().tensors
RATE = 1 / 6


def watched(made, *watchers, epochs=1, **options):
    """Train with these watchers, and give the first one back."""
    with Monitor(made.engine, **{**made.named(), **options}, watchers=watchers, show=None):
        made.train(epochs)
    return watchers[0]


def stepped(made, watcher, *batches):
    """Take these steps, each with the first records of this number."""
    with Monitor(made.engine, **made.named(), watchers=[watcher], show=None):
        for count in batches:
            made.step(X[:count], Y[:count])
    return watcher


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
def test_every_mode_of_opacus(private, mode):
    found = watched(private(mode), AttributeInference(FEW))
    assert found.steps.rates == pytest.approx([RATE] * 6)
    assert found.steps.noises == [1.0] * 6
    assert all(0 < r <= 2 for r in found.steps.differences["few"])
    assert all(0 < term <= membership_term(1.0) for term in found.steps.terms["few"])
    assert found.report().endswith(LEAK)


class Spy(AttributeInference):
    """Also keeps the weights and the records of every step."""

    def clipped(self, training):
        weights = [p.detach().clone() for p in training.parameters()]
        vars(self).setdefault("seen", []).append((weights, *self._batches[0]))
        super().clipped(training)


def clipped(net, weights, record, label, norm):
    """The gradient of one record alone, in units of the clipping norm."""
    own = dict(zip(dict(net.named_parameters()), weights, strict=True))

    def lost(w):
        return F.cross_entropy(torch.func.functional_call(net, w, (record[None],)), label[None])

    flat = torch.cat([g.flatten() for g in torch.func.grad(lost)(own).values()]).double()
    return flat * min(1.0, norm / (float(flat.norm()) + 1e-6)) / norm


def test_what_a_step_keeps_is_what_the_gradients_say(private):
    """Against gradients that are made one by one at the weights of each step."""
    spy = watched(private(norm=0.5), Spy(FEW))
    for step, (weights, records, labels) in enumerate(spy.seen):
        differences, terms = [], []
        for made, label in zip(FEW.completions(records), labels, strict=True):
            one_by_one = [clipped(private.network(), weights, x, label, 0.5) for x in made]
            for a, b in itertools.combinations(one_by_one, 2):
                differences.append(float((a - b).norm()))
                terms.append(math.exp(a @ a) + math.exp(b @ b) - 2 * math.exp(a @ b))
        assert spy.steps.differences["few"][step] == pytest.approx(max(differences), rel=1e-4)
        assert spy.steps.terms["few"][step] == pytest.approx(max(terms), rel=1e-4)


@pytest.mark.slow
def test_all_records_show_no_less_than_the_batch(private):
    batch, whole = AttributeInference(FEW, MANY), AttributeInference(FEW, MANY, scope="data")
    rough = AttributeInference(FEW, MANY, analysis="approximate")
    watched(private(), batch, whole, rough)
    for name, kind in itertools.product(("few", "many"), ("differences", "terms")):
        own, other, bound = (getattr(one.steps, kind)[name] for one in (batch, whole, rough))
        assert all(b >= a - 1e-12 for a, b in zip(own, other, strict=True))
        assert any(b > a for a, b in zip(own, other, strict=True))
        assert all(b >= a for a, b in zip(own, bound, strict=True))
    for name, form in itertools.product(("few", "many"), ("central-limit", "closed-form")):
        found, security = batch.risk(name, form), rough.risk(name, form).bayes_security()
        assert found.membership.bayes_security() <= security <= found.bayes_security()
        assert whole.risk(name, form).bayes_security() <= found.bayes_security()


def test_the_two_forms(private):
    found = watched(private(), AttributeInference(FEW))
    norm = math.sqrt(sum(r**2 for r in found.steps.differences["few"]))
    mu = RATE * math.sqrt(sum(found.steps.terms["few"]))
    most = certified(DPSGD(1.0, RATE, 6)).curve("replace").advantage()
    closed, limit = found.risk(form="closed-form"), found.risk()
    assert closed.curve.kind == "estimate"
    for risk, own, membership in (
        (closed, estimates.attribute_inference(norm, 1.0, RATE).advantage(),
         estimates.cherubin(1.0, RATE, 6)),
        (limit, math.erf(mu / 2 / math.sqrt(2)), estimates.central_limit(1.0, RATE, 6, "replace")),
    ):  # fmt: skip
        assert risk.curve.advantage() == pytest.approx(min(own, most))
        assert risk.membership.advantage() == pytest.approx(min(membership.advantage(), most))
        assert risk.certified.advantage() == pytest.approx(most)


def test_the_certified_line_is_the_monitors(private):
    made, watcher = private(), AttributeInference(FEW)
    other = [Gaussian(noise_multiplier=2.0)]
    options = {"watchers": [watcher], "show": None, "other_mechanisms": other}
    with Monitor(made.engine, **made.named(), **options) as monitor:
        made.train()
        assert watcher.certified().advantage() == monitor.mechanism().curve("replace").advantage()
        assert watcher.certified().advantage() > DPSGD(1.0, RATE, 6).curve("replace").advantage()
    made, watcher = private(), AttributeInference(FEW)
    made.optimizer.add_noise = lambda own=made.optimizer.add_noise: own()
    with pytest.warns(PrivacyWarning):
        watched(made, watcher)
    assert watcher.certified().advantage() == 1
    assert "certified: nothing" in watcher.report()


def test_noise_that_changes_is_added_up_step_by_step(private):
    made, watcher = private(), AttributeInference(FEW, every=100)
    with Monitor(made.engine, **made.named(), watchers=[watcher], show=None):
        for step, (x, y) in enumerate(made.loader):
            made.optimizer.noise_multiplier = 1.0 if step < 3 else 0.8
            made.step(x, y)
    assert watcher.steps.noises == [1.0] * 3 + [0.8] * 3
    terms = watcher.steps.terms["few"]
    assert terms[0] == terms[1] == terms[2] != terms[3] == terms[4] == terms[5]
    squares = 3 * membership_term(1.0) + 3 * membership_term(0.8)
    for form, wanted in (
        ("central-limit", RATE * math.sqrt(squares)),
        ("closed-form", 2 * RATE * math.sqrt(3 + 3 / 0.8**2)),
    ):
        assert watcher.steps.estimate(None, form).d_prime() == pytest.approx(wanted)
    closed = watcher.risk(form="closed-form").membership
    assert "below noise 1" in closed.warning
    assert closed.warning in watcher.report(form="closed-form")
    assert watcher.risk().curve.warning is None
    assert "One step in 100 was analysed" in watcher.report()


def test_large_batches_in_parts(private):
    whole = stepped(private(), AttributeInference(FEW, MANY), 60)
    made, parts = private(), AttributeInference(FEW, MANY)
    with Monitor(made.engine, **made.named(), watchers=[parts], show=None):
        made.optimizer.signal_skip_step(True)
        made.step(X[:40], Y[:40])
        made.optimizer.signal_skip_step(False)
        made.step(X[40:], Y[40:])
    assert len(parts.steps) == 1
    for name in ("few", "many"):
        assert parts.steps.terms[name] == pytest.approx(whole.steps.terms[name], rel=1e-6)


def test_the_worst_record_is_kept_on_request_also_where_they_are_looked_at_in_parts(
    private, monkeypatch
):
    silent = stepped(private(), AttributeInference(FEW), 60)
    whole = stepped(private(), AttributeInference(FEW, keep_worst=True), 60)
    monkeypatch.setattr("dprime.attributes.analysis.NUMBERS_AT_ONCE", 7 * 3 * 6)
    parts = stepped(private(), AttributeInference(FEW, keep_worst=True), 60)
    (nobody,), (one,), (other,) = (each.steps.worst["few"] for each in (silent, whole, parts))
    assert silent.worst is None
    assert (nobody.place, nobody.pair) == (-1, (-1, -1))
    assert whole.worst["few"] == [one]
    assert one.place == other.place >= 7
    assert nobody.term == one.term == pytest.approx(other.term, rel=1e-6)


def test_priors_and_the_sensitive_value(private):
    plain = Attribute.column(0, VALUES, name="plain")
    shares = {"prior": [0.7, 0.2, 0.1], "sensitive_value": 2.0}
    rare = Attribute.column(0, VALUES, name="rare", **shares)
    found = watched(private(noise=0.6), AttributeInference(plain, rare))
    risk, other = found.risk("rare"), found.risk("plain")
    security = risk.bayes_security()
    assert other.success() == pytest.approx(1 - security / 2)
    assert risk.success() == pytest.approx(1 - security * 0.3)
    assert (risk.baseline_success(), other.baseline_success()) == (0.7, 0.5)
    assert 0.1 < risk.precision() == pytest.approx(risk.curve.precision(0.1, 0.01))
    assert risk.tpr(0.1) <= 1.1 - security
    with pytest.raises(InputError, match="prior and sensitive_value must be given for a precision"):
        other.precision()
    text = found.report()
    assert "the best blind guess, '-1', in 70 %" in text
    assert "of answers '2', about" in text
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["plain", "rare", "membership"]
    assert text.splitlines()[-2:] == [ESTIMATES, LEAK]


@pytest.mark.parametrize("form", ["central-limit", "closed-form"])
def test_no_estimate_is_shown_past_the_certified_curve(private, form):
    found = watched(private(noise=0.5), AttributeInference(FEW), epochs=2)
    risk = found.risk(form=form)
    assert found.steps.estimate(None, form).advantage() > risk.certified.advantage()
    for curve in (risk.curve, risk.membership):
        assert curve.advantage() <= risk.certified.advantage() * (1 + 1e-12)
        assert curve.tpr(0.1) <= risk.certified.tpr(0.1) * (1 + 1e-12)
    least = risk.certified.bayes_security()
    assert risk.membership.bayes_security() == pytest.approx(least)
    assert all(one.membership >= least - 1e-12 for one in found.over_epochs(form=form))
    assert "Capped by the certified curve: " in found.report(form=form)


def test_over_epochs(private):
    found = watched(private(), AttributeInference(FEW), epochs=3)
    moments = found.over_epochs()
    assert [(one.epoch, one.step) for one in moments] == [(1, 6), (2, 12), (3, 18)]
    securities = [one.attribute for one in moments]
    assert securities == sorted(securities, reverse=True)
    assert all(one.membership <= one.attribute for one in moments)
    assert securities[-1] == pytest.approx(found.risk().bayes_security())
    assert moments[-1].membership == pytest.approx(found.risk().membership.bayes_security())


def test_a_checkpoint_goes_on(private):
    options = {"keep_worst": True, "every": 4}
    whole, first, second = (AttributeInference(FEW, MANY, **options) for _ in range(3))
    stepped(private(), whole, *[60] * 6)
    again = private()
    stepped(again, first, *[60] * 3)
    second.load_state_dict(first.state_dict())
    stepped(again, second, *[60] * 3)
    assert second.state_dict() == whole.state_dict()
    assert second.report() == whole.report()
    fewer = Attribute.column(0, VALUES[1:], name="few")
    rough = AttributeInference(FEW, MANY, analysis="approximate")
    for other in (AttributeInference(FEW), AttributeInference(fewer, MANY), rough):
        with pytest.raises(InputError, match="the checkpoint's analysis must be"):
            other.load_state_dict(first.state_dict())


def test_data_from_anywhere(private):
    kinds = (None, (X, Y), private.data(), Dataset("d", X.numpy(), Y.numpy(), "table", 2))
    first, *others = [AttributeInference(FEW, scope="data", data=kind) for kind in kinds]
    watched(private(), first, *others)
    assert all(one.steps.terms == first.steps.terms for one in others)


def test_an_empty_batch_shows_nothing_and_says_nothing_of_the_next(private):
    watcher = stepped(private(), AttributeInference(FEW), 5, 0)
    assert watcher.steps.terms["few"][0] > 0
    assert watcher.steps.terms["few"][1] == watcher.steps.differences["few"][1] == 0
    terms = stepped(private(), AttributeInference(FEW, every=4), 0, 5, 5, 0, 5).steps.terms["few"]
    assert [term == 0 for term in terms] == [True, False, False, False, False]
    assert len(set(terms[1:])) == 1


class Drops(nn.Module):
    """Does not look at the first column."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x[:, 1:])


def without_a_weight(*, trained):
    """A network whose first layer has no weight on the first column, yet or for ever."""
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    net[0].weight.data[:, 0] = 0
    net[0].weight.requires_grad_(trained)
    return net


def test_a_column_of_zeros_that_is_trained_is_seen(private):
    made = private(net=without_a_weight(trained=True))
    assert watched(made, AttributeInference(FEW)).steps.terms["few"][0] > 0


def test_a_criterion_that_is_a_function(private):
    made, watcher = private(), AttributeInference(FEW)
    named = {**made.named(), "criterion": F.cross_entropy}
    with Monitor(made.engine, **named, watchers=[watcher], show=None) as monitor:
        for x, y in made.loader:
            monitor.batch(x, y)
            made.step(x, y)
        with pytest.raises(InputError, match="the batch must be seen at every step, but it is not"):
            made.step(x, y)
    assert len(watcher.steps) == 6


def test_each_training_judges_the_values_for_itself(private):
    """An attribute is a description: what one training has seen is nothing to the next."""
    raw = Attribute.column(0, [170.0, 900.0], name="raw")
    for _ in range(2):
        watcher = AttributeInference(raw)
        with pytest.warns(PrivacyWarning, match="The values of raw, 170 to 900, are far"):
            watched(private(), watcher, epochs=2)
        assert "The values of raw" in watcher.report()


def refused(*attributes, made=None, **options):
    return lambda: watched(Maker()(**made or {}), AttributeInference(*attributes, **options))


UNSEEN = "attribute few be one that the model sees"
PER_LAYER = {"norm": [1.0] * 4, "clipping": "per_layer"}
test_what_is_refused = refuses({
    "attributes be one Attribute or more": refused(),
    "attributes be of different names": refused(FEW, FEW),
    "scope be one of batch, data": refused(FEW, scope="epoch"),
    "analysis be one of full, app": refused(FEW, analysis="half"),
    "every be at least 1": refused(FEW, every=0),
    "loss be a function": refused(FEW, loss=5),
    "data be records with targets": refused(FEW, scope="data", data=5),
    "noise_multiplier be above 0 for": refused(FEW, made={"noise": 0.0}),
    "clipping be of the whole gradient": refused(FEW, made=PER_LAYER),
    "attribute be a column from 0 to 3": refused(Attribute.column(9, [0, 1])),
    UNSEEN: refused(MANY, FEW, made={"net": Drops()}),
    UNSEEN[:-5]: refused(MANY, FEW, made={"net": without_a_weight(trained=False)}),
    "steps be at least one": AttributeInference(FEW).risk,
    "form be one of central-limit, closed": lambda: AttributeInference(FEW).risk(form="exact"),
})  # fmt: skip


# The report ---------------------------------------------------------------------------------------


def test_values_from_the_data_are_a_note_of_the_report(private):
    seen = Attribute.column(0, "extremes", data=X, name="age")
    found, own = AttributeInference(seen), AttributeInference(FEW)
    watched(private(), found, own)
    assert "The values of age were taken from the data" in found.report()
    assert "taken from the data" not in own.report()


def risk(attribute, mu=0.1):
    curves = (Estimate(GaussianShape(index), source="test") for index in (mu, 0.3))
    return AttributeRisk(attribute, *curves, certified=None, steps=9)


SEX = Attribute.column(0, [0.0, 1.0], name="sex", prior=[0.33, 0.67])
AGE = Attribute.column(1, [0.2, 0.8], name="age")
EVEN, DRAWN = "of two equally likely values for age; ", "with the prior that was given, for sex; "


def test_the_share_without_training_stands_beside_it():
    """68 % where a blind guess has 67 % is less than 56 % where it has 50 %."""
    text = lines("title", [risk(SEX), risk(AGE)], 0.1, []).splitlines()
    assert text[1].split("  ")[-3:] == ["attacker right", "without training", "TPR at FPR 0.1"]
    rows = {line.split()[0]: line.split() for line in text[2:5]}
    for name, blind in (("sex", 67), ("age", 50), ("membership", 50)):
        right, without = (float(rows[name][at]) for at in (-6, -4))
        assert without == blind < right < blind + 7
    assert float(rows["sex"][-6]) - 67 < float(rows["membership"][-6]) - 50


@pytest.mark.parametrize("attributes", [[AGE], [SEX], [SEX, AGE]])
def test_what_it_is_about_is_said(attributes):
    text = lines("title", [risk(one) for one in attributes], 0.1, []).splitlines()
    (said,) = [line for line in text if line.startswith("Attacker right")]
    assert (EVEN in said, DRAWN in said) == (AGE in attributes, SEX in attributes)
    assert said.endswith("not with other rows.") == (SEX in attributes)


def test_a_sensitive_value_that_nobody_has():
    none = Attribute.column(0, [0, 1, 2], name="sex", prior=[0.4, 0.6, 0.0], sensitive_value=2)
    assert risk(none).precision() == 0


def test_nothing_is_known_before_the_first_step():
    watcher = AttributeInference(FEW)
    assert (watcher.report(), watcher.over_epochs()) == ("", [])
