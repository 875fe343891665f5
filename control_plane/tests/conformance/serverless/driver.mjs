// Runs the same queries with Neon's serverless driver, over HTTP and WebSocket, and with
// node-postgres. Prints the results of each way.
import { Client as HttpClient, Pool, neon } from "@neondatabase/serverless";
import pg from "pg";

const { DATABASE_URL, SERVERLESS_URL } = process.env;

// Every base type of Postgres with values at its edges, and an array of each.
const VALUES = [
  "true", "false", "1::int2", "(-2147483648)::int4", "9007199254740993::int8", "1.5::float4",
  "0.1::float8", "'NaN'::float8", "'Infinity'::float8", "'-Infinity'::float4", "12345678901234567890.123::numeric",
  "'NaN'::numeric", "'$1,234.50'::money", "'a''\"\\,{} ü€😀'::text", "''::text", "'x'::char(3)", "'y'::varchar",
  "'\\x00ff5c'::bytea", "'2026-01-02'::date", "'infinity'::date", "'12:30:00.5'::time", "'12:30:00+02'::timetz",
  "'2026-01-02 03:04:05.678'::timestamp", "'2026-01-02 03:04:05.678+00'::timestamptz", "'1 year 2 mons 3 days 04:05:06'::interval",
  "'00000000-0000-4000-8000-000000000000'::uuid", "'{\"a\": [1, null, \"x\"]}'::json", "'{\"a\": {\"b\": 1e3}}'::jsonb", "'null'::jsonb",
  "'10.0.0.0/8'::cidr", "'10.1.2.3/16'::inet", "'08:00:2b:01:02:03'::macaddr", "'101'::bit(3)", "'10'::varbit",
  "'(1,2)'::point", "'[(0,0),(1,1)]'::lseg", "'((0,0),(1,1))'::box", "'<(0,0),1>'::circle",
  "'[1,5)'::int4range", "'{[1,2),[5,6)}'::int4multirange", "'a & b'::tsquery", "'a b'::tsvector", "'<a/>'::xml",
  "42::oid", "'pg_class'::regclass", "'0/16B3748'::pg_lsn", "NULL::text", "ROW(1, 'x')", "'{}'::int4[]", "'{{1,NULL},{3,4}}'::int4[]",
  "'[2:3]={a,\"NULL\"}'::text[]", "ARRAY['a,b', 'c\"d', NULL]", "ARRAY[true, NULL]", "ARRAY['{\"a\":1}']::jsonb[]",
];
const PARAMETERS = [
  ["$1::int", [7]], ["$1::text", ["ü '\" \\ 😀"]], ["$1::bool", [true]], ["$1::jsonb", [{ a: [1, "x", null] }]], ["$1::int[]", [[1, null, 3]]],
  ["$1::text[]", [["a", 'b"c\\', null, "line\nbreak", ""]]], ["$1::timestamptz", [new Date("2026-01-02T03:04:05.678Z")]],
  ["$1::bytea", [Buffer.from([0, 255, 92])]], ["$1::text", [null]], ["$1::float8", [0.1]], ["$1::int8", ["9007199254740993"]],
];

const shown = (result) => ({
  rows: result.rows,
  fields: result.fields.map(({ name, dataTypeID, dataTypeSize, dataTypeModifier }) => ({ name, dataTypeID, dataTypeSize, dataTypeModifier })),
  command: result.command,
  rowCount: result.rowCount,
});
const failed = ({ message, code, severity, position, detail, hint, table, column, constraint }) =>
  ({ message, code, severity, position, detail, hint, table, column, constraint });

async function run(query) {
  const outcomes = {};
  const attempt = async (name, text, values) => {
    try {
      outcomes[name] = shown(await query(text, values));
    } catch (error) {
      outcomes[name] = { error: failed(error) };
    }
  };
  for (const value of VALUES) await attempt(value, `SELECT ${value} AS value`);
  for (const [text, values] of PARAMETERS) await attempt(`${text} ${JSON.stringify(values)}`, `SELECT ${text} AS value`, values);
  await attempt("create", "CREATE TABLE t (id int PRIMARY KEY, n int CONSTRAINT small CHECK (n < 10))");
  await attempt("insert", "INSERT INTO t VALUES (1, 1), (2, 2)");
  await attempt("returning", "UPDATE t SET n = n + 1 RETURNING id, n");
  await attempt("duplicate", "INSERT INTO t VALUES (1, 1)");
  await attempt("check", "INSERT INTO t VALUES (3, 10)");
  await attempt("syntax", "SELEC 1");
  await attempt("missing", "SELECT nothing FROM t");
  await attempt("empty result", "SELECT * FROM t WHERE false");
  await attempt("delete", "DELETE FROM t");
  await attempt("large", "SELECT repeat('x', 10000000) AS value");
  await attempt("drop", "DROP TABLE t");
  outcomes.large.rows[0].value = outcomes.large.rows[0].value.length;
  return outcomes;
}

const sql = neon(SERVERLESS_URL, { fullResults: true });
const pool = new Pool({ connectionString: SERVERLESS_URL });
const plain = new pg.Client({ connectionString: DATABASE_URL });
await plain.connect();
const http = await run((text, values) => sql.query(text, values));
const websocket = await run((text, values) => pool.query(text, values));
const port = await run((text, values) => plain.query(text, values));

// What only one of the ways has.
const [first, second] = await sql.transaction([sql`SELECT 1 AS n`, sql`SHOW transaction_isolation`], {
  isolationLevel: "RepeatableRead",
});
const session = new HttpClient(SERVERLESS_URL);
await session.connect();
const heard = new Promise((resolve) => session.on("notification", resolve));
const noticed = new Promise((resolve) => session.on("notice", resolve));
await session.query("LISTEN news");
await session.query("DO $$BEGIN RAISE NOTICE 'look'; END$$");
await plain.query("NOTIFY news, 'payload'");
await session.query("BEGIN");
await session.query("CREATE TEMPORARY TABLE kept ON COMMIT DROP AS SELECT 7 AS n");
const kept = await session.query("SELECT n FROM kept");
await session.query("ROLLBACK");
const parallel = await Promise.all(Array.from({ length: 200 }, (_, n) => sql`SELECT ${n}::int AS n`));
const others = {
  transaction: [first.rows[0].n, second.rows[0].transaction_isolation],
  notification: (await heard).payload,
  notice: (await noticed).message,
  session: kept.rows[0].n,
  parallel: parallel.every((result, n) => result.rows[0].n === n),
};
await session.end();
const patient = new HttpClient(SERVERLESS_URL);
patient.neonConfig.pipelineConnect = false;
await patient.connect();
others.pipelineConnect = (await patient.query("SELECT 8 AS n")).rows[0].n;
await patient.end();
await pool.end();
await plain.end();
// JSON has no NaN and no infinities.
const exact = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? `${value}` : value);
console.log(JSON.stringify({ http, websocket, port, others }, exact));
