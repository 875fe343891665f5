"""Runs the campaign: ``python -m tools.pooler``. The exit status is 1 after a violation.

Without PgBouncer on this machine, it says so, and compares with a direct connection only.
"""

import argparse
import asyncio
import random
import sys

from control_plane.tests.postgres.proxy import pgbouncer
from control_plane.tests.postgres.proxy.conftest import Computes
from control_plane.tests.postgres.proxy.server import DATABASE, PASSWORD, ROLE, running_server
from neonctl_local.postgres.account import server_account
from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.proxy.connector import Login
from neonctl_local.postgres.template import prepare_template
from tools.pooler.campaign import Campaign


class _Computes(Computes):
    """A proxy that reads the stored password once."""

    _login: Login | None = None

    async def find_login(self, role: str, database: str) -> Login:
        self._login = self._login or await super().find_login(role, database)
        return self._login


def main() -> int:
    """Run a campaign; return 1 after a violation."""
    installations = find_installations()
    parser = argparse.ArgumentParser(prog="python -m tools.pooler")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--version", type=int, choices=installations, default=max(installations))
    options = parser.parse_args()
    installation, account = installations[options.version], server_account()
    template = prepare_template(installation, account)
    sys.stdout.write(f"seed {options.seed}, Postgres {options.version}\n")
    with running_server(installation, template, account, max_connections="100") as server:

        async def run_ours() -> Campaign:
            async with _Computes(server) as computes:
                login = computes.login("ep-frost-pooler")
                campaign = Campaign(server, login, random.Random(options.seed))
                await campaign.run(options.frames)
                return campaign

        ours = asyncio.run(run_ours())
        sys.stdout.write(f"ours: {ours.report()}\n")
        sys.stdout.writelines(f"  {line}\n" for line in ours.violations[:20])
        sys.stdout.flush()  # PgBouncer may take minutes
        if pgbouncer.PROGRAM is None:
            sys.stdout.write("PgBouncer is not installed: nothing was compared with it\n")
        else:
            with pgbouncer.running_pgbouncer(server, account) as port:
                login = {"host": "127.0.0.1", "port": port, "user": ROLE, "dbname": DATABASE}
                campaign = Campaign(
                    server,
                    login | {"password": PASSWORD},
                    random.Random(options.seed),
                    is_ours=False,
                    names=pgbouncer.version() >= (1, 21),
                )
                asyncio.run(campaign.run(options.frames // 10))
            version = ".".join(map(str, pgbouncer.version()))
            sys.stdout.write(f"PgBouncer {version}: {campaign.report()}\n")
            sys.stdout.writelines(f"  {line}\n" for line in campaign.violations[:5])
    sys.stdout.write(f"{len(ours.violations)} violations\n")
    return 1 if ours.violations else 0


if __name__ == "__main__":
    sys.exit(main())
