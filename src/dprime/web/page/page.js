// The explorer: sliders ask, the server answers, numbers and drawings follow.
//
//   move ──► state ──► address bar
//              ├──► question ──► answer ──► headline, picture, table, command
//              └──► question for a range ──► the chart of the risk; a finer one at rest
//
// A move has a number. When its drawings are on the screen, that number stands in
// <html data-drawn> and the time it took in performance.getEntriesByName("dprime-move").

import { areComparable, labelOf, numberRows, showAnswers, showNotice } from "./answers.js";
import { fetched, Lane, Overtaken, Refusal } from "./ask.js";
import { Chart } from "./charts.js";
import { Batches, closeOnEscape, mark, radios, Slider } from "./controls.js";
import { announce, get, labelled, make, save, write } from "./dom.js";
import { watchRuns } from "./runs.js";
import {
  isGuarantee,
  question,
  NO_SIZES,
  questionNames,
  rangeQuestion,
  rateOf,
  readAddress,
  settingNames,
  targetOf,
  trainingNames,
  writeAddress,
} from "./state.js";

const ADDRESS_AFTER = 250; // ms of rest; browsers limit how often an address may change
const FINE_AFTER = 600; // ms of rest
const SLOTS = ["trade-off", "trade-off-corner", "precision", "risk"];
const CURVE = "The certified curve: what no attacker can beat";
const LOOKS = {
  "trade-off": { one: CURVE, two: CURVE, large: true },
  "trade-off-corner": { two: "Few false alarms, enlarged", key: false },
};
const LARGEST_FILE = 16 * 1024; // bytes
const ADJACENCY = {
  "add-remove": "With or without the record",
  replace: "The record replaced by another",
  "zero-out": "The record zeroed out, the number of records public",
};
const FROM = [
  ["training", "Noise, rate and steps"],
  ["guarantee", "ε and δ alone"],
];
const STATED = "The ε of a guarantee of which nothing else is known; its δ is that of the attacker below.";
const OVER = { noise_multiplier: "noise", sample_rate: "sampling rate", steps: "steps" };

const lanes = { a: new Lane(), b: new Lane() };
const chartLanes = { a: new Lane(), b: new Lane() };
const latest = { a: null, b: null }; // the last good answers, with their charts
const errors = { a: "", b: "" };
const sliders = { a: {}, b: {}, ask: {} };
const batches = {};
const charts = {};

let options, state, valueSlider;
let notes = []; // what an address asked for and could not have
let moves = 0;
let addressTimer = 0;
let fineTimer = 0;
let riskIsSeen = false;

const theme = () => document.documentElement.dataset.theme;

// ---------------------------------------------------------------- moves

/** Something changed: ask again for these settings and show what comes. */
async function move(names, event = undefined) {
  const number = ++moves;
  const started = event?.timeStamp ?? performance.now();
  if (event) notes = [];
  if (event && !["preset", "file"].includes(event.target.id)) showSource(null);
  clearTimeout(fineTimer);
  showControls();
  keepAddress();
  const asked = settingNames(state).filter((name) => names.includes(name));
  try {
    await Promise.all(asked.map((name) => answerFor(name, handOf(event))));
  } catch (error) {
    if (error instanceof Overtaken) return;
    throw error;
  }
  if (number === moves) await new Promise((shown) => afterPaint(shown));
  if (number !== moves) return;
  recordMove(number, started);
  refine();
}

/** The reader changed what both settings share. */
function change(parts, event) {
  Object.assign(state, parts);
  move(["a", "b"], event);
}

/** The slider that a hand is moving, if it is one. */
const handOf = (event) => (event?.target.type === "range" ? event.target.id : null);

/** Ask about one setting: show its numbers and their charts as soon as they come, then its range. */
async function answerFor(name, hand) {
  const { target, value, free } = state;
  const range = rangeQuestion(state, name);
  const askRange = () => chartLanes[name].ask(`/api/charts?${range}`, hand);
  const drawn = !isGuarantee(state, name);
  const coming = drawn && state.mode === "risk" ? askRange() : null; // a choice has to be made first
  coming?.catch(() => {}); // what is wrong with the question is said of the numbers
  try {
    const names = SLOTS.map(chartOf).filter((slot) => slot !== "risk");
    const answer = await lanes[name].ask(question(state, name, names), hand);
    const risk = drawn ? latest[name]?.charts.risk : undefined; // until its own is there
    latest[name] = { ...answer, charts: { ...answer.charts, risk }, asked: { target, value, free } };
    showAdjacency(name);
    errors[name] = "";
    adoptChosen(name, answer);
    showNumbers();
    const shown = showCharts();
    if (answer.chosen) range.set(answer.chosen.name, answer.chosen.value);
    latest[name].range = range;
    if (drawn) Object.assign(latest[name].charts, await (coming ?? askRange()));
    await shown;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refused(name, error.message);
    return;
  }
  await showCharts();
}

/** Once things are at rest and the chart of the risk is in sight, draw it through more points. */
function refine() {
  clearTimeout(fineTimer);
  if (riskIsSeen) fineTimer = setTimeout(() => settingNames(state).forEach(refineOne), FINE_AFTER);
}

async function refineOne(name) {
  const { charts: drawn, range } = latest[name] ?? {};
  if (!drawn?.risk || errors[name]) return;
  try {
    Object.assign(drawn, await chartLanes[name].ask(`/api/charts?${range}&fine=true`));
    await showCharts();
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof Overtaken)) throw error; // the coarse one stays
  }
}

/** The chosen parameter stays where it is when the reader goes on from here. */
function adoptChosen(name, answer) {
  if (state.mode !== "choose" || answer.chosen?.name !== state.free) return;
  state[name][answer.chosen.name] = answer.chosen.shown.replaceAll(",", "");
  if (state.free === "sample_rate") Object.assign(state[name], NO_SIZES);
  showControls();
  keepAddress();
}

function refused(name, sentence) {
  errors[name] = sentence;
  showNumbers();
  announce(sentence);
}

/** The time from a reader's hand to the drawings on the screen. */
function recordMove(number, started) {
  performance.measure("dprime-move", { start: started, end: performance.now(), detail: number });
  document.documentElement.dataset.drawn = String(number);
}

function afterPaint(then) {
  requestAnimationFrame(() => setTimeout(then));
}

/** The chart that a slot shows. */
const chartOf = (slot) =>
  slot === "trade-off-corner" && state.scale === "log" ? "trade-off-log" : slot;

// ---------------------------------------------------------------- showing

function showNumbers() {
  const wrong = settingNames(state).filter((name) => errors[name]);
  const spoken = showAnswers(state, options, latest, wrong);
  showErrors(wrong);
  const sentences = wrong.map((name) => labelled(labelOf(state, name), errors[name]));
  if (!areComparable(settingNames(state), latest)) sentences.push(options.comparable);
  showNotice([...sentences, ...notes], wrong.map((name) => latest[name]?.described).filter(Boolean));
  if (!wrong.length) announce(spoken);
}

/** Each sentence stands beside the slider that it names first. */
function showErrors(wrong) {
  const everywhere = [...Object.values(sliders).flatMap(Object.values), valueSlider];
  for (const slider of everywhere) slider.refuse();
  for (const name of wrong) sliderNamed(name, errors[name])?.refuse(errors[name]);
}

function sliderNamed(name, sentence) {
  const first = sentence.split(" ")[0];
  if (state.mode === "choose" && (first === state.target || sentence.includes(`target ${state.target}`)))
    return valueSlider;
  return sliders[name][first] ?? sliders.ask[first];
}

/** The charts of a slot, one for each setting that has it. */
const partsOf = (slot) =>
  settingNames(state)
    .map((name) => ({
      label: labelOf(state, name),
      chart: latest[name]?.charts[chartOf(slot)],
    }))
    .filter(({ chart }) => chart);

async function showCharts() {
  await Promise.all(
    SLOTS.map((slot) => {
      const parts = partsOf(slot);
      charts[slot].element.parentElement.hidden = slot === "risk" && !parts.length;
      return parts.length ? charts[slot].show(parts, theme()) : null;
    }),
  );
}

/** Put every control where the state is. */
function showControls() {
  const choosing = state.mode === "choose";
  for (const name of ["a", "b"]) {
    for (const [parameter, slider] of Object.entries(sliders[name])) {
      slider.show(parameter === "sample_rate" ? rateOf(state[name]) : state[name][parameter], { chosen: choosing && parameter === state.free });
      slider.element.hidden = (parameter === "epsilon") !== isGuarantee(state, name);
    }
    const fieldset = get(`setting-${name}`);
    showAdjacency(name);
    mark(fieldset, `from-${name}`, state[name].from);
    fieldset.querySelector(".from").hidden = choosing;
    batches[name].element.hidden = isGuarantee(state, name);
    batches[name].show(state[name], rateOf(state[name]));
  }
  for (const [parameter, slider] of Object.entries(sliders.ask)) slider.show(state.ask[parameter]);
  mark(get("mode"), "mode", state.mode);
  mark(get("free"), "free", state.free);
  get("goal").hidden = !choosing;
  get("target").value = state.target;
  valueSlider.place(targetOf(options, state));
  valueSlider.show(state.value);
  get("over").value = state.over;
  get("scale").checked = state.scale === "log";
  showCompare();
}

/** The adjacency that was chosen, or else that of the answer. */
function showAdjacency(name) {
  const { adjacency } = state[name];
  mark(get(`setting-${name}`), `adjacency-${name}`, adjacency || latest[name]?.adjacency);
}

function showCompare() {
  get("setting-b").hidden = !state.compare;
  write(get("setting-a").querySelector("legend"), state.compare ? "Setting A" : "The setting");
  write(get("compare"), state.compare ? "Show one setting only" : "Compare two settings");
  get("compare").setAttribute("aria-pressed", String(state.compare));
  get("explore").classList.toggle("comparing", state.compare);
}

function showView() {
  get("explore").hidden = state.view !== "explore";
  get("runs").hidden = state.view !== "runs";
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.querySelector(".skip").href = state.view === "runs" ? "#runs" : "#answer";
  document.title = state.view === "runs" ? "Runs · dprime explorer" : "dprime explorer";
  watchRuns(state.view === "runs");
  if (state.view === "explore") showCharts();
}

// ---------------------------------------------------------------- address

function keepAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeNow, ADDRESS_AFTER);
}

function writeNow() {
  clearTimeout(addressTimer);
  history.replaceState(null, "", writeAddress(state));
  for (const link of document.querySelectorAll("[data-view]")) {
    link.href = writeAddress({ ...state, view: link.dataset.view });
  }
}

function restore() {
  ({ state, notes } = readAddress(location.search, options));
  showView();
  move(["a", "b"]);
}

async function share() {
  writeNow();
  const field = get("address");
  field.value = location.href;
  try {
    await navigator.clipboard.writeText(location.href);
    write(get("shared"), "The address is copied. Whoever opens it on this machine sees this view.");
  } catch {
    field.hidden = false;
    field.focus();
    field.select();
    write(get("shared"), "Copy the address from the field below.");
  }
  announce(get("shared").textContent, 0);
}

// ---------------------------------------------------------------- building

function buildSetting(name) {
  const fieldset = get(`setting-${name}`);
  const changed = (texts, event) => {
    Object.assign(state[name], texts);
    move([name], event);
  };
  const from = make("fieldset", { class: "choice from" }, make("legend", {}, "Described by"));
  radios(from, `from-${name}`, FROM, (value, event) => changed({ from: value }, event));
  fieldset.append(from);
  const stated = { ...options.targets.find((one) => one.name === "epsilon"), title: "ε", help: STATED };
  const parameters = trainingNames(options).map((one) => options.parameters[one]);
  for (const parameter of [stated, ...parameters]) {
    const slider = new Slider(`${name}-${parameter.name}`, parameter, (text, event) =>
      changed({ [parameter.name]: text, ...(parameter.name === "sample_rate" ? NO_SIZES : {}) }, event),
    );
    slider.place(parameter);
    sliders[name][parameter.name] = slider;
    fieldset.append(slider.element);
  }
  batches[name] = new Batches(name, changed);
  sliders[name].steps.element.after(batches[name].element);
  const adjacency = make(
    "fieldset",
    { class: "choice" },
    make("legend", {}, "The two worlds that an attacker tells apart"),
  );
  const choices = options.adjacency.map((one) => [one, ADJACENCY[one] ?? one]);
  radios(adjacency, `adjacency-${name}`, choices, (value, event) => changed({ adjacency: value }, event));
  fieldset.append(adjacency);
}

function buildStart() {
  get("preset").append(...options.presets.map(({ title }, place) => make("option", { value: place }, title)));
  get("preset").addEventListener("change", (event) => {
    const preset = options.presets[event.target.value];
    if (preset) startFrom(preset.setting, preset, event);
  });
  get("file").addEventListener("change", (event) => openFile(event.target.files[0], event));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    openFile(event.dataTransfer.files[0], event);
  });
}

/** The setting that a file holds; the server reads it as data and keeps nothing. */
async function openFile(file, event) {
  if (!file) return;
  try {
    if (file.size > LARGEST_FILE) throw new Refusal("The file must be at most 16 KB to hold a setting.");
    const setting = await fetched("/api/read", undefined, await file.text());
    startFrom(setting, { source: file.name }, event);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    notes = [error.message];
    showNumbers();
    announce(error.message);
  }
}

/** Show a setting as A; δ is the question's. */
function startFrom({ delta = state.ask.delta, ...setting }, source, event) {
  const from = "epsilon" in setting ? "guarantee" : "training";
  Object.assign(state.a, { adjacency: "", group_size: "1", ...NO_SIZES }, setting, { from });
  change({ mode: "risk", ask: { ...state.ask, delta } }, event);
  showSource(source);
}

function showSource(found) {
  const { source, published, derived } = found ?? {};
  if (!published) get("preset").value = "";
  if (!found || published) get("file").value = "";
  const sentences = [source, published && `It states: ${published}`, derived && `Derived: ${derived}`];
  get("source").hidden = !found;
  write(get("source"), sentences.filter(Boolean).map((each) => `${each}.`).join(" "));
}

function buildQuestions() {
  for (const parameter of questionNames(options)) {
    const slider = new Slider(`ask-${parameter}`, options.parameters[parameter], (text, event) =>
      change({ ask: { ...state.ask, [parameter]: text } }, event),
    );
    slider.place(options.parameters[parameter]);
    sliders.ask[parameter] = slider;
    get("questions").append(slider.element);
  }
}

function buildGoal() {
  get("target").append(...options.targets.map((one) => make("option", { value: one.name }, one.title)));
  get("target").addEventListener("change", (event) => {
    const target = event.target.value;
    change({ target, value: String(targetOf(options, { target }).default) }, event);
  });
  valueSlider = new Slider("value-of-target", { title: "Your limit" }, (value, event) => change({ value }, event));
  get("value").append(valueSlider.element);
  const titles = options.free.map((one) => [one, options.parameters[one].title]);
  radios(get("free"), "free", titles, (free, event) => change({ free }, event));
}

function buildCharts() {
  for (const slot of SLOTS) {
    charts[slot] = new Chart(slot, options.version, LOOKS[slot]);
    const inPicture = slot.startsWith("trade-off");
    const holder = make("div", { class: "pair", "data-slot": slot }, charts[slot].element, toolOf(slot));
    if (inPicture) get("readings").before(holder);
    else get("drawings").append(holder);
  }
  new IntersectionObserver(([{ isIntersecting }]) => {
    riskIsSeen = isIntersecting;
    if (isIntersecting) refine();
  }).observe(charts.risk.canvas);
}

/** What can be changed about a drawing, below it. */
function toolOf(slot) {
  if (slot === "trade-off-corner") {
    const scale = make("input", { type: "checkbox", id: "scale" });
    scale.addEventListener("change", (event) => change({ scale: scale.checked ? "log" : "linear" }, event));
    return make("label", { class: "tool" }, scale, " Logarithmic: very few false alarms");
  }
  if (slot !== "risk") return null;
  const choices = options.free.map((one) => make("option", { value: one }, OVER[one] ?? one));
  const over = make("select", { id: "over" }, ...choices);
  over.addEventListener("change", (event) => change({ over: over.value }, event));
  return make("div", { class: "tool" }, make("label", { for: "over" }, "The risk over the "), over);
}

function wire() {
  radios(get("mode"), "mode", [], (mode, event) => change({ mode }, event));
  get("compare").addEventListener("click", (event) => {
    const b = latest.b ? state.b : { ...state.a }; // B begins as A
    change({ compare: !state.compare, b }, event);
  });
  get("share").addEventListener("click", share);
  get("save-numbers").addEventListener("click", () => save("numbers.csv", numberRows(state, latest, options.version)));
  get("controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", closeOnEscape);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !get("address").hidden) {
      get("address").hidden = true;
      get("share").focus();
    }
  });
  for (const link of document.querySelectorAll("[data-view]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      state.view = link.dataset.view;
      history.pushState(null, "", writeAddress(state));
      showView();
    });
  }
  addEventListener("popstate", restore);
  wireTheme();
}

function wireTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const systemTheme = () => (system.matches ? "dark" : "light");
  const show = (chosen) => {
    document.documentElement.dataset.theme = chosen;
    write(get("theme"), chosen === "dark" ? "Light colours" : "Dark colours");
    if (state) showCharts();
  };
  get("theme").addEventListener("click", () => {
    const chosen = theme() === "dark" ? "light" : "dark";
    keepTheme(chosen === systemTheme() ? null : chosen); // the system's own colours follow it again
    show(chosen);
  });
  system.addEventListener("change", () => show(keptTheme() ?? systemTheme()));
  show(theme());
}

function keptTheme() {
  try {
    return localStorage.getItem("dprime-theme");
  } catch {
    return null; // no storage: follow the system
  }
}

function keepTheme(chosen) {
  try {
    if (chosen) localStorage.setItem("dprime-theme", chosen);
    else localStorage.removeItem("dprime-theme");
  } catch {
    // no storage: the choice lasts as long as the page
  }
}

async function begin() {
  try {
    options = await fetched("/api/options");
  } catch (error) {
    write(get("finding"), error.message);
    return;
  }
  buildSetting("a");
  buildSetting("b");
  buildQuestions();
  buildGoal();
  buildStart();
  buildCharts();
  wire();
  restore();
}

begin();
