// The certified numbers: a sentence at the top, a table, and the command that repeats them.

import { cell, get, labelled as labelledAs, make, row, table, write } from "./dom.js";
import { settingNames, targetOf } from "./state.js";

const HARDLY = 0.9; // an advantage above this is close to certainty
const READ = ["advantage", "tpr", "precision", "belief", "epsilon"]; // beside the picture

/** The finding about one setting, in a sentence; `stale` where it is the one of before. */
export function finding(state, options, answer, stale) {
  const before = stale ? "Before: " : "";
  const these = stale ? "the settings of before" : "these settings";
  const { advantage } = answer.metrics;
  if (answer.chosen) {
    const { asked } = answer;
    const free = options.parameters[asked.free];
    const limit = `${targetOf(options, asked).title} ${asked.value}`;
    return `${before}With ${free.title.toLowerCase()} ${answer.chosen.shown} your limit holds: ${limit}.`;
  }
  if (state.compare) return `${before}The advantage of an attacker is at most ${advantage.shown}.`;
  if (advantage.value > HARDLY) {
    return `With ${these} hardly anything is protected: the advantage of an attacker may reach ${advantage.shown}, where 1 is certainty.`;
  }
  return `With ${these} nobody can tell members from outsiders with an advantage above ${advantage.shown}, where 0 is blind guessing and 1 is certainty.`;
}

/** Write headline, table, descriptions and commands; `latest` are the last good answers, `stale` names those of before. */
export function showAnswers(state, options, latest, stale) {
  const names = settingNames(state).filter((name) => latest[name]);
  get("results").hidden = get("hero").hidden = !names.length;
  if (!names.length) {
    write(get("finding"), "There is no answer for these settings.");
    return "";
  }
  const labelled = (name, text) => labelledAs(labelOf(state, name), text);
  const findings = names.map((name) =>
    labelled(name, finding(state, options, latest[name], stale.includes(name))),
  );
  const plain = state.compare ? [] : names.map((name) => latest[name].metrics.advantage.sentence);
  write(get("finding"), findings.join("\n"));
  write(get("plainly"), plain.join("\n"));
  write(get("brief"), names.map((name) => labelled(name, brief(latest[name]))).join(" · "));
  const lines = (part) => names.map((name) => labelled(name, latest[name][part])).join("\n");
  write(get("described"), lines("described"));
  write(get("certified"), lines("certified"));
  write(get("conditions"), lines("certified_in_full"));
  showReadings(names, latest);
  showTable(names, latest);
  showCommands(names, latest, labelled);
  return findings.join(" ");
}

/** The two numbers that stay in sight on a phone while a slider moves. */
function brief(answer) {
  const { advantage, epsilon } = answer.metrics;
  return `advantage ≤ ${advantage.shown}, ε ≤ ${epsilon.shown}`;
}

/** The main numbers beside the picture. */
function showReadings(names, latest) {
  const holder = get("readings");
  if (holder.children.length !== READ.length) {
    holder.replaceChildren(...READ.map(() => make("div", {}, make("dt"), make("dd"))));
  }
  READ.forEach((metric, index) => {
    const [title, value] = holder.children[index].children;
    const found = names.map((name) => latest[name].metrics[metric]);
    write(title, found[0].title);
    write(value, found.map(({ shown }, place) => (names[1] ? `${"AB"[place]} ${shown}` : shown)).join(" · "));
  });
}

/** What a setting is called: where there is one alone, nothing. */
export const labelOf = (state, name) => (state.compare ? name.toUpperCase() : "");

/** The table as rows of a CSV file, numbers to the last digit. */
export function numberRows(state, latest, version) {
  return settingNames(state)
    .filter((name) => latest[name])
    .flatMap((name) =>
      Object.entries(latest[name].metrics).map(([metric, { title, value, kind, sentence }]) => ({
        setting: labelledAs(labelOf(state, name), latest[name].described),
        metric,
        title,
        value: value ?? "no limit",
        kind,
        sentence,
        dprime: version,
      })),
    );
}

/** Fill the table; its rows and cells are kept from answer to answer. */
function showTable(names, latest) {
  const holder = get("table");
  const metrics = Object.keys(latest[names[0]].metrics);
  const layout = [...names, ...metrics].join();
  if (holder.dataset.layout !== layout) {
    holder.replaceChildren(emptyTable(names, metrics));
    holder.dataset.layout = layout;
  }
  for (const row of holder.querySelectorAll("tbody tr"))
    fillRow(
      row,
      names,
      names.map((name) => latest[name].metrics[row.dataset.metric]),
      areComparable(names, latest),
    );
}

function emptyTable(names, metrics) {
  const pair = names.length > 1;
  const heads = pair
    ? ["What", "A, at most", "B, at most", "Difference"]
    : ["What", "At most", "In plain words"];
  const rows = metrics.map((metric) =>
    row(
      { "data-metric": metric },
      "",
      ...names.map((name) => cell(name, pair ? name.toUpperCase() : null)),
      cell(pair ? "difference" : "sentence", pair ? "Difference" : null),
    ),
  );
  const kind = { class: pair ? "numbers two" : "numbers", "aria-labelledby": "numbers-title" };
  return table(kind, heads, make("tbody", { role: "rowgroup" }, ...rows));
}

function fillRow(row, names, found, comparable) {
  write(row.querySelector("th"), found[0].title);
  const part = (name) => row.querySelector(`[data-part="${name}"]`);
  names.forEach((name, index) => fillNumber(part(name), found[index], names.length > 1));
  if (names.length > 1) fillDifference(part("difference"), row.dataset.metric, comparable, ...found);
  else write(part("sentence"), found[0].sentence);
}

function fillNumber(cell, answer, withSentence) {
  if (!cell.firstChild) {
    cell.append(make("strong", { class: "value" }), " ", make("span", { class: "kind" }));
    if (withSentence) cell.append(make("span", { class: "sentence" }));
  }
  write(cell.querySelector(".value"), answer.shown);
  write(cell.querySelector(".kind"), answer.kind);
  if (withSentence) write(cell.querySelector(".sentence"), answer.sentence);
}

/** Whether answers are for one adjacency; else no number of one is better than that of another. */
export const areComparable = (names, latest) =>
  new Set(names.map((name) => latest[name]?.adjacency).filter(Boolean)).size < 2;

/** B against A in an arrow and words; numbers that read the same count as the same. */
function fillDifference(cell, metric, comparable, a, b) {
  const limit = (answer) => answer.value ?? Infinity;
  const floor = metric === "bayes_security";
  const up = limit(b) > limit(a);
  const words = !comparable
    ? "not comparable"
    : a.shown === b.shown
      ? "= the same"
      : `${up ? "▲ B higher" : "▼ B lower"}: ${up === floor ? "better protected" : "less protected"}`;
  write(cell, words);
  cell.dataset.side = !comparable || a.shown === b.shown ? "same" : up === floor ? "better" : "worse";
}

function showCommands(names, latest, labelled) {
  const holder = get("commands");
  if (holder.children.length !== names.length) {
    holder.replaceChildren(...names.map(() => make("p", { class: "command" }, make("span"), make("code"))));
  }
  names.forEach((name, index) => {
    const [words, code] = holder.children[index].children;
    write(words, `${labelled(name, "The same on the command line")} `);
    const { command } = latest[name];
    if (code.textContent === command) return;
    const options = command.split(/ (?=--)/).flatMap((each) => [" ", make("span", {}, each)]);
    code.replaceChildren(...options.slice(1)); // a line is broken between options only
  });
}

/** Say what is wrong; answers that are those of before are marked, and say of what. */
export function showNotice(sentences, before) {
  const note = get("notice");
  const kept = before.length ? ` Shown below is the answer of before: ${before.join("; ")}.` : "";
  get("explore").classList.toggle("stale", before.length > 0);
  note.hidden = !sentences.length;
  write(note, sentences.join(" ") + kept);
}
