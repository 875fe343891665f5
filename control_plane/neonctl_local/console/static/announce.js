/** Speaks to screen readers, through the only live region of the page. */

const LASTS = 5000;
let clearing = 0;

/**
 * Announce a text. A text that follows within five seconds is added to the first.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (!region || !text) return;
  const line = document.createElement("p");
  line.textContent = text;
  region.append(line);
  clearTimeout(clearing);
  clearing = setTimeout(() => region.replaceChildren(), LASTS);
}
