/** Changes the live elements of a page into those of a newer one, and touches nothing else. */

import { inUse } from "./forms.js";

/** Attributes that scripts, the viewer or extensions of the browser set. */
const OWN = new Set(["data-changed", "data-copied", "open", "style", "tabindex"]);
const HIGHLIGHT = 2500;
const ROW = "tr[id], [data-announce]";

/** One update of the page. */
export class Update {
  /** What changed, for screen readers. @type {string[]} */
  announced = [];

  /** True if a form was left alone because a person is using it. */
  skipped = false;

  /** @param {Document} fresh the newer page */
  constructor(fresh) {
    const focused = document.activeElement;
    for (const old of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(old.id);
      if (!next || old.isEqualNode(next)) continue;
      this.#patch(old, next);
      if (focused && !focused.isConnected && document.activeElement === document.body) focus(old);
    }
  }

  /**
   * Change an element into another of the same name. Return whether a person should notice.
   * @param {Element} old @param {Element} next
   * @returns {boolean}
   */
  #patch(old, next) {
    if (old.isEqualNode(next) || (old instanceof HTMLFormElement && this.#keep(old))) return false;
    const said = old.getAttribute("data-announce");
    const differs = patchAttributes(old, next);
    const changed = this.#patchChildren(old, next) || differs;
    if (changed && old.matches(ROW)) this.#highlight(old, said);
    return changed && !old.matches("[data-quiet]");
  }

  /**
   * Children with an id are matched by it, others by their place. New ones are copied.
   * @param {Element} old @param {Element} next
   */
  #patchChildren(old, next) {
    const wantedIds = idsOf(next);
    let changed = this.#remove([...old.children].filter((child) => child.id && !wantedIds.has(child.id)));
    const known = idsOf(old);
    let cursor = old.firstChild;
    for (const wanted of next.childNodes) {
      while (cursor instanceof Element && cursor.id && !wantedIds.has(cursor.id)) cursor = cursor.nextSibling;
      const match = wanted instanceof Element && wanted.id ? known.get(wanted.id) : cursor;
      if (!match || !sameKind(match, wanted)) {
        old.insertBefore(this.#copyOf(wanted), cursor);
        changed ||= wanted instanceof Element;
        continue;
      }
      if (match !== cursor) old.insertBefore(match, cursor);
      cursor = match.nextSibling;
      changed = this.#patchNode(match, wanted) || changed;
    }
    return this.#remove(from(cursor)) || changed;
  }

  /** @param {Node} match @param {Node} wanted */
  #patchNode(match, wanted) {
    if (match instanceof Element && wanted instanceof Element) return this.#patch(match, wanted);
    if (match.nodeValue === wanted.nodeValue) return false;
    const changed = match.nodeValue?.trim() !== wanted.nodeValue?.trim();
    match.nodeValue = wanted.nodeValue;
    return changed;
  }

  /** @param {Node} wanted */
  #copyOf(wanted) {
    const copy = document.importNode(wanted, true);
    if (copy instanceof Element) {
      for (const row of [copy, ...copy.querySelectorAll(ROW)]) if (row.matches(ROW)) this.#highlight(row, null);
    }
    return copy;
  }

  /** @param {Node[]} nodes */
  #remove(nodes) {
    const gone = nodes.filter((node) => !this.#keep(node));
    for (const node of gone) node.parentNode?.removeChild(node);
    return gone.some((node) => node instanceof Element);
  }

  /** @param {Node} node */
  #keep(node) {
    const used = inUse(node);
    this.skipped ||= used;
    return used;
  }

  /** @param {Element} row @param {string | null} said */
  #highlight(row, said) {
    const text = row.getAttribute("data-announce");
    if (text && text !== said) this.announced.push(text);
    row.setAttribute("data-changed", "");
    setTimeout(() => row.removeAttribute("data-changed"), HIGHLIGHT);
  }
}

/** @param {Element} old @param {Element} next */
function patchAttributes(old, next) {
  let changed = false;
  for (const { name } of [...old.attributes]) {
    if (OWN.has(name) || next.hasAttribute(name)) continue;
    old.removeAttribute(name);
    changed = true;
  }
  for (const { name, value } of next.attributes) {
    if (OWN.has(name) || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
    changed = true;
  }
  return changed;
}

/** @param {Element} parent */
function idsOf(parent) {
  return new Map([...parent.children].filter((child) => child.id).map((child) => [child.id, child]));
}

/** @param {Node | null} node */
function from(node) {
  const nodes = [];
  for (; node; node = node.nextSibling) nodes.push(node);
  return nodes;
}

/** @param {Node} node @param {Node} wanted */
function sameKind(node, wanted) {
  if (node.nodeName !== wanted.nodeName) return false;
  if (!(node instanceof Element && wanted instanceof Element)) return true;
  return node.id === wanted.id && node.getAttribute("action") === wanted.getAttribute("action");
}

/** @param {Element} element */
function focus(element) {
  if (!(element instanceof HTMLElement)) return;
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}
