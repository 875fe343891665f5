"""Runs schemathesis against a local control plane, and collects what it finds."""
# The types of schemathesis are incomplete.
# pyright: reportUnknownMemberType=false

import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import hypothesis
import schemathesis
from hypothesis import HealthCheck
from msgspec import Struct
from schemathesis import BaseSchema, Case, HookContext, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.engine import events, from_schema

from control_plane.tests.conformance.published.known import DEVIATIONS, Deviation
from control_plane.tests.conformance.published.narrowed import narrowed
from control_plane.tests.conformance.published.plane import Plane, plane_in_thread
from control_plane.tests.conformance.published.responses import Published
from tests.contract.description import Description

Phase: TypeAlias = Literal["coverage", "fuzzing", "stateful"]

_PHASES = ("examples", "coverage", "fuzzing", "stateful")
_SEED = 20
_SHOWN = 300
"""The number of shown characters of a body."""

_CHECKS: dict[str, Any] = {
    "positive_data_acceptance": {"expected-statuses": ["2xx"]},
    # Published.problems() checks these more strictly.
    "content_type_conformance": {"enabled": False},
    "response_schema_conformance": {"enabled": False},
    "status_code_conformance": {"enabled": False},
}
_AFTER_CHANGES = ["2xx", "404", "409", "412", "422"]
"""The statuses of valid requests after other requests have changed or deleted objects."""

_HEALTH_CHECKS = (HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.too_slow)

_VALUES = re.compile(r"""\d+|'[^']*'|"[^"]*"|\([^)]*\)|Hint: .*""")
_NOISE = re.compile(r"^(Expected: .*|Invalid component: )", re.MULTILINE)


class Report(Struct):
    """The result of a run. Similar findings are counted under the first of them."""

    findings: Counter[str]
    deviations: set[Deviation]
    statuses: Counter[tuple[str, int]]

    @property
    def text(self) -> str:
        """The findings, one per paragraph."""
        return "\n".join(f"{count} x {text}" for text, count in self.findings.items())


class Run:
    """A run of schemathesis. Every run sends the same requests, apart from ids."""

    def __init__(self, plane: Plane, published: Published, document: dict[str, Any]) -> None:
        self._plane = plane
        self._published = published
        self._document = document

    def requests(self, operation: str, phases: tuple[Phase, ...], examples: int = 1) -> Report:
        """Send requests of one operation, each to the same data."""
        schema, report = self._prepare(_CHECKS, phases, examples)
        schema = schema.include(name=operation)

        def reset(_: HookContext, case: Case[Any], response: Response) -> None:
            if case.method != "GET" and response.status_code < 300:
                self._plane.reset()

        schema.hook("after_call")(reset)
        self._plane.reset()
        for event in from_schema(schema).execute():
            if isinstance(event, events.NonFatalError):
                report.findings[f"{event.label}: {event.info.message}"] += 1
        return report

    def scenarios(self, operations: list[str], examples: int, steps: int) -> Report:
        """Send sequences of requests that use the objects of earlier responses."""
        checks = _CHECKS | {"positive_data_acceptance": {"expected-statuses": _AFTER_CHANGES}}
        schema, report = self._prepare(checks, ("stateful",))
        schema = schema.include(name=operations)
        plane = self._plane

        class Scenario(schema.as_state_machine()):  # type: ignore[misc]  # schemathesis builds the base class
            def setup(self) -> None:
                plane.reset()

        Scenario.run(
            settings=hypothesis.settings(
                database=None,
                deadline=None,
                derandomize=True,
                max_examples=examples,
                phases=[hypothesis.Phase.generate],
                stateful_step_count=steps,
                suppress_health_check=_HEALTH_CHECKS,
            )
        )
        return report

    def _prepare(
        self, checks: dict[str, Any], phases: tuple[Phase, ...], examples: int = 1
    ) -> tuple[BaseSchema, Report]:
        config = SchemathesisConfig.from_dict(_config(self._plane, checks, phases, examples))
        schema = schemathesis.openapi.from_dict(self._document, config=config)
        notes = _Notes()

        def check(_: HookContext, case: Case[Any], response: Response) -> None:
            notes.report.statuses[case.operation.label, response.status_code] += 1
            for name, problem in self._published.problems(case, response):
                notes.add(case, response, name, problem)

        def filter_failure(
            _: HookContext, failure: Failure, case: Case[Any], response: Response
        ) -> bool:
            # The ids of objects that an earlier request created are not in the description.
            if not failure.message.lower().endswith("positive test case"):
                notes.add(case, response, type(failure).__name__, _problem(failure))
            return False  # a failure would end the scenario

        schema.hook("after_call")(check)
        schema.hook("filter_failure")(filter_failure)
        return schema, notes.report


@contextmanager
def started_run(description: Description) -> Generator[Run]:
    """Start a local control plane to run schemathesis against."""
    published = Published(description)
    with plane_in_thread() as plane:
        yield Run(plane, published, narrowed(description, plane))


class _Notes:
    """Groups findings, and takes out known deviations."""

    def __init__(self) -> None:
        self.report = Report(Counter(), set(), Counter())
        self._firsts: dict[tuple[str, str, str], str] = {}

    def add(self, case: Case[Any], response: Response, check: str, problem: str) -> None:
        operation = case.operation.label
        text = f"{problem}\n{_shown(response)}"
        for deviation in DEVIATIONS:
            if deviation.covers(operation, check, text):
                self.report.deviations.add(deviation)
                return
        kind = (operation, check, _VALUES.sub("", problem))
        self.report.findings[self._firsts.setdefault(kind, f"{operation}: {check}: {text}")] += 1


def _config(
    plane: Plane, checks: dict[str, Any], phases: tuple[Phase, ...], examples: int
) -> dict[str, Any]:
    generation = {
        "allow-extra-parameters": False,
        "database": "none",
        "deterministic": True,
        "max-examples": examples,
        "no-shrink": True,
        "with-security-parameters": False,
    }
    # Requests must not depend on earlier responses, because each is sent to the same data.
    sources = {"extra-data-sources": {"responses": False}}
    phase_settings: dict[str, Any] = {
        phase: {"enabled": phase in phases} | ({} if phase == "stateful" else sources)
        for phase in _PHASES
    }
    phase_settings["fuzzing"]["error-feedback"] = {"enabled": False}
    return {
        "base-url": plane.base_url,
        "checks": checks,
        "continue-on-failure": True,
        "generation": generation,
        "headers": {"Authorization": f"Bearer {plane.api_key}"},
        "phases": phase_settings,
        "seed": _SEED,
        "suppress-health-check": ["all"],
    }


def _problem(failure: Failure) -> str:
    """Return the message of a failure in one line, without what is the same for all."""
    return " ".join(_NOISE.sub("", failure.message).split("\n")).strip()


def _shown(response: Response) -> str:
    request = response.request
    body = request.body if isinstance(request.body, str) else repr(request.body or b"")
    return (
        f"    {request.method} {request.path_url} {body[:_SHOWN]}\n"
        f"    {response.status_code} {response.text[:_SHOWN]}"
    )
