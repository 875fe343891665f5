/** Buttons that copy: data-copy="ID" copies that element, data-copy alone the code beside the button. */

import { announce } from "./announce.js";

const LASTS = 2000;

/** Handle clicks on all copy buttons, including those that appear later. */
export function serveCopyButtons() {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
    if (button instanceof HTMLElement) copy(button);
  });
}

/** @param {HTMLElement} button */
async function copy(button) {
  const id = button.dataset.copy;
  const source = id ? document.getElementById(id) : button.parentElement?.querySelector("code, pre, input");
  if (!source) return;
  const text = "value" in source ? String(source.value) : source.textContent ?? "";
  const copied = await write(text, source);
  show(button, copied ? "Copied" : "Selected");
  announce(copied ? "Copied." : "The text is selected. Press Control and C to copy it.");
}

/**
 * Write a text to the clipboard. Without permission, or over plain HTTP from another host, select it.
 * @param {string} text @param {Element} source
 */
async function write(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (source instanceof HTMLInputElement) source.select();
    else getSelection()?.selectAllChildren(source);
    return document.execCommand("copy");
  }
}

/** @param {HTMLElement} button @param {string} text */
function show(button, text) {
  button.dataset.copied = text;
  setTimeout(() => delete button.dataset.copied, LASTS);
}
