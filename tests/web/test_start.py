"""Published settings, and files that hold one."""

import json

import pytest

from dprime.audit.config import AuditConfig
from dprime.request import NAMES, risk_request
from dprime.web.start import PRESETS, read_file

NUMBERS = {"noise_multiplier": "1.5", "sample_rate": "0.01", "steps": "500"}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.title)
def test_what_is_certified_of_a_preset_is_no_more_than_its_source_states(preset):
    assert set(preset.setting) <= {*NAMES, "epsilon"}
    of_sizes = "out of" in preset.derived
    assert of_sizes == ("batch_size" in preset.setting)
    assert preset.source
    request = risk_request(preset.setting)
    assert of_sizes == (request.adjacency == "zero-out")
    stated = preset.published.removeprefix("ε = ").split()[0]
    if stated.replace(".", "").isdigit():
        delta = float(preset.setting["delta"])
        epsilon = request.curve().epsilon(delta)
        assert epsilon <= float(stated) * (1 + 1e-9)
        assert epsilon > 0.7 * float(stated), "the numbers are those of the source"
        assert f"δ = {preset.setting['delta']}" in preset.published
    else:
        assert preset.published == "no ε is stated"


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        ("[[1.5, 0.01, 200], [1.5, 0.01, 300]]", {**NUMBERS, "adjacency": "zero-out"}),
        ('{"history": [[1.5, 0.01, 500]]}', {**NUMBERS, "adjacency": "zero-out"}),
        (
            "[training]\nnoise_multiplier = 1.5\nsample_rate = 0.01\nsteps = 500",
            {**NUMBERS, "adjacency": "zero-out"},
        ),
        (
            "[training]\nnoise_multiplier = 1.5\nsample_rate = 0.01\nsteps = 500\n"
            "expected_batch_size = 8",
            {**NUMBERS, "adjacency": "add-remove"},
        ),
        (
            "[claim]\nepsilon = 2\n[training]\nsteps = 30",
            {"epsilon": "2.0", "delta": "1e-05", "adjacency": "zero-out"},
        ),
        (
            '{"mechanism": {"name": "DPSGD", "noise_multiplier": 1.5, "sample_rate": 0.01, '
            '"steps": 500, "sampling": "poisson"}, "adjacency": "replace"}',
            {**NUMBERS, "adjacency": "replace"},
        ),
    ],
)
def test_a_file_is_read_as_a_setting(contents, found):
    assert read_file(contents.encode()) == found
    assert risk_request(found)


@pytest.mark.parametrize("more", [{}, {"training": {"expected_batch_size": 8.0}}])
def test_the_configuration_of_an_audit_is_read_as_its_claim(more):
    words = {"claim": {"epsilon": 4.0}, **more}
    config = AuditConfig.from_words(words, trials=100, seed=1)
    assert read_file(json.dumps(words).encode())["adjacency"] == config.adjacency
    found = read_file(json.dumps(config.to_dict()).encode())
    assert float(found["noise_multiplier"]) == config.claim.noise_multiplier
    assert found["adjacency"] == config.adjacency


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "file must be a setting"),
        (b"\xff", "file must be JSON or TOML"),
        (b"[" * 10_000, "file must be JSON or TOML"),
        (b"3", "file must be JSON or TOML"),
        (b"[]", "history must be of at least one step"),
        (b"[[1, 0.1, 5], [2, 0.1, 5]]", "file must be that of one training with Poisson batches"),
        (b'{"training": {"noise_multiplier": "2"}}', "noise_multiplier must be a number"),
        (b'{"training": {"noise_multiplier": NaN}}', "noise_multiplier must be a finite number"),
        (b'{"claim": {"name": "os.system"}}', "mechanism must be one of"),
        (b'{"claim": {"epsilon": 2}, "adjacency": "near"}', "adjacency must be one of"),
        (b'{"claim": {"name": "Gaussian", "noise_multiplier": 2.0}}', "file must be that of one"),
    ],
)
def test_what_is_no_setting_is_refused_in_a_sentence(contents, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_file(contents)
