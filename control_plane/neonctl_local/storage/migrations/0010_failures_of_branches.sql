-- A planned failure may concern one branch, and ignore the next operations.
ALTER TABLE planned_failures ADD COLUMN branch TEXT;
ALTER TABLE planned_failures ADD COLUMN after INTEGER NOT NULL DEFAULT 0;
