"""A client process that sends conflicting requests.

``python -m control_plane.tests.server.hammer URL`` starts it.
The key is in ``NEON_API_KEY``. The output is a JSON object with the number of responses per status.
"""

import asyncio
import json
import os
import sys
from collections import Counter

from control_plane.tests.client import Http

CLIENTS = 8
ROUNDS = 6


async def change(http: Http, project: str, number: int) -> Counter[int]:
    """Create, change and delete objects whose names all clients use. Count the statuses."""
    statuses: Counter[int] = Counter()

    async def send(method: str, path: str, body: object = None) -> str:
        reply = await http.send(method, f"{project}{path}", body)
        statuses[reply.status] += 1
        has_branch = reply.status == 201 and path == "/branches"
        return str(reply.json["branch"]["id"]) if has_branch else "br-unknown"

    for turn in range(ROUNDS):
        name = f"shared-{(number + turn) % 3}"
        body = {"branch": {"name": name}, "endpoints": [{"type": "read_write"}]}
        branch = await send("POST", "/branches", body)
        await send("POST", f"/branches/{branch}/roles", {"role": {"name": name}})
        await send("PATCH", "", {"project": {"name": name, "history_retention_seconds": turn}})
        await send("POST", f"/branches/{branch}/set_as_default")
        await send("GET", "/operations?limit=50")
        await send("GET", f"/branches?search={name}")
        await send("DELETE", f"/branches/{branch}")
    return statuses


async def main() -> None:
    """Run the clients, and print the counts."""
    async with Http(sys.argv[1], os.environ["NEON_API_KEY"]) as http:
        (project,) = (await http.get("/projects"))["projects"]
        path = f"/projects/{project['id']}"
        counts = await asyncio.gather(*(change(http, path, number) for number in range(CLIENTS)))
    sys.stdout.write(json.dumps(sum(counts, Counter[int]())))


if __name__ == "__main__":
    asyncio.run(main())
