// What the page shows, and the address that says so.
//
//   address ──► state ──► questions to the server
//      ▲          │
//      └──────────┘

/** The parameters of a training; all others belong to the question and hold for A and B. */
const TRAINING = ["noise_multiplier", "sample_rate", "steps", "group_size"];

/** What a sampling rate may be given by instead; the adjacency that is not chosen follows from it. */
const SIZES = ["batch_size", "dataset_size"];

const EPSILON = "4";

/** What a setting is described by. */
export const KINDS = ["training", "guarantee"];

/** Whether setting "a" or "b" is ε and δ alone; what is chosen is always a training. */
export const isGuarantee = (state, name) => state.mode === "risk" && state[name].from === "guarantee";

/** No sizes: the sampling rate stands for itself. */
export const NO_SIZES = { batch_size: "", dataset_size: "" };

/** The sampling rate of a setting, as a text. */
export const rateOf = ({ sample_rate, batch_size, dataset_size }) =>
  batch_size ? `${batch_size}/${dataset_size}` : sample_rate;

export const trainingNames = (options) => TRAINING.filter((name) => name in options.parameters);

export const questionNames = (options) =>
  Object.keys(options.parameters).filter((name) => !TRAINING.includes(name));

/** The names of the settings on the page. */
export const settingNames = (state) => (state.compare ? ["a", "b"] : ["a"]);

export const targetOf = (options, state) => options.targets.find((target) => target.name === state.target);

/** The state that an address asks for, and a sentence for each part of it that does not exist. */
export function readAddress(search, options) {
  const given = new URLSearchParams(search);
  const notes = [];
  const known = new Set(["compare"]);
  const among = (name, allowed, fallback) => {
    const asked = text(name, null);
    if (asked === null || allowed.includes(asked)) return asked ?? fallback;
    notes.push(`${name} must be one of ${allowed.join(", ")}, but it is '${asked}': ${fallback || "the usual one"} is shown.`);
    return fallback;
  };
  const text = (name, fallback) => given.get(known.add(name) && name) ?? fallback;
  const defaultOf = (name) => String(options.parameters[name].default);
  const setting = (prefix, other) => {
    const found = {
      adjacency: among(`${prefix}adjacency`, options.adjacency, other?.adjacency ?? ""),
    };
    for (const name of trainingNames(options)) {
      found[name] = text(prefix + name, other?.[name] ?? defaultOf(name));
    }
    found.from = among(`${prefix}from`, KINDS, other?.from ?? KINDS[0]);
    found.epsilon = text(`${prefix}epsilon`, other?.epsilon ?? EPSILON);
    const rated = given.has(`${prefix}sample_rate`);
    for (const name of SIZES) found[name] = text(prefix + name, rated ? "" : (other?.[name] ?? ""));
    if (rated && found.batch_size) notes.push("sample_rate is left out: batch_size and dataset_size give it.");
    return found;
  };
  const a = setting("", null);
  const ask = {};
  for (const name of questionNames(options)) ask[name] = text(name, defaultOf(name));
  const target = among(
    "target",
    options.targets.map((one) => one.name),
    options.targets[0].name,
  );
  const state = {
    a,
    b: setting("b.", a),
    ask,
    over: among("over", options.free, options.free[0]),
    mode: among("mode", ["risk", "choose"], "risk"),
    target,
    value: text("value", String(options.targets.find((one) => one.name === target).default)),
    free: among("free", options.free, options.free[0]),
    compare: given.get("compare") === "1",
    scale: among("scale", ["linear", "log"], "linear"),
    view: among("view", ["explore", "runs"], "explore"),
  };
  const unknown = [...new Set(given.keys())].filter((name) => !known.has(name));
  if (unknown.length) notes.push(`The address was not understood where it says ${unknown.join(", ")}.`);
  return { state, notes };
}

/** The address of a state; it holds all that is set, so that it means the same next year. */
export function writeAddress(state) {
  const query = new URLSearchParams({ ...written(state.a), ...state.ask, over: state.over, mode: state.mode });
  if (state.mode === "choose") {
    query.set("target", state.target);
    query.set("value", state.value);
    query.set("free", state.free);
  }
  if (state.compare) {
    query.set("compare", "1");
    for (const [name, text] of Object.entries(written(state.b))) query.set(`b.${name}`, text);
  }
  if (state.scale !== "linear") query.set("scale", state.scale);
  if (state.view !== "explore") query.set("view", state.view);
  return `?${query}`;
}

/** A setting without what is left open; either its sampling rate or what it is given by. */
function written({ sample_rate, ...setting }) {
  const set = Object.entries({ ...setting, ...(setting.batch_size ? {} : { sample_rate }) });
  return Object.fromEntries(set.filter(([, text]) => text));
}

/** What the server is told of setting "a" or "b". */
function described(state, name) {
  const { from, epsilon, ...training } = state[name];
  if (isGuarantee(state, name)) return written({ epsilon, adjacency: training.adjacency });
  const chosen = state.mode === "choose" && state.free === "sample_rate";
  return written(chosen ? { ...training, ...NO_SIZES } : training);
}

/** The question about setting "a" or "b", with charts of its curve, as the server takes it. */
export function question(state, name, charts) {
  const query = new URLSearchParams({ ...described(state, name), ...state.ask, charts });
  if (state.mode === "risk") return `/api/risk?${query}`;
  query.delete(state.free);
  query.set("target", state.target);
  query.set("value", state.value);
  query.set("free", state.free);
  return `/api/choose?${query}`;
}

/** The question for the chart of the risk of setting "a" or "b"; it holds only what that shows. */
export function rangeQuestion(state, name) {
  return new URLSearchParams({ ...described(state, name), over: state.over, charts: "risk" });
}
