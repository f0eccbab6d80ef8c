"""Tests, lint, types: each check is a process with a time limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

from devtools import environments, floors
from devtools.environments import ROOT

TEST_TIMEOUT = 1800  # [s] one suite on one version of Blender
LINT_TIMEOUT = 300  # [s]
BUILD_TIMEOUT = 1800  # [s] the first wheels for Windows take minutes
BENCH_TIMEOUT = 3600  # [s] one script
ON_BOTH_ENDS = (
    "farm",
    "figures",
    "limit_sources",
    "retarget",
    "set_up",
    "solve",
    "walk",
    "test_demo.py",
    "test_peer_cases.py",
)
"""What of tests/blender is left to the oldest and the newest of several Blenders: it asks nothing of Blender
that has changed between them."""
DOCS_TESTS = "tests/docs"  # about the pages of the manual: in the environment of its site
PARTS = 3  # processes for tests/blender
SOURCES = ("__init__.py", "ccd_rig", "operators", "panels", "viewport")


def run(
    command: list[str],
    timeout: float,
    extra: dict[str, str] | None = None,
    cwd: Path = ROOT,
    output: IO[str] | None = None,
    running: set[subprocess.Popen[bytes]] | None = None,
) -> int:
    """Run a command in a process group of its own; after `timeout` seconds end the whole group.

    Args:
        command: program and arguments.
        timeout: seconds.
        extra: environment variables beside our own.
        cwd: where it runs.
        output: where its output goes, if not to ours.
        running: the process is in here as long as it runs.

    Returns:
        Its exit code, 124 after a timeout. A signal's negative code stays negative: it is not 0 either.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(extra or {})}
    grouped = os.name == "posix"
    error = None if output is None else subprocess.STDOUT
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, start_new_session=grouped, stdout=output, stderr=error
    )
    running = set() if running is None else running
    running.add(process)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        print(f"dev.py: no end within {timeout:.0f} s: {' '.join(command)}", file=sys.stderr, flush=True)
        return 124
    finally:
        _end(process)
        running.discard(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def build(version: str, output_dir: Path) -> Path:
    """Build the manual and the extension's zip, by the tool of this Blender version; returns its path."""
    (package,) = build_all(version, output_dir, ())
    return package


def build_all(version: str, output_dir: Path, arguments: Sequence[str] = ("--platforms",)) -> list[Path]:
    """The same with one zip for each system."""
    from devtools import site

    if site.update():
        raise environments.SetupError("the manual could not be built: see above")
    python = environments.prepare(environments.BLENDERS[version])
    command = [str(python), str(ROOT / "devtools/packaging.py"), str(output_dir), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=BUILD_TIMEOUT, check=False)
    if done.returncode:
        raise environments.SetupError("the package could not be built: see above")
    return [Path(line) for line in done.stdout.splitlines() if line.endswith(".zip")]


def test(versions: list[str], pytest_arguments: list[str], coverage: bool, mass: bool) -> int:
    """Run tests/core and tests/blender, each in its own process, on each version, and tests/docs once; 0 when
    all passed.

    Of several, as many run at once as there are processors; the output of each comes when it has ended.
    `pytest_arguments` that name files choose: then only the suites they lie in are run. Without arguments
    tests/blender, which takes longest, is run in `PARTS` processes. Of several versions only the oldest and
    the newest run tests/core and `ON_BOTH_ENDS`: those between have the same Python and NumPy as the oldest.
    Tests that are marked `mass` are run on the newest of several, and where they are asked for.

    Args:
        versions: of Blender.
        pytest_arguments: what goes to pytest.
        coverage: whether to measure what of the product is run, and fail below the floors of `floors.py`.
        mass: whether a run of everything holds the tests that are marked `mass`.
    """
    chosen = [a for a in pytest_arguments if (ROOT / a.partition("::")[0]).exists() and not a.startswith("-")]
    options = [a for a in pytest_arguments if a not in chosen]
    with_docs = not pytest_arguments or any(a.startswith(DOCS_TESTS) for a in chosen)
    wanted = [environments.BLENDERS[version] for version in versions]
    environments.require_pythons([*wanted, environments.DOCS] if with_docs else wanted)
    prepare = environments.prepare_coverage if coverage else environments.prepare_tests
    # All of them first: what is missing shows before minutes of tests, not after.
    pythons = {version: str(prepare(environments.BLENDERS[version])) for version in versions}
    suites = [
        suite
        for layer in ("core", "blender")  # the longest run first
        for suite in _suites(layer, pythons, chosen, options, mass)
    ]
    if with_docs:
        python = str(environments.prepare(environments.DOCS))
        paths = [a for a in chosen if a.startswith(DOCS_TESTS)] or [DOCS_TESTS]
        pages = Suite(DOCS_TESTS, [python, "-m", "pytest", *paths, *options], {}, "docs", "", 1)
    if coverage:
        suites = [_with_coverage(suite) for suite in suites]
    failed = run_all([*suites, pages] if with_docs else suites)
    if coverage:
        failed += _below_floor(suites, pythons)
    return verdict(failed, "tests")


def _suites(
    layer: str, pythons: dict[str, str], chosen: list[str], options: list[str], mass: bool
) -> list[Suite]:
    """The runs of one folder of tests/, for each Blender version of `pythons`; see `test`."""
    folder = f"tests/{layer}"
    paths = [a for a in chosen if a.startswith(folder)] if chosen else [folder]
    if not paths:
        return []
    extra = {}
    if layer == "blender":
        extra["CCD_RIG_ZIP"] = str(build(next(iter(pythons)), ROOT / "dist"))
    # -P keeps the project's root off the path: the core must come from the installed extension.
    flags = ["-P"] if layer == "blender" else []
    suites = []
    for version, python in pythons.items():
        between = _is_between(version, list(pythons))
        if layer == "core" and between:
            continue
        parts = [paths]
        if layer == "blender" and not (chosen or options):
            parts = parts_of(folder, ON_BOTH_ENDS if between else ())
        newest = len(pythons) > 1 and version == list(environments.BLENDERS)[-1]
        left_out = [] if chosen or options or mass or newest else ["-m", "not mass"]
        for number, part in enumerate(parts, 1):
            name = f"{folder}, Blender {version}" + (f", part {number}" if len(parts) > 1 else "")
            command = [python, *flags, "-m", "pytest", *part, *options, *left_out]
            suites.append(Suite(name, command, extra, layer, version, number))
    return suites


def _is_between(version: str, versions: list[str]) -> bool:
    """Whether of several versions this is neither the oldest nor the newest."""
    known = list(environments.BLENDERS)
    return len(versions) > 1 and version not in (known[0], known[-1])


def parts_of(folder: str, without: Sequence[str] = ()) -> list[list[str]]:
    """The files of a suite dealt out to `PARTS` runs, by their size: it is the nearest to their time.

    `without` names files and folders of the suite to leave out.
    """
    parts: list[list[Path]] = [[] for _ in range(PARTS)]
    files = [
        file
        for file in (ROOT / folder).rglob("test_*.py")
        if file.relative_to(ROOT / folder).parts[0] not in without
    ]
    for file in sorted(files, key=lambda file: (-file.stat().st_size, file)):
        min(parts, key=lambda part: sum(each.stat().st_size for each in part)).append(file)
    return [sorted(str(file.relative_to(ROOT)) for file in part) for part in parts if part]


class Suite(NamedTuple):
    """A run of pytest.

    Attributes:
        name: what the output calls it.
        command: program and arguments.
        extra: environment variables beside our own.
        layer: folder of tests/, and key of `floors.LAYERS`.
        version: of Blender.
        part: number of the part of the layer's tests that it runs.
    """

    name: str
    command: list[str]
    extra: dict[str, str]
    layer: str
    version: str
    part: int

    @property
    def data_file(self) -> Path:
        """Data file of coverage.py."""
        return ROOT / ".cache/coverage" / f"{self.version}-{self.layer}-{self.part}"


def _with_coverage(suite: Suite) -> Suite:
    """The same run, measured."""
    suite.data_file.parent.mkdir(parents=True, exist_ok=True)
    options = [f"--cov={source}" for source in floors.LAYERS[suite.layer].sources]
    command = [*suite.command, *options, "--cov-branch", "--cov-report="]
    return suite._replace(command=command, extra={**suite.extra, "COVERAGE_FILE": str(suite.data_file)})


def _below_floor(suites: list[Suite], pythons: dict[str, str]) -> list[str]:
    """Names of the layers of which too little was run."""
    failed = []
    for version, python in pythons.items():
        for layer in floors.LAYERS:
            files = [str(s.data_file) for s in suites if (s.layer, s.version) == (layer, version)]
            if not files:
                continue
            print(f"\n=== coverage of {layer}, Blender {version}", flush=True)
            command = [python, str(ROOT / "devtools/floors.py"), layer, *files]
            if run(command, LINT_TIMEOUT):
                failed.append(f"coverage of {layer}, Blender {version}")
    return failed


def run_all(suites: list[Suite]) -> list[str]:
    """Run suites side by side; the names of those that failed."""
    running: set[subprocess.Popen[bytes]] = set()
    at_once = min(len(suites), os.cpu_count() or 1)

    def one(suite: Suite) -> int:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as kept:
            output = kept if at_once > 1 else None
            if output is None:
                print(f"\n=== {suite.name}", flush=True)
            start = time.monotonic()
            code = run(suite.command, TEST_TIMEOUT, suite.extra, output=output, running=running)
            seconds = time.monotonic() - start
            kept.seek(0)
            words = f"\n=== {suite.name}\n{kept.read()}" if output is not None else ""
            print(f"{words}=== {suite.name}: exit {code}, {seconds:.0f} s", flush=True)
            return code

    with ThreadPoolExecutor(max(at_once, 1)) as pool:
        try:
            codes = list(pool.map(one, suites))
        except BaseException:  # they have groups of their own and would not hear of it
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                _end(process)
            raise
    return [suite.name for suite, code in zip(suites, codes, strict=True) if code]


def lint(stubs: list[str], only_style: bool) -> int:
    """Style, format, and unless `only_style` types against each named version of Blender's stubs; 0 when all
    is clean."""
    failed = []
    python = str(environments.prepare(environments.LINTS[stubs[0]]))
    for arguments in (["check", "."], ["format", "--check", "."]):
        print(f"=== ruff {' '.join(arguments)}", flush=True)
        if run([python, "-m", "ruff", *arguments], LINT_TIMEOUT):
            failed.append(f"ruff {arguments[0]}")
    if only_style:
        return verdict(failed, "style")
    tree = _typed_tree()
    for version in stubs:
        print(f"=== mypy, fake-bpy-module {version}", flush=True)
        python = str(environments.prepare(environments.LINTS[version]))
        command = [python, "-m", "mypy", f"--config-file={ROOT / 'pyproject.toml'}", "-p", "extension"]
        command.append(f"--cache-dir={ROOT / '.cache/mypy' / version}")
        if run(command, LINT_TIMEOUT, {"MYPYPATH": str(tree)}, cwd=tree):
            failed.append(f"mypy with Blender {version}")
    return verdict(failed, "lint")


def _typed_tree() -> Path:
    """Copy the sources below one package, as Blender does, so that relative imports find what they name."""
    tree = ROOT / ".cache/types"
    shutil.rmtree(tree, ignore_errors=True)
    for name in SOURCES:
        source, copy = ROOT / name, tree / "extension" / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return tree


def bench(names: list[str], version: str, arguments: list[str]) -> int:
    """Run the named scripts of benchmarks/, or all of them, one after the other, each with `arguments`."""
    python = str(environments.prepare_bench(environments.BLENDERS[version]))
    known = sorted(p.stem for p in (ROOT / "benchmarks").glob("*.py") if not p.stem.startswith("_"))
    unknown = [n for n in names if n not in known]
    if unknown:
        raise environments.SetupError(
            f"no benchmark named {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    failed = []
    for name in names or known:
        print(f"\n=== benchmarks/{name}.py, Blender {version}", flush=True)
        command = [python, str(ROOT / "benchmarks" / f"{name}.py"), *arguments]
        if run(command, BENCH_TIMEOUT, {"PYTHONPATH": str(ROOT)}):
            failed.append(name)
    return verdict(failed, "benchmarks")


def golden(version: str, arguments: list[str]) -> int:
    """Compare results with stored ones, or store them; 0 when all are equal."""
    python = str(environments.prepare(environments.BLENDERS[version]))
    command = [python, str(ROOT / "benchmarks" / "_golden.py"), *arguments]
    return run(command, BENCH_TIMEOUT, {"PYTHONPATH": str(ROOT)})


def languages(version: str, arguments: list[str]) -> int:
    """List what the interface's languages lack, or put texts into them; 0 when that could be done."""
    python = str(environments.prepare(environments.BLENDERS[version]))
    return run([python, str(ROOT / "devtools/languages.py"), *arguments], LINT_TIMEOUT)


def verdict(failed: list[str], what: str) -> int:
    """Say which parts failed, if any; the exit code."""
    print(f"\n{what}: " + (f"FAILED: {', '.join(failed)}" if failed else "passed"), flush=True)
    return 1 if failed else 0
