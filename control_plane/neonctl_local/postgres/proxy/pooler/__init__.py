"""The connection pooler behind ``-pooler`` hosts: PgBouncer in transaction mode, as Neon has it.

A client has a server connection for one transaction. At its end the connection is reset, so that
state of the session is lost each time, and then the client gets ReadyForQuery. ``phases`` has the
effect of each message as a table. It, ``startup``, ``frames`` and ``exchange`` are pure; ``port``
has the sockets, ``pool`` the connections of one role to one database, and ``pooler`` all pools and
the logins.
"""
