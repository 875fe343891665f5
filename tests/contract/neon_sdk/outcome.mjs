// Prints what becomes of one expression, which may use raw: data, error, and how they are logged.
import { inspect } from "node:util";
import { raw } from "@neon/sdk";
import "./given.mjs";

const result = await eval(process.argv[2]);
const { data, error } = result;
const { name, status, operations } = error ?? {};
const shown = inspect(result);
console.log(JSON.stringify({ data, error: error && { name, status, operations }, shown }));
