"""Every command: a mistake ends in one sentence and exit code 2, and leaves no file behind."""

from pathlib import Path

import pytest

from commands import refused
from specimens.make import copy_of

SCRIPTS = Path(__file__).parent / "check" / "scripts"
TRAINING = "--noise-multiplier 1.1 --sample-rate 0.01 --steps 100"
SECRET = "--adjacency must be 'replace' to ask about a secret (--max-prior), but it is 'add-remove'"
POOL = "infer --pool-size 120 --shadows 12 --targets 2 --epochs 3 --batch-size 20"
ATTRIBUTE = "--adversary attribute --data diabetes --noise-multiplier 2"

BEGINNINGS = {
    "": {
        "wish": "No such command",
        "rsk": "Did you mean 'risk'? See dprime --help.",
        "-h": "No such option: -h: did you mean --help? See dprime --help.",
    },
    f"risk {TRAINING}": {
        "--noise-multiplier -1": "--noise-multiplier must be above 0, but it is -1",
        "--noise-multiplier much": "--noise-multiplier must be a number, but it is",
        "--steps 1.5": "--steps must be a whole number",
        "--epochs 3": "Exactly one of --steps, --epochs must be given",
        "--epsilon 3": "--noise-multiplier must be left out where --epsilon 3 is all",
        "--batch-size 9 --dataset-size 90": "--sample-rate must be left out where --batch-size",
        "--max-prior 0.1": SECRET,
        "--noise-multiplier": "Option '--noise-multiplier' requires an argument",
        "--json=yes": "does not take a value",
        "--colour red": "No such option: --colour: see dprime risk --help",
        "--belief 0.9": "No such option: --belief: did you mean --belief-",
        "--noise_multiplier 2": "did you mean --noise-multiplier? See dprime risk --help.",
        "--noise-multiplier 10%": "but it is '10%': write 10 % as 0.1.",
        "--delta 10^-5": "but it is '10^-5': give a number such as 3, 0.01, 1e-5 or 256/60000.",
        "--steps 1k": "but it is '1k': write it in digits, such as 60000.",
        "--steps 1,000": "but it is '1,000': write it in digits, such as 60000.",
        "--sampling fixed-size --adjacency replace --estimates": "The estimates must be",
    },
    "risk": {
        "": "A training, a guarantee or a file must be given",
        "--epsilon 3 --rho 1": "Exactly one of --epsilon, --rho, --mu must be given",
        "--epsilon 3 --group-size 2": "--group-size must be 1 for EpsilonDelta",
        "--epsilon 3,5": "but it is '3,5': write decimals with a point, as in 3.5",
        "--epsilon=": "--epsilon must be a number, but it is '': give a number such as 3",
        "-e 3": "did you mean --epochs, --epsilon or --exceeded? See dprime risk --help.",
        "--eps 3": "did you mean --epsilon or --epsilon-level? See dprime risk --help.",
        "epsilon=3": "but it is 'epsilon=3': give the path of a checkpoint or a JSON file, or",
        "–epsilon 3": "3 must be an option or its value, but it is neither; options begin with two",
        "--mu 1 --estimates": "The estimates must be asked for DP-SGD",
        "nothing.pt": "FILE must be a file that exists, but it is 'nothing.pt': give the path",
    },
    "risk --noise-multiplier 1": {
        "--batch-size 9 --steps 3": "--dataset-size must be given with --batch-size",
        "--dataset-size 9 --steps 3": "--batch-size must be given with --dataset-size",
        "--batch-size 9 --dataset-size 8 --steps 3": "--batch-size must be at most the 8 records",
        "": "--sample-rate must be given, but it is missing: give it",
        "--epochs 3": "--sample-rate must be given with epochs",
    },
    "choose --steps 9": {
        "--advantage 0.1": "Exactly one of --noise-multiplier, --sample-rate must be left out",
        "--sample-rate 0.1": "give one target, for example --advantage 0.1",
        "--sample-rate 0.1 --belief 0.9 --round-to days": "--round-to must be one of steps, epochs",
        "--sample-rate 0.1 --advantage 0.1 --max-prior 0.1": SECRET,
        "--sample-rate 0.1 --advantage 0.1 --belief-level high": "--belief-level must be a number",
    },
    f"consequences {TRAINING}": {
        "": "--sampling-probability must be given, but it is missing",
        "--sampling-probability half": "--sampling-probability must be a number, but it is 'half'",
        "--sampling-probability 0.1 --adjacency replace": "No such option: --adjacency",
    },
    "check": {
        "": "FILE must be given, but it is missing: see dprime check --help",
        "nothing.py": "nothing.py must be a file, but it is missing",
        f"{SCRIPTS}": "must be a file, but it is a folder",
    },
    "audit": {
        "": "--noise-multiplier must be given in the training, but it is missing",
        f"{ATTRIBUTE} --columns ages": "a column of the data, but it is 'ages': give one of age",
        f"{ATTRIBUTE} --values 1,a": "--values must be a number, but it is 'a'",
        f"{ATTRIBUTE} --adjacency zero-out": "give --adjacency replace",
    },
    "audit --epsilon 4 --max-records 8 --steps 2 --seed 1": {
        "--epsilon much": "--epsilon must be a number, but it is 'much'",
        "--adversary eve": "--adversary must be one of di, api-access",
        "--adversary di --columns age": "--columns must be left out for di, but it is ['age']",
        f"--seed {2**256}": "--seed must be a whole number from 0 to 2^256 - 1",
        "--seed-from a.run": "--seed-from must be given without --seed",
        "--trainer no_such:train --adversary api-access": "--trainer must be a function to import",
        "no-such.toml": "must be a file, but it is missing",
        "--run .": "--run must be the name of no file yet, but it is '.'",
        "--backend cloud": "--backend must be one of local, processes, ray",
        "--workers 2": "--workers must be left out for local",
        "--fail-on stands": "--fail-on must be one of refuted, inconclus",
        "--trails 9": "No such option: --trails: did you mean --trials? See dprime audit --help.",
    },
    "resume": {
        "": "RUN must be given",
        ".": "RUN must be a run's file",
        "nothing.run": "RUN must be a run's file, but it is 'nothing.run'",
    },
    "runs": {"nowhere": "FOLDER must be a folder, but it is 'nowhere'"},
    "bound": {
        "": "FILE must be given",
        ".": "must be a file, but it is a folder",
        "nothing.csv": "must be a file, but it is missing",
    },
    "plan": {
        "": "Exactly one of --epsilon, --noise-multiplier",
        "--epsilon 4 --noise-multiplier 2": "Exactly one of --epsilon, --noise-multiplier",
        "--epsilon four": "'four'",
        "--epsilon 4 --trials 0": "--trials must be",
        "--epsilon 4 --steps 10": "--steps must be left out where ε is claimed",
        "--epsilon 4 --fpr 0.1": "--fpr must be left out to judge by the curve",
    },
    "frontier": {"": "--precision must be given"},
    "frontier --precision 0.6": {
        "--sampling-probabilities 0.6": "below the target precision 0.6",
        "--sampling-probabilities 0.1,x": "must be a number, but it is 'x'",
        "--data none": "--data must be one of digits",
        "--steps 3 --epochs 4": "Exactly one of --epochs, --steps",
        "--plan-only --run x": "--run must be left out where nothing",
        "--plan-only --charts x": "--charts must be left out",
        "--format gif": "--format must be one of svg, png, json",
        "--batch-size 20 --repetitions 1.5": "--repetitions must be a whole number",
    },
    POOL: {
        "--pool-size 1": "--pool-size must be from 2",
        "--epsilon 1 --noise-multiplier 1": "--noise-multiplier must be left out",
        "--trainer nowhere:f": "--trainer must be",
        "--trainer pools:by_hand --clip-norm 2": "--clip-norm must be left out",
        "--data diabetes": "--data must be records with classes",
        "--charts /dev/null": "--charts must be a place to write to",
        "--attacks lira,liar": "--attacks must be one of",
    },
    "report": {
        "--pdf a.pdf": "RUN must be given",
        "other.run": "RUN must be a run's file",
    },
    "explore --port": {
        "x": "--port must be a whole number, 0 or more, but it is 'x': write it in digits",
        "1.5": "--port must be a whole number",
        "8.000": "write it in digits, without a point",
    },
    "explore --static site": {
        "--port 1": "--port must be left out",
        "--workers 0": "--workers must be",
    },
}
CASES = [
    (f"{beginning} {rest}", sentence)
    for beginning, cases in BEGINNINGS.items()
    for rest, sentence in cases.items()
]


@pytest.mark.parametrize(("line", "sentence"), CASES)
def test_a_mistake_is_one_sentence_and_exit_code_2(call, tmp_path, line, sentence):
    refused(call(line), sentence)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


AUDITS = "adversary = 'di'\nmax_records = 8\n[claim]\nepsilon = 4.0\n"
IN_FILES = {
    ("audit a.toml", f"trials = 0\n{AUDITS}"): "trials must be at least 2",
    ("audit a.toml --trials 0", AUDITS): "--trials must be at least 2",
    ("audit a.toml", f"{AUDITS}[training]\nclip_norm = 0\n"): "clip_norm must be above 0",
    ("audit a.toml", f"{AUDITS}[[audits]]\nname='x'\ntrials=0"): "trials must be at least 2",
    ("report a.run --about a.toml", "[acceptable]\ntpr = 2"): "tpr must be strictly between",
    ("report a.run --about a.toml --tpr 2", ""): "--tpr must be strictly between",
    ("report a.run --about a.toml", "organization = 'x'"): "--about must be known names",
}


@pytest.mark.parametrize(("line", "content"), IN_FILES)
def test_an_error_names_a_word_of_a_file_as_the_file_does(call, tmp_path, line, content):
    (tmp_path / "a.toml").write_text(content)
    if line.startswith("report"):
        copy_of("finished", tmp_path).rename(tmp_path / "a.run")
    ended = call(line)
    refused(ended, f"Error: {IN_FILES[line, content]}")
