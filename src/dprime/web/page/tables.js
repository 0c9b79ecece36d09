// Where answers come from on a page without a server: certified numbers in files beside it.
//
//   address ──► places on the sliders, on the riskier side ──► codes ──► numbers ──► answers
//
// Words, options and chart specifications are those of the server, in data/book.bin.

import { numberOf } from "./controls.js";

const DATA = new URL("../data/", import.meta.url);
const MECHANISM = ["noise_multiplier", "sample_rate", "steps"];
const BELOW = ["noise_multiplier", "belief_level", "delta"]; // riskier where smaller, others where larger
const NOTE =
  "Read from tables: limits are rounded to the safe side by less than 1.6 %, and a typed value counts as " +
  "the next position of its slider on the riskier side";
const ALOUD = [0.001, 0.01, 0.1]; // false alarms at which the curve is read in words
const SMALLEST = 1e-5; // where logarithmic axes begin
const ENLARGED = 5; // the corner is drawn up to so many times the marked rate of false alarms
const PRIORS = Array.from({ length: 93 }, (_, at) => 1 / (1 + Math.exp(6.9 - at / 8)));

const RATES = [
  ...Array.from({ length: 41 }, (_, at) => 10 ** (at / 10 - 5)),
  ...Array.from({ length: 51 }, (_, at) => at / 50),
].sort((a, b) => a - b); // where a curve is drawn

/** A sentence about what was asked. */
class Refused extends Error {}

document.querySelector("[data-view=runs]")?.remove(); // they are on a server's disk

/** The response that a server would give. */
export async function request(address) {
  const { pathname, search, searchParams } = new URL(address, DATA);
  try {
    const book = await theBook();
    return new Response(JSON.stringify(await answered(book, pathname, search, searchParams)));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return new Response(JSON.stringify({ detail: error.message }), { status: 422 });
  }
}

async function answered(book, pathname, search, query) {
  const [, , route, name] = pathname.split("/");
  if (route === "options") return book.options;
  if (name) return book.specifications[name + search];
  if (route === "charts") return charts(await Setting.of(book, query), query);
  if (query.has("epsilon") && route === "risk") {
    throw new Refused("epsilon must be left out on a page without a server, which reads tables of trainings.");
  }
  if (route === "choose") return chosen(book, query);
  if (route === "risk") return (await Setting.of(book, query)).answer(query, "risk", null);
  throw new Refused("This page has no server: dprime explore shows runs and all that is not here.");
}

// ---------------------------------------------------------------- files

const loaded = new Map();

function once(name, read) {
  if (!loaded.has(name)) {
    const found = inflated(name).then(read);
    found.catch(() => loaded.delete(name));
    loaded.set(name, found);
  }
  return loaded.get(name);
}

async function inflated(name) {
  const response = await fetch(new URL(`${name}.bin`, DATA));
  if (!response.ok) throw new Error(`${name} is missing.`);
  const stream = response.body.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const theBook = () => once("book", (bytes) => JSON.parse(new TextDecoder().decode(bytes)));

/** The relation whose tables have the numbers of an adjacency: a zeroed record counts as one added. */
const relationOf = (adjacency) => (adjacency === "replace" ? adjacency : "add-remove");

/** The codes [column, noise, rate, steps] of one table. */
function table(book, adjacency, size) {
  const noises = book.options.parameters.noise_multiplier.positions.length;
  return once(`${relationOf(adjacency)}-${size}`, (bytes) => summed(bytes, book.columns, noises));
}

/** Undo the differences along columns and noises; 16 bits wrap around as they did before. */
function summed(bytes, columns, noises) {
  const count = bytes.length / 2;
  const column = count / columns;
  const noise = column / noises;
  const codes = new Uint16Array(count);
  for (let i = 0; i < count; i++) {
    const folded = bytes[i] | (bytes[i + count] << 8);
    const later = i >= column;
    const noisier = i % column >= noise;
    codes[i] =
      ((folded >>> 1) ^ -(folded & 1)) +
      (later ? codes[i - column] : 0) +
      (noisier ? codes[i - noise] : 0) -
      (later && noisier ? codes[i - column - noise] : 0);
  }
  return codes;
}

// ---------------------------------------------------------------- numbers

/** The place of a value on its slider, or of the next one on the riskier side. */
function place(book, name, text) {
  const { positions } = book.options.parameters[name];
  const value = numberOf(text, book.options.parameters[name].percent);
  const ends = [positions[0], positions.at(-1)];
  if (!(value >= ends[0] && value <= ends[1])) {
    const said = Number.isNaN(value) ? `'${text}'` : text;
    throw new Refused(
      `${name} must be from ${ends[0]} to ${ends[1]} on a page without a server, but it is ${said}: ` +
        "ask dprime risk, or dprime explore on your own machine.",
    );
  }
  if (BELOW.includes(name)) return positions.findLastIndex((position) => position <= value);
  return positions.findIndex((position) => position >= value);
}

/** What an address gives of a parameter; two sizes give the sampling rate. */
const textOf = (query, name) =>
  name === "sample_rate" && query.has("batch_size")
    ? `${query.get("batch_size")}/${query.get("dataset_size")}`
    : query.get(name);

/** The adjacency that an address asks for, or else the one that dprime takes. */
const adjacencyOf = (book, query) =>
  query.get("adjacency") ?? book.adjacency[query.has("batch_size") ? "sizes" : ""];

/** The places of all sliders that an address gives, but for those named. */
function places(book, query, ...without) {
  const found = {};
  for (const [name, { default: usual }] of Object.entries(book.options.parameters)) {
    if (!without.includes(name)) found[name] = place(book, name, textOf(query, name) ?? String(usual));
  }
  return found;
}

/** A training at places of the sliders, with the places of the conditions. */
class Setting {
  static async of(book, query) {
    return Setting.at(book, adjacencyOf(book, query), places(book, query));
  }

  static async at(book, adjacency, at) {
    const size = book.options.parameters.group_size.positions[at.group_size];
    if (relationOf(adjacency) !== "add-remove" && size > 1) {
      throw new Refused(
        `group_size must be 1 for the ${adjacency} adjacency on a page without a server, but it is ${size}: ` +
          "no bound is proved for groups there; ask for add-remove.",
      );
    }
    return new Setting(book, adjacency, size, at, await table(book, adjacency, size));
  }

  constructor(book, adjacency, size, at, codes) {
    Object.assign(this, { book, adjacency, size, at, codes });
  }

  /** The same with a slider at another place. */
  with(name, other) {
    return new Setting(this.book, this.adjacency, this.size, { ...this.at, [name]: other }, this.codes);
  }

  value(name) {
    return this.book.options.parameters[name].positions[this.at[name]];
  }

  /** How a slider's position reads. */
  shown(name) {
    return this.book.options.parameters[name].shown[this.at[name]];
  }

  /** The number of a column here. */
  number(column) {
    const [noises, rates, steps] = MECHANISM.map((name) => this.book.options.parameters[name].positions.length);
    const { noise_multiplier: z, sample_rate: q, steps: n } = this.at;
    const code = this.codes[((column * noises + z) * rates + q) * steps + n];
    const { parts, least, none } = this.book.code;
    if (code === none) return Infinity;
    if (code === 0) return 0;
    return (parts + ((code - 1) % parts)) * 2 ** (Math.floor((code - 1) / parts) + least - Math.log2(parts));
  }

  reading(name) {
    const { conditions, readings } = this.book.metrics[name];
    return readings[conditions.map((condition) => this.at[condition]).join()];
  }

  /** A metric; precision and belief follow from FPR(t) / t and the prior. */
  metric(name) {
    const { column, prior } = this.reading(name);
    if (this.number(0) === Infinity) return this.book.metrics[name].rises ? Infinity : 0; // not certified
    const number = this.number(column);
    return prior === null ? number : prior / (prior + (1 - prior) * number);
  }

  answer(query, route, found) {
    const { book, adjacency, size } = this;
    if (this.number(0) === Infinity) {
      throw new Refused("noise_multiplier must be larger to be certified on a page without a server.");
    }
    const words = book.words[adjacency][size];
    const full = this.value("sample_rate") === 1;
    const training = Object.fromEntries(MECHANISM.map((name) => [name, this.value(name)]));
    return {
      mechanism: { name: "DPSGD", ...training, sampling: "poisson" },
      adjacency,
      group_size: size,
      metrics: Object.fromEntries(Object.keys(book.metrics).map((name) => [name, this.told(name)])),
      described: `${this.described()}. ${NOTE}`,
      certified: words.certified,
      certified_in_full: words.in_full[full ? 1 : 0],
      command: command(book, route, query),
      chosen: found,
      charts: charts(this, query),
    };
  }

  /** What was run, in a line. */
  described() {
    const told = Object.fromEntries(MECHANISM.map((name) => [name, this.value(name)]));
    return filled(this.book.words[this.adjacency][this.size].described, { ...told, steps: this.shown("steps") });
  }

  /** A metric with its words. */
  told(name) {
    const { rises } = this.book.metrics[name];
    const { title, at, say } = this.reading(name);
    const value = this.metric(name);
    const [, sentence] = say.findLast(([edge]) => (edge ?? Infinity) <= value);
    const round = rises ? up : down;
    const finite = Number.isFinite(value);
    return {
      value: finite ? value : null,
      kind: "certified",
      ...at,
      ...(finite ? {} : { note: "no finite value can be certified" }),
      title,
      shown: finite ? (rises ? "" : "≥ ") + round(value) : "no limit",
      sentence: filled(sentence, { x: value }, round),
    };
  }
}

/** The riskiest position of the free slider at which the limit holds. */
async function chosen(book, query) {
  const [target, text, free] = ["target", "value", "free"].map((name) => query.get(name));
  const limit = numberOf(text, book.options.targets.find((one) => one.name === target).percent);
  if (Number.isNaN(limit)) throw new Refused(`${target} must be a number, but it is '${text}'.`);
  const { positions } = book.options.parameters[free];
  const at = { ...places(book, query, free), [free]: 0 };
  const setting = await Setting.at(book, adjacencyOf(book, query), at);
  const order = [...positions.keys()];
  if (!BELOW.includes(free)) order.reverse();
  const { rises } = book.metrics[target];
  const keeps = (value) => (rises ? value <= limit : value >= limit);
  const found = order.map((index) => setting.with(free, index)).find((one) => keeps(one.metric(target)));
  if (!found) {
    const nearest = setting.with(free, order.at(-1));
    throw new Refused(
      `The target ${target} ${text} cannot be met at any position of ${free} on this page: the nearest ` +
        `is ${nearest.told(target).shown}, at ${nearest.shown(free)}.`,
    );
  }
  const value = found.value(free);
  const shown = free === "steps" ? found.shown(free) : String(value);
  return found.answer(query, "choose", { name: free, value, shown });
}

/** The command that answers the same without rounding to tables. */
function command(book, name, query) {
  const goal = name === "choose" ? [[query.get("target"), query.get("value")]] : [];
  const given = book.names
    .filter((each) => query.has(each) && !(name === "choose" && each === query.get("free")))
    .map((each) => [each, query.get(each)]);
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
  const words = [...goal, ...given].map(([each, text]) => `--${each.replaceAll("_", "-")} ${quoted(text)}`);
  return `dprime ${name} ${words.join(" ")}`;
}

// ---------------------------------------------------------------- words

/** A few significant digits, rounded up, as dprime prints them. */
function up(value, digits = 4) {
  if (value === 0 || !Number.isFinite(value)) return value ? "inf" : "0";
  const unit = 10 ** (exponentOf(value) - digits + 1);
  return significant(Math.ceil(value / unit - 1e-14 * Math.abs(value / unit)) * unit, digits);
}

function down(value, digits = 4) {
  const text = up(-value, digits);
  return value === 0 ? text : text.slice(1);
}

const exponentOf = (value) => Number(value.toExponential().split("e")[1]);

/** The digits of a number, with an exponent where it is very small or large. */
function significant(value, digits) {
  const rounded = Number(value.toPrecision(digits));
  const exponent = exponentOf(rounded);
  if (exponent >= -4 && exponent < digits) return String(rounded);
  const [mantissa] = rounded.toExponential().split("e");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** Four digits without an exponent, as charts say them. */
const short = (value, round = up) => {
  const text = round(value);
  return Math.abs(value) < 1e-6 && value ? text : String(Number(text));
};
const share = (value) => `${short(100 * Math.min(value, 1))} %`;

function odds(chance, round) {
  if (chance >= 0.1) return `${round(100 * Math.min(chance, 1))} % of the time`;
  return `once in ${Math.floor(Number(down(1 / chance, 3))).toLocaleString("en")} times`;
}

const FORMS = {
  "": (value, round) => round(value),
  "%": (value, round) => `${round(100 * Math.min(Math.max(value, 0), 1))} %`,
  points: (value, round) => round(100 * value),
  odds,
};

/** A sentence with its numbers filled in; words are taken as they are. */
function filled(template, values, round = up) {
  return template
    .replace(/\{(\w+):?([%\w]*)\}/g, (_, name, form) => {
      const value = values[name];
      if (name === "x") return FORMS[form](value, round);
      return typeof value === "number" ? significant(value, 6) : value;
    })
    .replace(/(?<![\d,.])1 (step|epoch)s\b/, "1 $1");
}

// ---------------------------------------------------------------- charts

function charts(setting, query) {
  const names = (query.get("charts") ?? "").split(",").filter(Boolean);
  const draw = { risk: () => risk(setting, query.get("over")), precision: () => precision(setting) };
  return Object.fromEntries(names.map((name) => [name, (draw[name] ?? (() => tradeOff(setting, name)))()]));
}

/** A chart from the points of its series by name, and the values in its words. */
function drawn({ name, title, text, of, x, y, series }, setting, points, values, aloud) {
  const rows = Object.entries(series).flatMap(([each, words]) =>
    points[each].map(([across, height, side = "above", low = null], index) => ({
      series: each,
      [x]: across,
      [y]: height,
      low,
      ...(words[index] ? { words: filled(words[index], values), side } : {}),
    })),
  );
  const told = [setting.described(), of].filter(Boolean).map((each) => filled(each, values)).join(" · ");
  return { name, title: filled(title, values), text: [filled(text, values), ...aloud].join(" "), of: told, rows };
}

/** Points of a series in words. */
function spoken(name, says, points) {
  const told = points.map(([x, y]) => `${x}: ${says} ${y}`).join("; ");
  return `${name[0].toUpperCase()}${name.slice(1)}: ${told}.`;
}

/** Nine of many, evenly. */
const some = (points) => {
  const places = Array.from({ length: 9 }, (_, at) => Math.round((at * (points.length - 1)) / 8));
  return [...new Set(places)].map((at) => points[at]);
};

function tradeOff(setting, name) {
  const drawing = setting.book.charts[name];
  const [log, corner] = [name === "trade-off-log", name === "trade-off-corner"];
  const [start, most, fpr] = [log ? SMALLEST : 0, setting.metric("tpr"), setting.value("fpr")];
  const end = corner ? Math.min(ENLARGED * fpr, 1) : 1;
  const limit = ceiling(setting);
  const close = corner ? Array.from({ length: 61 }, (_, at) => (end * at) / 60) : [];
  const rates = [...new Set([...RATES, ...close, fpr])].filter((rate) => rate <= end).sort((a, b) => a - b);
  const line = hull(rates.map((rate) => [rate, limit(rate)])).filter((point) => Math.min(...point) >= start);
  const advantage = setting.metric("advantage");
  const values = { at: setting.shown("fpr"), most: share(most), advantage: short(advantage) };
  const widest = line.reduce((best, point) => (point[1] - point[0] > best[1] - best[0] ? point : best));
  const words = widest[0] > 0.1 ? widest[0] : widest[0] + 0.3 * (widest[1] - widest[0]);
  const logSide = most <= 0.5 && fpr >= 0.001 ? "above-left" : "below-right";
  const side = log ? logSide : most < 0.2 && !corner ? "corner" : "below-right";
  const heard = [...new Set([...ALOUD, fpr])].filter((rate) => rate <= end).sort((a, b) => a - b);
  const aloud = heard.map((rate) => [`${short(100 * rate)} %`, share(limit(rate))]);
  const points = {
    advantage: [widest[0], words, widest[1]].map((height) => [widest[0], height, "below-right"]),
    beyond: limit(0.5) < 0.85 ? [[0, 0.95, "right"]] : [],
    attacks: line.map(([x, y]) => [x, y, "above", x]),
    "this rate": most >= start ? [[fpr, most, side]] : [],
    "certified limit": line,
    guessing: [[start, start], [end, end]],
  };
  return drawn(drawing, setting, points, values, [spoken("certified limit", "at most", aloud)]);
}

/**
 * A limit on the curve at every rate, from its limits at some.
 *
 * The curve is concave: beyond two of its points it lies below the line through them. Of those two
 * heights the nearer one is taken as large as it may be, and the other one as small.
 */
function ceiling(setting) {
  const { book } = setting;
  const { fpr } = book.options.parameters;
  const { readings } = book.metrics.tpr;
  const known = fpr.positions.map((rate, index) => [rate, setting.number(readings[index].column)]);
  const first = book.columns - book.drawn.length;
  known.push(...book.drawn.map((rate, index) => [rate, setting.number(first + index)]));
  const { parts } = book.code;
  const advantage = setting.metric("advantage");
  const points = [[0, 0, 0], ...known.map(([x, high]) => [x, high, (high * parts) / (parts + 1)]), [1, 1, 1]];
  return (rate) => {
    let least = Math.min(1, rate + advantage);
    for (let i = 1; i < points.length; i++) {
      const [x0, high0, low0] = points[i - 1];
      const [x1, high1, low1] = points[i];
      if (rate >= x1) least = Math.min(least, high1 + ((high1 - low0) / (x1 - x0)) * (rate - x1));
      if (rate <= x0 && i > 1) least = Math.min(least, high0 - ((low1 - high0) / (x1 - x0)) * (x0 - rate));
    }
    return Math.max(rate, least);
  };
}

/** The least concave line over points. */
function hull(points) {
  const kept = [];
  for (const [x, y] of points) {
    while (kept.length > 1) {
      const [[x0, y0], [x1, y1]] = kept.slice(-2);
      if ((y1 - y0) * (x - x0) > (y - y0) * (x1 - x0)) break; // the last one lies above
      kept.pop();
    }
    kept.push([x, y]);
  }
  return kept;
}

function risk(setting, over) {
  const { book } = setting;
  const { positions } = book.options.parameters[over];
  const line = positions.map((value, index) => [value, Math.min(1, setting.with(over, index).metric("advantage"))]);
  const own = setting.value(over);
  const most = setting.metric("advantage");
  const values = { [over]: setting.shown(over), most: share(most), adjacency: setting.adjacency };
  const left = own > Math.sqrt(positions[0] * positions.at(-1));
  const low = most < 0.15 * Math.max(...line.map(([, height]) => height));
  const above = low || (over === "noise_multiplier") !== left;
  const side = `${above ? "above" : "below"}-${left ? "left" : "right"}`;
  const aloud = some(line).map(([x, y]) => [x.toLocaleString("en", { maximumSignificantDigits: 4 }), share(y)]);
  const points = { "this setting": [[own, most, side]], certified: line, guide: [[own, null]] };
  const drawing = book.charts[`risk-${over.replaceAll("_", "-")}`];
  return drawn(drawing, setting, points, values, [spoken("certified", "at most", aloud)]);
}

function precision(setting) {
  const [epsilon, delta, prior] = [setting.metric("epsilon"), setting.value("delta"), setting.value("prior")];
  const priors = [...new Set([...PRIORS, prior])].sort((a, b) => a - b);
  const most = setting.metric("precision");
  const lineOf = (ratio) => priors.map((share) => [share, share / (share + (1 - share) * ratio)]);
  const certified = lineOf(setting.number(setting.reading("precision").column));
  const alone = lineOf(leastFpr(epsilon, delta));
  const values = {
    at: setting.shown("prior"),
    most: share(most),
    delta: setting.shown("delta"),
    epsilon: Number.isFinite(epsilon) ? short(epsilon) : "∞ (none is certified)",
  };
  const side = prior < 0.35 ? "below-right" : "above-left";
  const points = {
    "this setting": [[prior, most, side]],
    certified,
    "ε and δ alone": alone,
    guessing: lineOf(1),
  };
  const told = (line) => some(line).map(([x, y]) => [share(x), share(y)]);
  const aloud = [spoken("certified", "at most", told(certified)), spoken("ε and δ alone", "at most", told(alone))];
  return drawn(setting.book.charts.precision, setting, points, values, aloud);
}

/** FPR(t) / t at least, as (ε, δ) alone has it, for those who find one member in a hundred. */
function leastFpr(epsilon, delta) {
  const tpr = 0.01;
  const ratio = Math.exp(epsilon);
  return (Math.max(0, (tpr - delta) / ratio, 1 - delta - ratio * (1 - tpr)) / tpr) * (1 - 1e-12);
}
