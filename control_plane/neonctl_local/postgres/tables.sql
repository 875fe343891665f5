-- The tables of a database as one JSON object, in the format of BranchSchemaJSON in Neon's API.
SELECT json_build_object('tables', coalesce(json_agg(json_strip_nulls(json_build_object(
    'schema', n.nspname,
    'name', c.relname,
    'columns', (
        SELECT coalesce(json_agg(json_build_object(
            'name', a.attname,
            'type', format_type(a.atttypid, a.atttypmod),
            'nullable', NOT a.attnotnull,
            'generated', a.attgenerated <> ''
        ) ORDER BY a.attnum), '[]')
        FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ),
    'constraints', (
        SELECT json_agg(json_build_object(
            'type', CASE k.contype
                WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE'
                WHEN 'f' THEN 'FOREIGN KEY' WHEN 'c' THEN 'CHECK' ELSE 'EXCLUDE' END,
            'columns', (
                SELECT coalesce(json_agg(a.attname ORDER BY key.position), '[]')
                FROM unnest(k.conkey) WITH ORDINALITY AS key (number, position)
                JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = key.number
            ),
            'name', k.conname,
            'referenced_table', CASE WHEN k.contype = 'f' THEN json_build_object(
                'schema', target_schema.nspname,
                'table', target.relname,
                'columns', (
                    SELECT json_agg(a.attname ORDER BY key.position)
                    FROM unnest(k.confkey) WITH ORDINALITY AS key (number, position)
                    JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = key.number
                )
            ) END
        ) ORDER BY k.conname)
        FROM pg_constraint k
        LEFT JOIN pg_class target ON target.oid = k.confrelid
        LEFT JOIN pg_namespace target_schema ON target_schema.oid = target.relnamespace
        WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'f', 'c', 'x')
    )
)) ORDER BY n.nspname, c.relname), '[]'))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%'
