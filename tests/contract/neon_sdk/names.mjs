// Prints the names of all methods of a client.
import "./globals.mjs";

function* methods(resource, path) {
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(resource)))
    if (name !== "constructor") yield `${path}${name}`;
  for (const [name, nested] of Object.entries(resource))
    if (typeof nested === "object") yield* methods(nested, `${path}${name}.`);
}

const { client, ...resources } = globalThis.neon;
const names = Object.entries(resources).map(([name, one]) => [...methods(one, `${name}.`)]);
console.log(JSON.stringify(names.flat()));
