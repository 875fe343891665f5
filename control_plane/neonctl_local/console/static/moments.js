/** Fields for times: a person types the time of their own zone, and the server receives UTC. */

import { local } from "./times.js";

const UTC = "(UTC)";

/** Serve all fields for times of the page. Without this script, they are in UTC, as their labels say. */
export function serveMoments() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of fieldsOf(document)) {
    const label = field.labels?.[0]?.firstChild;
    if (label) label.textContent = (label.textContent ?? "").replace(UTC, `(${zone})`);
    if (field.defaultValue) field.defaultValue = local(new Date(`${field.defaultValue}Z`)).replace(" ", "T");
  }
  document.addEventListener("formdata", (event) => {
    if (!(event.target instanceof HTMLFormElement)) return;
    for (const field of fieldsOf(event.target)) {
      if (field.value) event.formData.set(field.name, new Date(field.value).toISOString().slice(0, 19));
    }
  });
}

/** @param {ParentNode} root @returns {Iterable<HTMLInputElement>} */
function fieldsOf(root) {
  return root.querySelectorAll('input[type="datetime-local"]');
}
