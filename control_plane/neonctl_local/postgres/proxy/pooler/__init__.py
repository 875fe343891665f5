"""The connection pooler behind ``-pooler`` hosts: PgBouncer in transaction mode, as on Neon.

A client uses a server connection for one transaction. At the end of the transaction, the connection
is reset and loses the session's state. The client receives ReadyForQuery only after the reset.

``phases`` defines the effect of each message in tables. The modules ``phases``, ``startup``,
``frames`` and ``exchange`` are pure. ``port`` contains the sockets, ``pool`` manages the
connections of one role to one database, and ``pooler`` manages all pools and the logins.
"""
