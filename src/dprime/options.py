"""Every option, declared once: what its word means wherever it is typed.

A word means the same on the command line, in Python, in a TOML file, in JSON and in an address.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from dprime.option import (
    FILE,
    FLAG,
    FOLDER,
    INDEXES,
    NAMED_FILE,
    NAMED_FOLDER,
    NUMBERS,
    PLACE,
    REPEATED,
    SHARE,
    SHARES,
    TEXT,
    TEXTS,
    WHOLE,
    Option,
)
from dprime.registry import OPTIONS

_share = functools.partial(Option, kind=SHARE)
_training = functools.partial(Option, table="training")

# What is trained ----------------------------------------------------------------------------------

NOISE_MULTIPLIER = _training(
    "noise_multiplier", "Noise standard deviation divided by the clipping norm"
)
SAMPLE_RATE = _training("sample_rate", "Share of the records in a batch, such as 256/60000", SHARE)
STEPS = _training("steps", "Number of training steps", WHOLE)
EPOCHS = _training("epochs", "Passes over the training data, rounded up to whole steps")
SAMPLING = Option(
    "sampling", "How batches are drawn", TEXT, "poisson", ("poisson", "fixed-size", "shuffle")
)
EXPECTED_BATCH_SIZE = _training(
    "expected_batch_size", "Public number that divides every sum of gradients"
)
BATCH_SIZE = Option("batch_size", "Expected number of records in a batch")
LEARNING_RATE = _training("learning_rate", "Learning rate")
LEARNING_RATES = Option("learning_rates", "Learning rates to choose from", NUMBERS)
CLIP_NORM = _training("clip_norm", "Clipping norm C")
MOMENTUM = _training("momentum", "Momentum of SGD")
OPTIMIZER = _training("optimizer", "Optimizer", TEXT, choices=("sgd", "adam"))
LOSS = _training(
    "loss", "Loss", TEXT, choices=("cross-entropy", "squared-error", "binary-cross-entropy")
)
SENSITIVITY = _training(
    "sensitivity",
    "Sensitivity for the noise; local is not DP",
    TEXT,
    choices=("global", "local"),
)
MODEL = Option("model", "Network: linear, dense-64-32, conv-16-32 or module:function", TEXT)
TRAINER = Option("trainer", "Your own training function, module:function", TEXT)

# What is compared ---------------------------------------------------------------------------------

ADJACENCY = Option(
    "adjacency", "How the two worlds differ", TEXT, choices=("add-remove", "zero-out", "replace")
)
GROUP_SIZE = Option("group_size", "Largest number of records of one person", WHOLE, 1)

# The data -----------------------------------------------------------------------------------------

DATA = Option("data", "Name of the data set, such as digits or mnist", TEXT)
DATA_DIR = Option("data_dir", "Folder of the data sets' files", NAMED_FOLDER)
DATASET_SIZE = Option("dataset_size", "Number of training records", WHOLE)
MAX_RECORDS = Option("max_records", "Use only the first N records", WHOLE)
POOL_SIZE = Option("pool_size", "Use only the first N distinct records as the pool", WHOLE)
RECORD = Option("record", "Index of the attacked record", WHOLE)
RECORDS = Option("records", "Number of attacked records, the first of the pool", WHOLE)
SAMPLING_PROBABILITY = _share(
    "sampling_probability", "π, the probability with which each record of the pool is trained on"
)
SAMPLING_PROBABILITIES = Option(
    "sampling_probabilities", "One or several π, such as 0.1,0.5", SHARES
)
PROBABILITY_COLUMN = Option("probability_column", "Column with a π for each record", TEXT)
SHADOW_PROBABILITY = _share("shadow_probability", "π of the shadow models")
IGNORE = Option("ignore", "Column to ignore when records are compared, such as an id", REPEATED)

# What is read, kept or claimed; each metric declares its own in the registry ----------------------

MIN_TPR, DELTA, EPSILON, PRECISION, BELIEF_LEVEL, BELIEF_PRIOR = map(
    OPTIONS.__getitem__,
    ("min_tpr", "delta", "epsilon", "precision", "belief_level", "belief_prior"),
)
DENIABILITY = _share("deniability", "Smallest probability that none of the named records was used")
OUTPUT_PROBABILITY = _share(
    "output_probability", "Smallest probability of an observation that counts"
)

RHO = Option("rho", "ρ of a zero-concentrated DP guarantee")
MU = Option("mu", "μ of a Gaussian DP guarantee")
ROUND_TO = Option(
    "round_to", "Unit of a chosen training length", TEXT, "steps", ("steps", "epochs")
)

# Attacks and their bounds -------------------------------------------------------------------------

ADVERSARY = Option("adversary", "Who attacks", TEXT)
COLUMNS = Option(
    "columns",
    "Attacked attribute: a column by name or index, or a one-hot group",
    INDEXES,
    table="options",
)
VALUES = Option(
    "values", "Two values of the attribute, in the data's scaling", TEXTS, table="options"
)
ATTACKS = Option("attacks", "Membership attacks", TEXTS)
SHADOWS = Option("shadows", "Number of models that the attacker trains", WHOLE)
TARGETS = Option("targets", "Number of models that are attacked", WHOLE)
TRIALS = Option("trials", "Number of trials in each world", WHOLE)
BLOCK = Option("block", "Number of trials that are stored together", WHOLE)
REPETITIONS = Option("repetitions", "Number of trainings at each π", WHOLE)
METRIC = Option("metric", "Metric by which the claim is judged", TEXT)
METHOD = Option("method", "Method of the lower bound", TEXT)
ASSUME = Option("assume", "Accept an assumption that the method rests on", TEXT)
CONFIDENCE = _share("confidence", "Confidence level")
STRENGTH = Option("strength", "Assumed d′ of the attacker, as a multiple of the claim's")
POWER = _share("power", "Probability with which the audit is to succeed")
FRACTION_OF_CLAIM = _share("fraction_of_claim", "Share of the claimed value to reach")

# Who decides, in a report -------------------------------------------------------------------------

ORGANISATION = Option("organisation", "Who is responsible for the model", TEXT)
CONTACT = Option("contact", "Whom to ask, such as the data protection officer", TEXT)
RELEASED_MODEL = Option("released_model", "Which model is decided about", TEXT)
PURPOSE = Option("purpose", "What the model is for", TEXT)
DATA_SUBJECTS = Option("data_subjects", "Whose data it was trained on", TEXT)
PERSONAL_DATA = Option("personal_data", "Which data of theirs", TEXT)
RECIPIENTS = Option("recipients", "Who gets the model, or may ask it", TEXT)
CONFIRMED_BY = Option("confirmed_by", "Who confirms the model was trained as tested", TEXT)
ACCURACY = Option("accuracy", "How accurate the model is, with the noise and without", TEXT)

# Where, and what is written -----------------------------------------------------------------------

SEED = Option("seed", "Random seed; it must not be the seed of a model that you release", WHOLE)
SEED_FROM = Option("seed_from", "Run file whose seed is used", FILE)
SEED_FILE = Option("seed_file", "File of the secret seed: read if it exists, else written", FILE)
DEVICE = Option("device", "Device: cpu or cuda", TEXT)
MEMORY = Option("memory", "Memory for training, in GB")
BACKEND = Option("backend", "Where trainings run", TEXT, "local", ("local", "processes", "ray"))
WORKERS = Option("workers", "Number of processes", WHOLE, note="Default: one for each core.")
ADDRESS = Option(
    "address",
    "Ray cluster: auto, host:port or ray://host:port",
    TEXT,
    note="Default: one is started here.",
)
TIME_LIMIT = Option("time_limit", "Seconds after which processes and ray retry a block")
RUNS = "runs"
"""Folder of the runs that are given no other place."""
RUN = Option("run", "Run file to create or continue", PLACE, note="Default: a new one in runs/.")
SHADOW_FILE = Option("shadow_file", "File of the shadow models, kept for use again", NAMED_FILE)
OUT = Option("out", "File to write", FILE)
MEMBERS = Option("members", "Secret file to write: 1 for each record drawn, else 0", FILE)
CHARTS = Option("charts", "Folder to write charts to", FOLDER)
FORMAT = Option("format", "Format of the output", TEXT)
CARD = Option("card", "Privacy card to write, .json or .md", FILE)
MODEL_CARD = Option("model_card", "Model card that gets a privacy section, .md", FILE)
REGISTRY = Option("registry", "Draft to write for OpenDP's registry of deployments, .yaml", FILE)
PDF = Option("pdf", "PDF to write; needs Chromium", FILE)
ABOUT = Option("about", "TOML file: who decides about the model, and which risks they accept", FILE)
HOST = Option("host", "Address to listen on; visitors from elsewhere need the token", TEXT)
PORT = Option("port", "Port to listen on; 0 takes a free one", WHOLE, 8765)
TOKEN = Option("token", "Token that visitors need; with --host a random one by default", TEXT)
STATIC = Option(
    "static", "Write the page into this folder, for any web server, instead of serving it", FOLDER
)
FAIL_ON = Option(
    "fail_on",
    "Exit code 1 for this outcome, and always for refuted",
    TEXT,
    "refuted",
    ("refuted", "inconclusive"),
)

ALLOW_CODE = Option("allow_code", "Import and call the model or trainer that the file names", FLAG)

ESTIMATES = Option("estimates", "Add closed-form estimates, which guarantee nothing", FLAG)
PLAN_ONLY = Option("plan_only", "Compute the noise of each π and train nothing", FLAG)
NO_BROWSER = Option("no_browser", "Do not open the page in a browser", FLAG)
WATCH = Option("watch", "Look again every second, until Ctrl-C", FLAG)
FORCE = Option("force", "Overwrite files", FLAG)
JSON = Option("json", "Print one JSON object", FLAG)

# Groups that several commands have ----------------------------------------------------------------

MECHANISM = (NOISE_MULTIPLIER, SAMPLE_RATE, STEPS)
LENGTHS = (*MECHANISM, EPOCHS)
SIZES = (
    BATCH_SIZE.here(note="With --dataset-size, in place of --sample-rate."),
    DATASET_SIZE.here(note="With --batch-size; the number counts as public."),
)
COMPARED = (ADJACENCY.here("add-remove"), GROUP_SIZE)
BACKENDS = (BACKEND, WORKERS, ADDRESS, TIME_LIMIT)
CHART_FORMAT = FORMAT.here("svg", choices=("svg", "png", "json"), note="For --charts.")

DECLARED: Mapping[str, Option] = {
    **{each.name: each for each in [*globals().values()] if isinstance(each, Option)},
    **OPTIONS,
}
