// Sliders over discrete positions, each with its value in words and a field for an exact one.

import { make, write } from "./dom.js";

/** The number that a text stands for ("1e-5", "256/60000"), or NaN; "2 %" where that may be typed. */
export function numberOf(text, percent = false) {
  if (percent && text.trimEnd().endsWith("%")) return numberOf(text.trimEnd().slice(0, -1)) / 100;
  const [numerator, denominator = "1", ...rest] = text.split("/");
  if (rest.length || !numerator.trim() || !denominator.trim()) return NaN;
  return Number(numerator) / Number(denominator);
}

/** The index of the position nearest to a number: by ratio where it is positive. */
function nearest(positions, value) {
  const away = (position) =>
    position > 0 && value > 0 ? Math.abs(Math.log(position / value)) : Math.abs(position - value);
  let best = 0;
  positions.forEach((position, index) => {
    if (away(position) < away(positions[best])) best = index;
  });
  return best;
}

/** One number of the page. `moved(text, event)` is called with what the reader chose. */
export class Slider {
  #id;
  #moved;
  #positions = [];
  #shown = [];
  #percent = false;

  constructor(id, { title, help }, moved) {
    this.#id = id;
    this.#moved = moved;
    this.label = make("label", { for: id }, title);
    this.words = make("span", { class: "words" }); // no <output>: that would speak at every move
    this.range = make("input", { type: "range", id, min: 0, step: 1, "aria-describedby": `${id}-error` });
    this.field = make("input", {
      type: "text",
      id: `${id}-exact`,
      class: "exact",
      inputmode: "decimal",
      spellcheck: "false",
      autocomplete: "off",
      "aria-label": `${title}, exact value`,
      "aria-describedby": `${id}-error`,
    });
    this.error = make("p", { class: "error", id: `${id}-error` });
    const [sign, explanation] = help ? helpOf(id, title, help) : [null, null];
    this.element = make(
      "div",
      { class: "control", "data-name": id },
      make("div", { class: "head" }, this.label, sign, this.words),
      explanation,
      make("div", { class: "row" }, this.range, this.field),
      this.error,
    );
    this.range.addEventListener("input", (event) => this.#slid(event));
    this.field.addEventListener("change", (event) => this.#typed(event));
  }

  /** The numbers that the slider stops at, and how they read. */
  place({ positions, shown, percent }) {
    this.#percent = percent;
    this.#positions = positions;
    this.#shown = shown;
    this.range.max = positions.length - 1;
  }

  /** Show a value: the slider stands at the nearest position, field and words say it exactly. */
  show(text, { chosen = false } = {}) {
    const value = numberOf(text, this.#percent);
    if (!Number.isNaN(value)) this.range.value = nearest(this.#positions, value);
    if (document.activeElement !== this.field || chosen) this.field.value = text;
    const index = this.#positions.indexOf(value);
    const words = index < 0 ? text : this.#shown[index];
    const said = chosen ? `${words}, chosen` : words;
    write(this.words, said);
    this.range.setAttribute("aria-valuetext", said);
    this.range.disabled = this.field.readOnly = chosen;
    this.element.classList.toggle("chosen", chosen);
  }

  /** Say beside the slider what is wrong with its value; no sentence takes it back. */
  refuse(sentence = "") {
    write(this.error, sentence);
    for (const input of [this.range, this.field]) {
      if (sentence) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  #slid(event) {
    const text = String(this.#positions[this.range.valueAsNumber]);
    this.field.value = text;
    this.#moved(text, event);
  }

  #typed(event) {
    this.#moved(this.field.value.trim(), event);
  }
}

const FIELDS = { records: "Records", batch: "Batch size", epochs: "Epochs" };

/** Number of records, batch size and epochs, which say a sampling rate and a number of steps. */
export class Batches {
  #records = "60000"; // of MNIST, until others are given

  constructor(id, moved) {
    this.fields = Object.fromEntries(
      Object.keys(FIELDS).map((name) => [
        name,
        make("input", { type: "text", id: `${id}-${name}`, class: "exact", inputmode: "decimal" }),
      ]),
    );
    this.error = make("p", { class: "error", id: `${id}-batches-error` });
    const labelled = Object.entries(this.fields).map(([name, field]) =>
      make("div", {}, make("label", { for: field.id }, FIELDS[name]), field),
    );
    this.element = make(
      "details",
      { class: "batches" },
      make("summary", {}, "From a batch size and epochs"),
      make("div", { class: "three" }, ...labelled),
      this.error,
    );
    this.element.addEventListener("change", (event) => this.#typed(event, moved));
  }

  /** Show what a setting with so many records has. */
  show({ dataset_size, steps }, rateText) {
    if (dataset_size) this.#records = dataset_size;
    const [rate, records] = [numberOf(rateText, true), this.#records];
    const batch = rate * numberOf(records);
    const shown = { records, batch: rounded(batch), epochs: rounded(numberOf(steps) * rate) };
    for (const [name, field] of Object.entries(this.fields)) {
      if (document.activeElement !== field) field.value = shown[name];
    }
    write(this.error, "");
  }

  #typed(event, moved) {
    const { records, batch, epochs } = this.fields;
    const [n, size, passes] = [records, batch, epochs].map((field) => numberOf(field.value));
    const right = n > 0 && size > 0 && size <= n && passes > 0 && Number.isFinite(passes * n);
    write(this.error, right ? "" : "Give positive numbers, and a batch no larger than the data.");
    if (!right) return;
    const steps = Math.max(1, Math.ceil(((passes * n) / size) * (1 - 1e-12))); // as --epochs has it
    const texts = { dataset_size: `${n}`, batch_size: `${size}`, steps: `${steps}` };
    moved(texts, event);
  }
}

const rounded = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "");

/** A sign beside the label, and the words on the number that it opens. */
function helpOf(id, title, help) {
  const words = make("p", { class: "help-words", id: `${id}-help`, hidden: true }, help);
  const sign = make(
    "button",
    {
      type: "button",
      class: "help",
      "aria-label": `About: ${title}`,
      "aria-expanded": "false",
      "aria-controls": words.id,
    },
    "?",
  );
  sign.addEventListener("click", () => openHelp(sign, words.hidden));
  return [sign, words];
}

function openHelp(sign, open) {
  sign.setAttribute("aria-expanded", String(open));
  document.getElementById(sign.getAttribute("aria-controls")).hidden = !open;
}

/** Escape closes what is open, the nearest first, and puts the focus back on what opened it. */
export function closeOnEscape(event) {
  if (event.key !== "Escape") return;
  const near = document.activeElement;
  const drawing = near?.closest("details[open]");
  const sign = near?.matches(".help[aria-expanded=true]")
    ? near
    : document.querySelector(".help[aria-expanded=true]");
  if (drawing) {
    drawing.open = false;
    drawing.querySelector("summary").focus();
  } else if (sign) {
    openHelp(sign, false);
    sign.focus();
  }
}

/** Radio buttons in a fieldset, one for each (value, words). */
export function radios(fieldset, name, choices, moved) {
  for (const [value, words] of choices) {
    const input = make("input", { type: "radio", name, value });
    fieldset.append(make("label", {}, input, " ", make("span", {}, words)));
  }
  fieldset.addEventListener("change", (event) => {
    if (event.target.name === name) moved(event.target.value, event);
  });
}

/** Mark the chosen radio button of a group. */
export function mark(fieldset, name, value) {
  for (const input of fieldset.querySelectorAll("input")) {
    if (input.name === name) input.checked = input.value === value;
  }
}
