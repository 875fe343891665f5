-- A member of an organization may have a role on one of its projects.
CREATE TABLE IF NOT EXISTS project_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id TEXT NOT NULL REFERENCES projects (id),
    member_id TEXT NOT NULL REFERENCES members (id),
    role TEXT NOT NULL,
    UNIQUE (project_id, member_id)
) STRICT;
CREATE INDEX IF NOT EXISTS project_grants_by_member ON project_grants (member_id);

-- Both secrets of a credential are derived from its seed.
CREATE TABLE IF NOT EXISTS credentials (
    id TEXT PRIMARY KEY,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT,
    scopes TEXT NOT NULL,
    secret_seed TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS credentials_by_branch ON credentials (branch_id);

-- The id is the domain in lower case.
CREATE TABLE IF NOT EXISTS custom_domains (
    id TEXT PRIMARY KEY,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS custom_domains_by_branch ON custom_domains (branch_id, created_at);
