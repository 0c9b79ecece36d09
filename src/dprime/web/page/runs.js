// The runs of the folder, with their progress, looked at again while someone is watching.

import { fetched } from "./ask.js";
import { announce, cell, get, make, row, table, write } from "./dom.js";

const EVERY = 2000; // ms
const HEADS = ["Run", "Adversary", "Progress", "State", "Finding", "Look"];

let timer = 0;
let watching = false;
const states = new Map();

/** Look at the runs now and every two seconds; only while the page can be seen. */
export function watchRuns(on) {
  watching = on;
  clearTimeout(timer);
  if (on && document.visibilityState === "visible") look();
}

document.addEventListener("visibilitychange", () => watchRuns(watching));

async function look() {
  const notice = get("runs-notice");
  try {
    const { runs, not_runs: others, left_out: older } = await fetched("/api/runs");
    showRuns(runs);
    showOthers(older ? { ...others, [`${older} older files`]: "are not listed." } : others);
    notice.hidden = true;
  } catch (error) {
    notice.hidden = false;
    write(notice, `${error.message} The list below is the one of before.`);
  }
  clearTimeout(timer);
  if (watching && document.visibilityState === "visible") timer = setTimeout(look, EVERY);
}

function showRuns(runs) {
  const holder = get("runs-table");
  if (!runs.length) {
    holder.replaceChildren(
      make("p", {}, "No runs yet. Begin one with ", make("code", {}, "dprime audit --epsilon 4 --max-records 100"), "."),
    );
    return;
  }
  let body = holder.querySelector("tbody");
  if (!body) {
    body = make("tbody", { role: "rowgroup" });
    holder.replaceChildren(table({ class: "runs", "aria-label": "Runs" }, HEADS, body));
  }
  const rows = new Map([...body.children].map((row) => [row.dataset.run, row]));
  const wanted = runs.map((run) => fill(rows.get(run.name) ?? emptyRow(run), run));
  for (const row of body.children) if (!wanted.includes(row)) row.remove();
  wanted.forEach((row, index) => {
    if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
  });
}

function emptyRow(run) {
  return row(
    { "data-run": run.name },
    run.name,
    cell("adversary", "Adversary"),
    cell(
      "progress",
      "Progress",
      make("progress", { "aria-label": `Progress of ${run.name}` }),
      make("span", { class: "count" }),
    ),
    cell("state", "State", make("span", { class: "word" }), make("time", { class: "small" })),
    cell("finding", "Finding"),
    cell("look", "Look"),
  );
}

function fill(row, run) {
  const part = (name) => row.querySelector(`[data-part="${name}"]`);
  write(part("adversary"), run.data ? `${run.adversary}, on ${run.data}` : run.adversary);
  const bar = part("progress").querySelector("progress");
  bar.max = run.blocks;
  bar.value = run.done;
  write(
    part("progress").querySelector(".count"),
    `${run.done} of ${run.blocks} ${run.blocks === 1 ? "block" : "blocks"}, ${run.total_trials} trials`,
  );
  write(part("state").querySelector(".word"), run.state);
  part("state").dataset.state = run.state;
  showTime(part("state").querySelector("time"), run.changed);
  write(part("finding"), run.sentence ?? run.verdict ?? "Nothing concluded yet.");
  showLinks(part("look"), run);
  tell(run);
  return row;
}

function showTime(element, changed) {
  const when = new Date(changed);
  element.dateTime = changed;
  write(element, `changed ${when.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`);
}

function showLinks(cell, run) {
  if (cell.dataset.report === String(run.report)) return;
  cell.dataset.report = String(run.report);
  const name = encodeURIComponent(run.name);
  const link = (words, attributes) => make("a", { "aria-label": `${words} of ${run.name}`, ...attributes }, words);
  if (!run.report) {
    cell.replaceChildren("No report yet");
    return;
  }
  cell.replaceChildren(
    link("Report", { href: `/runs/${name}/report` }),
    " ",
    link("Card", { href: `/api/runs/${name}/card`, download: `${run.name.split("/").pop()}-card.json` }), // data, to be kept
  );
}

/** Say when a run ends, and nothing about the way there. */
function tell(run) {
  const before = states.get(run.name);
  states.set(run.name, run.state);
  if (before && before !== run.state) announce(`${run.name} is ${run.state}.`);
}

function showOthers(others) {
  const section = get("not-runs");
  const listed = Object.entries(others);
  section.hidden = !listed.length;
  const said = JSON.stringify(others);
  if (section.dataset.said === said) return;
  section.dataset.said = said;
  section
    .querySelector("ul")
    .replaceChildren(
      ...listed.map(([name, reason]) =>
        make("li", {}, make("strong", {}, name), ` ${reason.replace(name, "").trim()}`),
      ),
    );
}
