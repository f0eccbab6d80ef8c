#!/usr/bin/env python3
"""The one entry for developers: `python3 dev.py COMMAND`, on a machine with just Python 3.11 or 3.13.

setup   make the environments below .venv (done by the other commands as they need them)
demo    run examples/demo.py with Blender's module; everything after `demo` is passed on
test    the core and the installed extension on one Blender; --matrix: on all four; --window: in a real window
        --coverage: with the lines that no test runs
check   everything that has to pass before a change goes in, on all four Blenders (root on Debian)
lint    ruff, and mypy against the oldest and the newest Blender; --style: ruff alone
build   the extension's zip, in dist/; --platforms: one for each system
docs    the manual as a site, in manual/; --serve: show it; --reference, --pictures: make its parts anew
languages  what the interface's languages lack, as JSON; --fill FILE: put the texts of such a file in
bench   the scripts of benchmarks/, all or by name; one script's own options follow after --
golden  compare results bit for bit with stored ones; --store: store them
fuzz    random set-ups, spoilt files, signals, hostile tables; a minute each, or --seconds
mutate  small changes to the code, drawn by a seed: which of them no test notices
"""

from __future__ import annotations

import argparse
import os
import sys

if sys.version_info < (3, 9):
    sys.exit("dev.py needs Python 3.9 or newer to start, and Python 3.11 or 3.13 for Blender")

from devtools import checks, environments, site, window

DEMO_TIMEOUT = 900  # [s]
WINDOW = "window"
"""What `setup` calls the folder with Debian's Blender."""


def default_version() -> str:
    """The oldest supported Blender whose Python is on this machine.

    Raises:
        SetupError: neither Python is there.
    """
    for name, environment in environments.BLENDERS.items():
        if environment.is_ready() or environments.has_python(environment.pythons):
            return name
    environments.find_python(("3.11", "3.13"))
    raise AssertionError("find_python found what has_python did not")


def setup(options: argparse.Namespace) -> int:
    known = (*environments.BLENDERS.values(), *environments.LINTS.values(), environments.DOCS)
    everything = {e.name: e for e in known}
    if WINDOW in options.names:
        window.prepare()
        options.names.remove(WINDOW)
        if not options.names:
            return 0
    unknown = [name for name in options.names if name not in everything]
    if unknown:
        raise environments.SetupError(
            f"no environment named {unknown[0]}; there are: {', '.join((*everything, WINDOW))}"
        )
    environments.require_pythons([everything[name] for name in options.names])
    made = 0
    for name in options.names or everything:
        environment = everything[name]
        if not options.names and not environments.has_python(environment.pythons):
            print(f"[setup] {name}: left out: Python {environment.pythons[0]} is not installed")
            continue
        print(f"[setup] {name}: {environments.prepare(environment)}", flush=True)
        made += 1
    return 0 if made else 1


def demo(options: argparse.Namespace) -> int:
    python = str(environments.prepare(environments.BLENDERS[options.blender or default_version()]))
    script = str(environments.ROOT / "examples/demo.py")
    # Run where the user stands, so that the paths given to the demo mean what they say.
    return checks.run([python, script, *options.arguments], DEMO_TIMEOUT, cwd=os.getcwd())


def test(options: argparse.Namespace) -> int:
    if options.coverage and (options.window or options.matrix or options.arguments):
        raise environments.SetupError("--coverage is for all tests on one Blender")
    if options.window:
        return window.test(options.blender or default_version(), options.arguments)
    versions = list(environments.BLENDERS) if options.matrix else [options.blender or default_version()]
    return checks.test(versions, options.arguments, options.coverage, options.mass)


def check(options: argparse.Namespace) -> int:
    return checks.everything()


def lint(options: argparse.Namespace) -> int:
    return checks.lint(options.stubs or list(environments.LINTS), options.style)


def build(options: argparse.Namespace) -> int:
    arguments = ("--platforms",) if options.platforms else ()
    for package in checks.build(options.blender or default_version(), arguments):
        print(package)
    return 0


def docs(options: argparse.Namespace) -> int:
    version = options.blender or default_version()
    if options.listing:
        from devtools import listing

        return listing.make(version)
    if options.drawing:
        from devtools import drawing

        drawing.write(environments.ROOT)
    if options.pictures is not None and (code := site.take_pictures(version, options.pictures)):
        return code
    if options.reference and (code := site.write_reference(version)):
        return code
    return site.serve() if options.serve else site.build()


def languages(options: argparse.Namespace) -> int:
    fill = ["--fill", options.fill] if options.fill else []
    return checks.languages(options.blender or default_version(), fill)


def bench(options: argparse.Namespace) -> int:
    return checks.bench(options.names, options.blender or default_version(), options.arguments)


def golden(options: argparse.Namespace) -> int:
    arguments = [*(["--store"] if options.store else []), *options.arguments]
    return checks.golden(options.blender or default_version(), arguments)


def fuzz(options: argparse.Namespace) -> int:
    from devtools.fuzz import campaign

    version = options.blender or default_version()
    return campaign.fuzz(options.names, version, options.seconds, options.seed, options.first)


def mutate(options: argparse.Namespace) -> int:
    from devtools import mutation

    return mutation.mutate(options.part or list(mutation.PARTS), options.count, options.seed, options.restart)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True)
    versions = list(environments.BLENDERS)

    def command(name: str, run, words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=words, description=words, allow_abbrev=False)
        sub.set_defaults(run=run)
        if run not in (setup, check, lint, mutate):
            sub.add_argument("--blender", choices=versions, help="default: the oldest whose Python is here")
        return sub

    sub = command("setup", setup, "make the environments below .venv")
    sub.add_argument(
        "names",
        nargs="*",
        help="such as 4.2, lint-5.2 or window; default: all environments whose Python is here",
    )
    command("demo", demo, "run examples/demo.py; its own arguments follow")
    sub = command("test", test, "run the tests; what follows `--` goes to pytest")
    sub.add_argument("--matrix", action="store_true", help=f"all versions: {', '.join(versions)}")
    sub.add_argument(
        "--window", action="store_true", help="Debian's Blender in a real window (root on Debian)"
    )
    sub.add_argument(
        "--coverage", action="store_true", help="measure what the tests run; fails below the floors"
    )
    sub.add_argument(
        "--mass", action="store_true", help="with the tests marked mass, which --matrix runs on the newest"
    )
    command("check", check, "run everything that has to pass before a change goes in (root on Debian)")
    sub = command("lint", lint, "check style and types")
    sub.add_argument("--stubs", action="append", choices=list(environments.LINTS), help="default: all")
    sub.add_argument("--style", action="store_true", help="ruff alone, in a second")
    sub = command("build", build, "build the extension's zip in dist/")
    sub.add_argument("--platforms", action="store_true", help="one zip for each system, for a listing")
    sub = command("docs", docs, "build the manual as a site in manual/")
    sub.add_argument("--serve", action="store_true", help="show it on this machine, until Ctrl C")
    sub.add_argument(
        "--reference", action="store_true", help="first write the reference of all settings anew"
    )
    sub.add_argument("--drawing", action="store_true", help="first draw the packages' imports anew")
    sub.add_argument(
        "--pictures",
        nargs="*",
        metavar="TUTORIAL",
        help="first take the tutorials' pictures anew; default: all",
    )
    sub.add_argument("--listing", action="store_true", help="only make the pictures of docs/listing anew")
    sub = command("languages", languages, "list what the interface's languages lack, as JSON")
    sub.add_argument("--fill", metavar="FILE", help="put the texts of this JSON file into the catalogues")
    sub = command("bench", bench, "run benchmarks; what follows `--` goes to the one that is named")
    sub.add_argument("names", nargs="*", help="files of benchmarks/ without .py; default: all")
    sub = command("golden", golden, "compare results bit for bit; what follows `--` goes to the comparison")
    sub.add_argument("--store", action="store_true", help="store the results instead")

    sub = command("fuzz", fuzz, "try random set-ups; a table at the end, exit code 1 if any was wrong")
    sub.add_argument("names", nargs="*", help="families, see devtools/fuzz/campaign.py; default: all")
    sub.add_argument("--seconds", type=float, default=60.0, help="for each family; default: %(default)s")
    sub.add_argument("--seed", type=int, help="only this case of the family that is named")
    sub.add_argument("--first", type=int, help="forget what was tried before; begin with this case")

    sub = command("mutate", mutate, "let tests judge small changes to the code; lists those that survive")
    sub.add_argument("--count", type=int, default=40, help="mutants of each part (default: %(default)s)")
    sub.add_argument("--seed", type=int, default=0, help="of the draw (default: %(default)s)")
    sub.add_argument(
        "--part", action="append", help="see devtools/mutation.py; several: tell it again; default: all"
    )
    sub.add_argument(
        "--restart", action="store_true", help="forget what was judged; begin with the last commit"
    )

    own, rest = _split(arguments)
    options, unknown = parser.parse_known_args(own)
    if unknown and options.run is not demo:
        parser.error(f"unknown arguments: {' '.join(unknown)} (what is passed on goes after --)")
    options.arguments = [*unknown, *rest]
    if rest and options.run not in (demo, test, bench, golden):
        parser.error("nothing is passed on by this command")
    if rest and options.run is bench and len(options.names) != 1:
        parser.error("options after -- are for one benchmark: name it before them")
    return options


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first `--`."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def main() -> int:
    options = parse(sys.argv[1:])
    # Many processes import the same sources: without what Python keeps of them each would compile all anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        return options.run(options)
    except environments.SetupError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
