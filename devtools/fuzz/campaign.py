"""Runs the parts of a campaign in processes of their own, survives their crashes, and tells what came out.

    python3 dev.py fuzz                               a minute of each part
    python3 dev.py fuzz core rigs --seconds 3600      an hour each; goes on where the last one ended
    python3 dev.py fuzz rigs --seed 1234              that set-up alone, with what is wrong with it

A seed is a set-up, the same on every machine. What was tried is kept in .cache/fuzz; `--restart` forgets it.
At the end of each part some of its seeds are tried once more in another process: it has to give equal bits.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from devtools import checks, environments
from devtools.environments import ROOT

PARTS = ("core", "rigs", "outside")
STUCK = 180.0  # [s] without a line in the journal: the process is ended, which is a fault
AGAIN = 20  # one of so many seeds is tried in a second process
SHOWN = 12  # faults that are printed
FOLDER = ROOT / ".cache/fuzz"


class Part:
    """One part of a campaign, and what has come out of it so far."""

    def __init__(self, name: str, version: str, restart: bool) -> None:
        self.name, self.version = name, version
        self.file = FOLDER / f"{name}-{version}.json"
        self.state: dict[str, Any] = {"next": 0, "seconds": 0.0, "kinds": {}, "faults": {}}
        if self.file.exists() and not restart:
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
        """What is wrong with one set-up."""
        self.state["faults"].pop(str(seed), None)
        seeds = FOLDER / f"{self.name}-{self.version}-one.txt"
        seeds.write_text(str(seed), encoding="utf-8")
        self._one_process(600.0, f"@{seeds}", counts=False)
        seeds.unlink()
        found: list[str] = self.state["faults"].get(str(seed), [])
        return found

    def _one_process(self, seconds: float, which: str, counts: bool = True) -> None:
        """Let a process try seeds; one that crashes or hangs is noted, and the seeds go on behind."""
        journal = FOLDER / f"{self.name}-{self.version}-{os.getpid()}.jsonl"
        journal.write_text("", encoding="utf-8")
        python = str(environments.prepare(environments.BLENDERS[self.version]))
        command = [python, "-m", "devtools.fuzz.worker", self.name, str(journal), str(seconds), which]
        user = tempfile.mkdtemp(prefix="ccd_rig_fuzz_")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests/blender"))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BLENDER_USER_RESOURCES": user,
        }
        with open(FOLDER / f"{self.name}-{self.version}.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            ended = self._follow(process, journal, counts)
        shutil.rmtree(user, ignore_errors=True)
        if ended:
            self._fault(ended[0], ended[1])
            if counts:
                self.state["next"] = ended[0] + 1
        journal.unlink()
        self._save()

    def _follow(
        self, process: subprocess.Popen[bytes], journal: Path, counts: bool
    ) -> tuple[int, str] | None:
        """Read the journal as it grows; the seed at which the process crashed or hung, and which of them."""
        begun, place, latest = -1, 0, time.monotonic()
        while True:
            alive = process.poll() is None
            text = journal.read_text(encoding="utf-8")
            lines = text[place : text.rfind("\n") + 1].splitlines()
            place = text.rfind("\n") + 1
            for line in map(json.loads, lines):
                latest = time.monotonic()
                begun = line.get("begun", -1)
                if "seed" in line:
                    self._note(line, counts)
            if not alive:
                code = process.wait()
                if begun >= 0:
                    return begun, f"the process ended with code {code}"
                if code:
                    raise environments.SetupError(f"fuzz {self.name}: see {FOLDER}/{self.name}-*.log")
                return None
            if time.monotonic() - latest > STUCK:
                process.kill()
                process.wait()
                return max(begun, 0), f"no end within {STUCK:.0f} s"
            time.sleep(0.2)

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
        lines = [f"{self.name:10s}{kind:44s}{count:9d}" for kind, count in kinds.most_common()]
        tried, bad = sum(kinds.values()), len(self.state["faults"])
        lines.append(f"{self.name:10s}{'tried':44s}{tried:9d}   survived {tried - bad}, faults {bad}")
        return lines


def fuzz(parts: list[str], version: str, seconds: float, seed: int | None, restart: bool) -> int:
    """Run a campaign; 0 when nothing was wrong."""
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        raise environments.SetupError(f"no part named {unknown[0]}; there are: {', '.join(PARTS)}")
    if (
        "CCD_RIG_ZIP" not in os.environ
    ):  # once, not in each process; with the manual, which may not be there yet
        os.environ["CCD_RIG_ZIP"] = str(checks.build(version, ROOT / "dist"))
    campaign = [Part(name, version, restart) for name in parts or PARTS]
    if seed is not None:
        if len(campaign) != 1:
            raise environments.SetupError("--seed is for one part: name it")
        faults = campaign[0].one(seed)
        print("\n".join(faults) or "nothing is wrong")
        return 1 if faults else 0
    for part in campaign:
        print(f"[fuzz] {part.name}, Blender {version}, from seed {part.state['next']}", flush=True)
        part.run(seconds)
    print()
    for part in campaign:
        for number, words in list(part.state["faults"].items())[:SHOWN]:
            print(f"{part.name} --seed {number}: {'; '.join(words)[:600]}")
    print()
    print("\n".join(line for part in campaign for line in part.table()), flush=True)
    return 1 if any(part.state["faults"] for part in campaign) else 0


if __name__ == "__main__":
    sys.exit("use dev.py fuzz")
