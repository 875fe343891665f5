"""A branch of the fake API, whose state changes at planned times."""

from collections.abc import Mapping

from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, JsonObject, branch_json
from tests.support.server import Received, Respond, http_response

BRANCH = "br-quiet-sun-87654321"
PATH = f"/api/v2/projects/{PROJECT}/branches/{BRANCH}"

MISSING = http_response(404, {"message": "branch not found"})


class FakeBranch:
    """Serves one branch of ``fake_neon``.

    ``states`` maps times to states; None stands for a 404. ``responses`` maps times to other
    responses, each of which is sent once.
    """

    def __init__(
        self,
        fake_neon: FakeNeon,
        states: Mapping[float, str | None],
        responses: Mapping[float, Respond] | None = None,
        **more: object,
    ) -> None:
        self._fake_neon = fake_neon
        self._states = states
        self._responses = dict(responses or {})
        self._more = more
        self.read_at: list[float] = []
        """The times of all requests for the branch."""
        fake_neon.fault = self._respond

    @property
    def lists(self) -> int:
        """The number of requests for the operations of the project."""
        return len(self._fake_neon.pages)

    def record(self) -> JsonObject:
        """Return the current record of the branch."""
        return {**branch_json(BRANCH), "current_state": self._state(), **self._more}

    def _state(self) -> str | None:
        return self._states[max(time for time in self._states if time <= now())]

    def _respond(self, request: Received) -> Respond | None:
        if request.path != PATH:
            return None
        self.read_at.append(now())
        for time in [time for time in self._responses if time <= now()]:
            return self._responses.pop(time)
        if self._state() is None:
            return MISSING
        return http_response(200, {"branch": self.record()})
