// Runs modules one after another.
import "./globals.mjs";

for (const block of process.argv.slice(2)) await import(`./${block}`);
console.log("null");
