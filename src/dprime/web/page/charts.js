// The drawings: each is embedded once, and a move only brings new rows.

import { fetched } from "./ask.js";
import { labelled, make, save, write } from "./dom.js";

const SHAPE = 0.72, // height over width
  LARGE = 0.86; // of the first drawing
const LOWEST = 190,
  HIGHEST = 460; // px
const ERRORS_ONLY = 1; // what Vega may say: layers without rows are meant

const QUIET = {
  mode: "vega-lite",
  ast: true,
  actions: false,
  renderer: "svg",
  defaultStyle: false,
  tooltip: false,
  logLevel: ERRORS_ONLY,
};
const PICTURE = 640, // px: the width of a picture that is kept
  FLATTER = 0.75, // its height beside that on the page
  LETTERS = 66, // in a line of its title
  SMALLER = 1.4, // so many more in a line below it
  DOT = " · "; // between the parts of that line

const specifications = new Map();

/** The drawing program, once its file has arrived; the numbers never wait for it. */
const vega = new Promise((resolve, reject) => {
  const script = document.getElementById("vega");
  const failed = () => reject(new Error("The drawing program could not be loaded."));
  if (window.vegaEmbed) resolve(window.vegaEmbed);
  script.addEventListener("load", () => (window.vegaEmbed ? resolve(window.vegaEmbed) : failed()));
  script.addEventListener("error", failed);
});
vega.catch(() => {});

function specification(key) {
  const [name, theme, compared] = key.split(" ");
  const address = `/api/charts/${name}?theme=${theme}&compared=${compared}`;
  if (!specifications.has(address)) {
    const found = fetched(address);
    found.catch(() => specifications.delete(address));
    specifications.set(address, found);
  }
  return specifications.get(address);
}

/** The rows of one setting's chart, or of two with their labels before the names of series. */
function rowsOf(parts, drawn) {
  if (parts.length === 1) return parts[0].chart.rows.map((row) => ({ ...row })); // Vega marks each row
  const labelled = ({ label, chart }) =>
    chart.rows.map((row) => ({
      ...row,
      series: drawn.includes(row.series) ? row.series : `${label}: ${row.series}`,
      words: null, // two settings may lie close together: the titles have their numbers
    }));
  return parts.flatMap(labelled).filter((row) => drawn.includes(row.series));
}

/** A number to four digits, "at most" rounded up and "at least" down, as the table has it. */
function shown(value, { percent }, side = "") {
  let found = Number(value.toPrecision(4));
  const digit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  if (side === "at most" && found < value) found += digit;
  if (side === "at least" && found > value) found -= digit;
  found = Number((percent ? 100 * found : found).toPrecision(4));
  return `${found.toLocaleString("en", { maximumSignificantDigits: 4 })}${percent ? " %" : ""}`;
}

/** The lines of a text of at most so many letters; a number keeps its unit. */
function wrapped(words, letters) {
  const lines = [""];
  for (const word of words.split(/ (?!%)/)) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (line.length > letters) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines.filter(Boolean);
}

/** One drawing with its title, its text alternative, values under the pointer, and files to keep. */
export class Chart {
  #view = null;
  #drawn = ""; // name, theme and number of settings of the embedded specification
  #meaning = null;
  #rows = [];
  #queue = Promise.resolve();
  #parts = [];
  #points = "";
  #theme = "light";

  /** Where there is no heading for one setting, or for two, the finding is the heading. */
  constructor(slot, version, { one = "", two = "", large = false, key = true } = {}) {
    const id = `chart-${slot}`;
    Object.assign(this, { one, two, version, shape: large ? LARGE : SHAPE, key });
    this.title = make("h3", { id: `${id}-title` }, one);
    this.text = make("p", { id: `${id}-text`, hidden: true }); // for those who hear the drawing
    this.words = make("p"); // the same for those who see it
    this.canvas = make("div", {
      class: "canvas",
      role: "img",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-text`,
    });
    this.line = make("div", { class: "pointed", hidden: true });
    this.reading = make("div", { class: "reading", "aria-hidden": "true", hidden: true });
    const keep = (kind, write) => {
      const label = `${kind} of ${slot.replaceAll("-", " ")}`;
      const button = make("button", { type: "button", class: "keep", "aria-label": label }, kind);
      button.addEventListener("click", write);
      return button;
    };
    this.element = make(
      "div",
      { class: "chart", id },
      this.title,
      make("div", { class: "plot" }, this.canvas, this.line, this.reading),
      this.text,
      make(
        "div",
        { class: "under" },
        make("details", {}, make("summary", {}, "In words"), this.words),
        keep("PNG", async () => save(`${slot}.png`, await this.#picture())),
        keep("CSV", () => save(`${slot}.csv`, this.#table())),
      ),
    );
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerleave", () => this.#point(null));
    new ResizeObserver(() => this.#fit()).observe(this.canvas);
  }

  /** Show one setting's chart, or two as one; resolves when it is drawn. */
  show(parts, theme) {
    const told = (part) => parts.map(({ label, chart }) => labelled(label, chart[part])).join(" ");
    [this.#parts, this.#theme] = [parts, theme];
    write(this.title, (parts.length > 1 ? this.two : this.one) || told("title"));
    write(this.text, told("text"));
    write(this.words, told("text"));
    const turn = this.#queue.then(() => this.#draw(parts, theme));
    this.#queue = turn.catch((error) => this.#excuse(error));
    return this.#queue;
  }

  async #draw(parts, theme) {
    if (!this.canvas.clientWidth) return; // not on the screen: drawn when it is
    const key = `${parts[0].chart.name} ${theme} ${parts.length > 1}`;
    const points = JSON.stringify(parts.map(({ label, chart }) => [label, chart.rows]));
    if (this.#drawn === key && this.#points === points) return; // most moves leave some charts as they are
    if (this.#drawn !== key) await this.#embed(key, parts);
    this.#points = points;
    this.#rows = rowsOf(parts, this.#meaning.drawn);
    await this.#view.data("rows", this.#rows).runAsync();
    this.#point(null);
  }

  /** The drawing as a picture that is understood alone: with its finding and what it is of. */
  async #picture() {
    const { name } = this.#parts[0].chart;
    const [embed, spec] = await Promise.all([vega, specification(`${name} ${this.#theme} ${this.#parts.length > 1}`)]);
    const told = (part) => this.#parts.map(({ label, chart }) => labelled(label, chart[part]));
    const parts = [...told("of").flatMap((each) => each.split(DOT)), `dprime ${this.version}`];
    const caption = parts.reduce((lines, part) => {
      const line = [...lines.slice(-1), part].join(DOT);
      return line.length <= SMALLER * LETTERS
        ? [...lines.slice(0, -1), line]
        : [...lines, ...wrapped(part, SMALLER * LETTERS)];
    }, []);
    const drawn = this.#filled(spec, this.#parts, {
      title: { text: told("title").flatMap((each) => wrapped(each, LETTERS)), subtitle: caption },
      width: PICTURE,
      height: Math.round(this.shape * PICTURE * FLATTER),
    });
    const { view } = await embed(make("div"), drawn, { ...QUIET, renderer: "none" });
    const picture = await view.toImageURL("png", 2);
    view.finalize();
    return picture;
  }

  /** A specification with these points and more. */
  #filled(spec, parts, more) {
    const { usermeta, ...drawn } = structuredClone(spec);
    const background = getComputedStyle(this.element).getPropertyValue("--raised").trim();
    const autosize = { type: "fit-x", contains: "padding" };
    return { ...drawn, ...more, datasets: { rows: rowsOf(parts, usermeta.drawn) }, autosize, background };
  }

  /** The points with what they are of. */
  #table() {
    return this.#parts.flatMap(({ label, chart }) =>
      chart.rows.map(({ words, side, ...row }) => ({
        ...row,
        title: chart.title,
        setting: labelled(label, chart.of),
        dprime: this.version,
      })),
    );
  }

  async #embed(key, parts) {
    const [embed, spec] = await Promise.all([vega, specification(key)]);
    const fitted = this.#filled(spec, parts, this.#size());
    fitted.config = { ...fitted.config, aria: false }; // title and text speak for it
    if (!this.key) fitted.layer = fitted.layer.filter(({ encoding }) => !encoding.shape);
    const holder = make("div", { "aria-hidden": "true" });
    const { view } = await embed(holder, fitted, QUIET);
    holder.querySelector("form")?.remove(); // for inputs, of which there are none
    this.#view?.finalize();
    this.#view = view;
    this.#drawn = key;
    this.#meaning = spec.usermeta;
    this.canvas.replaceChildren(holder);
    this.canvas.classList.remove("failed");
  }

  /** The values at the points nearest to the pointer, or nothing where it has left. */
  #point(event) {
    const found = event && this.#view ? this.#nearest(event) : [];
    this.line.hidden = this.reading.hidden = !found.length;
    if (!found.length) return;
    const [{ across, height, words }] = found;
    this.line.style.left = this.reading.style.left = `${across}px`;
    this.line.style.height = `${height}px`;
    this.line.style.top = `${this.#corner()[1]}px`;
    this.reading.classList.toggle("left", across > this.canvas.clientWidth / 2);
    write(this.reading, [words, ...found.slice(1).map((each) => each.words)].join("\n"));
  }

  #nearest(event) {
    const { x, y, says } = this.#meaning;
    const [left, top] = this.#corner();
    const box = this.canvas.getBoundingClientRect();
    const scale = this.#view.scale("x");
    const pointed = event.clientX - box.left - left;
    const [start, end] = scale.range();
    const away = event.clientY - box.top - top;
    if (pointed < start || pointed > end || away < 0 || away > this.#view.height()) return [];
    return Object.entries(says).flatMap(([name, side]) => {
      const rows = this.#rows.filter((row) => row.series === name);
      if (!rows.length) return [];
      const distance = (row) => Math.abs(scale(row[x.field]) - pointed);
      const row = rows.reduce((best, each) => (distance(each) < distance(best) ? each : best));
      const words = `${name}, at ${shown(row[x.field], x)}: ${side} ${shown(row[y.field], y, side)}`;
      return [{ across: scale(row[x.field]) + left, height: this.#view.height(), words }];
    });
  }

  /** Where the plot's upper left corner is inside the canvas. */
  #corner() {
    const [left, top] = this.#view.origin();
    const padding = this.#view.padding();
    return [left + padding.left, top + padding.top];
  }

  #size() {
    const width = this.canvas.clientWidth;
    return { width, height: Math.round(Math.min(Math.max(this.shape * width, LOWEST), HIGHEST)) };
  }

  /** Follow the width of the column. */
  #fit() {
    const { width, height } = this.#size();
    if (this.#view && width && this.#view.width() !== width)
      this.#view.width(width).height(height).runAsync();
  }

  #excuse(error) {
    this.#view = null;
    this.#drawn = "";
    this.canvas.classList.add("failed");
    this.canvas.replaceChildren(`${error.message} The words below say the same.`);
  }
}
