"""The pages of the manual and those beside it: links, anchors, pictures, and the site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import markdown
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TIMEOUT = 120  # [s]
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in BESIDE), *sorted(DOCS.rglob("*.md"))]
EXTENSIONS = ["attr_list", "tables", "toc", "pymdownx.superfences", "pymdownx.snippets"]


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        snippets = {"pymdownx.snippets": {"base_path": [str(ROOT)], "check_paths": True}}
        self.feed(markdown.markdown(text, extensions=EXTENSIONS, extension_configs=snippets))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := found.get(name))}
        target = found.get("href") if tag == "a" else found.get("src") if tag == "img" else None
        if target is not None:
            self.links.append(target)


@cache
def read(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


def broken(page: Page, file: Path) -> list[str]:
    """Links of a page that lead nowhere in the project; what is elsewhere in the world is left aside."""
    found = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme in {"http", "https", "mailto"}:
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if parts.scheme or parts.path.startswith("/") or not target.is_file():
            found.append(f"{link}: no such file")
        elif parts.fragment and parts.fragment not in (page if target == file else read(target)).anchors:
            found.append(f"{link}: no such heading or anchor")
    return found


@pytest.mark.parametrize("file", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_lead_somewhere(file):
    assert broken(read(file), file) == []


def test_a_broken_link_is_found():
    text = "[a](docs/no.md) [b](#nothing) ![c](docs/images/no.png) [d](README.md#nothing) [e](https://x.example/y)"
    found = broken(Page(f"# Title\n\n{text} [f](#title)\n"), ROOT / "README.md")
    assert [each.partition(":")[0] for each in found] == [
        "docs/no.md",
        "#nothing",
        "docs/images/no.png",
        "README.md#nothing",
    ]


FOLDERS = "ccd_rig|operators|panels|viewport|devtools|benchmarks|examples|tests"


def missing_paths(text: str) -> list[str]:
    """Paths of the project that a text names and that are not there; "NAME" and "*" stand for any name."""
    named = re.findall(rf"(?<![\w/.-])(?:{FOLDERS})/[\w/.*-]*\w", text)
    return [each for each in named if not any(ROOT.glob(re.sub(r"[A-Z]{2,}", "*", each)))]


@pytest.mark.parametrize("file", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_paths_of_the_project_are_there(file):
    assert missing_paths(file.read_text(encoding="utf-8")) == []


def test_a_path_that_is_not_there_is_found():
    text = "run `tests/core/limits`, `tests/core/test_no.py`, not a/tests/x, `docs/x` or `devtools/NAME.py`"
    assert missing_paths(text) == ["tests/core/test_no.py"]


def test_pages_beside_the_manual_link_into_it():
    """Guards the tests above against pages in which no link is seen."""
    linked = {Path(urlsplit(link).path) for name in BESIDE for link in read(ROOT / name).links}
    assert {Path("docs/index.md"), Path("docs/development/architecture.md")} <= linked


def _pages_of(navigation: list[object]) -> list[str]:
    found: list[str] = []
    for each in navigation:
        (value,) = each.values() if isinstance(each, dict) else (each,)
        found += _pages_of(value) if isinstance(value, list) else [str(value)]
    return found


def _configuration() -> dict:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_every_page_is_in_the_navigation_once():
    pages = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    pages = [page for page in pages if not page.startswith("listing/")]  # no part of the manual
    assert sorted(_pages_of(_configuration()["nav"])) == pages


def test_every_picture_is_shown():
    shown = {
        (file.parent / unquote(link)).resolve()
        for file in PAGES
        for link in read(file).links
        if link[0] != "#"
    }
    assert sorted(picture.name for picture in DOCS.rglob("*.png") if picture not in shown) == []


def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={tmp_path / 'site'}"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    built = (tmp_path / "site/reference/settings.html").read_text(encoding="utf-8")
    assert 'id="constraint-tip"' in built
    left_out, *shown = _configuration()["exclude_docs"].split()
    assert left_out == "listing/*"
    listed = sorted(f"listing/{file.name}" for file in (tmp_path / "site/listing").iterdir())
    assert listed == [name.lstrip("!") for name in shown]
    assert "--8<--" not in (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=\"?(https?:)?//", built), (
        "read without a network"
    )


def flat_lists(text: str) -> list[str]:
    """Lines that begin an inner list, or a table in one, without the four spaces that the parser wants."""
    found, in_code = [], False
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        if not in_code and re.match(r" {1,3}([-*|]|\d+\.) ", line):
            found.append(line)
    return found


@pytest.mark.parametrize("file", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_inner_lists_stay_inner_lists(file):
    assert flat_lists(file.read_text(encoding="utf-8")) == []


def test_a_flat_list_is_found():
    assert flat_lists("1. a\n   - b\n    - c\n```\n   - d\n```\n") == ["   - b"]
    assert "<li>b</li>" in markdown.markdown("1. a\n   - b\n"), "the parser makes one list of both"
