"""Why tests fail on a branch that pass on a bare Postgres."""

import re
from typing import Final

from tools.suites.places import POOLED

_NO_COMPUTE: Final = "the test connects to 127.0.0.1, which names no compute"
_OTHER_DATABASE: Final = "the test creates tables in the database postgres, as nobody may on Neon"
_TLS: Final = "the test fails on every connection with TLS: asyncpg keeps it alive"
_SESSION: Final = "the test needs the state of a session, which the pooler drops"

_OTHER_PID: Final = "the test ends the server of its session, which the pooler gives to others"

_ANYWHERE: Final = {
    "django": {"test_foreign_data_wrapper": "foreign data wrappers need a superuser"},
    "sqlalchemy": {"test_multiple_host_real_connect": _NO_COMPUTE},
    "asyncpg": {
        "test_(prepare|type)_cache_invalidation_in_pool": _OTHER_DATABASE,
        "test_pool_connection_execute_many": _OTHER_DATABASE,
        "test_relacl_array_type": "SET SESSION AUTHORIZATION needs a superuser",
        "ConnectionGC": _TLS,
        "test_executemany_server_failure_during_writes": (
            "the proxy reads ahead, so the client learns of the failure after its last row"
        ),
    },
}
_POOLED: Final = {
    "django": {
        "ServerSideCursorsPostgres": (
            "the test uses the cursors WITH HOLD that DISABLE_SERVER_SIDE_CURSORS avoids"
        ),
    },
    "asyncpg": {
        "test_copy_records_to_table": "the test copies into a temporary table: " + _SESSION,
        "test_listen_": "LISTEN: " + _SESSION,
        "test_log_listener": "client_min_messages is no startup parameter of poolers",
        "isolation_level": "SET SESSION CHARACTERISTICS: " + _SESSION,
        "test_(introspection_no_stmt_cache|prepare_27|prepare_explicitly_named)": (
            "unnamed statements, and SQL's EXECUTE, need one server for two transactions"
        ),
        "test_execute_script_interrupted|test_pool_(remote_close|min_size_restored)": _OTHER_PID,
        "test_get_settings": "the pooler repeats the client's spelling of client_encoding",
    },
    "sqlalchemy": {
        "(?i)temp": _SESSION,
        "ObjectScope.ANY-None": "the test lists temporary tables too: " + _SESSION,
        "DefaultSchemaWEvents": "the test sets search_path in its session: " + _SESSION,
    },
    "pg_dump": {
        "restore": "pg_restore sets check_function_bodies in its session: use the direct URI"
    },
}


def reason(suite: str, place: str, test: str) -> str | None:
    """Return why a test fails, or None."""
    patterns = _ANYWHERE.get(suite, {}) | (_POOLED.get(suite, {}) if place == POOLED else {})
    return next((why for pattern, why in patterns.items() if re.search(pattern, test)), None)
