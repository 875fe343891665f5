CREATE EXTENSION plpgsql;

DO $$
DECLARE
    view record;
BEGIN
    FOR view IN
        SELECT c.oid::regclass AS name FROM pg_class c
        WHERE relkind = 'v' AND pg_relation_is_updatable(c.oid, false) <> 0
        AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid AND ev_type <> '1')
    LOOP
        EXECUTE format('CREATE RULE no_insert AS ON INSERT TO %s DO INSTEAD NOTHING', view.name);
        EXECUTE format('CREATE RULE no_update AS ON UPDATE TO %s DO INSTEAD NOTHING', view.name);
        EXECUTE format('CREATE RULE no_delete AS ON DELETE TO %s DO INSTEAD NOTHING', view.name);
    END LOOP;
END
$$;

DROP EXTENSION plpgsql;

