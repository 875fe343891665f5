-- The SHA-256 of the secret that accepts an invitation, or empty before one is created.
ALTER TABLE invitations ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
