// The packages that are built on Neon's serverless driver. Prints what each returned.
import { PrismaNeon, PrismaNeonHttp } from "@prisma/adapter-neon";
import { Pool, neon } from "@neondatabase/serverless";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/neon-http";
import { drizzle as drizzleOverWebSocket } from "drizzle-orm/neon-serverless";
import { integer, pgTable, text } from "drizzle-orm/pg-core";

const connectionString = process.env.SERVERLESS_URL;
const notes = pgTable("notes", { id: integer().primaryKey(), body: text() });

const overHttp = drizzle({ client: neon(connectionString) });
await overHttp.execute(sql`CREATE TABLE notes (id int PRIMARY KEY, body text)`);
await overHttp.insert(notes).values([{ id: 1, body: "milk" }, { id: 2, body: null }]);
const found = await overHttp.select().from(notes).orderBy(notes.id);
const [batch] = await overHttp.batch([overHttp.select().from(notes), overHttp.delete(notes)]);

const pool = new Pool({ connectionString });
const transaction = await drizzleOverWebSocket({ client: pool }).transaction(async (tx) => {
  await tx.insert(notes).values({ id: 3, body: "bread" });
  return await tx.select().from(notes);
});
await pool.end();

const query = { sql: "SELECT id, body FROM notes WHERE id = $1", args: [3], argTypes: [{ scalarType: "int", arity: "scalar" }] };
const prisma = await new PrismaNeon({ connectionString }).connect();
const { rows } = await prisma.queryRaw(query);
await prisma.dispose();
const prismaOverHttp = await new PrismaNeonHttp(connectionString, {}).connect();
const { rows: httpRows } = await prismaOverHttp.queryRaw(query);
console.log(JSON.stringify({ found, batch, transaction, rows, httpRows }));
