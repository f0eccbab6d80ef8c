#!/usr/bin/env python3
"""The one entry for developers: `python3 dev.py COMMAND`, on a machine with Python 3.11 or 3.13 and nothing else.

    setup   make the environments (every Blender version whose Python is here)
"""

from __future__ import annotations

import argparse
import sys

if sys.version_info < (3, 9):
    sys.exit("dev.py needs Python 3.9 or newer to start, and Python 3.11 or 3.13 for Blender")

from devtools import environments


def setup(options: argparse.Namespace) -> int:
    """Make the named environments, or all whose Python is on this machine."""
    made = 0
    for environment in (*environments.BLENDERS.values(), *environments.LINTS.values()):
        if options.versions and environment.name not in options.versions:
            continue
        if not options.versions and not environments.has_python(environment.pythons):
            print(f"[setup] {environment.name}: left out, Python {environment.pythons[0]} is not installed")
            continue
        print(f"[setup] {environment.name}: {environments.prepare(environment)}", flush=True)
        made += 1
    return 0 if made else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("setup", help="make the environments")
    command.add_argument("versions", nargs="*", help="names below .venv, such as 4.2 or lint-5.2; default: all")
    command.set_defaults(run=setup)
    options = parser.parse_args()
    try:
        return options.run(options)
    except environments.SetupError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
