// Runs the search of the built site, which is the theme's web worker. Prints the pages of each
// query, best first: node search.cjs SITE QUERY...
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, ...queries] = process.argv.slice(2);
const folder = path.join(site, "assets", "javascripts", "workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));
const SETUP = 0;
const QUERY = 2;

let listener;
let respond;
globalThis.self = globalThis;
globalThis.addEventListener = (_, handler) => (listener = handler);
globalThis.postMessage = (message) => respond(message);
vm.runInThisContext(fs.readFileSync(path.join(folder, worker), "utf8"));

const send = (type, data) =>
  new Promise((resolve) => {
    respond = resolve;
    listener({ data: { type, data } });
  });

async function main() {
  await send(SETUP, { ...index, options: { suggest: false } });
  const found = {};
  for (const query of queries) {
    const { data } = await send(QUERY, query);
    found[query] = data.items.map(([best]) => best.location.split("#")[0]);
  }
  console.log(JSON.stringify(found));
}

main();
