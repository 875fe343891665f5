BEGIN TRANSACTION;
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
INSERT INTO "api_keys" VALUES(1,'personal','first key','3104631844f29723',X'3104631844F29723FE2F3ECA79CF2031F4EFB37FF5E3C9C8E94826CDD692C780',1767225600000000,'7e62e323-6a28-42c8-9cc1-fdf53ae28626','7e62e323-6a28-42c8-9cc1-fdf53ae28626',NULL,NULL,1767225600000000,'127.0.0.1',NULL);
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
INSERT INTO "branches" VALUES('br-royal-haze-25659878','ancient-wave-50194722',NULL,NULL,NULL,'main',1,0,'parent-data','{}','7e62e323-6a28-42c8-9cc1-fdf53ae28626',1767225600000000,1767225600000000,'init','ready',1767225601000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',1767240000000000,NULL,NULL,NULL,NULL);
INSERT INTO "branches" VALUES('br-proud-boat-92692080','ancient-wave-50194722',NULL,NULL,NULL,'restored',0,0,'parent-data','{}','7e62e323-6a28-42c8-9cc1-fdf53ae28626',1767225605000000,1767225605000000,'init','ready',1767225606000000,NULL,NULL,NULL,NULL,'snap-square-scene-83833118','br-royal-haze-25659878','restored','[]',NULL,1768435205000000,NULL,NULL,NULL);
INSERT INTO "branches" VALUES('br-snowy-hat-78621543','ancient-wave-50194722','br-royal-haze-25659878','0/6A21CA8',1767225607000000,'failed',0,0,'parent-data','{}','7e62e323-6a28-42c8-9cc1-fdf53ae28626',1767225607000000,1767225607000000,'init','init',1767225608000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',1767240007000000,1768435207000000,NULL,NULL,NULL);
INSERT INTO "branches" VALUES('br-soft-feather-31411194','ancient-wave-50194722','br-royal-haze-25659878','0/875D4EC',1767225608000000,'lost',0,0,'parent-data','{}','7e62e323-6a28-42c8-9cc1-fdf53ae28626',1767225608000000,1767225609000000,'init','init',1767225609000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,1767225609000000,'user',1767830409000000);
INSERT INTO "branches" VALUES('br-gentle-violet-59428748','ancient-wave-50194722','br-royal-haze-25659878','0/7C13A6E',1767225610000000,'waiting',0,0,'parent-data','{}','7e62e323-6a28-42c8-9cc1-fdf53ae28626',1767225610000000,1767225610000000,'init','ready',200000000000000000,'f8f43657-3266-42b5-a667-1b8d5b3d440e',NULL,NULL,NULL,NULL,NULL,NULL,'[]',1767240010000000,NULL,NULL,NULL,NULL);
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
INSERT INTO "databases" VALUES(1,'br-royal-haze-25659878','neondb','neondb_owner',1767225600000000,1767225600000000,NULL,'[]');
INSERT INTO "databases" VALUES(2,'br-proud-boat-92692080','neondb','neondb_owner',1767225600000000,1767225600000000,NULL,'[]');
INSERT INTO "databases" VALUES(3,'br-snowy-hat-78621543','neondb','neondb_owner',1767225600000000,1767225600000000,NULL,'[]');
INSERT INTO "databases" VALUES(4,'br-soft-feather-31411194','neondb','neondb_owner',1767225600000000,1767225600000000,NULL,'[]');
INSERT INTO "databases" VALUES(5,'br-gentle-violet-59428748','neondb','neondb_owner',1767225600000000,1767225600000000,NULL,'[]');
INSERT INTO "databases" VALUES(6,'br-royal-haze-25659878','sales','neondb_owner',1767225610000000,1767225610000000,NULL,'[]');
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
INSERT INTO "endpoints" VALUES('ep-wild-firefly-97508273','ancient-wave-50194722','br-royal-haze-25659878',NULL,'read_write','aws-us-east-2','k8s-neonvm',0.25,0.25,0,'{}',0,0,1,1767225600000000,1767225600000000,'init','active',1767225602000000,NULL,'br-royal-haze-25659878',NULL,1767225602000000,NULL,200000000300000000,NULL,0);
INSERT INTO "endpoints" VALUES('ep-lingering-band-11560228','ancient-wave-50194722','br-snowy-hat-78621543',NULL,'read_write','aws-us-east-2','k8s-neonvm',0.25,0.25,0,'{}',0,0,1,1767225607000000,1767225607000000,'init','idle',1767225608000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "endpoints" VALUES('ep-yellow-unit-48336960','ancient-wave-50194722','br-soft-feather-31411194',NULL,'read_write','aws-us-east-2','k8s-neonvm',0.25,0.25,0,'{}',0,0,1,1767225608000000,1767225609000000,'init','idle',1767225609000000,NULL,NULL,NULL,NULL,NULL,NULL,1767225609000000,1);
INSERT INTO "endpoints" VALUES('ep-calm-smoke-63643267','ancient-wave-50194722','br-gentle-violet-59428748',NULL,'read_write','aws-us-east-2','k8s-neonvm',0.25,0.25,0,'{}',0,0,1,1767225610000000,1767225610000000,'init','active',200000000000000000,'067c018e-17f0-4af3-8ca2-cedf308403f3',NULL,NULL,NULL,NULL,NULL,NULL,0);
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
CREATE TABLE members (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES organizations (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL,
    joined_at INTEGER NOT NULL,
    UNIQUE (org_id, user_id)
) STRICT;
INSERT INTO "members" VALUES('80f29a8b-81e8-4c2d-995d-5e0caf3ae35b','org-small-block-12330469','7e62e323-6a28-42c8-9cc1-fdf53ae28626','admin',1767225600000000);
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
INSERT INTO "operations" VALUES('75ecfe58-c8bd-4225-b374-45b10ec9dfcf','ancient-wave-50194722','br-royal-haze-25659878',NULL,'create_timeline',1767225600000000,1767225600000000,1767225600000000,1767225601000000,1767225601000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"CreateCluster","branch_id":"br-royal-haze-25659878","pg_version":18,"template":null}',NULL);
INSERT INTO "operations" VALUES('e6cb6fd1-fced-4624-95bc-491c85d4f941','ancient-wave-50194722','br-royal-haze-25659878','ep-wild-firefly-97508273','start_compute',1767225600000001,1767225600000000,1767225601000000,1767225602000000,1767225602000000,NULL,'finished',NULL,1000000,NULL,'75ecfe58-c8bd-4225-b374-45b10ec9dfcf','{"type":"StartCompute","branch_id":"br-royal-haze-25659878","endpoint_id":"ep-wild-firefly-97508273"}',NULL);
INSERT INTO "operations" VALUES('4194bbc4-3261-41d5-8443-8cb402883f8f','ancient-wave-50194722','br-royal-haze-25659878',NULL,'create_branch',1767225603000000,1767225603000000,1767225603000000,1767225604000000,1767225604000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"CopyCluster","target":"snap-square-scene-83833118","source":"br-royal-haze-25659878","at":null,"lsn":null,"schema_only":false}',NULL);
INSERT INTO "operations" VALUES('2ea000c7-6650-4309-a258-fa31b52925ba','ancient-wave-50194722','br-proud-boat-92692080',NULL,'create_branch',1767225605000000,1767225605000000,1767225605000000,1767225606000000,1767225606000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"CopyCluster","target":"br-proud-boat-92692080","source":"snap-square-scene-83833118","at":null,"lsn":null,"schema_only":false}',NULL);
INSERT INTO "operations" VALUES('3480f79f-8111-4207-937a-9fa4cd2f2d30','ancient-wave-50194722','br-snowy-hat-78621543',NULL,'create_branch',1767225607000000,1767225607000000,1767225607000000,1767225608000000,1767225608000000,NULL,'failed','planned',1000000,'{"status":"failed","error":"planned","retry_after":null}',NULL,NULL,NULL);
INSERT INTO "operations" VALUES('6f9ec8fd-d6de-4161-a3ea-0115b2e6d41b','ancient-wave-50194722','br-snowy-hat-78621543','ep-lingering-band-11560228','start_compute',1767225607000001,1767225607000000,1767225608000000,1767225608000000,1767225608000000,NULL,'failed','not started: the operation before it did not finish',1000000,NULL,NULL,NULL,NULL);
INSERT INTO "operations" VALUES('c53d703f-af4e-44e2-893d-742375e33aab','ancient-wave-50194722','br-soft-feather-31411194',NULL,'create_branch',1767225608000000,1767225608000000,1767225608000000,1767225609000000,1767225609000000,NULL,'failed','no space left on device',1000000,NULL,NULL,'{"type":"CopyCluster","target":"br-soft-feather-31411194","source":"br-royal-haze-25659878","at":null,"lsn":null,"schema_only":false}',NULL);
INSERT INTO "operations" VALUES('d49c1316-8968-474b-aee8-8a4b35198f9f','ancient-wave-50194722','br-soft-feather-31411194','ep-yellow-unit-48336960','start_compute',1767225608000001,1767225608000000,1767225609000000,1767225609000000,1767225609000000,NULL,'failed','not started: the operation before it did not finish',1000000,NULL,'c53d703f-af4e-44e2-893d-742375e33aab','{"type":"StartCompute","branch_id":"br-soft-feather-31411194","endpoint_id":"ep-yellow-unit-48336960"}',NULL);
INSERT INTO "operations" VALUES('7d95f7ec-05bc-4662-82a7-e5235e0fb713','ancient-wave-50194722','br-soft-feather-31411194',NULL,'delete_timeline',1767225609000000,1767225609000000,1767225609000000,1767225610000000,1767225610000000,NULL,'finished',NULL,1000000,NULL,NULL,NULL,NULL);
INSERT INTO "operations" VALUES('f8f43657-3266-42b5-a667-1b8d5b3d440e','ancient-wave-50194722','br-gentle-violet-59428748',NULL,'create_branch',1767225610000000,1767225610000000,1767225610000000,1767225611000000,200000000000000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"CopyCluster","target":"br-gentle-violet-59428748","source":"br-royal-haze-25659878","at":null,"lsn":null,"schema_only":false}',NULL);
INSERT INTO "operations" VALUES('067c018e-17f0-4af3-8ca2-cedf308403f3','ancient-wave-50194722','br-gentle-violet-59428748','ep-calm-smoke-63643267','start_compute',1767225610000001,1767225610000000,200000000000000000,200000000001000000,200000000000000000,NULL,'finished',NULL,1000000,NULL,'f8f43657-3266-42b5-a667-1b8d5b3d440e','{"type":"StartCompute","branch_id":"br-gentle-violet-59428748","endpoint_id":"ep-calm-smoke-63643267"}',NULL);
INSERT INTO "operations" VALUES('2f906a09-348d-4eed-83c2-b42c7d0c2564','ancient-wave-50194722','br-royal-haze-25659878',NULL,'create_branch',1767225610000002,1767225610000000,1767225610000000,1767225611000000,200000000000000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"CopyCluster","target":"snap-long-dawn-70759862","source":"br-royal-haze-25659878","at":null,"lsn":null,"schema_only":false}',NULL);
INSERT INTO "operations" VALUES('58df861d-ba22-432a-80c5-0980efa88c91','ancient-wave-50194722','br-royal-haze-25659878','ep-wild-firefly-97508273','apply_config',1767225610000003,1767225610000000,1767225610000000,1767225611000000,200000000000000000,NULL,'finished',NULL,1000000,NULL,NULL,'{"type":"ConfigureBranch","branch_id":"br-royal-haze-25659878"}',NULL);
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "organizations" VALUES('org-small-block-12330469','First Organization',1767225600000000,1767225600000000);
CREATE TABLE permissions (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    email TEXT NOT NULL COLLATE NOCASE,
    granted_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE TABLE planned_failures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    action TEXT NOT NULL,
    times INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    status TEXT NOT NULL,
    error TEXT NOT NULL,
    retry_after REAL
) STRICT;
INSERT INTO "planned_failures" VALUES(1,'create_branch',1,1,'failed','planned',NULL);
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
INSERT INTO "projects" VALUES('ancient-wave-50194722','real','7e62e323-6a28-42c8-9cc1-fdf53ae28626',NULL,'aws-us-east-2','k8s-neonvm',18,1,86400,'{}','{}',1767225600000000,1767225600000000,NULL,1767830410000000,0);
CREATE TABLE roles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id TEXT NOT NULL REFERENCES branches (id),
    name TEXT NOT NULL,
    password_seed TEXT NOT NULL,
    no_login INTEGER NOT NULL,
    protected INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
INSERT INTO "roles" VALUES(1,'br-royal-haze-25659878','neondb_owner','be6f3dbbdd46295486c0f3d112070912',0,0,1767225600000000,1767225600000000,NULL);
INSERT INTO "roles" VALUES(2,'br-proud-boat-92692080','neondb_owner','be6f3dbbdd46295486c0f3d112070912',0,0,1767225600000000,1767225600000000,NULL);
INSERT INTO "roles" VALUES(3,'br-snowy-hat-78621543','neondb_owner','be6f3dbbdd46295486c0f3d112070912',0,0,1767225600000000,1767225600000000,NULL);
INSERT INTO "roles" VALUES(4,'br-soft-feather-31411194','neondb_owner','be6f3dbbdd46295486c0f3d112070912',0,0,1767225600000000,1767225600000000,NULL);
INSERT INTO "roles" VALUES(5,'br-gentle-violet-59428748','neondb_owner','be6f3dbbdd46295486c0f3d112070912',0,0,1767225600000000,1767225600000000,NULL);
CREATE TABLE served (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    until INTEGER NOT NULL
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
    creation TEXT
) STRICT;
INSERT INTO "snapshots" VALUES('snap-square-scene-83833118','ancient-wave-50194722','br-royal-haze-25659878','snap-square-scene-83833118','0/5AF9859',NULL,'{"roles":[{"id":1,"branch_id":"br-royal-haze-25659878","name":"neondb_owner","password_seed":"be6f3dbbdd46295486c0f3d112070912","no_login":false,"protected":false,"created_at":1767225600000000,"updated_at":1767225600000000,"deleted_at":null}],"databases":[{"id":1,"branch_id":"br-royal-haze-25659878","name":"neondb","owner_name":"neondb_owner","created_at":1767225600000000,"updated_at":1767225600000000,"deleted_at":null,"former_names":"[]"}]}',1,1767225603000000,NULL,NULL,NULL);
INSERT INTO "snapshots" VALUES('snap-long-dawn-70759862','ancient-wave-50194722','br-royal-haze-25659878','running','0/549DB15',NULL,'{"roles":[{"id":1,"branch_id":"br-royal-haze-25659878","name":"neondb_owner","password_seed":"be6f3dbbdd46295486c0f3d112070912","no_login":false,"protected":false,"created_at":1767225600000000,"updated_at":1767225600000000,"deleted_at":null}],"databases":[{"id":1,"branch_id":"br-royal-haze-25659878","name":"neondb","owner_name":"neondb_owner","created_at":1767225600000000,"updated_at":1767225600000000,"deleted_at":null,"former_names":"[]"}]}',1,1767225610000000,NULL,NULL,'2f906a09-348d-4eed-83c2-b42c7d0c2564');
CREATE TABLE transfer_requests (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    user_id TEXT REFERENCES users (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO "users" VALUES('7e62e323-6a28-42c8-9cc1-fdf53ae28626','First User','first.user@neon.invalid',1767225600000000);
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
CREATE INDEX api_keys_by_locator ON api_keys (locator);
CREATE INDEX api_keys_by_user ON api_keys (user_id, ended_at);
CREATE INDEX api_keys_by_organization ON api_keys (org_id, ended_at);
CREATE INDEX api_keys_by_project ON api_keys (project_id);
CREATE INDEX projects_by_user ON projects (user_id, created_at);
CREATE INDEX projects_by_organization ON projects (org_id, created_at);
CREATE UNIQUE INDEX permissions_granted
    ON permissions (email, project_id) WHERE revoked_at IS NULL;
CREATE INDEX transfer_requests_by_project ON transfer_requests (project_id);
CREATE INDEX jwks_by_project ON jwks (project_id);
CREATE INDEX branches_by_project ON branches (project_id, deleted_at);
CREATE INDEX branches_by_parent ON branches (parent_id, deleted_at);
CREATE INDEX branches_changing
    ON branches (state_operation) WHERE state_operation IS NOT NULL;
CREATE UNIQUE INDEX branch_names
    ON branches (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX snapshots_by_project ON snapshots (project_id, deleted_at);
CREATE INDEX snapshots_changing ON snapshots (creation) WHERE creation IS NOT NULL;
CREATE INDEX endpoints_by_project ON endpoints (project_id, deleted_at);
CREATE INDEX endpoints_by_branch ON endpoints (branch_id, deleted_at);
CREATE INDEX endpoints_changing
    ON endpoints (state_operation) WHERE state_operation IS NOT NULL;
CREATE INDEX endpoints_running
    ON endpoints (running_on) WHERE running_on IS NOT NULL;
CREATE INDEX roles_by_branch ON roles (branch_id, name);
CREATE UNIQUE INDEX role_names
    ON roles (branch_id, name) WHERE deleted_at IS NULL;
CREATE INDEX databases_by_branch ON databases (branch_id, name);
CREATE UNIQUE INDEX database_names
    ON databases (branch_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX operations_by_project ON operations (project_id, position);
CREATE INDEX operations_unsettled ON operations (project_id, settles_at);
CREATE INDEX operations_after
    ON operations (after_id) WHERE after_id IS NOT NULL;
CREATE INDEX operations_with_work
    ON operations (settles_at) WHERE work IS NOT NULL;
CREATE VIEW members_with_email AS
    SELECT members.*, users.email FROM members JOIN users ON users.id = members.user_id;
CREATE VIEW due_events (event, project_id, id, at) AS
    SELECT 'suspend', project_id, id, idle_at FROM endpoints WHERE idle_at IS NOT NULL
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('api_keys',1);
INSERT INTO "sqlite_sequence" VALUES('roles',5);
INSERT INTO "sqlite_sequence" VALUES('databases',6);
INSERT INTO "sqlite_sequence" VALUES('planned_failures',1);
COMMIT;
PRAGMA user_version = 1057332376;
