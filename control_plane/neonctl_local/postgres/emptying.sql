-- Remove the rows of one database of a copy that only the administrator can reach, and what was
-- derived from them. Nothing that a user wrote is called, because this hides the triggers and foreign
-- keys of tables, and the expressions and predicates of indexes, until the rows are removed.
-- The rows that an extension's script created stay, because the extension needs them.
DO $$
DECLARE
    expressions pg_index[] := ARRAY(
        SELECT i FROM pg_index i WHERE indrelid >= 16384 AND (indexprs IS NOT NULL OR indpred IS NOT NULL)
    );
    of_extensions oid[] := ARRAY(
        SELECT c.oid FROM pg_class c JOIN pg_roles owner ON owner.oid = c.relowner
        JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
        WHERE owner.rolsuper
    );
    emptied oid[] := ARRAY(
        SELECT oid FROM pg_class
        WHERE oid >= 16384 AND relpersistence <> 't' AND oid <> ALL (of_extensions)
    );
    this record;
BEGIN
    UPDATE pg_index SET indexprs = NULL, indpred = NULL
    WHERE indrelid >= 16384 AND (indexprs IS NOT NULL OR indpred IS NOT NULL);
    UPDATE pg_class SET relhastriggers = false WHERE oid >= 16384 AND relhastriggers;
    COMMIT; -- each table has its own transaction, because the number of locks is limited
    FOR this IN SELECT oid::regclass AS name, relkind FROM pg_class
        WHERE oid = ANY (emptied) AND (relkind = 'r' OR relkind = 'm' AND relispopulated)
    LOOP
        IF this.relkind = 'r' THEN
            EXECUTE format('TRUNCATE ONLY %s', this.name);
        ELSE
            EXECUTE format('REFRESH MATERIALIZED VIEW %s WITH NO DATA', this.name);
        END IF;
        COMMIT;
    END LOOP;
    PERFORM setval(seqrelid::regclass, seqstart, false) FROM pg_sequence
    WHERE seqrelid = ANY (emptied);
    UPDATE pg_index i SET indexprs = e.indexprs, indpred = e.indpred
    FROM unnest(expressions) e WHERE i.indexrelid = e.indexrelid;
    COMMIT;
    FOR this IN SELECT config.oid::regclass AS name, condition
        FROM pg_extension, unnest(extconfig, extcondition) AS config (oid, condition)
        JOIN pg_class c ON c.oid = config.oid
        WHERE c.relkind = 'r' AND c.oid = ANY (of_extensions)
    LOOP
        EXECUTE format('DELETE FROM ONLY %s %s', this.name, this.condition);
    END LOOP;
    UPDATE pg_class SET relhastriggers = true WHERE oid IN (SELECT tgrelid FROM pg_trigger);
    UPDATE pg_class SET relpages = 0, reltuples = -1
    WHERE oid = ANY (emptied) AND relkind IN ('p', 'f') AND reltuples > 0;
    UPDATE pg_attribute SET atthasmissing = false, attmissingval = NULL
    WHERE attrelid = ANY (emptied) AND atthasmissing;
    DELETE FROM pg_statistic;
    UPDATE pg_statistic_ext_data
    SET stxdndistinct = NULL, stxddependencies = NULL, stxdmcv = NULL, stxdexpr = NULL;
    COMMIT;
    WHILE EXISTS (SELECT FROM pg_largeobject_metadata) LOOP
        PERFORM lo_unlink(oid) FROM (SELECT oid FROM pg_largeobject_metadata LIMIT 1000) AS first;
        COMMIT;
    END LOOP;
END
$$
