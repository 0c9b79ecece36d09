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
    TEXT,
    TEXTS,
    WHOLE,
    Option,
)

_training = functools.partial(Option, table="training")
_claim = functools.partial(Option, table="claim")
_condition = functools.partial(Option, table="conditions")

# What is trained ----------------------------------------------------------------------------------

NOISE_MULTIPLIER = _training(
    "noise_multiplier", "Noise standard deviation divided by the clipping norm"
)
SAMPLE_RATE = _training("sample_rate", "Share of the records in a batch, such as 256/60000")
STEPS = _training("steps", "Number of training steps", WHOLE)
EPOCHS = _training("epochs", "Passes over the training data, rounded up to steps")
SAMPLING = Option(
    "sampling", "How batches are drawn", TEXT, "poisson", ("poisson", "fixed-size", "shuffle")
)
EXPECTED_BATCH_SIZE = _training(
    "expected_batch_size", "Divisor of every sum of gradients, where it is public"
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
    "sensitivity", "What the noise is scaled to; local is not DP", TEXT, choices=("global", "local")
)
MODEL = Option("model", "Network: linear, dense-64-32, conv-16-32 or module:function", TEXT)
TRAINER = Option("trainer", "Your own training function, module:function", TEXT)

# What is compared ---------------------------------------------------------------------------------

ADJACENCY = Option(
    "adjacency", "How the two worlds differ", TEXT, choices=("add-remove", "zero-out", "replace")
)
GROUP_SIZE = Option("group_size", "Number of records that one person may have", WHOLE, 1)

# The data -----------------------------------------------------------------------------------------

DATA = Option("data", "Name of the data set, such as digits or mnist", TEXT)
DATA_DIR = Option("data_dir", "Folder of the data sets' files", NAMED_FOLDER)
DATASET_SIZE = Option("dataset_size", "Number of training records", WHOLE)
MAX_RECORDS = Option("max_records", "Use only the first N records", WHOLE)
POOL_SIZE = Option("pool_size", "Use only the first N distinct records as the pool", WHOLE)
RECORD = Option("record", "Index of the attacked record", WHOLE)
RECORDS = Option(
    "records", "Number of records that are attacked, from the first of the pool", WHOLE
)
SAMPLING_PROBABILITY = Option(
    "sampling_probability", "π, the probability with which each record of the pool is trained on"
)
SAMPLING_PROBABILITIES = Option(
    "sampling_probabilities", "One or several π, such as 0.1,0.5", NUMBERS
)
PROBABILITY_COLUMN = Option("probability_column", "Column with a π for each record", TEXT)
SHADOW_PROBABILITY = Option("shadow_probability", "π of the shadow models")
IGNORE = Option("ignore", "Column that does not make two records distinct, such as an id", REPEATED)

# What metrics are read at -------------------------------------------------------------------------

FPR = _condition("fpr", "False-positive rate at which the TPR is read")
PRIOR = _condition(
    "prior",
    "Share of members among the candidates, for precision and success",
    default="0.1; for success 0.5",
)
MIN_TPR = _condition("min_tpr", "Least TPR of the attackers that count")
BELIEF_PRIOR = Option("belief_prior", "Belief before looking")
EXCEEDED = Option("exceeded", "Probability with which a belief may be exceeded")
BELIEF_LEVEL = Option("belief_level", "Belief whose exceedance is read")
DELTA = Option("delta", "δ at which ε is read")
EPSILON_LEVEL = Option("epsilon_level", "ε at which δ is read")
MAX_PRIOR = Option("max_prior", "Probability of a secret attribute's likeliest value")
GUESS = Option("guess", "Probability that a guess without the model reconstructs a record")
MIN_TNR = Option("min_tnr", 'Least share of outsiders called "not a member"')
LOSS_BOUND = Option("loss_bound", "Largest loss")
DENIABILITY = Option("deniability", "Probability that none of the records was used")
OUTPUT_PROBABILITY = Option(
    "output_probability", "Least probability of what is observed, where none was used"
)

# What is kept or claimed --------------------------------------------------------------------------

RHO = Option("rho", "ρ of a guarantee of zero-concentrated DP")
MU = Option("mu", "μ of a guarantee of Gaussian DP")
ADVANTAGE = Option("advantage", "Largest acceptable membership advantage")
BAYES_SECURITY = Option("bayes_security", "Least acceptable Bayes security")
TPR = Option("tpr", "Largest acceptable TPR, at --fpr")
PRECISION = Option("precision", "Largest acceptable precision, of attackers with --min-tpr")
SUCCESS = Option("success", "Largest acceptable success, at --prior")
BELIEF = _claim("belief", "Largest acceptable belief, from --belief-prior, but for --exceeded")
EPSILON = _claim("epsilon", "ε that is kept or claimed, at --delta")
SECRET_SUCCESS = Option(
    "secret_success", "Largest acceptable success at guessing a secret, at --max-prior"
)
RECONSTRUCTION_SUCCESS = Option(
    "reconstruction_success", "Largest acceptable success of a reconstruction, at --guess"
)
ROUND_TO = Option(
    "round_to", "What a chosen length is a whole number of", TEXT, "steps", ("steps", "epochs")
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
CONFIDENCE = Option("confidence", "Confidence level")
STRENGTH = Option("strength", "The attacker's d′, divided by the most that keeps the claim")
POWER = Option("power", "Share of audits that shall succeed")
FRACTION_OF_CLAIM = Option("fraction_of_claim", "Share of the claimed metric that is to be shown")

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

SEED = Option("seed", "Random seed; never that of a model you release", WHOLE)
SEED_FROM = Option("seed_from", "Run whose seed is used again", FILE)
SEED_FILE = Option("seed_file", "Secret seed: read if the file exists, else written", FILE)
DEVICE = Option("device", "Device: cpu or cuda", TEXT)
MEMORY = Option("memory", "Memory for training, in GB")
BACKEND = Option("backend", "Where trainings run", TEXT, "local", ("local", "processes", "ray"))
WORKERS = Option("workers", "Number of processes", WHOLE, note="One for each core if not given.")
ADDRESS = Option(
    "address",
    "Ray cluster: auto, host:port or ray://…",
    TEXT,
    note="One is started here if not given.",
)
TIME_LIMIT = Option("time_limit", "Seconds before a block is retried, of processes and ray")
RUN = Option("run", "File of the run, to begin or go on with", PLACE, note="In runs/ if not given.")
SHADOW_FILE = Option("shadow_file", "File of the shadow models, to use them again", NAMED_FILE)
OUT = Option("out", "File to write", FILE)
MEMBERS = Option("members", "Secret file to write: who was drawn, 0 or 1 a line", FILE)
CHARTS = Option("charts", "Folder to write charts to", FOLDER)
FORMAT = Option("format", "Format of the charts", TEXT, "svg", ("svg", "png", "json"))
CARD = Option("card", "Privacy card to write, .json or .md", FILE)
MODEL_CARD = Option("model_card", "Model card to write its privacy section into, .md", FILE)
REGISTRY = Option("registry", "Draft for OpenDP's registry of deployments, .yaml", FILE)
PDF = Option("pdf", "PDF to write; needs Chromium", FILE)
ABOUT = Option("about", "TOML file of who decides about the model, and what they accept", FILE)
HOST = Option("host", "Address to listen on; others then need the token", TEXT)
PORT = Option("port", "Port to listen on; 0 takes a free one", WHOLE, 8765)
TOKEN = Option("token", "Token to ask visitors for; drawn with --host if not given", TEXT)
STATIC = Option(
    "static", "Write the page into this folder, for any web server, instead of serving it", FOLDER
)
FAIL_ON = Option(
    "fail_on",
    "Weakest outcome that ends with exit code 1",
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
    DATASET_SIZE.here(note="With --batch-size; it is public then."),
)
COMPARED = (ADJACENCY.here("add-remove"), GROUP_SIZE)
BACKENDS = (BACKEND, WORKERS, ADDRESS, TIME_LIMIT)

DECLARED: Mapping[str, Option] = {
    each.name: each for each in [*globals().values()] if isinstance(each, Option)
}
"""Every option by its name."""
