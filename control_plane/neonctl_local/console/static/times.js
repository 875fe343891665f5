/** Shows times in the viewer's zone, and keeps ages and running durations fresh. */

const UNITS = /** @type {const} */ ([["day", 86_400], ["hour", 3600], ["minute", 60]]);
const ZONE = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

/** The server's clock minus the viewer's, in milliseconds. Tests set the clock of the server. */
let offset = 0;

/**
 * Take the server's time from a page that was just loaded.
 * @param {Document} page
 */
export function setClock(page) {
  const now = Date.parse(page.body.dataset.now ?? "");
  if (!Number.isNaN(now)) offset = now - Date.now();
}

/**
 * Rewrite all times of a page or an element.
 * @param {ParentNode} root
 */
export function localize(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const time = /** @type {HTMLTimeElement} */ (element);
    const then = new Date(time.dateTime);
    if (Number.isNaN(then.getTime())) continue;
    const exact = `${local(then)} ${zone(then)} (${time.dateTime.replace("T", " ").replace("Z", " UTC")})`;
    if (time.title !== exact) time.title = exact;
    if (!time.hasAttribute("data-age")) write(time, local(then));
  }
  freshen(root);
}

/**
 * Rewrite the ages and the running durations.
 * @param {ParentNode} root
 */
function freshen(root) {
  const now = Date.now() + offset;
  for (const element of root.querySelectorAll("time[data-age]")) {
    const then = Date.parse(element.getAttribute("datetime") ?? "");
    if (!Number.isNaN(then)) write(element, age(now - then));
  }
  for (const element of root.querySelectorAll("[data-since]")) {
    const since = Date.parse(element.getAttribute("data-since") ?? "");
    if (!Number.isNaN(since)) write(element, duration(now - since));
  }
}

/** Keep ages and running durations fresh while the page is visible. */
export function keepFresh() {
  setInterval(() => {
    if (!document.hidden) freshen(document);
  }, 1000);
}

/** @param {Element} element @param {string} text */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Return a time in the zone of the viewer.
 * @param {Date} then
 */
export function local(then) {
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const day = [String(then.getFullYear()).padStart(4, "0"), two(then.getMonth() + 1), two(then.getDate())];
  return `${day.join("-")} ${[then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":")}`;
}

/** @param {Date} then */
function zone(then) {
  return ZONE.formatToParts(then).find((part) => part.type === "timeZoneName")?.value ?? "";
}

/** @param {number} milliseconds */
function age(milliseconds) {
  const seconds = milliseconds / 1000;
  for (const [unit, length] of UNITS) {
    const count = Math.floor(Math.abs(seconds) / length);
    if (count) return seconds < 0 ? `in ${plural(count, unit)}` : `${plural(count, unit)} ago`;
  }
  return "just now";
}

/** @param {number} count @param {string} unit */
function plural(count, unit) {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** @param {number} milliseconds */
function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
