"""Whole scripts, a usual one with each of many changes, and what stands around the findings."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from check.usual import LOOP, PRIVATE, SCRIPTS, START, USUAL
from dprime.check import MEANINGS, RULES, check
from dprime.check.page import TABLE, table

GOOD = sorted((SCRIPTS / "good").glob("*.py"))
BAD = sorted((SCRIPTS / "bad").glob("*.py"))
PAGE = Path(__file__).parents[2] / "docs" / "check.md"


def codes(report):
    return sorted({finding.code for finding in report.findings})


def expected(path):
    return re.match(r"# Expected: (.*)", path.read_text()).group(1).split()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_correct_script_raises_no_alarm(path):
    report = check(path)
    assert not report.failed, [finding.as_json() for finding in report.findings]
    assert report.count("note") <= 1
    assert "no proof of privacy" in report.summary()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_yields_its_code_and_no_other(path):
    report = check(path)
    assert codes(report) == expected(path)
    assert report.failed == any(RULES[code].severity != "note" for code in expected(path))
    for finding in report.findings:
        assert finding.sentence.endswith(".")
        elsewhere = finding.place.startswith("pieces.py")
        assert elsewhere or 1 <= finding.line <= len(path.read_text().splitlines())


def test_the_corpus_has_every_code_that_a_script_can_show():
    shown = {code for path in BAD for code in expected(path)}
    assert shown == set(check(BAD[0]).rules_run)


def test_every_rule_is_complete_and_listed_on_its_page():
    for code, rule in RULES.items():
        assert code == rule.code
        assert re.fullmatch(r"DP\d{3}", code)
        assert rule.severity in MEANINGS
        assert rule.title[-1] != "."
        assert all(re.fullmatch(r"[A-Zδεa-z_].*\.", each) for each in (rule.why, rule.remedy))
    assert list(RULES) == sorted(RULES)
    listed = TABLE.search(PAGE.read_text(encoding="utf-8")).group(1)
    assert listed.strip() == table().strip()


MODEL = "model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))"
WORDS = {"USUAL": USUAL, "START": START, "PRIVATE": PRIVATE, "LOOP": LOOP, "MODEL": MODEL}
WORDS["STEP"] = LOOP.split("in loader:\n")[1]


def read_changes():
    for block in (SCRIPTS / "changes.txt").read_text().split("\n= ")[1:]:
        code, *lines = block.rstrip().split("\n")
        texts = ["\n".join(e[2:] for e in group) for _, group in groupby(lines, lambda e: e[0])]
        for word, text in WORDS.items():
            texts = [each.replace(f"{{{word}}}", text) for each in texts]
        yield pytest.param(code, texts, id=f"{code}: {texts[-1][:30]}".replace("\n", " "))


def changed(pairs):
    text = USUAL
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(("code", "pairs"), list(read_changes()))
def test_a_changed_script_shows_its_code_and_no_other(examine, code, pairs):
    report = examine(changed(pairs))
    assert codes(report) == ([code] if code != "none" else []), changed(pairs)


CLASS = "class T(nn.Module):\n    def __init__(self):\n        super().__init__()\n        "
FORWARD = "\n    def forward(self, x):\n        return self.{}({})\n"
NETWORK = f"{CLASS}self.layer = nn.Linear(784, 10){FORWARD}"
OUTER = f"{CLASS}self.inner = T(){FORWARD.format('inner', 'x')}".replace("class T", "class O")
MIXING = (
    "x / x.std()",
    "x - torch.mean(x, dim=0)",
    "x.softmax(dim=0)",
    "nn.functional.normalize(x, 2, 0)",
    "x - x.amax(dim=(0, 1))",
    "torch.softmax(x, 0)",
    "x @ x.T @ x",
    "x.view(len(x), -1).mean(0)",
)
APART = (
    "x / x.std(1, keepdim=True)",
    "x - torch.mean(x, dim=-1)",
    "x.softmax(dim=1)",
    "max(x, 0)",
    "x - self.mean.mean(0)",
    "nn.functional.normalize(x, dim=1)",
    "x.amax(dim=(2, 3))",
    "x * torch.max(x, y)",
    "x.permute(1, 0, 2).mean(0)",
    "torch.stack([x, -x]).mean(0)",
    "x @ x.transpose(-2, -1)",
)


@pytest.mark.parametrize("made", ["T()", "O()", "nn.Sequential(nn.Flatten(), T())"])
@pytest.mark.parametrize("inside", MIXING + APART)
def test_a_number_across_the_batch_in_forward_is_found(examine, made, inside):
    network = NETWORK.format("layer", inside) + f"{OUTER}model = {made}"
    assert codes(examine(changed((MODEL, network)))) == ["DP203"] * (inside in MIXING)
    other = changed((MODEL, f"{network}\nother = model\n{MODEL}"))
    assert codes(examine(other)) == []


GHOST = PRIVATE.replace("optimizer, loader =", "optimizer, clipping, loader =").replace(
    "max_grad", "grad_sample_mode='ghost', criterion=nn.CrossEntropyLoss(), max_grad"
)
AGAIN = "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        optimizer.step()"


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("", "x, y", "x, y"),
        ("DP311", "clipping(", "criterion("),
        ("DP311", "clipping(", "nn.functional.cross_entropy("),
        ("DP305", "        optimizer.step()", AGAIN),
        ("DP312", "        optimizer.step()", AGAIN.replace("1.0)", "1.0, norm_type=1)")),
        (
            "DP312",
            "        optimizer",
            "        for p in model.parameters():\n            p.grad *= 10\n        optimizer",
        ),
        (
            "DP309",
            "for _",
            "from opacus.schedulers import StepGradClip\nStepGradClip(optimizer, 1)\nfor _",
        ),
    ],
)
def test_ghost_clipping_clips_in_the_criterion_alone(examine, code, old, new):
    head, _, tail = LOOP.replace("criterion(", "clipping(").rpartition(old)
    report = examine(START + GHOST + head + new + tail)
    assert codes(report) == ([code] if code else [])


def test_delta_is_held_against_the_number_of_records(examine):
    asked = f"{USUAL}engine.get_epsilon({{}})"
    assert codes(examine(asked.format("1e-5"), dataset_size=200_000)) == ["DP501"]
    assert codes(examine(asked.format("1e-3"), dataset_size=50)) == ["DP502"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("The model that make_private gets in line ", changed((MODEL, "model = mine()"))),
        (
            "come from elsewhere",
            changed((MODEL, "from mine import b\nmodel = nn.Sequential(*b())")),
        ),
        (
            "where the batch for step() in line ",
            changed(("        optimizer.s", "    optimizer.s")),
        ),
        ("what mine (line 18) does with the optimizer", changed((LOOP, f"mine(optimizer){LOOP}"))),
        ("(line 18 sets add_noise)", changed((LOOP, f"optimizer.add_noise = mine{LOOP}"))),
        (
            "the criterion that make_private returned",
            changed(("max_grad", "grad_sample_mode=m, max_grad")),
        ),
        (
            "The comment in line 1 names DP999, which is no code.",
            f"x = 1  # dprime: ignore[DP999]\n{USUAL}",
        ),
    ],
)
def test_what_reading_could_not_confirm_is_said(examine, words, text):
    report = examine(text)
    assert report.findings == ()
    assert words in " ".join(report.unresolved)
    assert examine(USUAL).unresolved == ()


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("print('hello')\n", "DP001", "No private training was found."),
        ((SCRIPTS / "bad" / "dp001_fast_dp.py").read_text(), "DP001", "not fastDP"),
        ((SCRIPTS / "bad" / "dp001_old_opacus.py").read_text(), "DP001", "Opacus before 1.0"),
        (
            "from mine import f\nfrom opacus import PrivacyEngine\nf(PrivacyEngine())\n",
            "DP001",
            "another file",
        ),
        (
            "from opacus import PrivacyEngine\ndef f():\n    return PrivacyEngine()\n",
            "DP001",
            "another file",
        ),
    ],
)
def test_without_opacus_nothing_is_called_good(examine, text, code, words):
    (finding,) = examine(text).findings
    assert finding.code == code
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
