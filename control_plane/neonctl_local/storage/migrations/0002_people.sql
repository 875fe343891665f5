-- An invitation is pending until it is accepted or revoked, or until it expires.
CREATE TABLE IF NOT EXISTS invitations (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    email TEXT NOT NULL COLLATE NOCASE,
    role TEXT NOT NULL,
    invited_by TEXT NOT NULL REFERENCES users (id),
    invited_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    accepted_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS invitations_by_organization ON invitations (org_id, invited_at);
CREATE INDEX IF NOT EXISTS invitations_by_email ON invitations (email);

-- The id is the id of the organization.
CREATE TABLE IF NOT EXISTS spending_limits (
    id TEXT PRIMARY KEY REFERENCES organizations (id),
    cents INTEGER NOT NULL
) STRICT;
