"""Messages of a Postgres session, as bytes."""

from struct import pack

from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.messages import Column, PostgresMessage


def column(name: bytes, type_id: int) -> bytes:
    """Return the bytes of a column of a RowDescription."""
    return name + b"\0" + pack("!ihihih", 0, 0, type_id, 4, -1, 0)


def test_columns_have_names_and_are_numbers_or_not() -> None:
    payload = pack("!h", 3) + column(b"id", 23) + column("größe".encode(), 25) + column(b"\xff", 17)
    number, text, binary = messages.decode_columns(payload)
    assert number == Column("id", type_id=23, type_size=4)
    assert (text.name, binary.name) == ("größe", "\N{REPLACEMENT CHARACTER}")
    assert [column.is_number for column in (number, text, binary)] == [True, False, False]


def test_error_has_its_fields() -> None:
    payload = b"SFEHLER\0VERROR\0C42P01\0Mno table\0Ddetail\0Hhint\0P15\0Wwhere\0Fparse.c\0\0"
    assert messages.decode_message(payload) == PostgresMessage(
        severity="ERROR",
        message="no table",
        sqlstate="42P01",
        detail="detail",
        hint="hint",
        context="where",
        position=15,
        file="parse.c",
    )


def test_error_of_an_old_server_has_its_localized_severity() -> None:
    found = messages.decode_message(b"SFEHLER\0M\xff\0Px\0\0")
    assert found == PostgresMessage(severity="FEHLER", message="\N{REPLACEMENT CHARACTER}")


def test_statement_is_parsed_described_and_executed_with_results_as_text() -> None:
    sent = messages.statement("SELECT 1", most_rows=7)
    assert sent == (
        b"P\0\0\0\x10\0SELECT 1\0\0\0"
        b"B\0\0\0\x0c\0\0\0\0\0\0\0\0"
        b"D\0\0\0\x06P\0"
        b"E\0\0\0\x09\0\0\0\0\x07"
        b"S\0\0\0\x04"
    )


def test_parameters_are_texts_or_null() -> None:
    sent = messages.statement("SELECT $1, $2", [b"a", None])
    assert b"B\0\0\0\x15\0\0\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0" in sent


def test_status_is_a_text() -> None:
    assert messages.decode_status(b"INSERT 0 3\0") == "INSERT 0 3"
