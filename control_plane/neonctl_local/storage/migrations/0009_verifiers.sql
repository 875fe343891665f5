-- A password that was set with SQL is known only by its verifier.
ALTER TABLE roles ADD COLUMN verifier TEXT;
