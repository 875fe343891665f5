// Defines the globals of the blocks: a client and a project, both on the local control plane.
import { createNeonClient } from "@neon/sdk";

const { NEON_API_KEY: apiKey, NEON_API_HOST: baseUrl, NEON_PROJECT_ID } = process.env;

const { fetch } = globalThis;
globalThis.fetch = (request) =>
  fetch(new Request(request.url.replace("https://console.neon.tech/api/v2", baseUrl), request));

globalThis.neon = createNeonClient({ apiKey, wait: { pollIntervalMs: 10 } });
globalThis.projectId = NEON_PROJECT_ID;
