"""The report of attribute inference: what its columns are about."""

import pytest

from dprime.attributes.attribute import Attribute
from dprime.attributes.report import lines
from dprime.attributes.risks import AttributeRisk
from dprime.curve import Estimate
from dprime.shapes import GaussianShape


def risk(attribute, mu=0.1):
    curves = (Estimate(GaussianShape(index), source="test") for index in (mu, 0.3))
    return AttributeRisk(attribute, *curves, certified=None, steps=9)


SEX = Attribute.column(0, [0.0, 1.0], name="sex", prior=[0.33, 0.67])
AGE = Attribute.column(1, [0.2, 0.8], name="age")


def report(*risks):
    return lines("title", risks, 0.1, []).splitlines()


def test_the_share_without_training_stands_beside_it():
    """68 % where a blind guess has 67 % is less than 56 % where it has 50 %."""
    text = report(risk(SEX), risk(AGE))
    assert text[1].split("  ")[-3:] == ["attacker right", "without training", "TPR at FPR 0.1"]
    rows = {line.split()[0]: line.split() for line in text[2:5]}
    for name, blind in (("sex", 67), ("age", 50), ("membership", 50)):
        right, without = (float(rows[name][at]) for at in (-6, -4))
        assert without == blind
        assert blind < right < blind + 7
    assert float(rows["sex"][-6]) - 67 < float(rows["membership"][-6]) - 50


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ([AGE], "Attacker right: of two equally likely values for age; of two equally likely rec"),
        ([SEX], "Attacker right: of all values, with the prior that was given, for sex; of two "),
        ([SEX, AGE], "values for age; of all values, with the prior that was given, for sex; of"),
    ],
)
def test_what_it_is_about_is_said(attributes, words):
    (said,) = [line for line in report(*map(risk, attributes)) if line.startswith("Attacker right")]
    assert words in said
    assert said.endswith("not with other rows.") == (SEX in attributes)


def test_a_sensitive_value_that_nobody_has():
    none = Attribute.column(0, [0, 1, 2], name="sex", prior=[0.4, 0.6, 0.0], sensitive_value=2)
    assert risk(none).precision() == 0
