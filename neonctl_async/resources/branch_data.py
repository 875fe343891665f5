"""The data of a branch: the schemas of its databases, and its anonymization."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.branch_data import (
    AnonymizedBranchStatus,
    BranchSchema,
    BranchSchemaComparison,
    MaskingRule,
    MaskingRulesResponse,
)
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.resources.base import Resource, as_list, drop_unset, whole_seconds
from neonctl_async.waiting.options import Wait

_ANONYMIZED = "/projects/{project_id}/branch_anonymized"
_BRANCH = "/projects/{project_id}/branches/{branch_id}"
_RULES = f"{_BRANCH}/masking_rules"

NO_ENDPOINTS: Final = (
    "the branch has no compute: pass endpoints=[EndpointSpec(type='read_write')], or use wait=True"
)
"""The reason why a creation without ``endpoints`` leaves no compute to connect to."""


def branch_and_computes(endpoints: Sequence[EndpointSpec], **branch: object) -> dict[str, object]:
    """Return the part of a request body that describes a new branch and its computes."""
    return drop_unset(
        branch=drop_unset(**branch) or UNSET, endpoints=as_list("endpoints", endpoints) or UNSET
    )


class BranchData(Resource):
    """The methods of :class:`Branches` for schemas and anonymized data."""

    async def schema(
        self,
        project_id: str,
        branch_id: str,
        *,
        db_name: str,
        lsn: str | UnsetType = UNSET,
        timestamp: datetime | UnsetType = UNSET,
        format: Literal["sql", "json"] | UnsetType = UNSET,
    ) -> BranchSchema:
        """Return the current schema of a database, or its schema at ``lsn`` or ``timestamp``."""
        return await self._send(
            "GET",
            f"{_BRANCH}/schema",
            BranchSchema,
            project_id,
            branch_id,
            query={"db_name": db_name, "lsn": lsn, "timestamp": timestamp, "format": format},
        )

    async def compare_schema(
        self,
        project_id: str,
        branch_id: str,
        *,
        db_name: str,
        lsn: str | UnsetType = UNSET,
        timestamp: datetime | UnsetType = UNSET,
        base_branch_id: str | UnsetType = UNSET,
        base_lsn: str | UnsetType = UNSET,
        base_timestamp: datetime | UnsetType = UNSET,
    ) -> BranchSchemaComparison:
        """Compare the schema of a database with its schema on another branch.

        The other branch is ``base_branch_id``, by default the parent branch. ``lsn`` or
        ``timestamp`` selects an earlier state of the branch. ``base_lsn`` or ``base_timestamp``
        selects an earlier state of the other branch.
        """
        return await self._send(
            "GET",
            f"{_BRANCH}/compare_schema",
            BranchSchemaComparison,
            project_id,
            branch_id,
            query={
                "db_name": db_name,
                "lsn": lsn,
                "timestamp": timestamp,
                "base_branch_id": base_branch_id,
                "base_lsn": base_lsn,
                "base_timestamp": base_timestamp,
            },
        )

    async def create_anonymized(
        self,
        project_id: str,
        *,
        name: str | UnsetType = UNSET,
        parent_id: str | UnsetType = UNSET,
        parent_lsn: str | UnsetType = UNSET,
        parent_timestamp: datetime | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        archived: bool | UnsetType = UNSET,
        init_source: str | UnsetType = UNSET,
        expires_at: datetime | UnsetType = UNSET,
        endpoints: Sequence[EndpointSpec] = (),
        annotation_value: Mapping[str, str] | UnsetType = UNSET,
        masking_rules: Sequence[MaskingRule] | UnsetType = UNSET,
        start_anonymization: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchCreated:
        """Create a branch to be anonymized. For the other parameters, see :meth:`create`.

        With ``start_anonymization``, Neon applies the ``masking_rules`` immediately. Otherwise,
        call :meth:`anonymize` later.

        Beta: Neon may change this endpoint.
        """
        branch_create = branch_and_computes(
            endpoints,
            name=name,
            parent_id=parent_id,
            parent_lsn=parent_lsn,
            parent_timestamp=parent_timestamp,
            protected=protected,
            archived=archived,
            init_source=init_source,
            expires_at=whole_seconds(expires_at),
        )
        body = drop_unset(
            branch_create=branch_create or UNSET,
            annotation_value=annotation_value,
            masking_rules=as_list("masking_rules", masking_rules),
            start_anonymization=start_anonymization,
        )
        return await self._start(
            "POST",
            _ANONYMIZED,
            BranchCreated,
            project_id,
            body=body,
            wait=wait,
            no_compute="" if endpoints else NO_ENDPOINTS,
        )

    async def list_masking_rules(self, project_id: str, branch_id: str) -> list[MaskingRule]:
        """Return the masking rules of an anonymized branch.

        Beta: Neon may change this endpoint.
        """
        response = await self._send("GET", _RULES, MaskingRulesResponse, project_id, branch_id)
        return response.masking_rules

    async def update_masking_rules(
        self, project_id: str, branch_id: str, *, masking_rules: Sequence[MaskingRule]
    ) -> list[MaskingRule]:
        """Replace the masking rules of an anonymized branch, and return the new ones.

        Each rule has either a function or a value. :meth:`anonymize` applies the rules.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(masking_rules=as_list("masking_rules", masking_rules))
        response = await self._send(
            "PATCH", _RULES, MaskingRulesResponse, project_id, branch_id, body=body
        )
        return response.masking_rules

    async def anonymized_status(self, project_id: str, branch_id: str) -> AnonymizedBranchStatus:
        """Return the progress of an anonymization, which is not an operation.

        To wait for the end of an anonymization, call this method repeatedly.

        Beta: Neon may change this endpoint.
        """
        return await self._send(
            "GET", f"{_BRANCH}/anonymized_status", AnonymizedBranchStatus, project_id, branch_id
        )

    async def anonymize(self, project_id: str, branch_id: str) -> AnonymizedBranchStatus:
        """Apply the masking rules to an anonymized branch. This can be repeated.

        Beta: Neon may change this endpoint.
        """
        return await self._send(
            "POST", f"{_BRANCH}/anonymize", AnonymizedBranchStatus, project_id, branch_id
        )
