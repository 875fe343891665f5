-- Functions and operators in a schema of alice, with the names and parameters of those of Postgres
-- that the administrator uses ($NAMES), and views with the names of all tables and views of the system.
-- They come first in the search path of her database. Its sessions have
-- her role, from which those of the administrator could return to their own.
CREATE SCHEMA shadows;
DO $$
DECLARE
    this record;
    body text := $body$ BEGIN PERFORM public.witness('shadow'); RAISE 'a shadow was called'; END $body$;
BEGIN
    FOR this IN
        SELECT proname AS name, pg_get_function_identity_arguments(oid) AS parameters,
            pg_get_function_result(oid) AS result
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
            AND proname = ANY ('$NAMES')
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION shadows.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
                this.name, this.parameters, this.result, body);
        EXCEPTION WHEN invalid_function_definition OR feature_not_supported THEN
            CONTINUE; -- a parameter has the type internal or "any"
        END;
    END LOOP;
    FOR this IN
        SELECT o.oid, oprname AS name, oprleft::regtype AS left_type, oprright::regtype AS right_type,
            oprresult::regtype AS result
        FROM pg_operator o WHERE oprnamespace = 'pg_catalog'::regnamespace
            AND oprname IN ('=', '<>', '~', '!~', '||', '+', '-', '%', '->', '<', '>')
            AND ARRAY[oprleft, oprright] <@ ARRAY['name', 'text', 'oid', 'int4', 'int8', '"char"', 'bool', 'xid']::regtype[]::oid[]
    LOOP
        EXECUTE format('CREATE FUNCTION shadows.operator_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L',
            this.oid, this.left_type, this.right_type, this.result, body);
        EXECUTE format('CREATE OPERATOR shadows.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = shadows.operator_%s)',
            this.name, this.left_type, this.right_type, this.oid);
    END LOOP;
    FOR this IN SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
    LOOP
        EXECUTE format('CREATE VIEW shadows.%I AS SELECT 1 FROM public.witness(''shadow'')', this.name);
    END LOOP;
END
$$;
ALTER DATABASE app SET search_path = shadows, pg_catalog, public;
ALTER DATABASE app SET role = alice;
ALTER ROLE alice SET search_path = shadows, pg_catalog, public;
