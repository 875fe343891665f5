/** Live updates: the server says that something changed, and the page fetches itself again. */

import { announce } from "./announce.js";
import { Update } from "./patch.js";
import { localize, setClock } from "./times.js";

/** The shortest time between two fetches, and the longest time for one fetch, in milliseconds. */
const GAP = 500;
const TIMEOUT = 10_000;

/** Milliseconds until the next attempt. After a stream that lasted longer than STABLE, the delay is FIRST_DELAY again. */
const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const STABLE = 5000;

const MOST_ANNOUNCED = 3;
const AWAY = "Not connected to the local control plane. Trying again…";
const GONE = "This page is not available any more.";

/** Keeps the page up to date. */
export class Watcher {
  /** @type {EventSource | null} */
  #stream = null;

  /** @type {AbortController | null} */
  #fetching = null;

  #due = 0;
  #again = false;
  #skipped = false;
  #fetchedAt = -GAP;
  #openedAt = 0;
  #failures = 0;
  #stopped = false;

  /** @param {HTMLElement} main the element with data-changes */
  constructor(main) {
    this.changes = main.dataset.changes ?? "";
    this.address = main.dataset.refresh ?? location.href.split("#")[0] ?? "";
  }

  /** Follow the changes while the page is visible. */
  start() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#open()));
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && this.#open());
    document.addEventListener("focusout", () => this.#skipped && this.#refresh());
    this.#open();
  }

  #open() {
    if (this.#stopped || this.#stream || document.hidden) return;
    this.#stream = new EventSource(this.changes);
    this.#stream.onopen = () => {
      this.#openedAt = performance.now();
      this.#refresh();
    };
    this.#stream.onmessage = () => this.#refresh();
    this.#stream.addEventListener("changed", () => this.#refresh());
    this.#stream.onerror = () => this.#retry(this.#failures > 0);
  }

  #close() {
    clearTimeout(this.#due);
    this.#due = 0;
    this.#again = false;
    this.#stream?.close();
    this.#stream = null;
    this.#fetching?.abort();
    this.#fetching = null;
  }

  #refresh() {
    if (this.#stopped || document.hidden) return;
    this.#again = true;
    if (this.#fetching || this.#due) return;
    this.#plan(Math.max(0, this.#fetchedAt + GAP - performance.now()));
  }

  /** @param {number} delay */
  #plan(delay) {
    clearTimeout(this.#due);
    this.#due = setTimeout(() => this.#fetch(), delay);
  }

  async #fetch() {
    const controller = new AbortController();
    this.#due = 0;
    this.#again = false;
    this.#fetching = controller;
    this.#fetchedAt = performance.now();
    const timeout = setTimeout(() => controller.abort("timeout"), TIMEOUT);
    try {
      const response = await fetch(this.address, { headers: { "Console-Refresh": "1" }, signal: controller.signal });
      this.#take(response.status, await response.text());
    } catch {
      if (this.#fetching === controller) this.#retry(true);
    } finally {
      clearTimeout(timeout);
      if (this.#fetching === controller) this.#fetching = null;
    }
    if (this.#again) this.#refresh();
  }

  /** @param {number} status @param {string} text */
  #take(status, text) {
    if (status === 200) {
      this.#skipped = show(text);
      this.#connected();
    } else if (status === 401) {
      this.#stop("You are signed out.", "Sign in again");
    } else if (status < 500 && status !== 429) {
      this.#stop(GONE, "Reload");
    } else {
      this.#retry(true);
    }
  }

  #connected() {
    if (banner("")) announce("Connected again.");
    this.#open();
  }

  /**
   * Close the stream and try again later.
   * @param {boolean} visibly
   */
  #retry(visibly) {
    if (this.#openedAt && performance.now() - this.#openedAt > STABLE) this.#failures = 0;
    this.#openedAt = 0;
    this.#close();
    if (visibly && banner(AWAY)) announce(AWAY);
    const delay = Math.min(FIRST_DELAY * 2 ** this.#failures, LONGEST_DELAY);
    this.#failures += 1;
    this.#plan(delay * (0.8 + 0.4 * Math.random()));
  }

  /** @param {string} text @param {string} action */
  #stop(text, action) {
    this.#stopped = true;
    this.#close();
    banner(text, action, this.address);
    announce(`${text} ${action}.`);
  }
}

/**
 * Update the page from a newer one. Return whether a form was left alone because a person is using it.
 * @param {string} text
 */
function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  setClock(fresh);
  localize(document);
  localize(fresh);
  const { announced, skipped } = new Update(fresh);
  if (document.title !== fresh.title) document.title = fresh.title;
  const more = announced.length - MOST_ANNOUNCED;
  announce([...announced.slice(0, MOST_ANNOUNCED), ...(more > 0 ? [`${more} more changes`] : [])].join(". "));
  document.dispatchEvent(new Event("console:updated"));
  return skipped;
}

/**
 * Show a text in the corner of the page, or hide it if it is empty. Return whether it was new.
 * @param {string} text
 */
function banner(text, action = "", address = "") {
  const element = document.querySelector("[data-connection]");
  if (!(element instanceof HTMLElement)) return false;
  const link = document.createElement("a");
  link.href = address;
  link.textContent = action;
  const isNew = element.dataset.connection !== text;
  element.dataset.connection = text;
  element.hidden = !text;
  element.replaceChildren(text, ...(action ? [" ", link] : []));
  return isNew;
}
