"""Whole scripts, a usual one with each of many changes, and what stands around the findings."""

import re
from pathlib import Path

import pytest

from check.usual import LOOP, MODEL, SCRIPTS, USUAL, changed, changes
from dprime.check import MEANINGS, RULES, check
from dprime.check.rules import FINDS
from dprime.text import GRID

PAGE = Path(__file__).parents[2] / "docs" / "check.md"


def codes(report):
    return sorted({finding.code for finding in report.findings})


def expected(path):
    """The codes that the first line of a script names."""
    found = re.match(r"# Expected: (.*)", path.read_text(encoding="utf-8"))
    return found.group(1).split() if found else []


WHOLE = [path for name in ("good", "bad") for path in sorted((SCRIPTS / name).glob("*.py"))]
CHANGED = [each for path in sorted((SCRIPTS / "changes").glob("*.txt")) for each in changes(path)]


def judged(report, codes_of_it, lines):
    """It shows these codes and no other, each in a sentence about one of its lines."""
    assert codes(report) == codes_of_it, [finding.as_json() for finding in report.findings]
    assert report.failed == any(RULES[code].severity != "note" for code in codes_of_it)
    assert report.failed or "no proof of privacy" in report.summary()
    for finding in report.findings:
        assert finding.sentence.endswith(".")
        assert finding.place.startswith("pieces.py") or 1 <= finding.line <= lines


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_script_shows_its_codes_and_no_other(path):
    report = check(path)
    judged(report, expected(path), len(path.read_text(encoding="utf-8").splitlines()))
    assert report.failed == (path.parent.name == "bad")


@pytest.mark.parametrize(("wanted", "text"), [each[::2] for each in CHANGED],
                         ids=[title for _, title, _ in CHANGED])  # fmt: skip
def test_a_changed_script_shows_its_codes_and_no_other(examine, wanted, text):
    judged(examine(text), wanted, len(text.splitlines()))


def test_the_corpus_has_every_code_that_a_script_can_show():
    shown = {code for path in WHOLE for code in expected(path)}
    shown |= {code for wanted, *_ in CHANGED for code in wanted}
    assert shown == set(check(WHOLE[0]).rules_run)


def test_every_rule_is_complete_and_listed_on_its_page():
    for code, rule in RULES.items():
        assert code == rule.code
        assert re.fullmatch(r"DP\d{3}", code)
        assert rule.severity in MEANINGS
        assert rule.title[-1] != "."
        assert all(re.fullmatch(r"[A-Zδεa-z_].*\.", each) for each in (rule.why, rule.remedy))
    assert list(RULES) == sorted(RULES)
    assert RULES.keys() ^ FINDS.keys() == {"DP409"}  # which saved runs alone show
    assert RULES["DP703"].why.startswith(GRID)
    listed = PAGE.read_text(encoding="utf-8").split("<!-- codes -->")[1].split("<!-- end")[0]
    rows = [line.strip("| ").split(" | ") for line in listed.strip().splitlines()[2:]]
    parts = [(f"`{r.code}`", r.severity, r.title, r.why, r.remedy) for r in RULES.values()]
    assert rows == [list(each) for each in parts]


CLASS = "class T(nn.Module):\n    def __init__(self):\n        super().__init__()\n        "
FORWARD = "\n    def forward(self, x):\n        return self.{}({})\n"
NETWORK = f"{CLASS}self.layer = nn.Linear(784, 10){FORWARD}"
OUTER = f"{CLASS}self.inner = T(){FORWARD.format('inner', 'x')}".replace("class T", "class O")
MIXING = [
    "x / x.std()", "x - torch.mean(x, dim=0)", "x.softmax(dim=0)", "x - x.amax(dim=(0, 1))",
    "nn.functional.normalize(x, 2, 0)", "torch.softmax(x, 0)", "x @ x.T @ x",
    "x.view(len(x), -1).mean(0)",
]  # fmt: skip
APART = [
    "x / x.std(1, keepdim=True)", "x - torch.mean(x, dim=-1)", "x.softmax(dim=1)", "max(x, 0)",
    "x - self.mean.mean(0)", "nn.functional.normalize(x, dim=1)", "x.amax(dim=(2, 3))",
    "x * torch.max(x, y)", "x.permute(1, 0, 2).mean(0)", "torch.stack([x, -x]).mean(0)",
    "x @ x.transpose(-2, -1)",
]  # fmt: skip


@pytest.mark.parametrize("inside", MIXING + APART)
def test_a_number_across_the_batch_in_forward_is_found(examine, inside):
    network = NETWORK.format("layer", inside)
    assert codes(examine(changed(MODEL, f"{network}model = T()"))) == ["DP203"] * (inside in MIXING)


@pytest.mark.parametrize("made", ["T()", "O()", "nn.Sequential(nn.Flatten(), T())"])
def test_it_is_found_wherever_the_layer_is_but_in_the_private_model_alone(examine, made):
    network = NETWORK.format("layer", MIXING[0]) + f"{OUTER}model = {made}"
    assert codes(examine(changed(MODEL, network))) == ["DP203"]
    assert codes(examine(changed(MODEL, f"{network}\nother = model\n{MODEL}"))) == []


@pytest.mark.parametrize(
    ("delta", "records", "code"), [("1e-5", 200_000, "DP501"), ("1e-3", 50, "DP502")]
)
def test_delta_is_compared_with_the_number_of_records(examine, delta, records, code):
    report = examine(f"{USUAL}engine.get_epsilon({delta})", dataset_size=records)
    assert codes(report) == [code]


UNCLEAR = {
    "The model that make_private gets in line ": (MODEL, "model = mine()"),
    "come from elsewhere": (MODEL, "from mine import b\nmodel = nn.Sequential(*b())"),
    "where the batch for step() in line ": ("        optimizer.s", "    optimizer.s"),
    "what mine (line 18) does with the optimizer": (LOOP, f"mine(optimizer){LOOP}"),
    "(line 18 sets add_noise)": (LOOP, f"optimizer.add_noise = mine{LOOP}"),
    "the criterion that make_private returned": ("max_grad", "grad_sample_mode=m, max_grad"),
    "The comment in line 1 names DP999, which is no code.": (
        USUAL, f"x = 1  # dprime: ignore[DP999]\n{USUAL}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", UNCLEAR)
def test_what_reading_could_not_confirm_is_said(examine, words):
    report = examine(changed(*UNCLEAR[words]))
    assert report.findings == ()
    assert words in " ".join(report.unresolved)
    assert examine(USUAL).unresolved == ()


ENGINE = "from opacus import PrivacyEngine\n"
WITHOUT_OPACUS = [
    ("print('hello')\n", "No private training was found."),
    ((SCRIPTS / "bad" / "dp001_fast_dp.py").read_text(), "not fastDP"),
    ((SCRIPTS / "bad" / "dp001_old_opacus.py").read_text(), "Opacus before 1.0"),
    (f"from mine import f\n{ENGINE}f(PrivacyEngine())\n", "another file"),
    (f"{ENGINE}def f():\n    return PrivacyEngine()\n", "another file"),
]


@pytest.mark.parametrize(("text", "words"), WITHOUT_OPACUS)
def test_without_opacus_nothing_is_called_good(examine, text, words):
    (finding,) = examine(text).findings
    assert finding.code == "DP001"
    assert words in finding.sentence


def test_a_comment_sets_a_finding_aside_and_the_report_says_so(examine):
    bad = USUAL.replace("=1.1", "=0")
    for comment in ("[DP408]", "[DP101, DP408]", ""):
        end = f"max_grad_norm=1.0  # dprime: ignore{comment}\n"
        report = examine(bad.replace("max_grad_norm=1.0\n", end))
        assert ([f.code for f in report.suppressed], report.findings) == (["DP408"], ())
        assert "1 finding was set aside by a comment (DP408)." in report.summary()
    other = bad.replace("max_grad_norm=1.0\n", "max_grad_norm=1.0  # dprime: ignore[DP101]\n")
    assert codes(examine(other)) == ["DP408"]
    assert codes(examine(bad.replace("lr=0.1)", "lr=0.1)  # dprime: ignore"))) == ["DP408"]


def test_reading_ends(examine, monkeypatch):
    assert codes(examine(f"{USUAL}words = text{'.strip()' * 60}\n")) == []
    assert codes(examine(f"{USUAL}def f(n):\n    return f(n - 1)\nf(3)\n")) == []
    with pytest.raises(ValueError, match="must be a"):
        examine("x = " + "-" * 30_000 + "1\n")
    monkeypatch.setattr("dprime.check.reading.LONGEST", 10)
    assert "too long" in " ".join(examine(USUAL).unresolved)


def test_the_monitor_is_advised_only_where_it_is_not_attached(examine):
    assert "attach dprime.monitor" in examine(USUAL).summary()
    for line in ("from dprime.monitor import Monitor\n", "import dprime.monitor as m\n"):
        assert "attach dprime.monitor" not in examine(line + USUAL).summary()
