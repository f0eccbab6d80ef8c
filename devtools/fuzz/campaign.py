"""Run the families of a campaign in separate processes, survive their crashes, and print the outcomes.

    python3 dev.py fuzz                               a minute of each family
    python3 dev.py fuzz core rigs --seconds 3600      an hour each; goes on where the last one ended
    python3 dev.py fuzz rigs --seed 1234              that set-up alone, with what is wrong with it
    python3 dev.py fuzz kernel                        a minute of each variant of the compiled module

A seed is a case, the same on every machine. Outcomes are stored in .cache/fuzz; `--first 5000` deletes
them and begins with that case. At the end of each part, seeds are repeated in another process, which has to
give equal bits.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from devtools import checks, compiled, environments, kernel
from devtools.environments import ROOT

KERNEL = "kernel"
FAMILIES = {
    "core": "core.run",
    "rigs": "rigs.run",
    "influences": "rigs.run_influences",
    "bases": "rigs.run_bases",
    "live": "live.run",
    "outputs": "command_lines.run_outputs",
    "files": "files.run",
    "signals": "command_lines.run_signals",
    KERNEL: "kernel.run",
}
"""{family: function of a module beside this one that tries a seed}"""
COMPILERS = ("gcc", "libc6-dev")
"""Debian's packages for the sanitized variant."""
SLOWER = {"bounds": 1.0, "sanitized": 5.0}
"""{variant of the kernel: factor of the time limit of a case}"""
CASE = 10.0  # [s] of the processor that a case of the kernel may take
REPORT = re.compile("runtime error: .*|AddressSanitizer: .*")
"""First line of a sanitizer's report."""
STUCK = 180.0  # [s] of processors in a case, or by the clock without work; its process is ended: a fault
WORK = 1.0  # [s] of processors; less is no work, a busy machine leaves more in `STUCK`
AGAIN = 20  # one of so many seeds is tried in a second process
SHOWN = 12  # faults that are printed
FOLDER = ROOT / ".cache/fuzz"


def processor_seconds(session: int) -> float:
    """Processor time of a session: of its processes, and of those that they waited for.

    Seconds of the clock where the system has no /proc.
    """
    if not Path("/proc/self/stat").exists():
        return time.monotonic()
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(words[3]) == session:
            ticks += sum(map(int, words[11:15]))
    return float(ticks / os.sysconf("SC_CLK_TCK"))


class Pulse:
    """Processor time that a session uses, by which a case that hangs is told from a busy machine."""

    def __init__(self, session: int) -> None:
        self.session, self.looked = session, time.monotonic()
        self.restart()

    def restart(self) -> None:
        """A case begins or ends."""
        self.used = self.worked = processor_seconds(self.session)
        self.since = time.monotonic()

    def hangs(self) -> str:
        """Why the process is to be ended; or nothing."""
        now = time.monotonic()
        if now < self.looked + WORK:
            return ""
        self.looked, used = now, processor_seconds(self.session)
        if used > self.worked + WORK:
            self.worked, self.since = used, now
        if used > self.used + STUCK:
            return f"no end within {STUCK:.0f} s of a processor"
        return f"no work for {STUCK:.0f} s" if now > self.since + STUCK else ""


class Part:
    """Part of a campaign with its outcomes."""

    def __init__(
        self,
        name: str,
        version: str,
        first: int | None,
        module: str = "",
        settings: dict[str, str] | None = None,
    ) -> None:
        """Go on where the part was ended, or with `first` begin anew from that case."""
        self.name, self.version = name, version
        self.module, self.settings = module or name, settings or {}
        self.file = FOLDER / f"{name}-{version}.json"
        self.state: dict[str, Any] = {"next": first or 0, "seconds": 0.0, "kinds": {}, "faults": {}}
        if self.file.exists() and first is None:
            self.state = json.loads(self.file.read_text(encoding="utf-8"))
        self.digests: dict[int, str] = {}
        FOLDER.mkdir(parents=True, exist_ok=True)

    def run(self, seconds: float) -> None:
        """Try seeds for some time; then some of them once more."""
        until = time.monotonic() + 0.9 * seconds
        while time.monotonic() < until:
            self._one_process(until - time.monotonic(), str(self.state["next"]))
        chosen = [seed for seed in self.digests if seed % AGAIN == 0 and self.digests[seed]]
        before, self.digests = self.digests, {}
        if chosen:
            seeds = FOLDER / f"{self.name}-{self.version}-again.txt"
            seeds.write_text("\n".join(map(str, chosen)), encoding="utf-8")
            self._one_process(max(0.1 * seconds, 20.0), f"@{seeds}", counts=False)
            for seed, digest in self.digests.items():
                if digest != before[seed]:
                    self._fault(seed, "another process gives other bits")
            seeds.unlink()
        self._save()

    def one(self, seed: int) -> list[str]:
        """Return the faults of a single seed."""
        self.state["faults"].pop(str(seed), None)
        seeds = FOLDER / f"{self.name}-{self.version}-one.txt"
        seeds.write_text(str(seed), encoding="utf-8")
        self._one_process(600.0, f"@{seeds}", counts=False)
        seeds.unlink()
        faults: list[str] = self.state["faults"].get(str(seed), [])
        return faults

    def _one_process(self, seconds: float, which: str, counts: bool = True) -> None:
        """Let a process try seeds; one that crashes or hangs is noted, and the seeds go on behind."""
        journal = FOLDER / f"{self.name}-{self.version}-{os.getpid()}.jsonl"
        journal.write_text("", encoding="utf-8")
        python = str(environments.prepare(environments.BLENDERS[self.version]))
        command = [
            python,
            "-m",
            "devtools.fuzz.worker",
            FAMILIES[self.module],
            str(journal),
            str(seconds),
            which,
        ]
        user = tempfile.mkdtemp(prefix="ccd_rig_fuzz_")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests/blender"))),
            "BLENDER_USER_RESOURCES": user,
            "TMPDIR": user,
            **self.settings,
        }
        with open(self.log, "a", encoding="utf-8") as log:
            before = log.tell()
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            ended = self._follow(process, journal, counts)
        shutil.rmtree(user, ignore_errors=True)
        if ended:
            self._fault(ended[0], ended[1] + self._report(before))
            if counts:
                self.state["next"] = ended[0] + 1
        journal.unlink()
        self._save()

    def _follow(
        self, process: subprocess.Popen[bytes], journal: Path, counts: bool
    ) -> tuple[int, str] | None:
        """Read the journal as it grows; the seed at which the process crashed or hung, and which of them."""
        begun, place, pulse = -1, 0, Pulse(process.pid)
        while True:
            alive = process.poll() is None
            text = journal.read_text(encoding="utf-8")
            lines = text[place : text.rfind("\n") + 1].splitlines()
            place = text.rfind("\n") + 1
            if lines:
                pulse.restart()
            for line in map(json.loads, lines):
                begun = line.get("begun", -1)
                if "seed" in line:
                    self._note(line, counts)
            if not alive:
                code = process.wait()
                if begun >= 0:
                    if code == -getattr(signal, "SIGVTALRM", 0):
                        return begun, "took too long and was ended"
                    return begun, f"the process ended with code {code}"
                if code:
                    raise environments.SetupError(f"fuzz {self.name}: see {self.log}")
                return None
            if words := pulse.hangs():
                checks.end(process)
                return max(begun, 0), words
            time.sleep(0.2)

    @property
    def log(self) -> Path:
        """Log of its processes."""
        return FOLDER / f"{self.name}-{self.version}.log"

    def _report(self, start: int) -> str:
        """Return a sanitizer's report in the log after `start`."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            log.seek(start)
            report = REPORT.search(log.read())
        return f": {report[0][:200]}" if report else ""

    def _note(self, line: dict[str, Any], counts: bool) -> None:
        seed = line["seed"]
        self.digests[seed] = line["digest"]
        for words in line["faults"]:
            self._fault(seed, words)
        if counts:
            kinds = self.state["kinds"]
            kinds[line["kind"]] = kinds.get(line["kind"], 0) + 1
            self.state["next"] = seed + 1
            self.state["seconds"] += line["seconds"]

    def _fault(self, seed: int, words: str) -> None:
        known = self.state["faults"].setdefault(str(seed), [])
        if words not in known:
            known.append(words)

    def _save(self) -> None:
        self.file.write_text(json.dumps(self.state, indent=1), encoding="utf-8")

    def table(self) -> list[str]:
        """Lines of the table, one for each kind of what was made of set-ups."""
        kinds = collections.Counter(self.state["kinds"])
        lines = [f"{self.name:18s}{kind:44s}{count:9d}" for kind, count in kinds.most_common()]
        tried, bad = sum(kinds.values()), len(self.state["faults"])
        lines.append(f"{self.name:18s}{'tried':44s}{tried:9d}   survived {tried - bad}, faults {bad}")
        return lines


def kernel_parts(version: str, first: int | None) -> list[Part]:
    """The kernel's part with each variant that this machine can compile; a line names one that it cannot."""
    made = []
    for variant in kernel.VARIANTS:
        settings = {"CCD_RIG_FUZZED_SECONDS": str(CASE * SLOWER[variant])}
        if variant == "sanitized":
            try:
                libraries = _sanitizer_libraries()
            except kernel.KernelError as error:
                print(f"[fuzz] {error}", flush=True)
                continue
            settings.update(
                LD_PRELOAD=" ".join(libraries), ASAN_OPTIONS="detect_leaks=0", PYTHONMALLOC="malloc"
            )
        settings["CCD_RIG_FUZZED_KERNEL"] = str(compiled.variant(variant))
        made.append(Part(f"{KERNEL}-{variant}", version, first, KERNEL, settings))
    return made


def _sanitizer_libraries() -> list[str]:
    try:
        return kernel.sanitizer_libraries()
    except kernel.KernelError:
        if not sys.platform.startswith("linux") or not environments.install_debian_packages([*COMPILERS]):
            raise
        return kernel.sanitizer_libraries()


def fuzz(parts: list[str], version: str, seconds: float, seed: int | None, first: int | None) -> int:
    """Run a campaign; 0 when nothing was wrong.

    Args:
        parts: families; none: all.
        version: of Blender.
        seconds: for each family, and each variant of the kernel.
        seed: the only case, of a single family.
        first: forget outcomes, and begin with this case; None: go on.
    """
    unknown = [name for name in parts if name not in FAMILIES]
    if unknown:
        raise environments.SetupError(f"no family named {unknown[0]}; there are: {', '.join(FAMILIES)}")
    names = parts or list(FAMILIES)
    if names != [KERNEL] and "CCD_RIG_ZIP" not in os.environ:
        # Once, not in each process; with the manual, which may not be there yet.
        os.environ["CCD_RIG_ZIP"] = str(checks.build_here(version))
    if seed is not None and len(names) != 1:
        raise environments.SetupError("--seed is for one family: name it")
    campaign = []
    for name in names:
        campaign += kernel_parts(version, first) if name == KERNEL else [Part(name, version, first)]
    if seed is not None:
        faults = [f"{part.name}: {words}" for part in campaign for words in part.one(seed)]
        print("\n".join(faults) or "nothing is wrong")
        return 1 if faults else 0
    for part in campaign:
        judged = os.environ.get("CCD_RIG_ZIP", "the sources")
        print(f"[fuzz] {part.name}, Blender {version}, from seed {part.state['next']}: {judged}", flush=True)
        part.run(seconds)
    print()
    for part in campaign:
        for number, words in list(part.state["faults"].items())[:SHOWN]:
            print(f"{part.module} --seed {number}: {'; '.join(words)[:600]} [{part.name}]")
    print()
    print("\n".join(line for part in campaign for line in part.table()), flush=True)
    return 1 if any(part.state["faults"] for part in campaign) else 0


if __name__ == "__main__":
    sys.exit("use dev.py fuzz")
