-- Neon Auth of a branch, enabled or disabled without deleting its data. The id is the id of the
-- branch. domains, oauth_providers and settings are JSON.
CREATE TABLE IF NOT EXISTS auth_integrations (
    id TEXT PRIMARY KEY REFERENCES branches (id),
    provider TEXT NOT NULL,
    provider_project_id TEXT NOT NULL,
    database_name TEXT NOT NULL,
    name TEXT,
    enabled INTEGER NOT NULL,
    domains TEXT NOT NULL,
    oauth_providers TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- A copy of a user in a child branch has the same user_id.
CREATE TABLE IF NOT EXISTS auth_users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    user_id TEXT NOT NULL,
    email TEXT NOT NULL COLLATE NOCASE,
    name TEXT,
    roles TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (branch_id, user_id),
    UNIQUE (branch_id, email)
) STRICT;

CREATE TABLE IF NOT EXISTS data_apis (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    database_name TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (branch_id, database_name)
) STRICT;
