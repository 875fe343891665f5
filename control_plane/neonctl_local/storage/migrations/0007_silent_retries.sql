-- Operations of a planned failure may run again without a retry_at in their records.
ALTER TABLE planned_failures ADD COLUMN show_retry_at INTEGER NOT NULL DEFAULT 1;
