"""The manual: its generated pages, its pictures, and the site that MkDocs makes of `docs/`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from devtools import checks, environments
from devtools.environments import ROOT

MANUAL = ROOT / "manual"
"""The site, which the extension's package holds."""
SOURCES = ("docs", "mkdocs.yml", "README.md")
"""What it is made of; its first page shows a part of the README."""
NOT_READ = ("**/*.map", "**/lunr", "sitemap.xml*", "404.html", "search/search_index.json")
"""What MkDocs makes for servers, other languages and its own developers."""
BUILD_TIMEOUT = 300  # [s]
PICTURES_TIMEOUT = 1800  # [s]
SERVE_TIMEOUT = 86400  # [s] until Ctrl C
OPTIONS = {"NO_MKDOCS_2_WARNING": "1"}  # Material's note about a MkDocs to come, which is not the pinned one


def build() -> int:
    """Build the site in `manual/`; 0 unless a link, an anchor, a picture or the navigation is wrong."""
    return _build(lambda: True)


def update() -> int:
    """Build the site as `build` does, unless it is newer than all that it is made of."""
    return _build(_is_old)


def _build(is_wanted: Callable[[], bool]) -> int:
    """A whole site takes the place of the one before: one with a broken link never does."""
    made = ROOT / ".cache/manual"
    with environments.locked("manual"):
        if not is_wanted():
            return 0
        code = _mkdocs(["build", "--strict", "--clean", "--quiet", f"--site-dir={made}"], BUILD_TIMEOUT)
        if code == 0:
            for file in [each for pattern in NOT_READ for each in made.glob(pattern)]:
                shutil.rmtree(file) if file.is_dir() else file.unlink()
            shutil.rmtree(MANUAL, ignore_errors=True)
            shutil.move(made, MANUAL)
        return code


def _is_old() -> bool:
    page = MANUAL / "index.html"
    if not page.is_file():
        return True
    files = [each for name in SOURCES for each in (ROOT / name, *(ROOT / name).rglob("*"))]
    return max(os.stat(file).st_mtime for file in files) > page.stat().st_mtime


def serve() -> int:
    """Show the site on this machine, built anew whenever a page is saved, until Ctrl C."""
    try:
        return _mkdocs(["serve", "--strict"], SERVE_TIMEOUT)
    except KeyboardInterrupt:
        return 0


def _mkdocs(arguments: list[str], timeout: float) -> int:
    python = str(environments.prepare(environments.DOCS))
    return checks.run([python, "-m", "mkdocs", *arguments], timeout, OPTIONS)


def write_reference(version: str) -> int:
    """Write the pages that are made from what the extension registers."""
    python = str(environments.prepare(environments.BLENDERS[version]))
    return checks.run([python, str(ROOT / "devtools/reference.py")], BUILD_TIMEOUT)


def take_pictures(version: str, names: list[str]) -> int:
    """Do what the tutorials do, all or the named ones, and take their pictures."""
    python = str(environments.prepare(environments.BLENDERS[version]))
    script = str(ROOT / "examples/tutorials/pictures.py")
    return checks.run([python, script, *names], PICTURES_TIMEOUT)
