-- Snapshots have names that are unique within their project.
ALTER TABLE snapshots ADD COLUMN slug TEXT NOT NULL DEFAULT '';
UPDATE snapshots SET slug = substr(id, 6);
