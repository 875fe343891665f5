// @neon/sdk with its default settings, told by lines of JSON on standard input what to do.
//
// `node --expose-gc neon_sdk.mjs DIRECTORY`, where npm has installed the package. A command is
// {id, method, baseUrl, ...}; its answer, on standard output, has the same id. Commands run at
// the same time. `at` is when the SDK had returned, by the clock that is time.monotonic() in
// Python on Linux: the way of the answer does not count.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

import * as fixedResponses from "./fixed_responses.mjs";

const [directory] = process.argv.slice(2);
const installed = createRequire(join(directory, "package.json"));
const { createNeonClient } = await import(installed.resolve("@neon/sdk"));

const methods = {
  wait: (neon, { operations }) => outcomes([neon.operations.waitFor({ operations })]),

  waitForEach: (neon, { operations }) =>
    outcomes(operations.map((one) => neon.operations.waitFor({ operations: [one] }))),

  create: (neon, { branches }) =>
    outcomes(branches.map(({ projectId, name }) => neon.branches.create({ projectId, name }))),

  memory,

  ...fixedResponses,
};

async function outcomes(calls) {
  const results = await Promise.all(calls);
  const at = Number(process.hrtime.bigint()) / 1e9;
  return { at, outcomes: results.map(({ error }) => (error ? told(error) : null)) };
}

function told({ kind, status, message }) {
  return { kind, message, status: status === undefined ? null : String(status) };
}

// What a pending operation takes before the first look, which comes after a second: all that
// the wait keeps of it are the records of the answers given.
async function memory(neon, { answers }) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  const operations = answers.flatMap((answer) => JSON.parse(answer).operations);
  const controller = new AbortController();
  const waiting = neon.operations.waitFor({ operations }, { signal: controller.signal });
  globalThis.gc();
  const bytes = (process.memoryUsage().heapUsed - before) / operations.length;
  controller.abort();
  await waiting;
  return { bytes };
}

async function carryOut({ id, method, baseUrl, ...rest }) {
  const neon = createNeonClient({ apiKey: "napi_benchmark", baseUrl });
  return { id, ...(await methods[method](neon, rest)) };
}

for await (const line of createInterface({ input: process.stdin })) {
  carryOut(JSON.parse(line)).then((answer) => console.log(JSON.stringify(answer)));
}
