"""A worker whose creations of branches meet faults of the API."""

import random

from control_plane.tests.client import Http
from neonctl_async import NeonClient
from neonctl_async.models.branches import NewBranch
from tools.campaign.databases.rows import BranchLedger
from tools.campaign.databases.worker import Shared, Worker
from tools.campaign.final_state import FinalState
from tools.campaign.outcomes import FaultLog, Outcome, run_call

WAIT = 20.0
"""The timeout of a creation, in seconds."""


class Creator(Worker):
    """A worker whose creations pass a proxy with ``faulty``. All its other calls are direct."""

    def __init__(
        self,
        name: str,
        shared: Shared,
        chance: random.Random,
        faulty: NeonClient,
        http: Http,
        log: FaultLog,
    ) -> None:
        super().__init__(name, shared, chance)
        self._steps |= {self._create: 6, self._delete: 4}
        self._copies_own = False  # a branch with a child that nobody knows cannot be restored
        self._faulty = faulty
        self._http = http
        self._log = log

    async def _create_and_wait(self, branch: BranchLedger, settings: NewBranch) -> bool | None:
        log, project_id = self._log, self._project_id
        outcome = Outcome(
            kind="branch", name=branch.name, project_id=project_id, computes=1, timeout=WAIT
        )
        call = self._faulty.branches.create(project_id, **settings, wait=WAIT)
        await run_call(outcome, call, log)
        self._report.add_call({log.by_request.get(id, "") for id in outcome.requests}, outcome)
        state = await FinalState.read(self._http, [project_id])
        self._report.violations += state.violations([outcome], log)
        if outcome.id is None:
            if outcome.maybe_executed:
                self.maybe_created.append(branch.name)
            return None
        branch.id = outcome.id
        return await self._settle(branch)
