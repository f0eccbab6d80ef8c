"""Tests, lint, types: each check is a process with a time limit."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from devtools import compiled, environments, kernel, references
from devtools.environments import ROOT

TEST_TIMEOUT = 1800  # [s] one suite on one version of Blender
LINT_TIMEOUT = 300  # [s]
BUILD_TIMEOUT = 1800  # [s] wheels for six systems take minutes
BENCH_TIMEOUT = 3600  # [s] one script
BENCH_PATHS = ("", "tests/core", "tests/core/solvers", "tests/blender")  # what benchmarks import from
BETWEEN = (
    "drag",
    "keys",
    "live",
    "properties",
    "rig",
    "scene",
    "setup_files",
    "viewport",
    "bake/test_bake.py",
    "bake/test_keyed_settings.py",
    "bake/test_keys_of_bakes.py",
    "cli/test_command_files.py",
    "test_lifecycle.py",
    "test_module_start.py",
    "test_operators.py",
    "test_panels.py",
    "test_undo_and_redo.py",
)
"""What of tests/blender runs on the Blenders between the oldest and the newest: what asks most of Blender's
own types. They have the Python and NumPy of the oldest."""
OF_SOURCES = ("architecture", "benchmarks", "languages", "layers", "mutation", "references", "suites")
"""Of tests/core, by file, what reads sources, pages and catalogues: the oldest Blender alone runs it."""
DOCS_TESTS = "tests/docs"  # about the pages of the manual: in the environment of its site
PARTS = min(os.cpu_count() or 1, 8)  # processes for tests/blender, which deal it out among them as they go
PLUGINS = ROOT / "devtools/plugins"  # of pytest
BESIDE = 2  # suites that wait much of their time, run beside those that do not
FUZZ_SECONDS = 20  # [s] each family, in a run of everything: other cases at each commit
KERNEL_SECONDS = 30  # [s] each checking build of the kernel there
FUZZ_CASES = 20_000  # between the first cases of two commits: more than are tried
ZIP = "zip"  # what suites need that use the package
LINT = "lint"  # what `dev.py lint` needs
WHEELS = "wheels"  # the kernel for all systems
SOURCES = ("__init__.py", "ccd_rig", "operators", "panels", "viewport")
INSTALLED = "bl_ext.user_default.ccd_rig"


class Layer(NamedTuple):
    """The part of the product that the tests of a layer run.

    Attributes:
        sources: what is measured: folders, or packages of the installed extension.
        include, omit: patterns of files that count, and of those that do not.
        floor: least percent of lines.
    """

    sources: tuple[str, ...]
    include: str
    omit: str
    floor: float


LAYERS = {
    # Of the compiled kernel nothing is measured.
    "core": Layer(
        ("ccd_rig",), "ccd_rig/*", "ccd_rig/blender/*,ccd_rig/__main__.py,ccd_rig/kernel/*", floor=97.0
    ),
    "blender": Layer(
        tuple(f"{INSTALLED}.{name}" for name in ("ccd_rig.blender", "operators", "panels", "viewport")),
        "ccd_rig/blender/*,operators/*,panels/*,viewport/*",
        "",
        floor=90.0,
    ),
}
"""By the folder of tests/ that is for it."""


def run(
    command: list[str],
    timeout: float,
    extra: dict[str, str] | None = None,
    cwd: Path = ROOT,
    output: IO[str] | None = None,
) -> int:
    """Run a command as `measured_run` does; its exit code."""
    return measured_run(command, timeout, extra, cwd, output, set())[0]


def measured_run(
    command: list[str],
    timeout: float,
    extra: dict[str, str] | None,
    cwd: Path,
    output: IO[str] | None,
    running: set[subprocess.Popen[bytes]],
) -> tuple[int, float]:
    """Run a command in a process group of its own; after `timeout` seconds end the whole group.

    Args:
        command: program and arguments.
        timeout: seconds.
        extra: environment variables beside our own.
        cwd: where it runs.
        output: where its output goes, if not to ours.
        running: the process is in here as long as it runs.

    Returns:
        Its exit code, 124 after a timeout, and its seconds of processor time; 0 where the system tells none.
        A signal's negative code stays negative: it is not 0 either.
    """
    grouped = os.name == "posix"
    error = None if output is None else subprocess.STDOUT
    # Blender leaves its folder of temporary files where it is ended, and pytest needs its own afterwards.
    scratch = tempfile.mkdtemp(prefix="ccd_rig_")
    environment = {
        **os.environ,
        "PYTEST_DEBUG_TEMPROOT": tempfile.gettempdir(),
        "TMPDIR": scratch,
        **(extra or {}),
    }
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, start_new_session=grouped, stdout=output, stderr=error
    )
    running.add(process)
    until = time.monotonic() + timeout
    try:
        if not grouped:
            return process.wait(timeout), 0.0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, usage.ru_utime + usage.ru_stime
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(command, timeout)
            time.sleep(0.05)
    except subprocess.TimeoutExpired:
        print(f"dev.py: no end within {timeout:.0f} s: {' '.join(command)}", file=sys.stderr, flush=True)
        return 124, 0.0
    finally:
        end(process)
        running.discard(process)
        shutil.rmtree(scratch, ignore_errors=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def build_here(version: str) -> Path:
    """Build the extension's zip for this machine, which tests install; returns its path."""
    (package,) = build(version, ("--here",))
    return package


def build(version: str, arguments: Sequence[str] = ()) -> list[Path]:
    """Build the manual and, by the tool of a Blender version, the extension's zips in dist/; their paths.

    Args:
        version: of Blender.
        arguments: for `packaging`; none: one zip for all systems.
    """
    from devtools import site

    if site.update():
        raise environments.SetupError("the manual could not be built: see above")
    python = environments.prepare(environments.BLENDERS[version])
    command = [str(python), str(ROOT / "devtools/packaging.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=BUILD_TIMEOUT, check=False)
    if done.returncode:
        raise environments.SetupError("the package could not be built: see above")
    return [Path(line) for line in done.stdout.splitlines() if line.endswith(".zip")]


class Suite(NamedTuple):
    """A command whose exit code is a verdict, such as a run of pytest.

    Attributes:
        name: what the output calls it.
        command: program and arguments.
        needs: what must be there before it starts, by the names of `prepared`.
        extra: environment variables beside our own.
        layer: folder of tests/, and key of `LAYERS`.
        version: of Blender.
        part: number of the process, where several run the layer's tests.
        queue: name of the queue out of which it takes its tests, with the others that have it.
        waits: whether it waits much of its time, such as for a window to be redrawn.
    """

    name: str
    command: list[str]
    needs: tuple[str, ...] = ()
    extra: Mapping[str, str] = {}
    layer: str = ""
    version: str = ""
    part: int = 1
    queue: str = ""
    waits: bool = False

    @property
    def data_file(self) -> Path:
        """Data file of coverage.py."""
        return ROOT / ".cache/coverage" / f"{self.version}-{self.layer}-{self.part}"


class Times(NamedTuple):
    """When a suite began, how long it took, and its processor time, seconds."""

    name: str
    start: float
    seconds: float
    used: float


def test(versions: list[str], pytest_arguments: list[str], coverage: bool, mass: bool) -> int:
    """Run tests/core and tests/blender, each in its own process, on each version, and tests/docs once; 0 when
    all passed.

    As many run at once as there are processors; the output of each comes when it has ended.
    `pytest_arguments` that name files choose: then only the suites they lie in are run. Without arguments
    `PARTS` processes deal tests/blender, which takes longest, out among them. Of several versions only the
    oldest and the newest run tests/core, `OF_SOURCES` once, and those between `BETWEEN` of tests/blender.
    Kernels of other systems, tests/systems, are run where they are named, and by `everything`.
    Tests that are marked `mass` are run on the newest of several, and where they are asked for.

    Args:
        versions: of Blender.
        pytest_arguments: what goes to pytest.
        coverage: whether to measure what of the product is run, and fail below the floors of `LAYERS`.
        mass: whether a run of everything holds the tests that are marked `mass`.
    """
    suites = suites_of(versions, pytest_arguments, mass)
    if not suites:
        raise environments.SetupError("none of these tests can run on this machine")
    needs = {name for suite in suites for name in suite.needs}
    environments.require_pythons(
        environment for name, environment in environments.BLENDERS.items() if name in needs
    )
    if coverage:
        suites = [_with_coverage(suite) for suite in suites]
    with prepared(needs, versions[0], versions if coverage else []) as ready:
        failed = run_all(suites, ready)
    if coverage:
        failed += below_floors(suites)
    return verdict(failed, "tests")


def everything() -> int:
    """Run all that has to pass before a change goes in; 0 when it did.

    What is missing on this machine is made meanwhile: each part waits for what it needs alone.
    """
    from devtools import systems, window
    from devtools.fuzz import campaign

    oldest, *_, newest = versions = list(environments.BLENDERS)
    environments.require_pythons([*environments.BLENDERS.values(), *environments.LINTS.values()])
    tests = suites_of(versions, [], mass=False)
    tests = [_with_coverage(suite) if suite.version == newest else suite for suite in tests]
    tests.sort(key=lambda suite: versions.index(suite.version) if suite.version else 0)
    dev = [sys.executable, str(ROOT / "dev.py")]
    fuzz = [*dev, "fuzz", f"--first={first_case()}"]
    seconds = dict.fromkeys(campaign.FAMILIES, FUZZ_SECONDS) | {campaign.KERNEL: KERNEL_SECONDS}
    families = [
        Suite(f"fuzz {name}", [*fuzz, f"--seconds={seconds[name]}", name], (oldest, ZIP))
        for name in reversed(list(campaign.FAMILIES))
    ]
    suites = [
        *(suite for suite in tests if suite.version in (oldest, "")),
        Suite("package for all systems", [*dev, "build"], (oldest, ZIP, WHEELS)),
        Suite("lint", [*dev, "lint"], (LINT,)),
        Suite("demo", [*dev, "demo", f"--output={ROOT / '.cache/demo'}"], (oldest,)),
        *window.suites(oldest, []),
        *systems.suites(oldest, []),
        *(suite for suite in tests if suite.version not in (oldest, "")),
        *families,
    ]
    needs = {name for suite in suites for name in suite.needs}
    with prepared(needs, oldest, [newest]) as ready:
        failed = run_all(suites, ready)
    return verdict([*failed, *below_floors(suites), *window.unfinished(suites, failed)], "everything")


def first_case() -> int:
    """Seed at which campaigns begin, a multiple of `FUZZ_CASES`: the last commit decides; 0 without one."""
    git = ["git", "rev-parse", "--verify", "HEAD"]
    try:
        commit = subprocess.check_output(git, cwd=ROOT, stderr=subprocess.DEVNULL, text=True)
        return int(commit[:4], 16) * FUZZ_CASES
    except (OSError, subprocess.CalledProcessError):  # no Git, or sources without history
        return 0


@contextmanager
def prepared(
    needs: Iterable[str], version: str, measured: Sequence[str] = ()
) -> Iterator[dict[str, Future[Path | None]]]:
    """Make what suites need, side by side: downloads take most of the time.

    Args:
        needs: versions of Blender, the manual's environment, `ZIP`, `WHEELS`, `LINT`, `window.NEED` and
            `systems.NEED`.
        version: the Blender whose tools build the package.
        measured: versions of Blender whose environments measure coverage.

    Yields:
        What will be there, by name; of `ZIP` the package's path.
    """
    from devtools import systems, window

    def blender(name: str) -> Path:
        extras = ("farm", "coverage") if name in measured else ("farm",)
        return environments.prepare(environments.BLENDERS[name], *extras)

    def lint_tools() -> None:
        for environment in environments.LINTS.values():
            environments.prepare(environment)

    begun = time.monotonic()

    def made(name: str) -> Path | None:
        result = makers[name]()
        if (seconds := time.monotonic() - begun) > 1.0:
            print(f"[setup] {name}: there after {seconds:.0f} s", flush=True)
        return result

    def compile_all() -> None:
        compiled.wheels(kernel.TARGETS)

    ready: dict[str, Future[Path | None]] = {}
    makers: dict[str, Callable[[], Path | None]] = {
        **{name: lambda name=name: blender(name) for name in environments.BLENDERS},
        environments.DOCS.name: lambda: environments.prepare(environments.DOCS),
        ZIP: lambda: build_here(version),
        WHEELS: compile_all,
        LINT: lint_tools,
        window.NEED: lambda: window.prepare_run(ready[ZIP]),
        systems.NEED: systems.prepare,
    }
    # What compiles for minutes while all else is downloaded; then the oldest Blender, the package and the
    # style: what others wait for, or wait little for.
    first = (WHEELS, version, environments.DOCS.name, ZIP, LINT, window.NEED, systems.NEED)
    order = (*first, *reversed(list(environments.BLENDERS)))
    wanted = {*needs, ZIP} if window.NEED in needs else set(needs)
    with ThreadPoolExecutor(5) as pool:  # what comes first does not share the line with all others
        for name in dict.fromkeys(order):
            if name in wanted:
                ready[name] = pool.submit(made, name)
        yield ready


def suites_of(versions: list[str], pytest_arguments: list[str], mass: bool) -> list[Suite]:
    """The runs of pytest that `test` describes, the longest first.

    Raises:
        SetupError: a file is in none of the folders of which there are runs.
    """
    from devtools import systems

    chosen = [a for a in pytest_arguments if (ROOT / a.partition("::")[0]).exists() and not a.startswith("-")]
    options = [a for a in pytest_arguments if a not in chosen]
    if others := [
        a for a in chosen if not a.startswith(("tests/core", "tests/blender", DOCS_TESTS, systems.TESTS))
    ]:
        raise environments.SetupError(f"{others[0]} would not run here: tests/window is run by --window")
    suites = []
    for layer in ("core", "blender"):
        folder = f"tests/{layer}"
        paths = [a for a in chosen if a.startswith(folder)] if chosen else [folder]
        for version in versions if paths else ():
            between = len(versions) > 1 and version not in (versions[0], versions[-1])
            if between and layer == "core":
                continue
            places = [f"{folder}/{name}" for name in BETWEEN] if between and not pytest_arguments else paths
            parts = PARTS if layer == "blender" and not pytest_arguments else 1
            with_mass = mass or pytest_arguments or (len(versions) > 1 and version == versions[-1])
            left_out = [] if with_mass else ["-m", "not mass"]
            if layer == "core" and version != versions[0] and not pytest_arguments:
                left_out += [f"--ignore={folder}/test_{name}.py" for name in OF_SOURCES]
            # -P keeps the project's root off the path: the core must come from the installed extension.
            python = [
                str(environments.BLENDERS[version].python),
                *(["-P"] if layer == "blender" else []),
                *("-m", "pytest"),
            ]
            needs = (version, ZIP) if layer == "blender" else (version,)
            for number in range(1, parts + 1):
                name = f"{folder}, Blender {version}" + (f", part {number}" if parts > 1 else "")
                command = [*python, *places, *options, *left_out]
                queue, extra = "", {}
                if parts > 1:
                    command += ["-p", "shared_queue"]
                    queue, extra = version, {"PYTHONPATH": str(PLUGINS)}
                suites.append(Suite(name, command, needs, extra, layer, version, number, queue))
    if not pytest_arguments or any(a.startswith(DOCS_TESTS) for a in chosen):
        paths = [a for a in chosen if a.startswith(DOCS_TESTS)] or [DOCS_TESTS]
        command = [str(environments.DOCS.python), "-m", "pytest", *paths, *options]
        suites.append(Suite(DOCS_TESTS, command, (environments.DOCS.name,)))
    if paths := [a for a in chosen if a.startswith(systems.TESTS)]:
        suites += systems.suites(versions[0], [*paths, *options])
    return suites


def _with_coverage(suite: Suite) -> Suite:
    """The same run, measured: lines alone, by what Python 3.12 and later have for it, which costs little."""
    if suite.layer not in LAYERS:
        return suite
    suite.data_file.parent.mkdir(parents=True, exist_ok=True)
    options = [f"--cov={source}" for source in LAYERS[suite.layer].sources]
    extra = {**suite.extra, "COVERAGE_FILE": str(suite.data_file)}
    if environments.BLENDERS[suite.version].pythons[0] != "3.11":
        extra["COVERAGE_CORE"] = "sysmon"
    return suite._replace(command=[*suite.command, *options, "--cov-report="], extra=extra)


def below_floors(suites: list[Suite]) -> list[str]:
    """Print what measured suites did not run; names of the layers of which too little was run."""
    measured: dict[tuple[str, str], list[str]] = {}
    for suite in suites:
        if "COVERAGE_FILE" in suite.extra:
            measured.setdefault((suite.layer, suite.version), []).append(str(suite.data_file))
    failed = []
    for (layer, version), files in measured.items():
        print(f"\n=== coverage of {layer}, Blender {version}", flush=True)
        coverage = [str(environments.BLENDERS[version].python), "-m", "coverage"]
        data, (_, include, omit, floor) = f"--data-file={files[0]}.combined", LAYERS[layer]
        run([*coverage, "combine", "--quiet", "--keep", data, *files], LINT_TIMEOUT)
        counted = [f"--include={include}", f"--omit={omit}", f"--fail-under={floor:g}", "--precision=1"]
        shown = ["--show-missing", "--skip-covered", "--sort=cover"]
        if run([*coverage, "report", data, *counted, *shown], LINT_TIMEOUT):
            failed.append(f"coverage of {layer}, Blender {version}")
    return failed


def run_all(suites: list[Suite], ready: Mapping[str, Future[Path | None]] | None = None) -> list[str]:
    """Run suites side by side, one for each processor, the first of those whose needs are there first; beside
    them up to `BESIDE` that wait much of their time. Names of those that failed.

    Raises:
        SetupError: what a suite needs could not be made. All others are ended.
    """
    ready = ready or {}
    running: set[subprocess.Popen[bytes]] = set()
    left, failed, changed = list(suites), [], threading.Condition()
    begun, times = time.monotonic(), list[Times]()
    beside = min(BESIDE, sum(suite.waits for suite in suites))
    at_once = min(len(suites), (os.cpu_count() or 1) + beside)
    for future in ready.values():
        future.add_done_callback(lambda _: _notify(changed))

    def following(is_beside: bool) -> Suite | None:
        with changed:
            while any(suite.waits or not is_beside for suite in left):
                for suite in sorted(left, key=lambda suite: suite.waits):
                    is_ready = all(ready[name].done() for name in suite.needs if name in ready)
                    if is_ready and (suite.waits or not is_beside):
                        left.remove(suite)
                        return suite
                changed.wait()
            return None

    def lane(is_beside: bool) -> None:
        try:
            while (suite := following(is_beside)) is not None:
                start = time.monotonic()
                code, used = _run_suite(suite, ready, at_once > 1, running, Path(queues))
                times.append(Times(suite.name, start - begun, time.monotonic() - start, used))
                if code:
                    failed.append(suite.name)
        except BaseException:
            left.clear()
            raise
        finally:
            _notify(changed)

    with tempfile.TemporaryDirectory() as queues, ThreadPoolExecutor(max(at_once, 1)) as pool:
        lanes = [pool.submit(lane, k < beside) for k in range(at_once)]
        try:
            for each in as_completed(lanes):
                each.result()
        except BaseException:  # the processes have groups of their own and would not hear of it
            left.clear()
            _notify(changed)
            for process in list(running):
                end(process)
            raise
    if at_once > 1:
        _print_times(times, time.monotonic() - begun)
    return failed


def _print_times(times: list[Times], seconds: float) -> None:
    """Print when each suite began and what it took: it shows where processors had nothing to do."""
    print(f"\n{'start, s':>10s}{'time, s':>10s}{'processor, s':>14s}  suite")
    for each in sorted(times, key=lambda each: each.start):
        print(f"{each.start:10.0f}{each.seconds:10.0f}{each.used:14.0f}  {each.name}")
    used = sum(each.used for each in times)
    print(f"{'all':>10s}{seconds:10.0f}{used:14.0f}  of {os.cpu_count()} x {seconds:.0f} s", flush=True)


def _notify(changed: threading.Condition) -> None:
    with changed:
        changed.notify_all()


def _run_suite(
    suite: Suite,
    ready: Mapping[str, Future[Path | None]],
    keeps: bool,
    running: set[subprocess.Popen[bytes]],
    queues: Path,
) -> tuple[int, float]:
    """Run a suite and print its output, at its end where it `keeps` it; its exit code and processor time."""
    extra = dict(suite.extra)
    if suite.queue:
        (queues / suite.queue).mkdir(exist_ok=True)
        extra["CCD_RIG_QUEUE"] = str(queues / suite.queue)
    for name in suite.needs:
        if name in ready and (made := ready[name].result()) is not None and name == ZIP:
            extra["CCD_RIG_ZIP"] = str(made)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as kept:
        if not keeps:
            print(f"\n=== {suite.name}", flush=True)
        start = time.monotonic()
        output = kept if keeps else None
        code, used = measured_run(suite.command, TEST_TIMEOUT, extra, ROOT, output, running)
        seconds = time.monotonic() - start
        kept.seek(0)
        words = f"\n=== {suite.name}\n{kept.read()}" if keeps else ""
        print(
            f"{words}=== {suite.name}: exit {code}, {seconds:.0f} s, {used:.0f} s of a processor", flush=True
        )
        return code, used


def lint(stubs: list[str], only_style: bool) -> int:
    """Check style and format; unless `only_style` names of modules too, and types against each named version
    of Blender's stubs; 0 when all is clean."""
    failed = []
    python = str(environments.prepare(environments.LINTS[stubs[0]]))
    for arguments in (["check", "."], ["format", "--check", "."]):
        print(f"=== ruff {' '.join(arguments)}", flush=True)
        if run([python, "-m", "ruff", *arguments], LINT_TIMEOUT):
            failed.append(f"ruff {arguments[0]}")
    if only_style:
        return verdict(failed, "style")
    tree = _typed_tree()
    with ThreadPoolExecutor(1) as pool:
        names = pool.submit(references.missing, ROOT)  # while mypy runs
        for version in stubs:
            print(f"=== mypy, fake-bpy-module {version}", flush=True)
            python = str(environments.prepare(environments.LINTS[version]))
            command = [python, "-m", "mypy", f"--config-file={ROOT / 'pyproject.toml'}", "-p", "extension"]
            cache = ROOT / ".cache/mypy" / version
            if not cache.is_dir() and (of_another := next(cache.parent.glob("*"), None)):
                shutil.copytree(of_another, cache)  # what does not import Blender need not be checked anew
            command.append(f"--cache-dir={cache}")
            if run(command, LINT_TIMEOUT, {"MYPYPATH": str(tree)}, cwd=tree):
                failed.append(f"mypy with Blender {version}")
    print("=== names of modules", flush=True)
    if lines := names.result():
        print("\n".join(lines), flush=True)
        failed.append("names of modules")
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
    python = str(environments.prepare(environments.BLENDERS[version], "bench"))
    known = sorted(p.stem for p in (ROOT / "benchmarks").glob("*.py") if not p.stem.startswith("_"))
    unknown = [n for n in names if n not in known]
    if unknown:
        raise environments.SetupError(
            f"no benchmark named {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    failed = []
    paths = os.pathsep.join(str(ROOT / each) for each in BENCH_PATHS)
    for name in names or known:
        print(f"\n=== benchmarks/{name}.py, Blender {version}", flush=True)
        command = [python, str(ROOT / "benchmarks" / f"{name}.py"), *arguments]
        if run(command, BENCH_TIMEOUT, {"PYTHONPATH": paths}):
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
