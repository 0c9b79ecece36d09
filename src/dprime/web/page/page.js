// The explorer: sliders ask, the server answers, numbers and drawings follow.
//
//   move ──► state ──► address bar
//              └──► question ──► answer ──► headline, table, command
//                                   └─────► question for charts ──► drawings
//
// A move has a number. When its drawings are on the screen, that number stands in
// <html data-drawn> and the time it took in performance.getEntriesByName("dprime-move").

import { showAnswers, showNotice } from "./answers.js";
import { fetched, Lane, Overtaken, Refusal } from "./ask.js";
import { Chart } from "./charts.js";
import { closeOnEscape, mark, radios, Slider } from "./controls.js";
import { announce, get, make, write } from "./dom.js";
import { watchRuns } from "./runs.js";
import {
  chartsQuestion,
  question,
  questionNames,
  readAddress,
  settingNames,
  targetOf,
  trainingNames,
  writeAddress,
} from "./state.js";

const ADDRESS_AFTER = 250; // ms of rest; browsers limit how often an address may change
const SLOTS = ["trade-off", "risk", "precision", "bayes-security"];
const ADJACENCY = {
  "add-remove": "With or without the record",
  replace: "The record replaced by another",
  "zero-out": "The record zeroed out, the number of records public",
};
const OVER = { noise_multiplier: "noise", sample_rate: "sampling rate", steps: "steps" };

const lanes = { a: new Lane(), b: new Lane() };
const chartLanes = { a: new Lane(), b: new Lane() };
const latest = { a: null, b: null }; // the last good answers, with their charts
const errors = { a: "", b: "" };
const sliders = { a: {}, b: {}, ask: {} };
const charts = { a: {}, b: {} };

let options, state, valueSlider;
let notes = []; // what an address asked for and could not have
let moves = 0;
let addressTimer = 0;

const theme = () => document.documentElement.dataset.theme;

// ---------------------------------------------------------------- moves

/** Something changed: ask again for these settings and show what comes. */
async function move(names, event = undefined) {
  const number = ++moves;
  const started = event?.timeStamp ?? performance.now();
  if (event) notes = [];
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
  if (number === moves) recordMove(number, started);
}

/** The slider that a hand is moving, if it is one. */
const handOf = (event) => (event?.target.type === "range" ? event.target.id : null);

/** Ask about one setting: show its numbers as soon as they come, and draw its charts. */
async function answerFor(name, hand) {
  const { target, value, free } = state;
  const drawings = chartsQuestion(state, name, chartNames());
  const askCharts = () => chartLanes[name].ask(`/api/charts?${drawings}`, hand);
  const coming = state.mode === "risk" ? askCharts() : null; // a choice has to be made first
  coming?.catch(() => {}); // what is wrong with the question is said of the numbers
  try {
    const answer = await lanes[name].ask(question(state, name), hand);
    latest[name] = { ...answer, charts: latest[name]?.charts, asked: { target, value, free } };
    errors[name] = "";
    adoptChosen(name, answer);
    showNumbers();
    if (answer.chosen) drawings.set(answer.chosen.name, answer.chosen.value);
    latest[name].charts = await (coming ?? askCharts());
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refused(name, error.message);
    return;
  }
  await showCharts(name);
}

/** The chosen parameter stays where it is when the reader goes on from here. */
function adoptChosen(name, answer) {
  if (state.mode !== "choose" || answer.chosen?.name !== state.free) return;
  state[name][answer.chosen.name] = answer.chosen.shown.replaceAll(",", "");
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

const chartNames = () =>
  SLOTS.map((slot) => (slot === "trade-off" && state.scale === "log" ? "trade-off-log" : slot));

// ---------------------------------------------------------------- showing

function showNumbers() {
  const wrong = settingNames(state).filter((name) => errors[name]);
  const spoken = showAnswers(state, options, latest, wrong);
  showErrors(wrong);
  const label = (name) => (state.compare ? `${name.toUpperCase()}: ` : "");
  const sentences = wrong.map((name) => label(name) + errors[name]);
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

async function showCharts(name) {
  const found = Object.values(latest[name].charts ?? {});
  const drawn = found.map((chart, index) =>
    charts[name][SLOTS[index]].show(chart, theme(), state.compare ? name.toUpperCase() : ""),
  );
  await Promise.all(drawn);
}

function redrawCharts() {
  for (const name of settingNames(state)) if (latest[name]) showCharts(name);
}

/** Put every control where the state is. */
function showControls() {
  const choosing = state.mode === "choose";
  for (const name of ["a", "b"]) {
    for (const [parameter, slider] of Object.entries(sliders[name])) {
      slider.show(state[name][parameter], { chosen: choosing && parameter === state.free });
    }
    mark(get(`setting-${name}`), `adjacency-${name}`, state[name].adjacency);
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

function showCompare() {
  get("setting-b").hidden = !state.compare;
  write(get("setting-a").querySelector("legend"), state.compare ? "Training A" : "The training");
  write(get("compare"), state.compare ? "Show one setting only" : "Compare two settings");
  get("compare").setAttribute("aria-pressed", String(state.compare));
  get("explore").classList.toggle("comparing", state.compare);
  for (const chart of Object.values(charts.b)) chart.element.hidden = !state.compare;
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
  if (state.view === "explore") redrawCharts();
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
  for (const parameter of trainingNames(options)) {
    const slider = new Slider(`${name}-${parameter}`, options.parameters[parameter], (text, event) => {
      state[name][parameter] = text;
      move([name], event);
    });
    slider.place(options.parameters[parameter]);
    sliders[name][parameter] = slider;
    fieldset.append(slider.element);
  }
  const adjacency = make(
    "fieldset",
    { class: "choice" },
    make("legend", {}, "The two worlds that an attacker tells apart"),
  );
  const choices = options.adjacency.map((one) => [one, ADJACENCY[one] ?? one]);
  radios(adjacency, `adjacency-${name}`, choices, (value, event) => {
    state[name].adjacency = value;
    move([name], event);
  });
  fieldset.append(adjacency);
}

function buildQuestions() {
  for (const parameter of questionNames(options)) {
    const slider = new Slider(`ask-${parameter}`, options.parameters[parameter], (text, event) => {
      state.ask[parameter] = text;
      move(["a", "b"], event);
    });
    slider.place(options.parameters[parameter]);
    sliders.ask[parameter] = slider;
    get("questions").append(slider.element);
  }
}

function buildGoal() {
  get("target").append(...options.targets.map((one) => make("option", { value: one.name }, one.title)));
  get("target").addEventListener("change", (event) => {
    state.target = event.target.value;
    state.value = String(targetOf(options, state).default);
    move(["a", "b"], event);
  });
  valueSlider = new Slider("value-of-target", { title: "Your limit" }, (text, event) => {
    state.value = text;
    move(["a", "b"], event);
  });
  get("value").append(valueSlider.element);
  radios(
    get("free"),
    "free",
    options.free.map((one) => [one, options.parameters[one].title]),
    (value, event) => {
      state.free = value;
      move(["a", "b"], event);
    },
  );
}

function buildCharts() {
  for (const slot of SLOTS) {
    charts.a[slot] = new Chart(`chart-a-${slot}`);
    charts.b[slot] = new Chart(`chart-b-${slot}`);
    get("drawings").append(
      make(
        "div",
        { class: "pair", "data-slot": slot },
        toolOf(slot),
        charts.a[slot].element,
        charts.b[slot].element,
      ),
    );
  }
}

/** What can be changed about a drawing, above it. */
function toolOf(slot) {
  const tool = make("div", { class: "tool" });
  if (slot === "trade-off") {
    const scale = make("input", { type: "checkbox", id: "scale" });
    scale.addEventListener("change", (event) => {
      state.scale = scale.checked ? "log" : "linear";
      move(["a", "b"], event);
    });
    tool.append(make("label", {}, scale, " Look closely at few false alarms (logarithmic)"));
  } else if (slot === "risk") {
    const over = make(
      "select",
      { id: "over" },
      ...options.free.map((one) => make("option", { value: one }, OVER[one] ?? one)),
    );
    over.addEventListener("change", (event) => {
      state.over = over.value;
      move(["a", "b"], event);
    });
    tool.append(make("label", { for: "over" }, "The risk over the "), over);
  } else if (slot === "precision") {
    tool.append("What ε and δ alone promise. The table reads the whole curve and is sharper.");
  } else {
    tool.append("The course of the training.");
  }
  return tool;
}

function wire() {
  radios(get("mode"), "mode", [], (value, event) => {
    state.mode = value;
    move(["a", "b"], event);
  });
  get("compare").addEventListener("click", (event) => {
    state.compare = !state.compare;
    if (state.compare && !latest.b) state.b = { ...state.a };
    move(["a", "b"], event);
  });
  get("share").addEventListener("click", share);
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
    if (state) redrawCharts();
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
  buildCharts();
  wire();
  restore();
}

begin();
