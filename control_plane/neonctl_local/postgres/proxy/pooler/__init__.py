"""The connection pooler behind ``-pooler`` hosts: PgBouncer in transaction mode, as on Neon.

A client uses a server connection for one transaction. At its end, the connection is reset and loses
the state of the session, and only then does the client get ReadyForQuery.

``phases`` defines the effect of each message in tables. The modules ``phases``, ``startup``,
``frames`` and ``exchange`` are pure. ``port`` contains the sockets, ``pool`` manages the
connections of one role to one database, and ``pooler`` manages all pools and the logins.
"""
