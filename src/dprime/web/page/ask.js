// Questions to the server: one at a time for each setting, answers remembered.

import { request } from "./source.js";

const REMEMBERED = 600; // answers
const PATIENCE = 150; // ms
const TRIES = 3; // where the server has too much to do
const LATEST = 5; // s, the longest that the page waits to ask again
const answers = new Map();

/** A sentence of the server (or about it) that the reader should see. */
export class Refusal extends Error {}

/** A question that was dropped because a newer one overtook it. */
export class Overtaken extends Error {}

/**
 * The questions about one setting, one at a time.
 *
 * A new question ends the one before it. While one hand drags one slider, a question that was asked
 * a moment ago may still be answered, so that the page follows the hand; of those that wait behind
 * it, the newest is asked next.
 */
export class Lane {
  #running = null;
  #waiting = null;

  /** The answer at an address; `hand` names the slider that is being moved, if it is one. */
  async ask(address, hand = null) {
    this.#waiting?.reject(new Overtaken());
    this.#waiting = null;
    const known = answers.get(address);
    if (known) this.#end();
    else if (this.#running && !this.#follows(hand)) this.#end();
    else if (this.#running) await this.#turn();
    return known ?? this.#send(address, hand);
  }

  #follows(hand) {
    const { hand: before, since } = this.#running;
    return hand !== null && hand === before && performance.now() - since < PATIENCE;
  }

  #turn() {
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  #end() {
    this.#running?.controller.abort();
    this.#running = null;
  }

  async #send(address, hand) {
    const mine = (this.#running = { controller: new AbortController(), hand, since: performance.now() });
    try {
      const answer = await fetched(address, mine.controller.signal);
      remember(address, answer);
      return answer;
    } finally {
      if (this.#running === mine) {
        this.#running = null;
        this.#waiting?.resolve();
        this.#waiting = null;
      }
    }
  }
}

/** The JSON at an address, or the sentence that says why there is none; `sent` is what is asked about. */
export async function fetched(address, signal = undefined, sent = undefined) {
  let response, body;
  const method = sent === undefined ? "GET" : "POST";
  try {
    for (let tries = TRIES; tries; tries -= 1) {
      response = await request(address, { method, body: sent, signal, headers: { Accept: "application/json" } });
      body = await response.text();
      const later = response.headers?.get("Retry-After");
      if (response.status !== 503 || !later || later > LATEST || tries === 1) break;
      await new Promise((resolve) => setTimeout(resolve, 1000 * later));
      if (signal?.aborted) break;
    }
  } catch (error) {
    if (signal?.aborted) throw new Overtaken();
    throw new Refusal("The explorer does not answer: is dprime explore still running?", { cause: error });
  }
  if (signal?.aborted) throw new Overtaken();
  if (response.ok) return JSON.parse(body);
  throw new Refusal(sentenceIn(body) ?? `The explorer refused with status ${response.status}.`);
}

/** The sentence of a refusal, where it has one. */
function sentenceIn(body) {
  try {
    const { detail } = JSON.parse(body);
    return typeof detail === "string" ? detail : null;
  } catch {
    return null;
  }
}

function remember(address, answer) {
  answers.set(address, answer);
  if (answers.size > REMEMBERED) answers.delete(answers.keys().next().value);
}
