// Prints the names of all commands, found in the definitions that --help shows.
import { createRequire } from "node:module";
import commands from "neon/dist/commands/index.js";

// Other packages may have another version of yargs, at the place of an import of this program.
const yargs = createRequire(import.meta.resolve("neon/dist/commands/index.js"))("yargs");

const nested = (builder) => {
  const group = yargs([]);
  builder(group);
  return Object.values(group.getInternalMethods().getCommandInstance().getCommandHandlers());
};

function* names(handlers, path) {
  for (const { original, builder } of handlers) {
    const name = `${path}${original.split(" ")[0]}`;
    const inner = typeof builder === "function" ? nested(builder) : [];
    if (inner.length) yield* names(inner, `${name} `);
    else yield name;
  }
}

console.log(JSON.stringify([...names(nested((group) => group.command(commands)), "")]));
