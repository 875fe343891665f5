"""The parts of connection URIs, and their forms for drivers."""

import asyncio
import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec
import psycopg.conninfo
import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from neonctl_async import ConnectionUri, Secret
from neonctl_async.models.secret import decode_hook
from neonctl_async.types import BranchCreated, ConnectionDetails
from tests.models.records import BRANCH, CONNECTION

HOST = "ep-cool-frost-a1b2c3d4.us-east-2.aws.neon.tech"
POOLER = "ep-cool-frost-a1b2c3d4-pooler.us-east-2.aws.neon.tech"
NEON = f"postgresql://ada:hunter2@{HOST}/shop?sslmode=require&channel_binding=require"
LOCAL = "postgresql://ada:hunter2@127.0.0.1:6543/shop?options=endpoint%3Dep-frost&sslmode=disable"
STRANGE = "postgresql://%C3%A4%3A%40:p%40ss%3A%2F%25%20%C3%BC@[::1]:6543/a%2Fb%20%3F%25"

FORMS: dict[str, Callable[[ConnectionUri], object]] = {
    "asyncpg": lambda uri: uri.asyncpg,
    "SQLAlchemy on asyncpg": lambda uri: uri.sqlalchemy("asyncpg"),
    "SQLAlchemy on psycopg": lambda uri: uri.sqlalchemy("psycopg"),
    "serverless": lambda uri: uri.serverless,
    "Django": lambda uri: uri.django,
    "environment": lambda uri: uri.environment(),
    "without_password": lambda uri: uri.without_password,
    "host": lambda uri: uri.host,
    "pooled": lambda uri: uri.pooled,
}

# Postgres and libpq exclude the null character, and UTF-8 excludes surrogates.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
hosts = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True) | st.ip_addresses().map(str)
options = st.dictionaries(
    st.sampled_from(["sslmode", "channel_binding", "options", "application_name", "sslrootcert"]),
    texts,
)


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """Return the parts of a URI, by their names in libpq."""
    drawn = {"user": draw(texts), "password": draw(texts), "dbname": draw(texts)}
    drawn["host"] = draw(hosts)
    if draw(st.booleans()):
        drawn["port"] = str(draw(st.integers(1, 65535)))
    return drawn | draw(options)


def encoded(text: str) -> str:
    """Percent-encode every byte that is not a letter or a digit, in lower case."""
    return "".join(
        chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"%{byte:02x}"
        for byte in text.encode()
    )


def uri_of(parts: dict[str, Any]) -> ConnectionUri:
    """Return the URI with these parts, in the form of libpq."""
    host = f"[{parts['host']}]" if ":" in parts["host"] else parts["host"]
    port = f":{parts['port']}" if "port" in parts else ""
    login = f"{encoded(parts['user'])}:{encoded(parts['password'])}"
    known = {"user", "password", "host", "port", "dbname"}
    query = "&".join(f"{name}={encoded(parts[name])}" for name in sorted(set(parts) - known))
    name = encoded(parts["dbname"])
    return ConnectionUri(f"postgres://{login}@{host}{port}/{name}?{query}".removesuffix("?"))


def parts_of(uri: ConnectionUri) -> dict[str, Any]:
    """Return the parts that a ConnectionUri reads, by their names in libpq."""
    names = {"user": uri.role, "password": uri.password.reveal(), "dbname": uri.database}
    return {**names, "host": uri.host, "port": str(uri.port), **uri.options}


def with_port(parts: dict[str, Any]) -> dict[str, Any]:
    return {"port": "5432", **parts}


def test_parts_of_a_uri_of_neon() -> None:
    uri = ConnectionUri(NEON)
    assert (uri.role, uri.password, uri.database) == ("ada", Secret("hunter2"), "shop")
    assert (uri.host, uri.port, uri.pooled) == (HOST, 5432, False)
    assert uri.options == {"sslmode": "require", "channel_binding": "require"}
    assert uri.reveal() == NEON


def test_forms_of_a_uri_of_neon() -> None:
    uri = ConnectionUri(NEON)
    login = f"ada:hunter2@{HOST}/shop"
    assert uri.asyncpg == f"postgresql://{login}?sslmode=require"
    assert uri.psycopg == NEON
    assert uri.serverless == f"postgresql://{login}"
    assert uri.sqlalchemy("asyncpg") == f"postgresql+asyncpg://{login}?ssl=require"
    assert uri.sqlalchemy("psycopg") == NEON.replace("postgresql:", "postgresql+psycopg:")
    assert uri.without_password == NEON.replace(":hunter2", "")
    assert ConnectionUri(f"{NEON}&sslpassword=hunter3").without_password == uri.without_password
    assert uri.django == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop",
        "USER": "ada",
        "PASSWORD": "hunter2",
        "HOST": HOST,
        "PORT": 5432,
        "OPTIONS": {"sslmode": "require", "channel_binding": "require"},
    }


def test_forms_of_a_uri_with_special_characters() -> None:
    uri = ConnectionUri(STRANGE)
    assert (uri.role, uri.password.reveal()) == ("ä:@", "p@ss:/% ü")
    assert (uri.host, uri.port, uri.database) == ("::1", 6543, "a/b ?%")
    login = STRANGE.split("://")[1].split("/", maxsplit=1)[0]
    assert uri.asyncpg == STRANGE
    assert uri.sqlalchemy("asyncpg") == (f"postgresql+asyncpg://{login}/?database=a%2Fb%20%3F%25")
    assert uri.sqlalchemy("psycopg") == f"postgresql+psycopg://{login}/?dbname=a%2Fb%20%3F%25"


def test_options_that_sqlalchemy_cannot_pass_to_asyncpg_are_in_the_dsn() -> None:
    url = make_url(ConnectionUri(LOCAL).sqlalchemy("asyncpg"))
    assert url.query == {"dsn": "postgresql://?options=endpoint%3Dep-frost&sslmode=disable"}


def test_serverless_driver_gets_the_compute_and_no_options_of_tls() -> None:
    tls = LOCAL.replace("disable", "verify-full&sslrootcert=%2Fca.pem")
    assert ConnectionUri(tls).serverless == LOCAL.removesuffix("&sslmode=disable")


def test_sqlalchemy_with_another_driver_is_rejected() -> None:
    driver: Any = "pg8000"
    with pytest.raises(ValueError, match=r"^driver is 'pg8000': expected 'asyncpg' or 'psycopg'$"):
        ConnectionUri(NEON).sqlalchemy(driver)


@pytest.mark.parametrize("direct", [NEON, LOCAL, NEON.replace("/shop?", "/shop?options=-c%20a=b&")])
def test_pooled_and_direct_uri_of_the_same_database(direct: str) -> None:
    uri = ConnectionUri(direct)
    pooled = uri.as_pooled()
    assert (uri.pooled, pooled.pooled) == (False, True)
    assert pooled.as_direct().asyncpg == uri.asyncpg
    assert pooled.as_pooled() is pooled
    assert uri.as_direct() is uri
    assert "-pooler" in pooled.reveal().replace("%2D", "-")


def test_host_of_the_pooler() -> None:
    assert ConnectionUri(NEON).as_pooled().host == POOLER
    assert ConnectionUri("postgresql://a:b@ep-x/shop").as_pooled().host == "ep-x-pooler"


def test_environment_contains_both_uris() -> None:
    uri = ConnectionUri(NEON)
    variables = {"DATABASE_URL": NEON.replace(HOST, POOLER), "DATABASE_URL_UNPOOLED": NEON}
    assert uri.environment() == variables
    assert uri.as_pooled().environment() == variables
    assert uri.environment(branch="main") == {**variables, "NEON_BRANCH": "main"}


def test_uri_without_a_compute_has_no_pooled_form() -> None:
    with pytest.raises(ValueError, match="does not start with the id of a compute") as caught:
        ConnectionUri("postgresql://ada:hunter2@db.example.com/shop").environment()
    assert "hunter" not in str(caught.value)


def test_django_has_no_server_side_cursors_through_the_pooler() -> None:
    assert "DISABLE_SERVER_SIDE_CURSORS" not in ConnectionUri(NEON).django
    assert ConnectionUri(NEON).as_pooled().django["DISABLE_SERVER_SIDE_CURSORS"] is True


def test_uri_without_a_password_has_an_empty_one() -> None:
    uri = ConnectionUri("postgresql://ada@h/shop")
    assert not uri.password
    assert uri.asyncpg == "postgresql://ada@h/shop"


def test_parts_among_the_options_are_used() -> None:
    uri = ConnectionUri("postgresql://?user=ada&password=x%26y&host=h&port=6543&dbname=shop")
    assert uri.asyncpg == "postgresql://ada:x%26y@h:6543/shop"


@given(parts())
def test_parts_are_those_that_libpq_reads(parts: dict[str, Any]) -> None:
    uri = uri_of(parts)
    assert with_port(psycopg.conninfo.conninfo_to_dict(uri.psycopg)) == parts_of(uri)
    assert with_port(parts) == parts_of(uri)


@given(parts())
def test_asyncpg_form_keeps_all_parts(parts: dict[str, Any]) -> None:
    kept = parts_of(ConnectionUri(uri_of(parts).asyncpg))
    parts.pop("channel_binding", None)
    assert kept == with_port(parts)


@given(parts())
def test_forms_of_the_pooler_keep_all_parts(parts: dict[str, Any]) -> None:
    uri = uri_of(parts | {"host": HOST})
    pooled = ConnectionUri(uri.environment()["DATABASE_URL"])
    assert pooled.host == POOLER
    assert parts_of(pooled.as_direct()) == parts_of(uri)


@given(parts())
def test_uri_without_the_password_keeps_all_other_parts(parts: dict[str, Any]) -> None:
    uri = ConnectionUri(uri_of(parts).without_password)
    assert parts_of(uri) == with_port(parts) | {"password": ""}


@given(parts())
def test_sqlalchemy_passes_all_parts_to_psycopg(parts: dict[str, Any]) -> None:
    url = make_url(uri_of(parts).sqlalchemy("psycopg"))
    _, arguments = url.get_dialect()().create_connect_args(url)
    assert {name: str(value) for name, value in arguments.items()} == parts
    assert make_url(url.render_as_string(hide_password=False)) == url


@given(parts())
def test_sqlalchemy_passes_all_parts_to_asyncpg(parts: dict[str, Any]) -> None:
    url = make_url(uri_of(parts).sqlalchemy("asyncpg"))
    _, arguments = url.get_dialect()().create_connect_args(url)
    dsn = arguments.pop("dsn", "")
    passed: dict[str, Any] = {**arguments, **psycopg.conninfo.conninfo_to_dict(dsn)}
    if "ssl" in passed:
        passed["sslmode"] = passed.pop("ssl")
    passed["dbname"] = passed.pop("database")
    parts.pop("channel_binding", None)
    assert {name: str(value) for name, value in passed.items()} == parts


@given(parts())
def test_django_passes_all_parts_to_libpq(parts: dict[str, Any]) -> None:
    settings: Any = uri_of(parts).django
    assert settings["OPTIONS"] | {
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": str(settings["PORT"]),
        "dbname": settings["NAME"],
    } == with_port(parts)


UNUSUAL = {
    "": "malformed",
    "hunter2": "malformed",
    "mysql://ada:hunter2@h/shop": "malformed",
    "postgresql://": "no role",
    "postgresql://h/shop": "no role",
    "postgresql://ada:hunter2@/shop": "no host",
    "postgresql://ada:hunter2@[]/shop": "no host",
    "postgresql://ada:hunter2@[/shop": "invalid host",
    "postgresql://ada:hunter2@[h/shop": "invalid host",
    "postgresql://ada:hunter2@h]/shop": "invalid host",
    "postgresql://ada:hunter2@h": "no database",
    "postgresql://ada:hunter2@h1,h2/shop": "more than one host",
    "postgresql://ada:hunter2@h1:1,h2:2/shop": "more than one host",
    "postgresql://ada:hunter2@%2Fvar%2Frun/shop": "invalid host",
    "postgresql://ada:hunter2@h:0/shop": "invalid port",
    "postgresql://ada:hunter2@h:65536/shop": "invalid port",
    "postgresql://ada:hunter2@h:\u0661/shop": "invalid port",
    "postgresql://ada:@hunter2@h/shop": "invalid host",
    "postgresql://ada:hun@ter2@h/shop": "invalid host",
    "postgresql://ada:hun/ter2@h/shop": "no role",
    "postgresql://ada:hunter2%@h/shop": "invalid character",
    "postgresql://ada:hunter2%00@h/shop": "invalid character",
    "postgresql://ada:hunter2\udcff@h/shop": "invalid character",
    "postgresql://ada:hunter2%ff@h/shop": "not UTF-8",
    "postgresql://ada:hunter2@h/shop?sslmode": "option without a value",
}


@pytest.mark.parametrize("text", UNUSUAL)
def test_unusual_uri_is_rejected_without_its_password(text: str) -> None:
    uri = ConnectionUri(text)
    for convert in FORMS.values():
        with pytest.raises(ValueError, match=f"^the connection URI .*{UNUSUAL[text]}") as caught:
            convert(uri)
        assert "hun" not in shown(caught.value)
    assert (uri.psycopg, uri.reveal()) == (text, text)


@pytest.mark.parametrize("option", ["hostaddr", "require_auth", "requirepeer"])
@pytest.mark.parametrize("form", ["asyncpg", "SQLAlchemy on asyncpg"])
def test_option_that_asyncpg_would_lose_is_rejected(option: str, form: str) -> None:
    uri = ConnectionUri(f"{NEON}&{option}=x")
    with pytest.raises(ValueError, match=f"asyncpg does not support the option '{option}'") as e:
        FORMS[form](uri)
    assert "hunter" not in shown(e.value)


def shown(error: Exception) -> str:
    """Return the traceback with the local variables of each frame of the package."""
    lines = "".join(traceback.format_exception(error))
    frames = list(traceback.walk_tb(error.__traceback__))[1:]  # without the frame of the test
    return lines + repr([frame.f_locals for frame, _ in frames if "neonctl_async" in str(frame)])


def test_uri_is_hidden_like_every_secret() -> None:
    uri = ConnectionUri(NEON)
    console = Console(width=200)
    with console.capture() as printed:
        console.print(uri, [uri])
    texts = [str(uri), repr(uri), f"{uri:>20}", repr([uri]), printed.get()]
    assert all("***" in text and "ada" not in text for text in texts)
    assert repr(uri) == "ConnectionUri('**********')"
    with pytest.raises(TypeError, match=r"^a ConnectionUri cannot be pickled"):
        pickle.dumps(uri)
    assert copy.deepcopy(uri) is uri


def connect_asyncpg(value: Any) -> None:
    async def connect() -> None:
        await asyncpg.connect(value)

    asyncio.run(connect())


def open_pool(value: Any) -> None:
    async def connect() -> None:
        async with asyncpg.create_pool(value):
            pass

    asyncio.run(connect())


def connect_psycopg(value: Any) -> None:
    asyncio.run(psycopg.AsyncConnection.connect(value))


DRIVERS: dict[str, Callable[..., object]] = {
    "asyncpg": connect_asyncpg,
    "asyncpg, a pool": open_pool,
    "psycopg": psycopg.connect,
    "psycopg, async": connect_psycopg,
    "SQLAlchemy": sqlalchemy.create_engine,
    "SQLAlchemy, async": create_async_engine,
}
BY_DRIVER = pytest.mark.parametrize("connect", DRIVERS.values(), ids=DRIVERS)
CREATED = msgspec.convert(
    {"branch": BRANCH, "operations": [], "connection_uris": [CONNECTION]},
    BranchCreated,
    dec_hook=decode_hook,
)


@BY_DRIVER
def test_driver_that_gets_the_uri_itself_says_what_to_pass(
    connect: Callable[[object], object],
) -> None:
    with pytest.raises((AttributeError, TypeError), match=r": pass uri\.asyncpg, .*") as caught:
        connect(ConnectionUri(NEON))
    assert "ConnectionUri" in str(caught.value)
    assert "ada" not in str(caught.value)


@BY_DRIVER
def test_driver_that_gets_the_text_of_the_uri_says_that_it_is_hidden(
    connect: Callable[[object], object],
) -> None:
    with pytest.raises(Exception, match=r"hidden.reveal"):
        connect(str(ConnectionUri(NEON)))


@BY_DRIVER
def test_driver_that_gets_a_record_says_what_to_pass(connect: Callable[[object], object]) -> None:
    message = r"BranchCreated.*: pass a form of its connection_uri, such as connection_uri\.asyncpg"
    with pytest.raises((AttributeError, TypeError), match=message):
        connect(CREATED)


def test_other_attributes_are_missing_as_everywhere() -> None:
    uri: Any = ConnectionUri(NEON)
    with pytest.raises(AttributeError, match=r"has no attribute 'hots'$"):
        uri.hots  # noqa: B018 - the attribute is read
    assert not hasattr(CREATED.branch, "encode")
    with pytest.raises(AttributeError, match=r"'Branch' object has no attribute 'encode'$"):
        CREATED.branch.encode()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue] - a mistake
    with pytest.raises(AttributeError, match=r"because it is no string: pass secret\.reveal\(\)$"):
        uri.password.encode()


def test_uri_is_equal_to_a_secret_with_the_same_value() -> None:
    assert ConnectionUri(NEON) == Secret(NEON)
    assert {ConnectionUri(NEON), Secret(NEON)} == {Secret(NEON)}


def test_records_contain_connection_uris() -> None:
    details = msgspec.convert(CONNECTION, ConnectionDetails, dec_hook=decode_hook)
    assert type(details.connection_uri) is ConnectionUri
    assert type(details.connection_parameters.password) is Secret
