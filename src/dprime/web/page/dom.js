// Elements in one line each.

/** An element with attributes and children; an attribute that is false or null is left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A table with these heads; its roles hold where a phone shows its rows as blocks. */
export const table = (attributes, heads, body) =>
  make(
    "table",
    { role: "table", ...attributes },
    make(
      "thead",
      { role: "rowgroup" },
      make("tr", { role: "row" }, ...heads.map((text) => make("th", { role: "columnheader", scope: "col" }, text))),
    ),
    body,
  );

/** A row with its own head. */
export const row = (attributes, head, ...cells) =>
  make("tr", { role: "row", ...attributes }, make("th", { role: "rowheader", scope: "row" }, head), ...cells);

/** A cell by the name of its part, with what a phone writes before it. */
export const cell = (part, label, ...children) =>
  make("td", { role: "cell", "data-part": part, "data-label": label }, ...children);

/** The element of that id. */
export const get = (id) => document.getElementById(id);

/** Set an element's text only where it differs, so that nothing is announced or redrawn twice. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Words about setting "A" or "B", or without a label. */
export const labelled = (label, words) => (label ? `${label}: ${words}` : words);

/** Have the browser keep a file: a picture's address, or rows as CSV. */
export function save(name, contents) {
  if (!contents) return;
  const rows = Array.isArray(contents) ? contents : null;
  const href = rows ? URL.createObjectURL(new Blob([csv(rows)], { type: "text/csv" })) : contents;
  const link = make("a", { href, download: `dprime-${name}` });
  link.click();
  if (rows) setTimeout(() => URL.revokeObjectURL(href), FORGOTTEN);
}

/** Rows as CSV, with every column that one of them has. */
function csv(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const line = (values) => values.map((value) => cell(String(value ?? ""))).join(",");
  return [line(columns), ...rows.map((row) => line(columns.map((name) => row[name])))].join("\n");
}

const SETTLED = 700; // ms: somebody who drags a slider hears the end of the journey only
const FORGOTTEN = 8000; // ms
let pending = 0;

/** Have a sentence spoken by a screen reader, once things have settled. */
export function announce(sentence, after = SETTLED) {
  clearTimeout(pending);
  pending = setTimeout(() => {
    write(get("announcer"), sentence);
    pending = setTimeout(() => write(get("announcer"), ""), FORGOTTEN);
  }, after);
}
