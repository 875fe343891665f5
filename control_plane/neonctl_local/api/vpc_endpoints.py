"""Requests that manage an organization's VPC endpoints, and the projects restricted to them."""

from neonctl_local.api import regions
from neonctl_local.api.request import access
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.errors import not_found, unprocessable
from neonctl_local.storage.tables import Organization, Project, VpcEndpoint, VpcRestriction
from neonctl_local.storage.transactions import Transaction

_WHERE_NAMED = "WHERE org_id = ? AND region_id = ? AND vpc_endpoint_id = ?"


def list_organization(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/vpc/vpc_endpoints``."""
    organization = access.organization(tx, call)
    where = "WHERE org_id = ? AND deleted_at IS NULL ORDER BY id"
    found = tx.select(VpcEndpoint, where, organization.id)
    return respond(
        {"endpoints": [_record(endpoint) | {"region_id": endpoint.region_id} for endpoint in found]}
    )


def list_region(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints``."""
    organization = access.organization(tx, call)
    where = "WHERE org_id = ? AND region_id = ? AND deleted_at IS NULL ORDER BY id"
    found = tx.select(VpcEndpoint, where, organization.id, call.path["region_id"])
    return respond({"endpoints": [_record(endpoint) for endpoint in found]})


def get(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}``."""
    endpoint = _of_organization(tx, access.organization(tx, call), call)
    restricted = _restricted_projects(tx, endpoint)
    restrictions = {
        "num_restricted_projects": len(restricted),
        "example_restricted_projects": restricted[:3],
    }
    return respond(_record(endpoint) | {"state": "accepted"} | restrictions)


def assign(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}``.

    Only administrators can do this. An endpoint that is already assigned gets the new label. A
    deleted endpoint cannot be added again.
    """
    organization = access.organization(tx, call, Level.ADMIN)
    label = call.part("label", str)
    region_id, vpc_endpoint_id = call.path["region_id"], call.path["vpc_endpoint_id"]
    if region_id.startswith("azure-"):
        raise unprocessable("VPC endpoints in Azure regions are not supported")
    regions.check_known(region_id, "region_id")
    endpoint = tx.first(VpcEndpoint, _WHERE_NAMED, organization.id, region_id, vpc_endpoint_id)
    if endpoint is None:
        endpoint = VpcEndpoint(
            id=0,
            org_id=organization.id,
            region_id=region_id,
            vpc_endpoint_id=vpc_endpoint_id,
            label=label,
        )
        tx.insert(endpoint)
    elif endpoint.deleted_at is not None:
        raise unprocessable(
            f"VPC endpoint {vpc_endpoint_id!r} was deleted from the organization, "
            "and cannot be added again: create another one in the VPC"
        )
    else:
        tx.update(endpoint, label=label)
    return Response(200)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /organizations/{org_id}/vpc/region/{region_id}/vpc_endpoints/{vpc_endpoint_id}``.

    Only administrators can do this. Afterwards, no project, not even a deleted one, is restricted
    to this endpoint.
    """
    organization = access.organization(tx, call, Level.ADMIN)
    endpoint = _of_organization(tx, organization, call)
    tx.execute(
        "DELETE FROM vpc_restrictions WHERE vpc_endpoint_id = ? AND project_id IN "
        "(SELECT id FROM projects WHERE org_id = ? AND region_id = ?)",
        *(endpoint.vpc_endpoint_id, endpoint.org_id, endpoint.region_id),
    )
    tx.update(endpoint, deleted_at=tx.now)
    return Response(200)


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/vpc_endpoints``: the restrictions of the project."""
    project = access.project(tx, call)
    found = tx.select(VpcRestriction, "WHERE project_id = ? ORDER BY id", project.id)
    return respond({"endpoints": [_record(restriction) for restriction in found]})


def restrict(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/vpc_endpoints/{vpc_endpoint_id}``.

    The endpoint must be assigned to the project's organization, in the project's region.
    """
    project = access.project(tx, call)
    label = call.part("label", str)
    vpc_endpoint_id = call.path["vpc_endpoint_id"]
    where = f"{_WHERE_NAMED} AND deleted_at IS NULL"
    if not tx.first(VpcEndpoint, where, project.org_id, project.region_id, vpc_endpoint_id):
        raise unprocessable(
            f"VPC endpoint {vpc_endpoint_id!r} is not assigned to the organization of the "
            f"project in {project.region_id}: assign it there first"
        )
    restriction = _of_project(tx, project, vpc_endpoint_id)
    if restriction is not None:
        tx.update(restriction, label=label)
    else:
        restriction = VpcRestriction(
            id=0, project_id=project.id, vpc_endpoint_id=vpc_endpoint_id, label=label
        )
        tx.insert(restriction)
    return Response(200)


def unrestrict(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}/vpc_endpoints/{vpc_endpoint_id}``."""
    project = access.project(tx, call)
    vpc_endpoint_id = call.path["vpc_endpoint_id"]
    restriction = _of_project(tx, project, vpc_endpoint_id)
    if restriction is None:
        raise not_found("VPC endpoint", vpc_endpoint_id)
    tx.execute("DELETE FROM vpc_restrictions WHERE id = ?", restriction.id)
    return Response(200)


def remove_restrictions(tx: Transaction, project_id: str) -> None:
    """Remove all restrictions of a project that is leaving its organization."""
    tx.execute("DELETE FROM vpc_restrictions WHERE project_id = ?", project_id)


def _of_organization(tx: Transaction, organization: Organization, call: Call) -> VpcEndpoint:
    region_id, vpc_endpoint_id = call.path["region_id"], call.path["vpc_endpoint_id"]
    where = f"{_WHERE_NAMED} AND deleted_at IS NULL"
    endpoint = tx.first(VpcEndpoint, where, organization.id, region_id, vpc_endpoint_id)
    if endpoint is None:
        raise not_found("VPC endpoint", vpc_endpoint_id)
    return endpoint


def _of_project(tx: Transaction, project: Project, vpc_endpoint_id: str) -> VpcRestriction | None:
    where = "WHERE project_id = ? AND vpc_endpoint_id = ?"
    return tx.first(VpcRestriction, where, project.id, vpc_endpoint_id)


def _restricted_projects(tx: Transaction, endpoint: VpcEndpoint) -> list[str]:
    where = (
        "WHERE org_id = ? AND region_id = ? AND deleted_at IS NULL AND id IN "
        "(SELECT project_id FROM vpc_restrictions WHERE vpc_endpoint_id = ?) ORDER BY created_at"
    )
    found = tx.select(Project, where, endpoint.org_id, endpoint.region_id, endpoint.vpc_endpoint_id)
    return [project.id for project in found]


def _record(endpoint: VpcEndpoint | VpcRestriction) -> Json:
    return fields(endpoint, "vpc_endpoint_id", "label")
