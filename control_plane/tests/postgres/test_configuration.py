import base64

import pytest
from msgspec.structs import replace

from neonctl_local.postgres.configuration import (
    Applied,
    Content,
    DatabaseSpec,
    Desired,
    RoleSpec,
    database_statements,
    group_statements,
    make_verifier,
    quote_name,
    quote_text,
    render_settings,
    role_statements,
    rule_statements,
    scram_verifier,
    verifies,
)
from neonctl_local.postgres.errors import ClusterError

ALICE = RoleSpec("alice", "first-password")


def statements_for(
    desired: Desired, applied: Applied, *existing: str, major: int = 18
) -> list[str]:
    after = applied.after(desired)
    return list(role_statements(desired, applied, after, frozenset(existing), major))


def test_representation_of_a_role_does_not_show_the_password() -> None:
    assert repr(ALICE) == "RoleSpec(name='alice', password='***')"
    assert repr(RoleSpec("group", None)) == "RoleSpec(name='group', password=None)"
    assert "first-password" not in repr(Desired(roles=[ALICE]))


@pytest.mark.parametrize(
    ("name", "quoted"), [("a", '"a"'), ('a"b', '"a""b"'), ("Größe 1", '"Größe 1"')]
)
def test_name_is_quoted(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 64, "ä" * 32])
def test_name_that_postgres_would_change_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="1 to 63 bytes"):
        quote_name(name)


def test_text_is_quoted_for_any_value_of_standard_conforming_strings() -> None:
    assert quote_text("it's") == "'it''s'"
    assert quote_text("a\\'b") == "E'a\\\\''b'"
    with pytest.raises(ClusterError, match="zero byte"):
        quote_text("\0")


def test_verifier_has_the_keys_of_the_example_in_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    assert scram_verifier("pencil", salt) == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=="
        "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


def test_verifier_belongs_to_one_password() -> None:
    verifier = make_verifier("secret")
    assert verifies(verifier, "secret")
    assert not verifies(verifier, "Secret")
    assert not verifies(verifier, None)
    assert not verifies(None, "secret")
    assert verifies(None, None)
    assert make_verifier("secret") != verifier, "each has its own salt"


def test_applied_configuration_matches_only_the_same_roles_databases_and_settings() -> None:
    desired = Desired([ALICE], [DatabaseSpec("app", "alice")], {"work_mem": "8MB"})
    applied = Applied().after(desired)
    assert applied.matches(desired)
    assert not applied.matches(Desired([], desired.databases, desired.settings))
    assert not applied.matches(Desired(desired.roles, [], desired.settings))
    assert not applied.matches(Desired(desired.roles, desired.databases))
    other_password = [RoleSpec("alice", "second-password")]
    assert not applied.matches(Desired(other_password, desired.databases, desired.settings))


def test_rules_of_an_earlier_version_are_applied_again() -> None:
    desired = Desired([ALICE])
    applied = Applied().after(desired)
    assert not replace(applied, rules=applied.rules - 1).matches(desired)


def test_roles_of_the_server_are_removed_before_postgres_16() -> None:
    assert all("pg_read_server_files" in statement for statement in rule_statements(15))
    assert list(rule_statements(16)) == []


def test_unchanged_password_keeps_its_verifier() -> None:
    first = Applied().after(Desired([ALICE]))
    both = first.after(Desired([ALICE, RoleSpec("bob", "b")]))
    assert both.roles["alice"] == first.roles["alice"]
    assert first.after(Desired([RoleSpec("alice", "new")])).roles != first.roles


def test_new_role_is_created_with_a_verifier_instead_of_its_password() -> None:
    [statement] = statements_for(Desired([ALICE]), Applied())
    assert statement.startswith(
        'CREATE ROLE "alice" INHERIT CREATEROLE CREATEDB BYPASSRLS REPLICATION LOGIN'
        " PASSWORD 'SCRAM-SHA-256$4096:"
    )
    assert statement.endswith('IN ROLE "neon_superuser"')
    assert "first-password" not in statement


def test_role_of_an_old_version_has_replication_only_where_it_is_needed() -> None:
    logical = Desired([ALICE], settings={"wal_level": "logical"})
    [created] = statements_for(Desired([ALICE]), Applied(), major=15)
    assert " BYPASSRLS NOREPLICATION LOGIN " in created
    [created] = statements_for(logical, Applied(), major=15)
    assert " BYPASSRLS REPLICATION LOGIN " in created
    applied = Applied().after(Desired([ALICE]))
    enabled = statements_for(logical, applied, "alice", major=15)
    assert enabled == ['ALTER ROLE "alice" REPLICATION']
    assert statements_for(logical, applied, "alice", major=16) == []
    disabled = statements_for(Desired([ALICE]), applied.after(logical), "alice", major=15)
    assert disabled == ['ALTER ROLE "alice" NOREPLICATION']


def test_password_that_is_not_ascii_is_hashed_by_postgres() -> None:
    [statement] = statements_for(Desired([RoleSpec("alice", "é")]), Applied())
    assert "LOGIN PASSWORD 'é'" in statement


def test_role_without_a_password_cannot_log_in() -> None:
    [statement] = statements_for(Desired([RoleSpec("group", None)]), Applied())
    assert "NOLOGIN PASSWORD NULL" in statement


def test_unchanged_role_needs_no_statement() -> None:
    desired = Desired([ALICE])
    assert statements_for(desired, Applied().after(desired), "alice") == []


def test_changed_password_alters_the_role() -> None:
    applied = Applied().after(Desired([ALICE]))
    [statement] = statements_for(Desired([RoleSpec("alice", "new")]), applied, "alice")
    assert statement.startswith('ALTER ROLE "alice" LOGIN PASSWORD \'SCRAM-SHA-256$')


def test_role_that_sql_created_before_the_api_joins_the_group() -> None:
    first, second = statements_for(Desired([ALICE]), Applied(), "alice")
    assert first.startswith('ALTER ROLE "alice" INHERIT CREATEROLE')
    assert second == 'GRANT "neon_superuser" TO "alice"'


def test_database_is_created_or_gets_its_owner() -> None:
    desired = Desired(databases=[DatabaseSpec("new", "a"), DatabaseSpec("old", "a")])
    assert list(database_statements(desired, Applied(), {"old": "b"})) == [
        'CREATE DATABASE "new" OWNER "a" TEMPLATE template0',
        'GRANT ALL ON DATABASE "new" TO "neon_superuser"',
        'ALTER DATABASE "old" OWNER TO "a"',
    ]
    assert list(database_statements(desired, Applied(), {"new": "a", "old": "a"})) == []


def test_what_clients_dropped_or_gave_away_in_sql_is_not_restored() -> None:
    desired = Desired([ALICE], [DatabaseSpec("gone", "alice"), DatabaseSpec("given", "alice")])
    applied = Applied().after(desired)
    assert statements_for(desired, applied) == []
    assert list(database_statements(desired, applied, {"given": "bob"})) == []


def test_changes_in_sql_are_the_difference_to_what_was_applied() -> None:
    applied = Applied({"a": "1", "b": "2", "c": None}, {"app": "a", "old": "a", "gone": "a"})
    content = Content({"a": "1", "b": "3", "d": ""}, {"app": "a", "old": "b", "new": "d"})
    changes = applied.changes_to(content)
    assert changes
    assert changes.changed == Content({"b": "3", "d": ""}, {"old": "b", "new": "d"})
    assert changes.dropped_roles == {"c"}
    assert changes.dropped_databases == {"gone"}
    assert not applied.with_found(content).changes_to(content)


def test_record_forgets_what_was_found_unless_it_is_desired() -> None:
    content = Content({"alice": "1", "kept": "2", "made": "3"}, {"app": "alice", "made": "made"})
    found = Applied({"alice": "1", "gone": "4"}, {"app": "alice"}).with_found(content)
    assert found.found_roles == {"kept", "made"}
    assert found.found_databases == {"made"}
    copied = found.without_found(Desired([RoleSpec("kept", "2")]))
    assert copied.roles.keys() == {"alice", "kept"}
    assert copied.changes_to(content).changed == Content({"made": "3"}, {"made": "made"})


@pytest.mark.parametrize("verifier", ["", "md5" + 32 * "0", "SCRAM-SHA-256$4096:c2FsdA==$a:b"])
def test_verifier_is_a_password_that_postgres_stores_as_it_is(verifier: str) -> None:
    assert make_verifier(verifier) == verifier
    assert verifies(verifier, verifier)
    assert not verifies(verifier, "password")
    assert not verifies(make_verifier("password"), verifier)


def test_group_may_create_subscriptions_since_postgres_16() -> None:
    assert "pg_create_subscription" not in " ".join(group_statements(15))
    assert "pg_create_subscription" in " ".join(group_statements(16))


def test_settings_are_quoted() -> None:
    text = render_settings({"work_mem": "8MB", "app.name": "it's a \\ path"})
    assert text.splitlines()[1:] == ["work_mem = '8MB'", "app.name = 'it''s a \\\\ path'"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("archive_command", "true"),
        ("work_mem", "8MB'\nfsync = 'on"),
        ("shared_preload_libraries", "pg_cron,/tmp/library"),
        ("wal_level", "minimal"),
    ],
)
def test_setting_that_is_not_permitted_is_never_written(name: str, value: str) -> None:
    with pytest.raises(ClusterError, match=name):
        render_settings({name: value})
