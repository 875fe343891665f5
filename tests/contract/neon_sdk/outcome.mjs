// Prints what becomes of one expression: its data, its error, and how it shows.
import { inspect } from "node:util";
import "./given.mjs";

const { data, error } = await eval(process.argv[2]);
const { name, status, operations } = error ?? {};
const shown = inspect(data);
console.log(JSON.stringify({ data, error: error && { name, status, operations }, shown }));
