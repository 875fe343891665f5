// What @neon/sdk is asked of answers that are always the same. It takes its own times.

import { setTimeout as pauseFor } from "node:timers/promises";

const PAGE = 1000;

async function timed(work) {
  globalThis.gc();
  const began = performance.now();
  await work();
  return { seconds: (performance.now() - began) / 1000 };
}

function unwrapped({ data, error }) {
  if (error) throw error;
  return data;
}

export function gets(neon, { projectId, operationId, count, atOnce }) {
  const get = async () => unwrapped(await neon.operations.get({ projectId, operationId }));
  return timed(async () => {
    for (let n = 0; n < count; n++) await Promise.all(Array.from({ length: atOnce }, get));
  });
}

export function pages(neon, { projectId, count }) {
  return timed(async () => {
    for (let n = 0; n < count; n++) unwrapped(await neon.operations.list({ projectId }).page());
  });
}

export function paging(neon, { projectId, pause }) {
  return timed(async () => {
    let seen = 0;
    for await (const _ of neon.operations.list({ projectId })) {
      seen += 1;
      if (pause && seen % PAGE === 0) await pauseFor(pause * 1000);
    }
  });
}

export async function held(neon, { projectId }) {
  unwrapped(await neon.operations.list({ projectId }).page());
  globalThis.gc();
  const before = process.memoryUsage.rss();
  const records = unwrapped(await neon.operations.list({ projectId }).all());
  globalThis.gc();
  const megabytes = (process.memoryUsage.rss() - before) / 1e6;
  return { records: records.length, megabytes };
}
