// Calls every raw function of @neon/sdk with ids that do not exist. Prints each status and message.
import { createNeonClient, raw } from "@neon/sdk";

const { NEON_API_KEY: apiKey, NEON_API_HOST: baseUrl } = process.env;
const { client } = createNeonClient({ apiKey, baseUrl });
const path = new Proxy({}, { get: () => "missing-1" });

const refusals = {};
const { client: _, createClient, createConfig, wrapRaw, ...requests } = raw;
for (const [name, request] of Object.entries(requests)) {
  const { error, response } = await request({ client, path });
  refusals[name] = { status: response.status, message: error?.message ?? "" };
}
console.log(JSON.stringify(refusals));
