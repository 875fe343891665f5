-- Objects of the role alice that call witness() wherever Postgres lets a role name a function, and a
-- use of each. $DIRECTORY receives a file for each place that a superuser reached.
CREATE TABLE calls (place text, caller name);
GRANT INSERT ON calls TO PUBLIC;
CREATE FUNCTION witness(place text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    attempt text;
BEGIN
    FOREACH attempt IN ARRAY ARRAY['SELECT', 'RESET ROLE', 'RESET SESSION AUTHORIZATION', 'SET ROLE cloud_admin'] LOOP
        BEGIN
            EXECUTE attempt;
            IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
                EXECUTE format('COPY (SELECT 1) TO %L', '$DIRECTORY/' || place);
            END IF;
        EXCEPTION WHEN insufficient_privilege OR invalid_parameter_value THEN
            CONTINUE;
        END;
    END LOOP;
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN
        RAISE 'a superuser called witness(%)', place;
    END IF;
    INSERT INTO public.calls VALUES (place, current_user);
END
$$;
-- An immutable function with constant arguments is called already by the planner.
CREATE FUNCTION seen(place text, n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.witness(place); RETURN n; END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.witness(TG_ARGV[0]); RETURN NEW; END $$;
CREATE FUNCTION add_up(int, int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.witness('aggregate'); RETURN $1 + $2; END $$;
CREATE FUNCTION same(int, int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.witness('operator'); RETURN true; END $$;

CREATE DOMAIN number AS int CHECK (public.seen('domain', VALUE) IS NOT NULL);
CREATE TYPE pair AS (a int);
CREATE FUNCTION to_pair(name) RETURNS pair LANGUAGE plpgsql AS
    $$ BEGIN PERFORM public.witness('cast'); RETURN ROW(1); END $$;
CREATE CAST (name AS pair) WITH FUNCTION to_pair AS IMPLICIT;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same);
CREATE AGGREGATE total (int) (SFUNC = add_up, STYPE = int, INITCOND = '0');

CREATE TABLE parts (d number PRIMARY KEY, secret text) PARTITION BY RANGE (d);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (1) TO (10);
CREATE TABLE keyed (n int) PARTITION BY RANGE ((n + seen('partition key', 1)));
CREATE TABLE keyed_part PARTITION OF keyed FOR VALUES FROM (1) TO (10);
CREATE TABLE t (
    n int PRIMARY KEY,
    secret text,
    part number REFERENCES parts,
    d int DEFAULT seen('default', 1),
    g int GENERATED ALWAYS AS (seen('generated column', n)) STORED,
    CHECK (seen('check', n) > 0),
    EXCLUDE ((seen('exclusion', n)) WITH =)
);
CREATE INDEX ON t ((seen('index expression', n)));
CREATE INDEX ON t (n) WHERE seen('index predicate', 1) = 1;
CREATE STATISTICS of_t (mcv) ON (seen('statistics', n)), d FROM t;
CREATE POLICY of_t ON t USING (seen('policy', n) > 0);
ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE RULE of_t AS ON UPDATE TO t DO ALSO SELECT public.witness('rule');
CREATE TRIGGER for_row BEFORE INSERT ON t FOR EACH ROW
    WHEN (public.seen('trigger condition', NEW.n) > 0) EXECUTE FUNCTION note('row trigger');
CREATE TRIGGER for_statement AFTER INSERT OR DELETE ON t EXECUTE FUNCTION note('statement trigger');
CREATE TRIGGER for_truncate BEFORE TRUNCATE ON t EXECUTE FUNCTION note('truncate trigger');
CREATE TRIGGER always BEFORE TRUNCATE ON t EXECUTE FUNCTION note('enabled always');
ALTER TABLE t ENABLE ALWAYS TRIGGER always;
CREATE TRIGGER in_replicas AFTER TRUNCATE ON t EXECUTE FUNCTION note('enabled in replicas');
ALTER TABLE t ENABLE REPLICA TRIGGER in_replicas;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION note('constraint trigger');
CREATE VIEW of_t_view AS SELECT seen('view', n) AS n FROM t;
CREATE MATERIALIZED VIEW of_t_stored AS SELECT secret, seen('materialized view', n) AS n FROM t;
CREATE INDEX ON of_t_stored ((seen('index of a materialized view', n)));
CREATE FOREIGN TABLE far (n int DEFAULT seen('foreign table', 1) CHECK (n > 0)) SERVER far;
CREATE PUBLICATION of_t FOR TABLE t;

SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO parts VALUES (1);
INSERT INTO keyed SELECT n FROM generate_series(1, 5) AS n;
INSERT INTO t (n, part) VALUES (1, 1);
TRUNCATE t;
INSERT INTO t (n, part) SELECT n, 1 FROM generate_series(1, 500) AS n;
UPDATE t SET d = 2 WHERE n OPERATOR(public.===) 1;
SELECT total(n), count('x'::name::pair) FROM of_t_view;
REFRESH MATERIALIZED VIEW of_t_stored;
ANALYZE;
GRANT SELECT ON t TO reader;
SET ROLE reader;
SELECT FROM t;
RESET ROLE;
