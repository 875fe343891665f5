/** The scripts of the console. All pages work without them. */

import { announce } from "./announce.js";
import { serveCopyButtons } from "./copy.js";
import { serveForms } from "./forms.js";
import { Watcher } from "./live.js";
import { serveMoments } from "./moments.js";
import { keepFresh, localize, setClock } from "./times.js";

/** Close an open menu on Escape, and on a click or focus outside of it. */
function serveMenus() {
  const close = (/** @type {Event} */ event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (event.target instanceof Node && menu.contains(event.target)) continue;
      menu.removeAttribute("open");
    }
  };
  document.addEventListener("click", close);
  document.addEventListener("focusin", close);
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" ? document.querySelector("details.menu[open]") : null;
    menu?.removeAttribute("open");
    menu?.querySelector("summary")?.focus();
  });
}

/** Make the Tab key stop only at tables that scroll. */
function serveScrollers() {
  for (const scroller of document.querySelectorAll(".scroll")) {
    if (scroller.scrollWidth > scroller.clientWidth) scroller.setAttribute("tabindex", "0");
    else scroller.removeAttribute("tabindex");
  }
}

document.documentElement.classList.add("scripts");
setClock(document);
localize(document);
keepFresh();
serveCopyButtons();
serveForms();
serveMoments();
serveMenus();
serveScrollers();
addEventListener("resize", serveScrollers);
document.addEventListener("console:updated", serveScrollers);

const notice = document.querySelector("[data-notice]")?.textContent?.trim();
if (notice) setTimeout(() => announce(notice), 500);

const main = document.querySelector("main[data-changes]");
if (main instanceof HTMLElement) new Watcher(main).start();
