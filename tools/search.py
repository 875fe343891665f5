"""Ranks the search of the site: words lead to the page about them, comparisons come last.

mkdocs.yml names it as a hook. The theme gives a tag more weight than any title or text.
"""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # pytest imports tests/docs where mkdocs is not installed.
    from mkdocs.config.defaults import MkDocsConfig

TAGS: Mapping[str, str] = {
    "benchmarks/": "benchmark performance speed",
    "branches/": "branch branches cleanup copy expire restore ttl",
    "command-line/": "bash cli completion shell terminal",
    "connecting/": "asyncpg django dsn pgbouncer pool psql psycopg readiness ready sqlalchemy",
    "ensure/": "idempotency idempotent upsert",
    "errors/": "error errors exception exceptions",
    "local-control-plane/": "emulator mock offline",
    "local-databases/": "compose container docker export import persistence tls",
    "observability/": "bar logging metrics opentelemetry rich tracing",
    "polling/": "poll",
    "recipes/": "bulk csv declarative tenant tenants",
    "requests/": "cursor pagination",
    "retries/": "429 backoff quota rate retries retry throttle",
    "secrets/": "password redact",
    "settings/": "configuration environment proxy",
    "test-databases/": "fixture pytest",
    "testing/": "clock fake",
    "troubleshooting/": "problem problems troubleshoot message messages",
    "waiting/": "cancel cancellation concurrency concurrent crash deadline gather operation "
    "operations parallel resume taskgroup timeout timeouts wait",
    "why/": "alternatives comparison",
}
"""The words that lead to a page, by the page's address."""
COMPARISONS = (
    "benchmarks/",
    "from-neon-api/",
    "from-neon-sdk/",
    "why/",
)
"""Pages that mention everything, because they compare it with other clients."""
PROJECT = ("changelog/", "contributing/", "design/", "security/")
"""Pages about the project, not about its use."""
BOOSTS = dict.fromkeys(PROJECT, 0.1) | dict.fromkeys(COMPARISONS, 1e-5)
"""The weight of a page in the search (default: 1). The weight of a title is 1,000."""

log = logging.getLogger("mkdocs.search")


def on_post_build(config: "MkDocsConfig", **_: object) -> None:
    """Rank the index that the theme has written."""
    path = Path(config.site_dir, "search", "search_index.json")
    index = json.loads(path.read_text(encoding="utf-8"))
    pages = {entry["location"] for entry in index["docs"]}
    for page in sorted({*TAGS, *BOOSTS} - pages):
        log.warning("tools/search.py names %s, which is not a page", page)
    index["docs"] = [ranked(entry) for entry in index["docs"]]
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def ranked(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry of a page or section with its tags and its weight."""
    page = entry["location"].partition("#")[0]
    tags = {"tags": TAGS[page].split()} if entry["location"] in TAGS else {}
    boost = {"boost": BOOSTS[page]} if page in BOOSTS else {}
    return {**entry, **tags, **boost}
