-- A database with every kind of object that an owner without superuser rights can create.
CREATE SCHEMA kinds;
SET search_path = kinds, public;
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE pair AS (a integer, b text);
CREATE TYPE spans AS RANGE (subtype = time);
CREATE SEQUENCE numbers START 5 INCREMENT 3;
CREATE TABLE people (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    mood mood DEFAULT 'ok',
    age positive,
    two pair,
    doubled integer GENERATED ALWAYS AS (age * 2) STORED,
    data jsonb DEFAULT '{}',
    tags text[] CHECK (cardinality(tags) < 10),
    picked bigint DEFAULT nextval('numbers')
);
CREATE TABLE visits (
    person bigint REFERENCES people ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    at timestamptz NOT NULL,
    during spans
) PARTITION BY RANGE (at);
CREATE TABLE visits_2025 PARTITION OF visits FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE visits_rest PARTITION OF visits DEFAULT;
CREATE UNLOGGED TABLE scratch (LIKE people INCLUDING ALL);
CREATE TABLE staff (salary numeric(12, 2)) INHERITS (people);
CREATE INDEX people_lower ON people (lower(name)) WHERE age > 17;
CREATE INDEX people_data ON people USING gin (data jsonb_path_ops);
CREATE INDEX people_similar ON people USING gist (name public.gist_trgm_ops);
CREATE STATISTICS people_stats (dependencies) ON mood, age FROM people;
CREATE VIEW adults WITH (security_barrier) AS SELECT id, name FROM people WHERE age > 17 WITH CHECK OPTION;
CREATE MATERIALIZED VIEW moods AS SELECT mood, count(*) FROM people GROUP BY mood;
CREATE UNIQUE INDEX ON moods (mood);
CREATE FUNCTION shout(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN upper($1) || '!';
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.data := NEW.data || '{"stamped": true}'; RETURN NEW; END$$;
CREATE PROCEDURE tidy(days integer DEFAULT 3) LANGUAGE sql AS 'DELETE FROM kinds.visits WHERE at < now() - days * interval ''1 day''';
CREATE AGGREGATE product(integer) (sfunc = int4mul, stype = integer, initcond = '1');
CREATE OPERATOR !!! (rightarg = text, function = shout);
CREATE TRIGGER stamped BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE RULE quiet AS ON DELETE TO scratch DO INSTEAD NOTHING;
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
CREATE POLICY sees_all ON people USING (true) WITH CHECK (age > 0);
CREATE TEXT SEARCH CONFIGURATION simple_copy (COPY = simple);
CREATE PUBLICATION changes FOR TABLE people (id, name);
CREATE CAST (pair AS text) WITH INOUT AS ASSIGNMENT;
GRANT SELECT (name) ON people TO PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA kinds GRANT SELECT ON TABLES TO PUBLIC;
COMMENT ON COLUMN people.mood IS 'it''s a "mood" with ☃';
INSERT INTO people (name, age, two, tags) SELECT 'person ' || n, n, format('(%s,b)', n)::pair, ARRAY['t' || n] FROM generate_series(1, 50) AS n;
INSERT INTO visits SELECT id, '2025-06-01'::timestamptz + id * interval '10 days', NULL FROM people;
INSERT INTO staff (id, name, age, salary) VALUES (1000, 'boss', 60, 1.5);
REFRESH MATERIALIZED VIEW moods;
SELECT lo_from_bytea(0, '\x00ff10'), setval('numbers', 1000);
