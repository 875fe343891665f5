"""Adds pages to the site that are not in docs: README, changelog, security policy, examples.

mkdocs.yml names it as a hook. In the repository, links of a page point to files. On the site, they
point to the pages of these files.
"""

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
} | {
    str(path.relative_to(ROOT)): f"{path.relative_to(ROOT)}.md"
    for path in sorted((ROOT / "examples").rglob("*.*"))
    if path.suffix in {".py", ".csv", ".ini", ".sql", ".yml"} and path.stat().st_size > 0
}
"""The pages of files that are not in docs, by file."""
FILES = {page: file for file, page in PAGES.items()}
LINK = re.compile(r"\[([^]]*)]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
EXTERNAL = re.compile(r'(?:src="|<link[^>]+href="|url\(["\']?)(?:https?:)?//')

log = logging.getLogger("mkdocs.site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of files that are not in docs."""
    for file, page in PAGES.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        if not file.endswith(".md"):
            text = f"# {Path(file).name}\n\n````{Path(file).suffix[1:]}\n{text}````\n"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links to files of the repository into links to their pages."""
    source = FILES.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def replacement(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        target_page = PAGES.get(file, file.removeprefix("docs/"))
        if file == target_page and (ROOT / file).exists():
            return text  # the site has no page for this file
        start = posixpath.dirname(page.file.src_uri)
        return f"[{text}]({posixpath.relpath(target_page, start)}{anchor})"

    return LINK.sub(replacement, markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Warn if a page loads anything from another host. A strict build fails then."""
    if external := EXTERNAL.search(output):
        log.warning("%s loads from another host: %s", page.file.src_uri, external[0])
    return output
