// Prints the first value of a query's result. Arguments: a connection URI and the query.
import pg from "pg";

const [, , connectionString, query] = process.argv;
const client = new pg.Client({ connectionString });
await client.connect();
const { rows } = await client.query({ text: query, rowMode: "array" });
await client.end();
console.log(JSON.stringify(rows[0]?.[0] ?? null));
