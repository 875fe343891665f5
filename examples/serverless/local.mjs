// Aims Neon's serverless driver at a local control plane. Load it before a program:
//
//   NEON_API_HOST=http://127.0.0.1:8080/api/v2 node --import ./local.mjs program.mjs
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { NEON_API_HOST } = process.env;
if (!NEON_API_HOST || !process.argv[1]) {
  const missing = NEON_API_HOST ? "a program after the options of node" : "the variable NEON_API_HOST";
  console.error(`local.mjs needs ${missing}: NEON_API_HOST=http://127.0.0.1:8080/api/v2 node --import ./local.mjs program.mjs`);
  process.exit(2);
}
const local = new URL(NEON_API_HOST).host;
const load = createRequire(pathToFileURL(realpathSync(process.argv[1])));
const commonjs = load.resolve("@neondatabase/serverless");
const module = pathToFileURL(commonjs.replace(/\.js$/, ".mjs"));

// Programs load the driver as CommonJS or as a module, and each copy has its own settings.
for (const { neonConfig } of [load(commonjs), await import(module)]) {
  neonConfig.fetchEndpoint = `http://${local}/sql`;
  neonConfig.wsProxy = (host, port) => `${local}/v2?address=${host}:${port}`;
  neonConfig.useSecureWebSocket = false;
}
