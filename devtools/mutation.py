"""Mutation testing by cosmic-ray: small changes to the code, one at a time, which a test should notice.

    python3 dev.py mutate --part bake --count 40     goes on where it was ended; a larger count adds
    python3 dev.py mutate --restart                  begins anew, with the last commit

`mutate` clones the last commit, and coverage.py takes down which test runs which line. `draw` runs beside
cosmic-ray, which puts each mutant into the clone and calls `judge`. That runs beside Blender: the tests of
the mirrored folder that run the changed statement, quick ones first, until one fails. A statement that none
runs on the oldest Blender is judged on the newest. What became of a mutant stays in a session of cosmic-ray,
for `cr-html` too. A survivor needs a test or a reason in `harmless.json`, for its file and function.

A mutant of the kernel is compiled, which takes less time than a few tests of its plain modules, and judged by
all tests of computation: coverage.py cannot see into a compiled module.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache/mutation"
TREE = FOLDER / "tree"
HARMLESS = Path(__file__).with_name("harmless.json")
COMPUTES_NOTHING = ("interrupts", "kernel_build")
"""Tests of the core, by file, beside `checks.OF_SOURCES`."""
BLENDER_PARTS = ("bake", "keys", "retarget", "farm", "cli")
PARTS = {  # {part: (its sources, what is not of it, its tests)}
    "core": ("ccd_rig/**/*.py", r"/(blender|kernel|__main__)\b", "tests/core"),
    "kernel": ("ccd_rig/kernel/*.py", r"/(__init__|loading|plain)\.py", "tests/core"),
    "live": ("ccd_rig/blender/live.py", "^$", "tests/blender/live"),
    **{name: (f"ccd_rig/blender/{name}/*.py", "^$", f"tests/blender/{name}") for name in BLENDER_PARTS},
}
MOST = 60.0  # [s] of the processor, as measured: slower tests judge no mutant
OPERATORS = re.compile(  # of each kind the nearest others, as any test of the line would notice the rest
    "core/(NumberReplacer|AddNot|ZeroIterationForLoop|Replace(True|False|And|Or|Break|Continue)With.*"
    "|ReplaceUnaryOperator_Delete.*|ReplaceBinaryOperator_(Add_Sub|Sub_Add|(Div|Mod|Pow)_Mul|Mul_Div|BitAnd_BitOr)"
    "|ReplaceComparisonOperator_(Lt_(LtE|GtE)|LtE_(Lt|Gt)|Gt_(GtE|LtE)|GtE_(Gt|Lt)|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is))$"
)
# Lines that no test reads.
NO_PROMISE = re.compile(r"^\s*(assert|def) |strict=|repr=|@dataclass|@lru_cache|TYPE_CHECKING")


def mutate(names: list[str], count: int, seed: int, restart: bool) -> int:
    """Judge `count` mutants of each part; 0 when each survivor has a reason."""
    from devtools import checks, environments

    if unknown := set(names) - set(PARTS):
        raise environments.SetupError(f"no part named {min(unknown)}; there are: {', '.join(PARTS)}")
    oldest, *_, newest = environments.BLENDERS.values()
    pythons = [str(environments.prepare(each, "farm", "coverage")) for each in (oldest, newest)]
    tool = str(environments.prepare(environments.MUTATE))
    if restart:
        shutil.rmtree(FOLDER, ignore_errors=True)
    if not TREE.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        for python in pythons:
            shutil.copyfile(checks.build_here(_version(python)), FOLDER / f"whole-{_version(python)}.zip")
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(TREE)], check=True)
    # A run that was killed may have left its mutant there.
    subprocess.run(["git", "checkout", "-q", "."], cwd=TREE, check=True)
    failed = 0
    for part in names:
        # A mutant may have the time and size of the one before it, by which compiled modules are known.
        extra = {"PYTHONDONTWRITEBYTECODE": "1"}
        if part == "kernel":
            extra["CCD_RIG_COMPILER"] = str(environments.prepare(environments.KERNEL))
        chosen = pythons if in_blender(part) else pythons[:1]
        for python in chosen:
            _measure(part, python, extra)
        command = [tool, __file__, part, str(count), str(seed), *chosen]
        failed += bool(checks.run(command, 10**6, extra, TREE))
    return 1 if failed else 0


def _version(python: str) -> str:
    """Return the version of the Blender that an interpreter runs, the name of its environment."""
    return Path(python).parents[1].name


def _measure(part: str, python: str, extra: dict[str, str]) -> None:
    """Record which test of a part runs which line on a Blender, unless that is recorded."""
    from devtools import checks, environments

    tests, version = PARTS[part][2], _version(python)
    log = FOLDER / f"tests-{part}-{version}.txt"
    if log.exists():
        return
    print(f"[mutate] which test runs which line of {part} on {version}: {tests}", flush=True)
    inside = "bl_ext.user_default.ccd_rig.ccd_rig.blender" if in_blender(part) else "ccd_rig"
    options = ["-p", "processor_time", "--durations=0", "--durations-min=0"]
    if part == "kernel":
        options += [f"--ignore={tests}/test_{name}.py" for name in (*checks.OF_SOURCES, *COMPUTES_NOTHING)]
    else:
        options += [f"--cov={inside}", "--cov-context=test", "--cov-report="]
    command = [*_pytest(python, part), tests, "-m", "not mass", *options]
    measured = {
        **extra,
        "CCD_RIG_ZIP": str(FOLDER / f"whole-{version}.zip"),
        "COVERAGE_FILE": str(FOLDER / f"{part}-{version}.coverage"),
        "PYTHONPATH": str(ROOT / "devtools/plugins"),
    }
    with open(FOLDER / f"measuring-{part}-{version}.txt", "w") as output:
        if checks.run(command, 7200, measured, TREE, output):
            raise environments.SetupError(f"tests must pass before they judge: see {output.name}")
    Path(output.name).rename(log)


def in_blender(part: str) -> bool:
    """Whether tests install the extension into Blender, where its modules have other names."""
    return PARTS[part][2].startswith("tests/blender")


def _pytest(python: str, part: str) -> list[str]:
    flags = ["-P"] if in_blender(part) else []
    return [python, *flags, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def draw(part: str, count: int, seed: str, pythons: list[str]) -> int:
    """Draw mutants, one of a line, have them judged, print them; the number of survivors without a reason."""
    from cosmic_ray.commands import init
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.work_db import use_db

    sources, without, _ = PARTS[part]
    files = [file for file in sorted(Path().glob(sources)) if not re.search(without, str(file))]
    reasons = {
        (each["file"], each["function"], each["was"], each["mutant"]): each["reason"]
        for each in json.loads(HARMLESS.read_text())
    }
    with use_db(FOLDER / f"{part}.sqlite") as session:
        if not session.num_work_items:
            init(files, session, {})
        lines: dict[tuple[Path, int], list] = {}
        for item in session.work_items:
            (spec,) = item.mutations
            place = spec.module_path, spec.start_pos[0]
            text = spec.module_path.read_text().splitlines()[place[1] - 1]
            if OPERATORS.match(spec.operator_name) and not NO_PROMISE.search(text):
                lines.setdefault(place, []).append((spec.operator_name, spec.occurrence, item))
        results, open_ones, noticed = dict(session.results), 0, 0
        drawn = random.Random(seed).sample(sorted(lines), len(lines))[:count]
        for number, place in enumerate(drawn, 1):
            _, _, item = random.Random(f"{seed} {place}").choice(
                sorted(lines[place], key=lambda each: each[:2])
            )
            if item.job_id not in results:
                command = shlex.join([pythons[0], __file__, part, *pythons])
                results[item.job_id] = mutate_and_test(item.mutations, command, timeout=3600)
                session.set_result(item.job_id, results[item.job_id])
            result = results[item.job_id]
            changed = tuple(row[1:].strip() for row in re.findall(r"^[-+](?![-+]{2} ).*", result.diff, re.M))
            function = function_of(place[0].read_text(), place[1])
            reason = reasons.get((str(place[0]), function, *changed), "OPEN")
            words = "noticed" if result.is_killed else f"survived: {result.output.strip()}: {reason}"
            print(f"[{number}] {place[0]}:{place[1]}: {' -> '.join(changed)}: {words}", flush=True)
            noticed += result.is_killed
            open_ones += not result.is_killed and reason == "OPEN"
    print(f"{part}: {noticed} of {len(drawn)} noticed at once; {open_ones} survivors are open", flush=True)
    return open_ones


def judge(part: str, pythons: list[str]) -> int:
    """Run the tests of the statement in which the clone differs from its commit; 0 if they pass.

    The first Blender judges whose tests run it.
    """
    import resource

    diff = subprocess.run(
        ["git", "diff", "-U0", "ccd_rig"], capture_output=True, text=True, check=True
    ).stdout
    file, line = re.findall(r"^\+\+\+ b/(.*)", diff, re.M)[0], re.findall(r"^@@ -(\d+)", diff, re.M)[0]
    environment = {**os.environ, "CCD_RIG_ZIP": str(FOLDER / "mutant.zip")}
    if part == "kernel":
        module = FOLDER / "module"
        shutil.rmtree(module, ignore_errors=True)
        command = [os.environ["CCD_RIG_COMPILER"], "devtools/kernel.py", "module", str(module)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            print("it cannot be compiled")
            return 1
        (built,) = module.rglob("*.so")
        environment["PYTHONPATH"] = str(built.parent)
    for python in pythons:
        seconds = _seconds_of_tests(part, _version(python))
        tests = set(seconds) if part == "kernel" else tests_of_line(part, _version(python), file, int(line))
        if tests:
            break
    total, kept = 0.0, []
    for test in sorted(tests, key=lambda test: (seconds.get(test, 0.0), test)):
        if total + seconds.get(test, 0.0) <= MOST:
            total += seconds.get(test, 0.0)
            kept.append(test)
    left = len(tests) - len(kept)
    print(f"{len(kept)} tests of {_version(python)} pass, {left} slower ones were not run", flush=True)
    if not kept:
        return 0
    package = FOLDER / f"whole-{_version(python)}.zip"
    with zipfile.ZipFile(package) as whole, zipfile.ZipFile(FOLDER / "mutant.zip", "w") as copy:
        for entry in whole.infolist():
            copy.writestr(entry, Path(file).read_text() if entry.filename == file else whole.read(entry))
    (FOLDER / "chosen.txt").write_text("\n".join(kept))
    most = int(30 + 8 * total)  # [s] of a processor: what others do on the machine ends no mutant
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    command = [*_pytest(python, part), "-x", "--tb=no", f"@{FOLDER / 'chosen.txt'}"]
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


def _seconds_of_tests(part: str, version: str) -> dict[str, float]:
    """Return the seconds of a processor that each test of a part took, its parts added."""
    seconds: dict[str, float] = {}
    log = (FOLDER / f"tests-{part}-{version}.txt").read_text()
    for taken, test in re.findall(r"^([\d.]+)s \w+ +(\S.*)$", log, re.M):
        seconds[test] = seconds.get(test, 0.0) + float(taken)
    return seconds


def tests_of_line(part: str, version: str, file: str, line: int) -> set[str]:
    """Tests that run the statement around a line of a file on a Blender."""
    import coverage

    data = coverage.CoverageData(str(FOLDER / f"{part}-{version}.coverage"))
    data.read()
    contexts = [data.contexts_by_lineno(name) for name in data.measured_files() if name.endswith(f"/{file}")]
    ran = contexts[0] if contexts else {}
    lines = statement(Path(file).read_text(), line) or ran
    return {each.partition("|")[0] for line in lines for each in ran.get(line, ()) if each}


def function_of(source: str, line: int) -> str:
    """Return the dotted name of the function or class around a line; empty for a module's own lines."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    return ".".join(node.name for node in nodes if node.lineno <= line <= (node.end_lineno or 0))


def statement(source: str, line: int) -> range:
    """Lines of the innermost statement around one, without its block.

    None for what runs on import, and in functions whose results are kept: only the first test runs them.
    """
    kinds = (ast.stmt, ast.ExceptHandler)
    inside = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    functions = [node for node in inside[:-1] if isinstance(node, ast.FunctionDef)]
    kept = (ast.unparse(each) for function in functions for each in function.decorator_list)
    if not functions or any(re.match(r"(functools\.)?(lru_)?cache\b", name) for name in kept):
        return range(0)
    inner = max(inside, key=lambda node: node.lineno)
    body = getattr(inner, "body", None)
    return range(inner.lineno, max(inner.lineno + 1, body[0].lineno) if body else (inner.end_lineno or 0) + 1)


if __name__ == "__main__":
    if sys.argv[2].isdecimal():
        ended = draw(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        ended = judge(sys.argv[1], sys.argv[2:])
    sys.exit(1 if ended else 0)
