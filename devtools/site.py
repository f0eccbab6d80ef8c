"""The manual: its generated pages, its pictures, and the site that MkDocs makes of `docs/`."""

from __future__ import annotations

from devtools import checks, environments
from devtools.environments import ROOT

BUILD_TIMEOUT = 300  # [s]
PICTURES_TIMEOUT = 1800  # [s]
SERVE_TIMEOUT = 86400  # [s] until Ctrl C
OPTIONS = {"NO_MKDOCS_2_WARNING": "1"}  # Material's note about a MkDocs to come, which is not the pinned one


def build() -> int:
    """Build the site in `site/`; 0 unless a link, an anchor, a picture or the navigation is wrong."""
    return _mkdocs(["build", "--strict", "--clean", "--quiet"], BUILD_TIMEOUT)


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
