// What the page shows, and the address that says so.
//
//   address ──► state ──► questions to the server
//      ▲          │
//      └──────────┘

/** The parameters of a training; all others belong to the question and hold for A and B. */
const TRAINING = ["noise_multiplier", "sample_rate", "steps", "group_size"];

const EPSILON = "4",
  RECORDS = "60000"; // of MNIST

/** What a setting is described by. */
export const KINDS = ["training", "guarantee"];

/** Whether setting "a" or "b" is ε and δ alone; what is chosen is always a training. */
export const isGuarantee = (state, name) => state.mode === "risk" && state[name].from === "guarantee";

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
  const among = (name, allowed, fallback) => {
    const asked = given.get(name);
    if (asked === null || allowed.includes(asked)) return asked ?? fallback;
    notes.push(`${name} must be one of ${allowed.join(", ")}, but it is '${asked}': ${fallback} is shown.`);
    return fallback;
  };
  const text = (name, fallback) => given.get(name) ?? fallback;
  const defaultOf = (name) => String(options.parameters[name].default);
  const setting = (prefix, other) => {
    const found = {
      adjacency: among(`${prefix}adjacency`, options.adjacency, other?.adjacency ?? options.adjacency[0]),
    };
    for (const name of trainingNames(options)) {
      found[name] = text(prefix + name, other?.[name] ?? defaultOf(name));
    }
    found.from = among(`${prefix}from`, KINDS, other?.from ?? KINDS[0]);
    found.epsilon = text(`${prefix}epsilon`, other?.epsilon ?? EPSILON);
    found.records = text(`${prefix}records`, other?.records ?? RECORDS);
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
  return { state, notes };
}

/** The address of a state; it holds every setting, so that it means the same next year. */
export function writeAddress(state) {
  const query = new URLSearchParams({ ...state.a, ...state.ask, over: state.over, mode: state.mode });
  if (state.mode === "choose") {
    query.set("target", state.target);
    query.set("value", state.value);
    query.set("free", state.free);
  }
  if (state.compare) {
    query.set("compare", "1");
    for (const [name, text] of Object.entries(state.b)) query.set(`b.${name}`, text);
  }
  if (state.scale !== "linear") query.set("scale", state.scale);
  if (state.view !== "explore") query.set("view", state.view);
  return `?${query}`;
}

/** What the server is told of setting "a" or "b". */
function described(state, name) {
  const { noise_multiplier, sample_rate, steps, group_size, adjacency, epsilon } = state[name];
  if (isGuarantee(state, name)) return { epsilon, adjacency };
  return { noise_multiplier, sample_rate, steps, group_size, adjacency };
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
