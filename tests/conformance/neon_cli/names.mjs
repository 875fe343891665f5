// Prints the names of all commands, found in the definitions that --help shows.
import commands from "neon/dist/commands/index.js";
import yargs from "yargs";

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
