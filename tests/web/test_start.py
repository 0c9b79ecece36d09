"""Published settings, and files that hold one."""

import json

import pytest

from dprime.audit.config import AuditConfig
from dprime.request import NAMES, risk_request
from dprime.web.start import PRESETS, read_file
from told import refuses

NUMBERS = {"noise_multiplier": "1.5", "sample_rate": "0.01", "steps": "500"}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.title)
def test_what_is_certified_of_a_preset_is_no_more_than_its_source_states(preset):
    assert set(preset.setting) <= {*NAMES, "epsilon"}
    of_sizes = "out of" in preset.derived
    request = risk_request(preset.setting)
    assert of_sizes == ("batch_size" in preset.setting) == (request.adjacency == "zero-out")
    assert preset.source
    stated = preset.published.removeprefix("ε = ").split()[0]
    if stated.replace(".", "").isdigit():
        epsilon = request.curve().epsilon(float(preset.setting["delta"]))
        assert 0.7 * float(stated) < epsilon <= float(stated) * (1 + 1e-9)
        assert f"δ = {preset.setting['delta']}" in preset.published
    else:
        assert preset.published == "no ε is stated"


TRAINING = "[training]\nnoise_multiplier = 1.5\nsample_rate = 0.01\nsteps = 500\n"
DESCRIBED = {"name": "DPSGD", "noise_multiplier": 1.5, "sample_rate": 0.01, "steps": 500}
HELD = [
    ("[[1.5, 0.01, 200], [1.5, 0.01, 300]]", NUMBERS, "zero-out"),
    ('{"history": [[1.5, 0.01, 500]]}', NUMBERS, "zero-out"),
    (TRAINING, NUMBERS, "zero-out"),
    (f"{TRAINING}expected_batch_size = 8", NUMBERS, "add-remove"),
    ("[claim]\nepsilon = 2\n[training]\nsteps = 30", {"epsilon": "2.0", "delta": "1e-05"},
     "zero-out"),
    (json.dumps({"mechanism": {**DESCRIBED, "sampling": "poisson"}, "adjacency": "replace"}),
     NUMBERS, "replace"),
]  # fmt: skip


@pytest.mark.parametrize(("contents", "setting", "adjacency"), HELD)
def test_a_file_is_read_as_a_setting(contents, setting, adjacency):
    found = read_file(contents.encode())
    assert found == {**setting, "adjacency": adjacency}
    assert risk_request(found)


@pytest.mark.parametrize("more", [{}, {"training": {"expected_batch_size": 8.0}}])
def test_the_configuration_of_an_audit_is_read_as_its_claim(more):
    words = {"claim": {"epsilon": 4.0}, **more}
    config = AuditConfig.from_words(words, trials=100, seed=1)
    assert read_file(json.dumps(words).encode())["adjacency"] == config.adjacency
    found = read_file(json.dumps(config.to_dict()).encode())
    assert float(found["noise_multiplier"]) == config.claim.noise_multiplier
    assert found["adjacency"] == config.adjacency


NO_SETTING = {
    "file be a setting": b"",
    "file be JSON or TOML": b"\xff",
    "file be JSON or ": b"[" * 10_000,
    "file be JSON": b"3",
    "history be of at least one step": b"[]",
    "file be that of one training with Poisson batches": b"[[1, 0.1, 5], [2, 0.1, 5]]",
    "noise_multiplier be a number": b'{"training": {"noise_multiplier": "2"}}',
    "noise_multiplier be a finite number": b'{"training": {"noise_multiplier": NaN}}',
    "mechanism be one of": b'{"claim": {"name": "os.system"}}',
    "adjacency be one of": b'{"claim": {"epsilon": 2}, "adjacency": "near"}',
    "file be that of one": b'{"claim": {"name": "Gaussian", "noise_multiplier": 2.0}}',
}
test_what_is_no_setting_is_refused_in_a_sentence = refuses(
    {words: lambda contents=contents: read_file(contents) for words, contents in NO_SETTING.items()}
)
