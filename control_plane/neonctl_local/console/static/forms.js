/** Forms: Control+Enter in a text area submits, and a form that is being sent cannot be sent twice, which its button shows. */

const WAIT = 10_000;

/** Serve all forms of the page. */
export function serveForms() {
  /** @type {Set<HTMLFormElement>} */
  const sent = new Set();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
    if (sent.has(form)) return event.preventDefault();
    sent.add(form);
    const button = event.submitter;
    button?.setAttribute("aria-busy", "true");
    setTimeout(() => {
      sent.delete(form);
      button?.removeAttribute("aria-busy");
    }, WAIT);
  });
  addEventListener("pageshow", () => {
    sent.clear();
    for (const button of document.querySelectorAll("button[aria-busy]")) button.removeAttribute("aria-busy");
  });
  document.addEventListener("keydown", (event) => {
    const area = event.target;
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    if (area instanceof HTMLTextAreaElement) area.form?.requestSubmit();
  });
}

/**
 * Return whether a person is using an element: a form in it has the focus or typed text.
 * @param {Node} node
 */
export function inUse(node) {
  if (!(node instanceof Element)) return false;
  const forms = node instanceof HTMLFormElement ? [node] : node.querySelectorAll("form");
  return [...forms].some((form) => form.contains(document.activeElement) || [...form.elements].some(isTyped));
}

/** @param {Element} control */
function isTyped(control) {
  if (control instanceof HTMLTextAreaElement) return control.value !== control.defaultValue;
  if (control instanceof HTMLSelectElement) {
    const first = [...control.options].findIndex((option) => option.defaultSelected);
    return control.selectedIndex !== Math.max(first, control.options.length ? 0 : -1);
  }
  if (!(control instanceof HTMLInputElement) || control.type === "hidden") return false;
  return control.value !== control.defaultValue || control.checked !== control.defaultChecked;
}
