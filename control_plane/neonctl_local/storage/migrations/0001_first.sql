-- Times are microseconds since 1970 in UTC. Background work is stored as the time at which it is
-- due (idle_at, check_at, archive_at, detach_at): see background.py.
--
-- Real databases (settlement.py): an operation with work has a settles_at of the year 8307 until its
-- work is done. Until then, the rows that depend on it have its id in state_operation (branches,
-- endpoints), creation (snapshots) or after_id (operations). Without databases, these columns, work,
-- undo, running_on, used_at and logical_size are NULL.

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE members (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    joined_at INTEGER NOT NULL,
    UNIQUE (org_id, user_id)
) STRICT;

-- An invitation is pending until it is accepted or revoked, or until it expires. digest is the
-- SHA-256 of the secret that accepts it, or empty before one is created.
CREATE TABLE invitations (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    email TEXT NOT NULL COLLATE NOCASE,
    role TEXT NOT NULL,
    invited_by TEXT NOT NULL REFERENCES users (id),
    invited_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    accepted_at INTEGER,
    revoked_at INTEGER,
    digest BLOB NOT NULL
) STRICT;
CREATE INDEX invitations_by_organization ON invitations (org_id, invited_at);
CREATE INDEX invitations_by_email ON invitations (email);

-- The id is the id of the organization.
CREATE TABLE spending_limits (
    id TEXT PRIMARY KEY REFERENCES organizations (id),
    cents INTEGER NOT NULL
) STRICT;

-- A key is stored as the SHA-256 of its token. locator is the start of it, and is indexed.
CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    locator TEXT NOT NULL,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL REFERENCES users (id),
    user_id TEXT REFERENCES users (id),
    org_id TEXT REFERENCES organizations (id),
    project_id TEXT REFERENCES projects (id),
    last_used_at INTEGER,
    last_used_from TEXT NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_locator ON api_keys (locator);
CREATE INDEX api_keys_by_user ON api_keys (user_id, ended_at);
CREATE INDEX api_keys_by_organization ON api_keys (org_id, ended_at);
CREATE INDEX api_keys_by_project ON api_keys (project_id);

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    user_id TEXT REFERENCES users (id),
    org_id TEXT REFERENCES organizations (id),
    region_id TEXT NOT NULL,
    provisioner TEXT NOT NULL,
    pg_version INTEGER NOT NULL,
    store_passwords INTEGER NOT NULL,
    history_retention_seconds INTEGER NOT NULL,
    settings TEXT NOT NULL,
    default_endpoint_settings TEXT NOT NULL,
    created_at INTEGER NOT NULL UNIQUE,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    detach_at INTEGER,
    detached INTEGER NOT NULL,
    CHECK ((user_id IS NULL) <> (org_id IS NULL))
) STRICT;
CREATE INDEX projects_by_user ON projects (user_id, created_at);
CREATE INDEX projects_by_organization ON projects (org_id, created_at);

-- A permission belongs to an email address, so it can be granted before the user signs up.
CREATE TABLE permissions (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    email TEXT NOT NULL COLLATE NOCASE,
    granted_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX permissions_granted
    ON permissions (email, project_id) WHERE revoked_at IS NULL;

-- A member of an organization may have a role on one of its projects.
CREATE TABLE project_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id TEXT NOT NULL REFERENCES projects (id),
    member_id TEXT NOT NULL REFERENCES members (id),
    role TEXT NOT NULL,
    UNIQUE (project_id, member_id)
) STRICT;
CREATE INDEX project_grants_by_member ON project_grants (member_id);

CREATE TABLE transfer_requests (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    user_id TEXT REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    key_id INTEGER REFERENCES api_keys (id)
) STRICT;
CREATE INDEX transfer_requests_by_project ON transfer_requests (project_id);

CREATE TABLE jwks (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    branch_id TEXT REFERENCES branches (id),
    jwks_url TEXT NOT NULL,
    provider_name TEXT NOT NULL,
    jwt_audience TEXT,
    role_names TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX jwks_by_project ON jwks (project_id);

CREATE TABLE vpc_endpoints (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    region_id TEXT NOT NULL,
    vpc_endpoint_id TEXT NOT NULL,
    label TEXT NOT NULL,
    deleted_at INTEGER,
    UNIQUE (org_id, region_id, vpc_endpoint_id)
) STRICT;

CREATE TABLE vpc_restrictions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id TEXT NOT NULL REFERENCES projects (id),
    vpc_endpoint_id TEXT NOT NULL,
    label TEXT NOT NULL,
    UNIQUE (project_id, vpc_endpoint_id)
) STRICT;

CREATE TABLE branches (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    parent_id TEXT,
    parent_lsn TEXT,
    parent_timestamp INTEGER,
    name TEXT NOT NULL,
    is_default INTEGER NOT NULL,
    protected INTEGER NOT NULL,
    init_source TEXT NOT NULL,
    annotation TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state_before TEXT NOT NULL,
    state TEXT NOT NULL,
    state_at INTEGER NOT NULL,
    state_operation TEXT,
    logical_size INTEGER,
    expires_at INTEGER,
    ttl_interval_seconds INTEGER,
    last_reset_at INTEGER,
    restored_from TEXT,
    restored_as TEXT,
    restore_status TEXT,
    backup_schedule TEXT NOT NULL,
    check_at INTEGER,
    archive_at INTEGER,
    deleted_at INTEGER,
    deletion_method TEXT,
    recoverable_until INTEGER
) STRICT;
CREATE INDEX branches_by_project ON branches (project_id, deleted_at);
CREATE INDEX branches_by_parent ON branches (parent_id, deleted_at);
CREATE INDEX branches_changing
    ON branches (state_operation) WHERE state_operation IS NOT NULL;
CREATE UNIQUE INDEX branch_names
    ON branches (project_id, name) WHERE deleted_at IS NULL;

-- Both secrets of a credential are derived from its seed.
CREATE TABLE credentials (
    id TEXT PRIMARY KEY,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT,
    scopes TEXT NOT NULL,
    secret_seed TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX credentials_by_branch ON credentials (branch_id);

-- The id is the domain in lower case.
CREATE TABLE custom_domains (
    id TEXT PRIMARY KEY,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX custom_domains_by_branch ON custom_domains (branch_id, created_at);

CREATE TABLE anonymized_branches (
    id TEXT PRIMARY KEY REFERENCES branches (id),
    masking_rules TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    creation TEXT NOT NULL REFERENCES operations (id),
    run TEXT REFERENCES operations (id),
    triggered_by TEXT REFERENCES users (id),
    masked_columns INTEGER NOT NULL
) STRICT;

CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    source_branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT NOT NULL,
    lsn TEXT NOT NULL,
    timestamp INTEGER,
    content TEXT NOT NULL,
    taken INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    deleted_at INTEGER,
    creation TEXT,
    slug TEXT NOT NULL,
    full_size INTEGER NOT NULL
) STRICT;
CREATE INDEX snapshots_by_project ON snapshots (project_id, deleted_at);
CREATE INDEX snapshots_changing ON snapshots (creation) WHERE creation IS NOT NULL;

CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT,
    type TEXT NOT NULL,
    region_id TEXT NOT NULL,
    provisioner TEXT NOT NULL,
    autoscaling_limit_min_cu REAL NOT NULL,
    autoscaling_limit_max_cu REAL NOT NULL,
    suspend_timeout_seconds INTEGER NOT NULL,
    settings TEXT NOT NULL,
    pooler_enabled INTEGER NOT NULL,
    disabled INTEGER NOT NULL,
    passwordless_access INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state_before TEXT NOT NULL,
    state TEXT NOT NULL,
    state_at INTEGER NOT NULL,
    state_operation TEXT,
    running_on TEXT,
    used_at INTEGER,
    started_at INTEGER,
    suspended_at INTEGER,
    idle_at INTEGER,
    deleted_at INTEGER,
    deleted_with_branch INTEGER NOT NULL
) STRICT;
CREATE INDEX endpoints_by_project ON endpoints (project_id, deleted_at);
CREATE INDEX endpoints_by_branch ON endpoints (branch_id, deleted_at);
CREATE INDEX endpoints_changing
    ON endpoints (state_operation) WHERE state_operation IS NOT NULL;
CREATE INDEX endpoints_running
    ON endpoints (running_on) WHERE running_on IS NOT NULL;

CREATE TABLE roles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT NOT NULL,
    password_seed TEXT NOT NULL,
    no_login INTEGER NOT NULL,
    protected INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    verifier TEXT
) STRICT;
CREATE INDEX roles_by_branch ON roles (branch_id, name);
CREATE UNIQUE INDEX role_names
    ON roles (branch_id, name) WHERE deleted_at IS NULL;

CREATE TABLE databases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT NOT NULL,
    owner_name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    former_names TEXT NOT NULL
) STRICT;
CREATE INDEX databases_by_branch ON databases (branch_id, name);
CREATE UNIQUE INDEX database_names
    ON databases (branch_id, name) WHERE deleted_at IS NULL;

-- position is created_at, made unique within a project, so that a cursor stays valid.
CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    branch_id TEXT,
    endpoint_id TEXT,
    action TEXT NOT NULL,
    position INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    settles_at INTEGER NOT NULL,
    retry_at INTEGER,
    outcome TEXT NOT NULL,
    error TEXT,
    duration INTEGER NOT NULL,
    failure TEXT,
    after_id TEXT,
    work TEXT,
    undo TEXT
) STRICT;
CREATE UNIQUE INDEX operations_by_project ON operations (project_id, position);
CREATE INDEX operations_by_action
    ON operations (project_id, action, outcome, position);
CREATE INDEX operations_by_branch
    ON operations (branch_id, action, outcome, position);
CREATE INDEX operations_unsettled ON operations (project_id, settles_at);
CREATE INDEX operations_after
    ON operations (after_id) WHERE after_id IS NOT NULL;
CREATE INDEX operations_with_work
    ON operations (settles_at) WHERE work IS NOT NULL;

-- Neon Auth of a branch, enabled or disabled without deleting its data. The id is the id of the
-- branch. domains, oauth_providers and settings are JSON.
CREATE TABLE auth_integrations (
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
CREATE TABLE auth_users (
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

CREATE TABLE data_apis (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    database_name TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (branch_id, database_name)
) STRICT;

CREATE TABLE planned_failures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL,
    times INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    retry_after REAL,
    show_retry_at INTEGER NOT NULL,
    branch TEXT,
    after INTEGER NOT NULL
) STRICT;

CREATE VIEW members_with_email AS
    SELECT members.*, users.email FROM members JOIN users ON users.id = members.user_id;

-- The background work that is due, and when. The columns are NULL if nothing is due. A compute with
-- a server is missing, because its activity has to be checked before it is suspended.
CREATE VIEW due_events (event, project_id, id, at) AS
    SELECT 'suspend', project_id, id, idle_at FROM endpoints
        WHERE idle_at IS NOT NULL AND running_on IS NULL
    UNION ALL
    SELECT 'check', project_id, id, check_at FROM branches WHERE check_at IS NOT NULL
    UNION ALL
    SELECT 'archive', project_id, id, archive_at FROM branches WHERE archive_at IS NOT NULL
    UNION ALL
    SELECT 'expire', project_id, id, expires_at FROM branches
        WHERE expires_at IS NOT NULL AND deleted_at IS NULL
    UNION ALL
    SELECT 'expire_snapshot', project_id, id, expires_at FROM snapshots
        WHERE expires_at IS NOT NULL AND deleted_at IS NULL
    UNION ALL
    SELECT 'detach', id, id, detach_at FROM projects WHERE detach_at IS NOT NULL;

-- In the order of the query for the earliest event, so that SQLite does not sort.
CREATE INDEX endpoints_idle
    ON endpoints (project_id, idle_at, id) WHERE idle_at IS NOT NULL;
CREATE INDEX branches_checked
    ON branches (project_id, check_at, id) WHERE check_at IS NOT NULL;
CREATE INDEX branches_archived
    ON branches (project_id, archive_at, id) WHERE archive_at IS NOT NULL;
CREATE INDEX branches_expiring
    ON branches (project_id, expires_at, id) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX snapshots_expiring
    ON snapshots (project_id, expires_at, id) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;

-- The time of the latest response. No later response has an earlier time.
CREATE TABLE served (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    until INTEGER NOT NULL
) STRICT;
