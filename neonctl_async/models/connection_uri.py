"""The URI of a database, and its forms for drivers and tools."""

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, final
from urllib.parse import quote, unquote

import msgspec

from neonctl_async.models.secret import HIDDEN, Secret

_DEFAULT_PORT: Final = 5432
_HIDDEN: Final = f"hidden+reveal://{HIDDEN}"
"""The text that replaces every URI. Drivers that receive it quote its scheme, or all of it, in
their errors."""
# re compiles a pattern when it is first used: compiling all of them would slow down the import.
_URI: Final = (
    r"(?s)postgres(?:ql)?://"
    r"(?:(?P<role>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]/?]*\]|[^:/?]*)(?::(?P<port>[^/?]*))?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?"
)
"""The parts of a URI as libpq reads them. There is no fragment: ``#`` is an ordinary character."""

_BAD_TEXT: Final = "%(?![0-9A-Fa-f]{2})|%00|[\0\ud800-\udfff]"
_SURROGATE: Final = "[\udc80-\udcff]"
"""The bytes that :func:`_decode` could not decode."""
_BAD_HOST: Final = r"[@/?#\[\]%\s]"
_PORT: Final = r"[0-9]{1,5}"
_HOST_ENDPOINT: Final = r"\A(ep-[^.]*?)(-pooler)?(?=\.|\Z)"
_OPTION_ENDPOINT: Final = r"(?<![\w-])(endpoint=ep-[\w-]*?)(-pooler)?(?![\w-])"

_PARTS_AS_OPTIONS: Final = {
    "user": "role",
    "password": "password",
    "host": "host",
    "port": "port",
    "dbname": "database",
}
"""The parts that libpq also accepts as options. The options take precedence."""

_NOT_OF_ASYNCPG: Final = frozenset(
    {
        "channel_binding",
        "connect_timeout",
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "sslcertmode",
        "sslcompression",
        "sslsni",
        "tcp_user_timeout",
    }
)
"""libpq options that asyncpg would send to the server, which would then refuse the connection."""
_REFUSED_FOR_ASYNCPG: Final = ("hostaddr", "require_auth", "requirepeer")
"""libpq options that must not be left out: without them, the connection could reach another
server."""
_FORM: Final = "expected postgresql://ROLE:PASSWORD@HOST/DATABASE?OPTIONS"


@final
class ConnectionUri(Secret):
    """The URI of a database, which contains the password.

    Hidden from output like every :class:`Secret`. ``reveal()`` returns the URI as Neon sent it.
    The forms for drivers are strings that contain the password, because drivers accept only
    strings: pass a form to its driver, and never log it.

    The properties and methods raise ValueError, without showing the URI, unless the URI contains a
    role, a database and exactly one host name.
    """

    __slots__ = ()
    _INSTEAD = (
        "pass uri.asyncpg, uri.psycopg or uri.sqlalchemy(DRIVER) to the driver of this name, and "
        "uri.reveal() to any other one"
    )

    def __str__(self) -> str:
        return _HIDDEN

    def __format__(self, spec: str) -> str:
        return format(_HIDDEN, spec)

    @property
    def role(self) -> str:
        """The name of the Postgres role."""
        return self._parts().role

    @property
    def password(self) -> Secret:
        """The password of the role. Empty if the URI has none."""
        return self._parts().password

    @property
    def host(self) -> str:
        """The host name, or the IP address without brackets."""
        return self._parts().host

    @property
    def port(self) -> int:
        """The port; 5432 if the URI has none."""
        return self._parts().port or _DEFAULT_PORT

    @property
    def database(self) -> str:
        """The name of the database."""
        return self._parts().database

    @property
    def options(self) -> dict[str, str]:
        """The connection options, such as ``sslmode``."""
        return dict(self._parts().options)

    @property
    def pooled(self) -> bool:
        """True if connections use the pooler."""
        return any(match[2] for match in _endpoints(self._parts()))

    def as_pooled(self) -> "ConnectionUri":
        """Return the URI of the same database through the pooler.

        Raises ValueError if the URI does not contain the id of a compute.
        """
        return self._with_suffix("-pooler")

    def as_direct(self) -> "ConnectionUri":
        """Return the URI of the same database without the pooler.

        Raises ValueError if the URI does not contain the id of a compute.
        """
        return self._with_suffix("")

    @property
    def without_password(self) -> str:
        """The URI without the password, for logs and command lines."""
        parts = self._parts()
        options = {name: value for name, value in parts.options.items() if name != "sslpassword"}
        return _join("postgresql", msgspec.structs.replace(parts, password=Secret("")), options)

    @property
    def psycopg(self) -> str:
        """The URI as Neon sent it, for psycopg and for Postgres programs such as ``pg_dump``.

        Never raises ValueError, even for an unusual URI.
        """
        return self.reveal()

    @property
    def asyncpg(self) -> str:
        """The URI for ``asyncpg.connect()`` and ``asyncpg.create_pool()``.

        Leaves out the libpq options that asyncpg does not know, such as ``channel_binding``.
        """
        parts = self._parts()
        return _join("postgresql", parts, _asyncpg_options(parts))

    def sqlalchemy(self, driver: Literal["asyncpg", "psycopg"]) -> str:
        """Return the URL for SQLAlchemy's ``create_engine()`` and ``create_async_engine()``.

        With ``asyncpg``, the URL contains ``ssl=`` instead of ``sslmode=``, and ``dsn=`` with the
        options that SQLAlchemy cannot pass to asyncpg one by one.
        """
        parts = self._parts()
        match driver:
            case "psycopg":
                return _join("postgresql+psycopg", parts, parts.options, database="dbname")
            case "asyncpg":
                options = _asyncpg_options(parts)
                if set(options) <= {"sslmode"}:
                    query = {"ssl": options["sslmode"]} if options else {}
                else:
                    query = {"dsn": f"postgresql://?{_query(options)}"}
                return _join("postgresql+asyncpg", parts, query, database="database")
        raise ValueError(f"driver is {driver!r}: expected 'asyncpg' or 'psycopg'")

    @property
    def serverless(self) -> str:
        """The URI for ``@neondatabase/serverless``, which connects over HTTPS or secure WebSockets.

        Leaves out the libpq options for TLS, because the driver's ``Pool`` fails with some of them.
        """
        parts = self._parts()
        options = {
            name: value
            for name, value in parts.options.items()
            if not name.startswith("ssl") and name != "channel_binding"
        }
        return _join("postgresql", parts, options)

    @property
    def django(self) -> dict[str, object]:
        """The settings for Django's ``DATABASES["default"]``.

        For a pooled URI, the settings disable server-side cursors: such a cursor exists on one
        connection, but the pooler may run each statement on another.
        """
        parts = self._parts()
        settings: dict[str, object] = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.database,
            "USER": parts.role,
            "PASSWORD": parts.password.reveal(),
            "HOST": parts.host,
            "PORT": parts.port or _DEFAULT_PORT,
            "OPTIONS": dict(parts.options),
        }
        if self.pooled:
            settings["DISABLE_SERVER_SIDE_CURSORS"] = True
        return settings

    def environment(self, *, branch: str | None = None) -> dict[str, str]:
        """Return the variables that ``neon env pull`` writes.

        ``DATABASE_URL`` uses the pooler, ``DATABASE_URL_UNPOOLED`` does not. ``NEON_BRANCH``
        contains ``branch``, if set. Raises ValueError if the URI does not contain the id of a
        compute.
        """
        variables = {
            "DATABASE_URL": self.as_pooled().reveal(),
            "DATABASE_URL_UNPOOLED": self.as_direct().reveal(),
        }
        return variables if branch is None else {**variables, "NEON_BRANCH": branch}

    def _parts(self) -> "_Parts":
        parts, problem = _parse(self)
        if parts is None:
            raise ValueError(problem)
        return parts

    def _with_suffix(self, suffix: str) -> "ConnectionUri":
        parts = self._parts()
        if not _endpoints(parts):
            raise ValueError(
                "the host of the connection URI does not start with the id of a compute (ep-…): "
                "call branches.connection_uri(), with pooled=True for the pooler"
            )
        host = re.sub(_HOST_ENDPOINT, rf"\g<1>{suffix}", parts.host)
        options = {
            name: re.sub(_OPTION_ENDPOINT, rf"\g<1>{suffix}", value) if name == "options" else value
            for name, value in parts.options.items()
        }
        if (host, options) == (parts.host, parts.options):
            return self
        moved = msgspec.structs.replace(parts, host=host)
        return ConnectionUri(_join("postgresql", moved, options))


class _Parts(msgspec.Struct, frozen=True):
    role: str
    password: Secret
    host: str
    port: int | None
    database: str
    options: dict[str, str]


_Parsed: TypeAlias = tuple[_Parts, str] | tuple[None, str]


def _parse(uri: Secret) -> _Parsed:
    """Return the parts of a URI, or None and the reason.

    Never raises, because the frames of a traceback would show the password.
    """
    match = re.fullmatch(_URI, uri.reveal())
    if match is None:
        return None, f"the connection URI is malformed: {_FORM}"
    if re.search(_BAD_TEXT, uri.reveal()):
        return None, "the connection URI contains an invalid character or percent-encoding"
    decoded = {name: _decode(text or "") for name, text in match.groupdict().items()}
    options: dict[str, str] = {}
    for option in filter(None, (match["query"] or "").split("&")):
        name, equals, value = option.partition("=")
        if not equals:
            return None, "the connection URI contains an option without a value: write NAME=VALUE"
        options[_decode(name)] = _decode(value)
    if re.search(_SURROGATE, "".join((*decoded.values(), *options, *options.values()))):
        return None, "the connection URI contains percent-encoded bytes that are not UTF-8"
    for option, name in _PARTS_AS_OPTIONS.items():
        decoded[name] = options.pop(option, decoded[name])
    return _check(decoded, options)


def _check(decoded: Mapping[str, str], options: dict[str, str]) -> _Parsed:
    host, port = decoded["host"], decoded["port"]
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    found = {"role": decoded["role"], "host": host, "database": decoded["database"]}
    missing = [name for name, text in found.items() if not text]
    if missing:
        return None, f"the connection URI has no {missing[0]}: {_FORM}"
    if "," in host or "," in port:
        return None, f"the connection URI has more than one host: {_FORM}"
    is_port = not port or (re.fullmatch(_PORT, port) and 0 < int(port) < 65536)
    if re.search(_BAD_HOST, host) or not is_port:
        # The host and the port may be parts of a password that was not encoded.
        return None, (
            f"the connection URI has an invalid {'port' if not is_port else 'host'}: {_FORM}, with "
            "special characters of the role and the password percent-encoded"
        )
    parts = _Parts(
        role=decoded["role"],
        password=Secret(decoded["password"]),
        host=host,
        port=int(port) if port else None,
        database=decoded["database"],
        options=options,
    )
    return parts, ""


def _decode(text: str) -> str:
    return unquote(text, errors="surrogateescape")


def _encode(text: str) -> str:
    return quote(text, safe="")


def _query(options: Mapping[str, str]) -> str:
    return "&".join(f"{_encode(name)}={_encode(value)}" for name, value in options.items())


def _join(
    scheme: str, parts: _Parts, options: Mapping[str, str], *, database: str | None = None
) -> str:
    """Return a URI. ``database`` is the option for database names that must be encoded, if any.

    It is needed because SQLAlchemy before version 2.1 does not decode names in the path.
    """
    login, name, query = _encode(parts.role), _encode(parts.database), dict(options)
    if parts.password:
        login += f":{_encode(parts.password.reveal())}"
    if database is not None and name != parts.database:
        query = {database: parts.database, **options}
        name = ""
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    port = "" if parts.port is None else f":{parts.port}"
    return f"{scheme}://{login}@{host}{port}/{name}" + (f"?{_query(query)}" if query else "")


def _asyncpg_options(parts: _Parts) -> dict[str, str]:
    for name in _REFUSED_FOR_ASYNCPG:
        if name in parts.options:
            raise ValueError(
                f"asyncpg does not support the option {name!r} of the connection URI: remove the "
                "option, or connect with psycopg"
            )
    return {name: value for name, value in parts.options.items() if name not in _NOT_OF_ASYNCPG}


def _endpoints(parts: _Parts) -> list[re.Match[str]]:
    """Find the compute ids in the host name and in ``options=``."""
    in_host = re.search(_HOST_ENDPOINT, parts.host)
    in_options = re.search(_OPTION_ENDPOINT, parts.options.get("options", ""))
    return [match for match in (in_host, in_options) if match]
