"""The URLs of a branch's services, whose hosts do not exist here."""

from urllib.parse import quote

from neonctl_local.engine import computes
from neonctl_local.storage.tables import Branch, Project
from neonctl_local.storage.transactions import Transaction


def url(tx: Transaction, branch: Branch, service: str, database_name: str) -> str:
    """Return the URL of a service for a database, without its last part, such as ``/rest/v1``.

    The host is named after the read_write compute, like the host of connection URIs, or after the
    branch if there is no such compute.
    """
    region_id = tx.get(Project, branch.project_id).region_id
    own = computes.of_branch(tx, branch.id)
    name = next((compute.id for compute in own if compute.type == "read_write"), branch.id)
    host = f"{name}.{service}.{computes.unreachable_host(region_id)}"
    return f"https://{host}/{quote(database_name, safe='')}"
