"""The commands of Neon's command line: those that run, and those that cannot, with the reason."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple


class Step(NamedTuple):
    """A command, a fragment of its output, and its exit status.

    The text of the command is that of a shell. ``{project}``, ``{org}``, ``{key}`` and
    ``{created}``, the time of the default branch, are values of the local control plane.
    """

    command: str
    output: str
    status: int = 0


_NEXT_WEEK = f"{datetime.now(UTC) + timedelta(days=7):%Y-%m-%dT%H:%M:%SZ}"
_URI = "postgresql://neondb_owner:"
_PULLED = "DATABASE_URL, DATABASE_URL_UNPOOLED, NEON_BRANCH"
_VPC = "--org-id {org} --region-id aws-us-east-2"

GROUPS: Mapping[str, tuple[Step, ...]] = {
    "account": (
        Step("me", "first.user@neon.invalid"),
        Step("orgs list", "First Organization"),
        Step("api-keys create --name ci", "neon_api_key_"),
        Step("api-keys create --name deploys --org-id {org}", "neon_org_key_"),
        Step("api-keys create --name one --project-id {project}", "neon_project_key_"),
        Step("api-keys list", "first key"),
        Step("api-keys list --org-id {org}", "(all projects)"),
        Step("api-keys revoke 2", "true"),
        Step("api-keys revoke 99", "No account API key with id 99", 1),
        Step("profile create work --api-key {key}", "work"),
        Step("profile list", "work"),
        Step("profile rotate-key work", "now holds api key"),
        Step("profile remove work --yes", "work"),
        Step("mcp --yes --project --agent cursor", "Minted API key"),
        Step("api /users/me --include", "HTTP 200 OK"),
        Step("api /projects -X POST -F project.name=posted", '"name": "posted"'),
    ),
    "projects": (
        Step("projects list --org-id {org}", "shop"),
        Step("projects create --name books --org-id {org} --database books --cu 0.5-1", "/books?"),
        Step("projects get {project}", "aws-us-east-2"),
        Step("projects update {project} --name store", "store"),
        Step("projects delete {project}", "store"),
        Step("projects list --recoverable-only", "store"),
        Step("projects recover {project}", "store"),
        Step(
            "ip-allow add 192.0.2.1 198.51.100.0/24 --protected-only", "192.0.2.1, 198.51.100.0/24"
        ),
        Step("ip-allow list", "198.51.100.0/24"),
        Step("ip-allow remove 192.0.2.1", "198.51.100.0/24"),
        Step("ip-allow reset", "now exposed to the internet"),
        Step(f"vpc endpoint assign vpce-1234567890abcdef0 --label office {_VPC}", ""),
        Step(f"vpc endpoint list {_VPC}", "vpce-1234567890abcdef0"),
        Step(f"vpc endpoint status vpce-1234567890abcdef0 {_VPC}", "accepted"),
        Step("vpc project restrict vpce-1234567890abcdef0 --label office", ""),
        Step("vpc project list", "office"),
        Step("vpc project remove vpce-1234567890abcdef0", ""),
        Step(f"vpc endpoint remove vpce-1234567890abcdef0 {_VPC}", ""),
    ),
    "branches": (
        Step(f"branches create --name dev --expires-at {_NEXT_WEEK}", _URI),
        Step("branches create --name bare --no-compute --protected", "bare"),
        Step("branches add-compute bare --type read_only --name reports", ".neon.invalid"),
        Step("branches list", "[default] main"),
        Step("branches get dev", _NEXT_WEEK),
        Step("branches set-expiration dev", "dev"),
        Step("branches reset dev --parent --preserve-under-name before", "Last Reset At"),
        Step("branches restore dev ^parent", "Restored branch"),
        Step("branches rename dev preview", "preview"),
        Step("branches schema-diff main preview", "+++ Database: neondb"),
        Step("diff preview --branch main", "No schema differences"),
        Step("branches delete main", "root branch of a project cannot be deleted", 1),
        Step("branches set-default preview", "preview"),
        Step("branches create --name empty --schema-only --suspend-timeout 60", _URI),
        Step("branches delete empty", "empty"),
        Step("branches delete empty", "Branch empty not found", 1),
        Step("operations list", "create_branch"),
    ),
    "databases": (
        Step("roles create --name ada", "ada"),
        Step("roles list", "neondb_owner"),
        Step("databases create --name shop --owner-name ada", "ada"),
        Step("databases list", "shop"),
        Step("connection-string main --role-name ada --database-name shop --pooled", "-pooler."),
        Step("connection-string main --role-name ada --database-name shop --extended", "Password"),
        Step("databases delete shop", "shop"),
        Step("roles delete ada", "ada"),
        Step("snapshots create --branch main --name friday --slug before-launch", "before-launch"),
        Step("snapshots list", "friday"),
        Step("snapshots get friday", "snap-"),
        Step("snapshots update friday --expires-at 2099-01-01T00:00:00Z", "2099-01-01"),
        Step("snapshots restore friday --name recovered", "recovered"),
        Step("snapshots finalize recovered", ""),
        Step("snapshots schedule set --frequency daily --hour 3 --retention 604800", "604800"),
        Step("snapshots schedule get", "daily"),
        Step("snapshots delete friday", "friday"),
        Step("claim list", "No Claimable Neon projects"),
    ),
    "auth": (
        Step("neon-auth status", "Neon Auth is not configured for this branch"),
        Step("neon-auth enable", "NEON_AUTH_BASE_URL=https://ep-"),
        Step("neon-auth enable --database-name neondb", "Neon Auth is already enabled"),
        Step("neon-auth status", "better_auth"),
        Step("neon-auth oauth-provider add --provider-id google", "shared"),
        Step("neon-auth oauth-provider add --provider-id vercel", "own OAuth app", 1),
        Step("neon-auth oauth-provider list", "google"),
        Step(
            "neon-auth oauth-provider update --provider-id google --oauth-client-id own "
            "--oauth-client-secret own",
            "standard",
        ),
        Step("neon-auth oauth-provider delete --provider-id google", "deleted"),
        Step("neon-auth domain add https://example.com", "added"),
        Step("neon-auth domain list", "https://example.com"),
        Step("neon-auth domain delete https://example.com", "deleted"),
        Step("neon-auth domain allow-localhost get", "true"),
        Step("neon-auth domain allow-localhost disable", "restricted"),
        Step("neon-auth domain allow-localhost enable", "allowed"),
    ),
    "settings of auth": (
        Step("neon-auth enable", "better_auth"),
        Step("neon-auth config email-password get", "otp"),
        Step("neon-auth config email-password update --disable-sign-up", "updated"),
        Step("neon-auth config email-provider get", "shared"),
        Step(
            "neon-auth config email-provider update --type standard --host mail.example.com "
            "--port 587 --username ada --password pw",
            "mail.example.com",
        ),
        Step("neon-auth config organization get", "owner"),
        Step("neon-auth config organization update --limit 3", "3"),
        Step("neon-auth config webhook get", "false"),
        Step(
            "neon-auth config webhook update --enabled --url https://example.com "
            "--enabled-events user.created",
            "user.created",
        ),
        Step("neon-auth plugins list", "magic_link"),
        Step("neon-auth plugins get email_provider", "mail.example.com"),
        Step("neon-auth user create --email ada@example.com --name Ada", ""),
        Step("neon-auth user set-role unknown --roles admin", "user 'unknown' not found", 1),
        Step("neon-auth user delete unknown", "user 'unknown' not found", 1),
        Step("neon-auth disable --delete-data", "Neon Auth has been disabled"),
    ),
    "data api": (
        Step("data-api get", "the Data API is not enabled", 1),
        Step("data-api create --auth-provider neon_auth --db-max-rows 9", "/neondb/rest/v1"),
        Step("data-api get", "active"),
        Step("data-api update --db-schemas public,shop", "settings updated"),
        Step("data-api get --output json", '"db_max_rows": 9'),
        Step("data-api refresh-schema", "refreshed"),
        Step("data-api delete", "deleted"),
    ),
    "context": (
        Step("link --project-id {project} --yes", _PULLED),
        Step("status", "Inspecting branch main"),
        Step("status --current-branch", "main"),
        Step("projects update {project} --cu 1", "shop"),
        Step("config status --config-json", "autoscalingLimitMinCu"),
        Step("checkout dev --create", _PULLED),
        Step("env pull --file .env.preview", "Pulled 5 Neon variables"),
        Step("git install", "Git → Neon sync installed"),
        Step("git sync", "Checked out branch"),
        Step("git status", "main"),
        Step("git cleanup", "nothing to prune"),
        Step("git uninstall", "Git → Neon sync is off"),
        Step("config init --no-install --from-branch", "Created neon.ts from the live state"),
        Step("config plan", "No changes"),
        Step("config apply", "No changes"),
        Step("deploy", _PULLED),
        Step("init --yes --no-agent-setup --no-config", "already linked"),
        Step("set-context --project-id {project}", "set-context` is deprecated"),
    ),
    "credentials and domains": (
        Step("credentials create --name uploads --scope storage:read", "nsk_live_"),
        Step("credentials list", "uploads"),
        Step("credentials reveal nak_live_0", "Credential nak_live_0 not found", 1),
        Step("credentials rotate nak_live_0", "Credential nak_live_0 not found", 1),
        Step("credentials revoke nak_live_0", "Credential nak_live_0 not found", 1),
        Step("functions domains register api.example.com --slug api", "fn-custom-domains."),
        Step("functions domains list", "api.example.com"),
        Step("functions domains delete api.example.com", "api.example.com"),
    ),
    "not served": (
        Step("buckets list", "not available", 1),
        Step("functions list", "not available", 1),
        Step("logs fields", "not available", 1),
        Step("triggers list", "not available", 1),
    ),
}
"""The commands of each group. Each group has its own local control plane with one project."""

CONNECTING: tuple[Step, ...] = (
    Step("psql main -- --no-psqlrc -c 'CREATE TABLE orders (item text)'", "CREATE TABLE"),
    Step("branches create --name copy --psql -- --no-psqlrc -c 'SELECT 41 + 1 AS sum'", "42"),
    Step("psql main@{created} -- --no-psqlrc -c 'SELECT 41 + 1 AS sum'", "42"),
    Step("psql main@{created} -- --no-psqlrc -c 'TABLE orders'", '"orders" does not exist', 1),
    Step("psql main@2020-01-01T00:00:00Z -- -c 'SELECT 1'", "is not within the restore window", 2),
    Step("connection-string main@0/1A2B3C", "options=neon_lsn%3A0%2F1A2B3C"),
    Step("inspect db table-sizes", "orders"),
    Step("inspect db index-sizes", "No indexes found"),
    Step("inspect db unused-indexes", "No unused indexes"),
    Step("inspect db seq-scans", "orders"),
    Step("inspect db long-running-queries", "No long-running queries"),
    Step("inspect db stalled-queries", "No active queries"),
    Step("inspect db locks", "No locks held"),
    Step("inspect db vacuum-stats", "orders"),
    Step("inspect db bloat", "No bloat estimate"),
    Step("inspect db replication-slots", "No replication slots"),
    Step("inspect db subscriptions", "No subscriptions"),
    Step("inspect db outliers", "pg_stat_statements", 1),
    Step("inspect db calls", "pg_stat_statements", 1),
    Step("psql main -- -c 'CREATE EXTENSION pg_stat_statements'", "CREATE EXTENSION"),
    Step("inspect db outliers", "CREATE EXTENSION"),
    Step("inspect db calls", "CREATE EXTENSION"),
    Step("inspect db lfc-hit-rate", '"neon" extension', 1),
    Step("inspect db working-set", '"neon" extension', 1),
)
"""The commands that connect to Postgres. They need real databases."""

_OWN_HOST = "needs a host of Neon: "
_NOT_SERVED = "the local control plane does not offer this service; another command of it runs"
_SERVICES = {
    "buckets": ("create", "delete", "object delete", "object get", "object list", "object put"),
    "functions": ("delete", "deploy", "get"),
    "logs": ("field-values", "query"),
    "neon-auth": ("config email-provider test",),
    "triggers": ("create", "delete", "disable", "enable", "get", "update"),
}

NOT_RUN: Mapping[str, str] = {
    "ask": f"{_OWN_HOST}the assistant",
    "auth": f"{_OWN_HOST}signs in with a browser",
    "bootstrap": f"{_OWN_HOST}downloads a template",
    "claim accept": f"{_OWN_HOST}Claimable Neon",
    "claim create": f"{_OWN_HOST}Claimable Neon",
    "claim delete": f"{_OWN_HOST}Claimable Neon",
    "claim status": f"{_OWN_HOST}Claimable Neon",
    "dev": "serves functions of the user until it is interrupted, without the API",
    "open": f"{_OWN_HOST}opens the console in a browser",
    "plugins": "downloads plugins for coding agents",
    "skills update": "downloads skills for coding agents",
} | {
    f"{service} {command}": _NOT_SERVED
    for service, commands in _SERVICES.items()
    for command in commands
}
"""The commands that the tests do not run, with the reason."""
