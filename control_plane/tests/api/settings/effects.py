"""What each setting of a request does: a test shows its effect, or it is inert for a reason.

A setting is a property of a request body with the name of its schema, like ``AllowedIps.ips``.
A name may contain ``*``.
"""

from typing import Final, NamedTuple


class Shown(NamedTuple):
    """Settings, and the test that shows their effect or the refusal."""

    test: str
    settings: str


class Inert(NamedTuple):
    """Settings without effect: as the docs call them, and the reason."""

    name: str
    reason: str
    settings: str


SHOWN: Final = (
    # accounts, keys and people
    Shown(
        "api.test_api_keys.test_key_name_has_1_to_64_characters",
        "ApiKeyCreateRequest.key_name OrgApiKeyCreateRequest.key_name",
    ),
    Shown(
        "api.test_api_keys.test_project_scoped_key_needs_a_project_of_the_organization",
        "OrgApiKeyCreateRequest.project_id",
    ),
    Shown(
        "api.people.test_invitations.test_invalid_invitation_is_refused",
        "OrganizationInviteCreateRequest.email OrganizationInviteCreateRequest.role",
    ),
    Shown(
        "api.people.test_organizations.test_administrator_changes_roles_and_removes_members",
        "OrganizationMemberUpdateRequest.role",
    ),
    Shown(
        "api.project_access.test_members.test_role_of_an_administrator_gives_access_to_one_project",
        "SetProjectMemberRoleRequest.role",
    ),
    Shown(
        "api.project_access.test_permissions.test_permissions_are_listed_with_their_addresses",
        "GrantPermissionToProjectRequest.email",
    ),
    Shown(
        "api.project_access.test_transfers.test_user_transfers_own_projects_to_an_organization",
        "TransferProjectsToOrganizationRequest.*",
    ),
    Shown(
        "api.project_access.test_transfers.test_invalid_ttl_seconds_is_400",
        "POST*/transfer_requests.ttl_seconds",
    ),
    Shown(
        "api.project_access.test_transfers.test_accepted_project_moves_to_the_named_organization",
        "PUT*/transfer_requests/{request_id}.org_id",
    ),
    # projects
    Shown(
        "api.test_projects.test_projects_are_listed_by_organization",
        "ProjectCreateRequest.project.name ProjectCreateRequest.project.org_id",
    ),
    Shown(
        "api.test_project_changes.test_renaming_a_project_starts_no_operations",
        "ProjectUpdateRequest.project.name",
    ),
    Shown(
        "api.test_projects.test_names_of_the_first_branch_role_and_database_can_be_set",
        "ProjectCreateRequest.project.branch.*name",
    ),
    Shown(
        "api.test_projects.test_first_branch_can_have_annotations",
        "ProjectCreateRequest.project.branch.annotations",
    ),
    Shown(
        "api.test_regions.test_compute_is_in_the_region_of_its_project",
        "ProjectCreateRequest.project.region_id",
    ),
    Shown(
        "api.test_work_of_requests.test_missing_version_is_refused_with_the_versions_that_are_installed",
        "ProjectCreateRequest.project.pg_version",
    ),
    Shown(
        "api.test_roles.test_password_is_not_revealed_if_the_project_stores_no_passwords",
        "ProjectCreateRequest.project.store_passwords",
    ),
    Shown(
        "engine.test_background.test_compute_can_have_its_own_suspend_timeout",
        "*.suspend_timeout_seconds",
    ),
    Shown(
        "engine.test_databases.test_desired_settings_are_those_of_the_project_and_its_computes",
        "*.pg_settings",
    ),
    Shown(
        "server.databases.test_admission.test_allowed_ips_can_apply_to_protected_branches_only",
        "AllowedIps.*",
    ),
    Shown(
        "server.databases.test_admission.test_refused_client_does_not_start_the_compute",
        "ProjectSettingsData.block_public_connections",
    ),
    Shown(
        "api.test_project_changes.test_enabling_logical_replication_suspends_computes_and_is_final",
        "ProjectSettingsData.enable_logical_replication",
    ),
    Shown(
        "engine.test_quotas.test_compute_is_suspended_at_the_quota_and_starts_when_it_is_raised",
        "ProjectQuota.*_time_seconds",
    ),
    Shown(
        "server.databases.test_history.test_branches_keep_history_for_the_retention_of_their_project",
        "Project*Request.project.history_retention_seconds",
    ),
    Shown(
        "api.test_preload_libraries.test_servers_load_the_libraries_of_the_compute_or_else_of_the_project",
        "PreloadLibraries.*",
    ),
    # branches
    Shown("api.test_branches.test_branch_has_an_annotation", "*.annotation_value"),
    Shown(
        "engine.test_settlement.test_branch_that_is_created_archived_is_archived_after_its_copy",
        "*.branch.archived",
    ),
    Shown("engine.test_background.test_branch_is_deleted_when_it_expires", "*.branch.expires_at"),
    Shown(
        "server.tenants.test_cluster_work.test_schema_only_branch_has_tables_without_rows",
        "*.branch.init_source",
    ),
    Shown(
        "api.test_branches.test_branches_are_searched_and_counted",
        "POST*/branches.branch.name BranchCreateRequest.branch.name",
    ),
    Shown(
        "api.test_branch_changes.test_updating_a_branch_starts_no_operations",
        "BranchUpdateRequest.branch.name",
    ),
    Shown(
        "api.test_branches.test_parent_of_a_branch_must_be_in_the_same_project",
        "*.branch.parent_id",
    ),
    Shown(
        "server.tenants.test_cluster_work.test_branch_of_the_past_needs_a_snapshot_of_that_time",
        "*.branch.parent_lsn *.branch.parent_timestamp",
    ),
    Shown(
        "engine.test_branches.test_root_default_parent_and_protected_branches_cannot_be_deleted",
        "*.branch.protected",
    ),
    Shown(
        "api.test_branch_changes.test_restore_can_preserve_the_old_state_as_a_new_branch",
        "BranchRestoreRequest.preserve_under_name BranchRestoreRequest.source_[bt]*",
    ),
    Shown(
        "api.test_work_of_requests.test_restore_replaces_the_cluster_between_suspend_and_start",
        "BranchRestoreRequest.source_lsn",
    ),
    Shown(
        "api.branch_data.test_anonymized.test_anonymization_can_start_with_the_branch",
        "BranchAnonymizedCreateRequest.start_anonymization",
    ),
    Shown(
        "api.test_snapshot_restores.test_restore_can_finalize_in_the_same_request",
        "POST*/snapshots/{snapshot_id}/restore.*",
    ),
    Shown(
        "api.test_snapshot_restores.test_replaced_branch_gets_the_requested_name_or_a_free_one",
        "POST*/finalize_restore.name",
    ),
    Shown(
        "api.test_snapshots.test_snapshot_is_renamed_and_deleted",
        "SnapshotUpdateRequest.snapshot.name",
    ),
    Shown(
        "api.test_snapshots.test_expiry_of_a_snapshot_is_set_and_removed",
        "SnapshotUpdateRequest.snapshot.expires_at",
    ),
    Shown("api.test_databases.test_database_is_created_changed_and_deleted", "Database*Request.*"),
    Shown(
        "api.test_roles.test_role_without_login_has_no_password",
        "RoleCreateRequest.role.*",
    ),
    Shown(
        "api.project_access.test_jwks.test_url_of_a_branch_is_applied_only_there_and_deleted_with_it",
        "AddProjectJwksRequest.branch_id",
    ),
    # computes
    Shown(
        "api.test_endpoints.test_compute_moves_only_to_a_branch_without_a_read_write_compute",
        "Endpoint*Request.endpoint.branch_id",
    ),
    Shown("api.test_endpoints.test_compute_is_created_and_started", "*.endpoint.name"),
    Shown(
        "api.test_regions.test_compute_is_in_the_region_of_its_project",
        "EndpointCreateRequest.endpoint.region_id",
    ),
    Shown(
        "server.databases.test_guides.test_connections_follow_the_size_of_a_compute",
        "*.autoscaling_limit_m*_cu",
    ),
    Shown(
        "api.test_endpoints.test_compute_that_is_disabled_is_suspended_and_no_change_starts_it",
        "Endpoint*Request.endpoint.disabled",
    ),
    Shown(
        "server.tenants.test_cluster_work.test_read_only_compute_refuses_writes",
        "EndpointCreateRequest.endpoint.type BranchCreateRequestEndpointOptions.type",
    ),
)

INERT: Final = (
    Inert(
        "`block_vpc_connections`, labels of VPC endpoints",
        "there is no private network",
        "ProjectSettingsData.block_vpc_connections VpcEndpointAssignment.label",
    ),
    Inert(
        "`quota.written_data_bytes`, `quota.data_transfer_bytes`",
        "nothing measures them",
        "ProjectQuota.written_data_bytes ProjectQuota.data_transfer_bytes",
    ),
    Inert(
        "`quota.logical_size_bytes`",
        "only Neon's Postgres extension limits the size of a branch",
        "ProjectQuota.logical_size_bytes",
    ),
    Inert("`provisioner`", "servers share the machine", "*.provisioner"),
    Inert(
        "`pgbouncer_settings`, `pooler_enabled`, `pooler_mode`",
        "`-pooler` host names always have the [pooler](local-databases.md#the-pooler), with "
        "Neon's standard settings",
        "*.pgbouncer_settings *.pooler_*",
    ),
    Inert(
        "`passwordless_access`",
        "Neon has not implemented it either: every connection needs a password",
        "*.passwordless_access",
    ),
    Inert(
        "`maintenance_window`", "nothing is updated while the server runs", "MaintenanceWindow.*"
    ),
    Inert(
        "`hipaa`, `audit_log_level`",
        "nothing is audited",
        "ProjectSettingsData.hipaa ProjectSettingsData.audit_log_level",
    ),
    Inert("backup schedules", "only requests take snapshots", "BackupScheduleItem.*"),
    Inert(
        "masking rules",
        "emulated databases have no rows, and real ones refuse anonymized branches",
        "MaskingRule.*",
    ),
    Inert("spending limits", "nothing costs money", "SpendingLimitUpdateRequest.*"),
    Inert(
        "JWKS URLs, except for `branch_id`",
        "nothing accepts tokens, and no roles are created",
        "AddProjectJwksRequest.j* AddProjectJwksRequest.[!bj]*",
    ),
    Inert(
        "Neon Auth",
        "its hosts do not exist, and real databases stay unchanged",
        "*NeonAuth* DELETE*/auth.delete_data",
    ),
    Inert("the Data API", "its hosts do not exist", "DataApi*"),
    Inert("credentials", "no service accepts them", "CreateCredentialRequest.*"),
    Inert(
        "custom domains",
        "they become active without DNS. Their functions need not exist",
        "CustomDomainRegisterRequest.*",
    ),
)
