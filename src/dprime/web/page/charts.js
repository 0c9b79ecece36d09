// The drawings: each is embedded once, and a move only brings new rows.

import { fetched } from "./ask.js";
import { make, write } from "./dom.js";

const SHAPE = 0.72; // height over width
const LOWEST = 230,
  HIGHEST = 340; // px
const ERRORS_ONLY = 1; // what Vega may say: layers without rows are meant

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

function specification(name, theme) {
  const address = `/api/charts/${name}?theme=${theme}`;
  if (!specifications.has(address)) {
    const found = fetched(address);
    found.catch(() => specifications.delete(address));
    specifications.set(address, found);
  }
  return specifications.get(address);
}

/** One drawing with its title, its text alternative and the label of its setting. */
export class Chart {
  #view = null;
  #drawn = ""; // name and theme of the embedded specification
  #queue = Promise.resolve();

  constructor(id) {
    this.title = make("h3", { id: `${id}-title` });
    this.text = make("p", { id: `${id}-text`, hidden: true }); // for those who hear the drawing
    this.words = make("p"); // the same for those who see it
    this.canvas = make("div", {
      class: "canvas",
      role: "img",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-text`,
    });
    this.element = make(
      "div",
      { class: "chart", id },
      this.title,
      this.canvas,
      this.text,
      make("details", {}, make("summary", {}, "In words"), this.words),
    );
    new ResizeObserver(() => this.#fit()).observe(this.canvas);
  }

  /** Show a chart; resolves when it is drawn. */
  show(chart, theme, label) {
    write(this.title, label ? `${label}: ${chart.title}` : chart.title);
    write(this.text, chart.text);
    write(this.words, chart.text);
    const turn = this.#queue.then(() => this.#draw(chart, theme));
    this.#queue = turn.catch((error) => this.#excuse(error));
    return this.#queue;
  }

  async #draw({ name, rows }, theme) {
    if (!this.canvas.clientWidth) return; // not on the screen: drawn when it is
    if (this.#drawn === `${name} ${theme}`) await this.#view.data("rows", rows).runAsync();
    else await this.#embed(name, rows, theme);
  }

  async #embed(name, rows, theme) {
    const [embed, spec] = await Promise.all([vega, specification(name, theme)]);
    const fitted = structuredClone(spec);
    fitted.datasets = { rows };
    Object.assign(fitted, this.#size());
    fitted.autosize = { type: "fit-x", contains: "padding" };
    fitted.config = { ...fitted.config, aria: false }; // title and text speak for it
    const holder = make("div", { "aria-hidden": "true" });
    const { view } = await embed(holder, fitted, {
      mode: "vega-lite",
      ast: true,
      actions: false,
      renderer: "svg",
      defaultStyle: false,
      tooltip: false,
      logLevel: ERRORS_ONLY,
    });
    holder.querySelector("form")?.remove(); // for inputs, of which there are none
    this.#view?.finalize();
    this.#view = view;
    this.#drawn = `${name} ${theme}`;
    this.canvas.replaceChildren(holder);
    this.canvas.classList.remove("failed");
  }

  #size() {
    const width = this.canvas.clientWidth;
    return { width, height: Math.round(Math.min(Math.max(SHAPE * width, LOWEST), HIGHEST)) };
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
