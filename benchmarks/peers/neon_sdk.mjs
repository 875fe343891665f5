// @neon/sdk with its default settings, controlled by lines of JSON on standard input.
//
// `node --expose-gc neon_sdk.mjs DIRECTORY`, where npm has installed the package. A command is
// {id, method, baseUrl, ...}; its result, on standard output, has the same id. Commands run
// concurrently. `at` is when the SDK returned, by the clock that time.monotonic() reads in Python
// on Linux, so the transfer of the result is not measured.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

import * as fixedResponses from "./fixed_responses.mjs";

const [directory] = process.argv.slice(2);
const installed = createRequire(join(directory, "package.json"));
const { createNeonClient } = await import(installed.resolve("@neon/sdk"));

const methods = {
  wait: (neon, { operations }) => outcomes([neon.operations.waitFor({ operations })]),

  create: (neon, { branches }) => outcomes(branches.map((branch) => create(neon, branch))),

  pendingMemory,

  ...fixedResponses,
};

async function create(neon, { projectId, name, arrives }) {
  if (arrives) await setTimeout(arrives * 1000);
  return neon.branches.create({ projectId, name });
}

async function outcomes(calls) {
  const times = calls.map((call) => call.then(now));
  const results = await Promise.all(calls);
  const at = now();
  const each = await Promise.all(times);
  return { at, each, outcomes: results.map(({ error }) => (error ? failure(error) : null)) };
}

function now() {
  return Number(process.hrtime.bigint()) / 1e9;
}

function failure({ kind, status, message }) {
  return { kind, message, status: status === undefined ? null : String(status) };
}

// The memory of a pending operation before the first poll, which comes after a second. Until
// then, the wait holds only the given records.
async function pendingMemory(neon, { responses }) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  const operations = responses.flatMap((response) => JSON.parse(response).operations);
  const controller = new AbortController();
  const waiting = neon.operations.waitFor({ operations }, { signal: controller.signal });
  globalThis.gc();
  const bytes = (process.memoryUsage().heapUsed - before) / operations.length;
  controller.abort();
  await waiting;
  return { bytes };
}

async function run({ id, method, baseUrl, ...rest }) {
  const neon = createNeonClient({ apiKey: "napi_benchmark", baseUrl });
  return { id, ...(await methods[method](neon, rest)) };
}

for await (const line of createInterface({ input: process.stdin })) {
  run(JSON.parse(line)).then((result) => console.log(JSON.stringify(result)));
}
