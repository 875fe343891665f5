// Evaluates an expression, which may use raw. Prints its data, its error, and its logged text.
import { inspect } from "node:util";
import { raw } from "@neon/sdk";
import "./globals.mjs";

const result = await eval(process.argv[2]);
const { data, error } = result;
const { name, status, operations } = error ?? {};
const logged = inspect(result);
console.log(JSON.stringify({ data, error: error && { name, status, operations }, logged }));
