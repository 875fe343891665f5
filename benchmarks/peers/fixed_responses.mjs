// The calls of @neon/sdk that are measured on fixed responses. They measure their own times.

import { setTimeout as sleep } from "node:timers/promises";

const PAGE = 1000;

async function timed(work) {
  globalThis.gc();
  const started = performance.now();
  await work();
  return { seconds: (performance.now() - started) / 1000 };
}

function unwrap({ data, error }) {
  if (error) throw error;
  return data;
}

export function gets(neon, { projectId, operationId, count, concurrency }) {
  const get = async () => unwrap(await neon.operations.get({ projectId, operationId }));
  return timed(async () => {
    for (let n = 0; n < count; n++) await Promise.all(Array.from({ length: concurrency }, get));
  });
}

export function pages(neon, { projectId, count }) {
  return timed(async () => {
    for (let n = 0; n < count; n++) unwrap(await neon.operations.list({ projectId }).page());
  });
}

export function paging(neon, { projectId, pause }) {
  return timed(async () => {
    let seen = 0;
    for await (const _ of neon.operations.list({ projectId })) {
      seen += 1;
      if (seen % PAGE === 0) await sleep(pause * 1000);
    }
  });
}

export async function listMemory(neon, { projectId }) {
  unwrap(await neon.operations.list({ projectId }).page());
  globalThis.gc();
  const before = process.memoryUsage.rss();
  const records = unwrap(await neon.operations.list({ projectId }).all());
  globalThis.gc();
  const megabytes = (process.memoryUsage.rss() - before) / 1e6;
  return { records: records.length, megabytes };
}
