"""Postgres settings: those that a project may choose, and those of the administrator.

Projects may not choose any other settings, because some name a command, a file, a library or a
connection, and others could break what the control plane relies on.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

LIBRARIES: Final = ("pg_stat_statements", "timescaledb", "pg_cron", "pg_partman_bgw")
"""The libraries that computes can preload, for all versions of Postgres."""

OWN_PREFIX: Final = "app."
"""The prefix of settings that applications define for themselves.

Other prefixes belong to libraries, whose settings can be dangerous: ``plperl.on_init``, for
example, is Perl code that the server runs.
"""

_OF_SESSIONS: Final = (
    "DateStyle IntervalStyle TimeZone application_name array_nulls backend_flush_after"
    " backslash_quote bytea_output check_function_bodies client_connection_check_interval"
    " client_encoding client_min_messages commit_siblings constraint_exclusion"
    " cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost createrole_self_grant"
    " cursor_tuple_fraction debug_logical_replication_streaming debug_parallel_query"
    " debug_pretty_print debug_print_parse debug_print_plan debug_print_rewritten"
    " default_statistics_target default_table_access_method default_tablespace"
    " default_text_search_config default_toast_compression default_transaction_deferrable"
    " default_transaction_isolation default_transaction_read_only effective_cache_size"
    " effective_io_concurrency enable_async_append enable_bitmapscan enable_distinct_reordering"
    " enable_gathermerge enable_group_by_reordering enable_hashagg enable_hashjoin"
    " enable_incremental_sort enable_indexonlyscan enable_indexscan enable_material"
    " enable_memoize enable_mergejoin enable_nestloop enable_parallel_append"
    " enable_parallel_hash enable_partition_pruning enable_partitionwise_aggregate"
    " enable_partitionwise_join enable_presorted_aggregate enable_self_join_elimination"
    " enable_seqscan enable_sort enable_tidscan escape_string_warning exit_on_error"
    " extra_float_digits file_copy_method force_parallel_mode from_collapse_limit geqo"
    " geqo_effort geqo_generations geqo_pool_size geqo_seed geqo_selection_bias geqo_threshold"
    " gin_fuzzy_search_limit gin_pending_list_limit hash_mem_multiplier icu_validation_level"
    " idle_in_transaction_session_timeout idle_session_timeout ignore_system_indexes"
    " io_combine_limit jit jit_above_cost jit_expressions jit_inline_above_cost"
    " jit_optimize_above_cost jit_tuple_deforming join_collapse_limit lc_monetary lc_numeric"
    " lc_time lock_timeout log_parameter_max_length_on_error logical_decoding_work_mem"
    " maintenance_io_concurrency maintenance_work_mem max_parallel_maintenance_workers"
    " max_parallel_workers max_parallel_workers_per_gather md5_password_warnings"
    " min_parallel_index_scan_size min_parallel_table_scan_size parallel_leader_participation"
    " parallel_setup_cost parallel_tuple_cost password_encryption plan_cache_mode post_auth_delay"
    " quote_all_identifiers random_page_cost recursive_worktable_factor"
    " restrict_nonsystem_relation_kind row_security scram_iterations search_path seq_page_cost"
    " standard_conforming_strings statement_timeout stats_fetch_consistency synchronize_seqscans"
    " synchronous_commit tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval"
    " tcp_user_timeout temp_buffers temp_tablespaces timezone_abbreviations trace_notify"
    " trace_sort transform_null_equals vacuum_buffer_usage_limit"
    " vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit"
    " vacuum_cost_page_miss vacuum_failsafe_age vacuum_freeze_min_age vacuum_freeze_table_age"
    " vacuum_max_eager_freeze_failure_rate vacuum_multixact_failsafe_age"
    " vacuum_multixact_freeze_min_age vacuum_multixact_freeze_table_age vacuum_truncate"
    " wal_sender_timeout wal_skip_threshold work_mem xmlbinary xmloption"
    # of libraries
    " hnsw.ef_search hnsw.iterative_scan hnsw.max_scan_tuples hnsw.scan_mem_multiplier"
    " ivfflat.iterative_scan ivfflat.max_probes ivfflat.probes pg_trgm.similarity_threshold"
    " pg_trgm.strict_word_similarity_threshold pg_trgm.word_similarity_threshold"
)
"""The settings that every role may change for its session (context ``user`` or ``backend``).

``local_preload_libraries``, the three settings for one transaction, and ``transaction_timeout`` are
left out. In a configuration file, ``transaction_timeout`` would also end logins, even the
administrator's.
"""

SIZES_AND_TIMES: Final = (
    "autovacuum autovacuum_analyze_scale_factor autovacuum_analyze_threshold"
    " autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age"
    " autovacuum_naptime autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit"
    " autovacuum_vacuum_insert_scale_factor autovacuum_vacuum_insert_threshold"
    " autovacuum_vacuum_max_threshold autovacuum_vacuum_scale_factor autovacuum_vacuum_threshold"
    " autovacuum_work_mem autovacuum_worker_slots bgwriter_delay bgwriter_flush_after"
    " bgwriter_lru_maxpages bgwriter_lru_multiplier checkpoint_completion_target"
    " checkpoint_flush_after checkpoint_timeout checkpoint_warning commit_delay"
    " commit_timestamp_buffers compute_query_id deadlock_timeout io_max_combine_limit"
    " io_max_concurrency io_method io_workers max_active_replication_origins max_connections"
    " max_files_per_process max_locks_per_transaction max_logical_replication_workers"
    " max_notify_queue_pages max_parallel_apply_workers_per_subscription max_pred_locks_per_page"
    " max_pred_locks_per_relation max_pred_locks_per_transaction max_prepared_transactions"
    " max_sync_workers_per_subscription max_wal_senders max_wal_size max_worker_processes"
    " min_dynamic_shared_memory min_wal_size multixact_member_buffers multixact_offset_buffers"
    " notify_buffers serializable_buffers shared_buffers subtransaction_buffers temp_file_limit"
    " track_activity_query_size track_cost_delay_timing track_functions track_io_timing"
    " track_wal_io_timing transaction_buffers wal_buffers wal_compression wal_keep_size"
    " wal_receiver_status_interval wal_receiver_timeout wal_retrieve_retry_interval"
    " wal_writer_delay wal_writer_flush_after pg_stat_statements.max pg_stat_statements.save"
    " pg_stat_statements.track pg_stat_statements.track_planning"
    " pg_stat_statements.track_utility"
)
"""The permitted settings that roles cannot change: sizes, times, statistics and ``io_method``.

Settings that can interrupt the administrator's work are left out, such as
``authentication_timeout``, ``max_slot_wal_keep_size`` and ``superuser_reserved_connections``.
"""

BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "autovacuum_max_workers": ("", "64"),
    "autovacuum_work_mem": ("kB", "2GB"),
    "autovacuum_worker_slots": ("", "64"),
    "commit_timestamp_buffers": ("8kB", "128MB"),
    "io_max_concurrency": ("", "64"),
    "max_active_replication_origins": ("", "1000"),
    "max_connections": ("", "1000"),
    "max_files_per_process": ("", "4096"),
    "max_locks_per_transaction": ("", "1024"),
    "max_logical_replication_workers": ("", "128"),
    "max_notify_queue_pages": ("", "1048576"),
    "max_pred_locks_per_transaction": ("", "1024"),
    "max_prepared_transactions": ("", "1000"),
    "max_wal_senders": ("", "128"),
    "max_wal_size": ("MB", "16GB"),
    "max_worker_processes": ("", "128"),
    "min_dynamic_shared_memory": ("MB", "1GB"),
    "min_wal_size": ("MB", "16GB"),
    "multixact_member_buffers": ("8kB", "128MB"),
    "multixact_offset_buffers": ("8kB", "128MB"),
    "notify_buffers": ("8kB", "128MB"),
    "pg_stat_statements.max": ("", "100000"),
    "serializable_buffers": ("8kB", "128MB"),
    "shared_buffers": ("8kB", "2GB"),
    "subtransaction_buffers": ("8kB", "128MB"),
    "track_activity_query_size": ("B", "64kB"),
    "transaction_buffers": ("8kB", "128MB"),
    "wal_buffers": ("8kB", "256MB"),
    "wal_keep_size": ("MB", "16GB"),
}
"""The default unit of each setting, and its greatest permitted value.

These settings reserve memory or keep files, in some cases for each connection. With all of them at
their greatest values, a server still starts on a machine with 8 GB. Settings that every session may
change have no bounds, because a session could exceed them anyway.
"""

PERMITTED: Final = frozenset(f"{_OF_SESSIONS} {SIZES_AND_TIMES}".lower().split())
"""The settings that a project may choose, in lower case, for all versions of Postgres."""

_OF_SERVER: Final = {
    "wal_level": frozenset({"replica", "logical"}),
    "shared_preload_libraries": frozenset(LIBRARIES),
}
"""The settings that have API fields of their own, and the entries allowed in their values."""

_ADVICE: Final = {
    "wal_level": "enable logical replication of the project instead",
    "shared_preload_libraries": "use preload_libraries instead",
    "session_preload_libraries": "use preload_libraries instead",
    "local_preload_libraries": "use preload_libraries instead",
    "transaction_timeout": "it would end logins, so set it with ALTER ROLE or ALTER DATABASE",
}
_BYTES: Final = {"": 1, "B": 1, "kB": 1 << 10, "8kB": 1 << 13, "MB": 1 << 20, "GB": 1 << 30}
_AMOUNT: Final = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]*)?)\s*(B|kB|MB|GB)?\s*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*")

_KEPT: Final = frozenset(
    {
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "shared_preload_libraries",
    }
)
"""The string settings that :func:`fixed_settings` leaves out.

The settings for files have no default value. The control plane sets all of these settings
except ``external_pid_file``, and writes the libraries into the configuration file.
"""

_SESSION_CONTEXTS: Final = ("user", "backend")
_DESCRIBED: Final = {"archive_command", "recovery_end_command", "ssl_passphrase_command"}
"""Some settings that every version of ``postgres --describe-config`` lists."""

LOCK_TIME: Final = "3s"
"""How long the administrator waits for a lock that a client holds."""

_SESSION: Final[Mapping[str, str]] = {
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "GMT",
    "array_nulls": "on",
    "backslash_quote": "safe_encoding",
    "bytea_output": "hex",
    "check_function_bodies": "on",
    "client_connection_check_interval": "0",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "deadlock_timeout": "1s",
    "debug_pretty_print": "on",
    "debug_print_parse": "off",
    "debug_print_plan": "off",
    "debug_print_rewritten": "off",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.simple",
    "default_toast_compression": "pglz",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "escape_string_warning": "on",
    "exit_on_error": "off",
    "extra_float_digits": "1",
    "gin_fuzzy_search_limit": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "ignore_system_indexes": "off",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "local_preload_libraries": "",
    "lock_timeout": LOCK_TIME,  # a client can hold every lock for ever
    "log_parameter_max_length_on_error": "0",
    # Until they know the settings of their session, parallel workers use those of the project.
    "max_parallel_maintenance_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "password_encryption": "scram-sha-256",
    # Members of pg_monitor see the statements of others, and the administrator's statements can
    # contain passwords.
    "pg_stat_statements.track": "none",
    "track_activities": "off",
    "post_auth_delay": "0",
    "quote_all_identifiers": "off",
    "role": "none",  # a database could set a role other than the administrator
    "row_security": "on",
    "search_path": "pg_catalog",  # in a schema of a role, functions could have the same names
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "tcp_keepalives_count": "0",
    "tcp_keepalives_idle": "0",
    "tcp_keepalives_interval": "0",
    "tcp_user_timeout": "0",
    "temp_file_limit": "-1",
    "temp_tablespaces": "",
    "timezone_abbreviations": "Default",
    "trace_notify": "off",
    "trace_sort": "off",
    "transform_null_equals": "off",
    "xmlbinary": "base64",
    "xmloption": "content",
}
_SESSION_SINCE: Final[Iterable[tuple[str, str, tuple[tuple[int, int], ...]]]] = (
    ("stats_fetch_consistency", "cache", ((15, 0),)),
    ("createrole_self_grant", "", ((16, 0),)),
    ("icu_validation_level", "warning", ((16, 0),)),
    ("scram_iterations", "4096", ((16, 0),)),
    ("restrict_nonsystem_relation_kind", "", ((14, 13), (15, 8), (16, 4), (17, 0))),
    ("transaction_timeout", "0", ((17, 0),)),
    ("file_copy_method", "copy", ((18, 0),)),
)
"""Names, values, and the first minor version of each major version that has the setting."""


def refusal(name: str, value: str) -> str | None:
    """Return the reason why a project may not choose a setting, or None if it may."""
    shown = f"the setting {name!r}"
    if not _NAME.fullmatch(name):
        return f"{name!r} is not the name of a Postgres setting"
    lower = name.lower()
    if advice := _ADVICE.get(lower):
        return f"{shown} is not permitted: {advice}"
    if lower not in PERMITTED and not lower.startswith(OWN_PREFIX):
        return (
            f"{shown} is not permitted: expected one that every session may change, a size or a "
            f"timeout that the documentation lists, or a name that starts with {OWN_PREFIX!r}"
        )
    if not value.isprintable():
        return f"the value of {name} is {value!r}: expected printable characters"
    if lower in BOUNDS and not _is_within(value, *BOUNDS[lower]):
        return f"the value of {name} is {value!r}: expected at most {BOUNDS[lower][1]}"
    return None


def server_refusal(name: str, value: str) -> str | None:
    """Return the reason why a configuration file may not contain a setting, or None if it may."""
    if (items := _OF_SERVER.get(name)) and all(item in items for item in value.split(",")):
        return None
    return refusal(name, value)


def permitted(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the project settings that a project may choose, with names in lower case.

    Postgres ignores the case of names. An imported data file can contain other settings.
    """
    return {name.lower(): value for name, value in settings.items() if refusal(name, value) is None}


def fixed_settings(description: str) -> dict[str, str]:
    """Return the defaults of all settings that are strings and that no session may change.

    They include those that name a command, a file, a library or a connection, even in a version of
    Postgres that is newer than this program. ``description`` is the output of ``postgres
    --describe-config``: lines with the name, the context, the group, the type and the default.
    Raise ValueError if ``description`` has another format.
    """
    rows = [line.split("\t") for line in description.splitlines()]
    fixed = {
        row[0]: row[4]
        for row in rows
        if len(row) > 4 and row[3] == "STRING" and row[1] not in _SESSION_CONTEXTS
    }
    if not fixed.keys() >= _DESCRIBED:
        raise ValueError(f"expected a table, but it printed {description[:200]!r}")
    return {name: default for name, default in fixed.items() if name not in _KEPT}


def session_settings(version: tuple[int, int]) -> dict[str, str]:
    """Return the settings of the administrator's sessions, whatever a project or database sets.

    ``version`` is the major and the minor version of the server. Settings that are sent when a
    session starts take precedence over those of files, roles and databases. Settings that only
    choose a plan or limit its resources are left out.
    """
    found = {name: value for name, value, since in _SESSION_SINCE if _has(version, since)}
    return {**_SESSION, **found}


def session_options(version: tuple[int, int]) -> str:
    """Return :func:`session_settings` as ``PGOPTIONS``, for programs that use libpq."""
    options = session_settings(version).items()
    # A backslash keeps the words of a value together.
    return " ".join(f"-c{name}={value}".replace(" ", "\\ ") for name, value in options)


def _is_within(value: str, unit: str, greatest: str) -> bool:
    amount, limit = _AMOUNT.fullmatch(value), _AMOUNT.fullmatch(greatest)
    assert limit is not None
    return amount is not None and _size(amount, unit) <= _size(limit, unit)


def _size(amount: re.Match[str], unit: str) -> float:
    return float(amount[1]) * _BYTES[amount[2] or unit]


def _has(version: tuple[int, int], since: tuple[tuple[int, int], ...]) -> bool:
    same = [first for first in since if first[0] == version[0]]
    return version >= same[0] if same else version > since[-1]
