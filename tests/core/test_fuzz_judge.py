"""The judge of `dev.py fuzz` works out limits by itself: it agrees with the product, and it bites."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from chains import random_rotation
from mathutils import Quaternion
from seeds import few_of

from ccd_rig.limits.shapes import (
    ORDERS,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    SwingTwist,
    clamp,
    violation,
)

sys.path.append(str(Path(__file__).resolve().parents[2]))

from devtools import checks
from devtools.fuzz import angles, campaign, core

NEAR = 5e-5  # radians: single precision, and Euler angles near gimbal lock


def cases(rng):
    """(limit, how far outside the judge finds a rotation)."""
    axis = [rng.gauss(0.0, 1.0) for _ in range(3)]
    lower = [rng.uniform(-3.5, 3.0) for _ in range(3)]
    upper = [bound + rng.uniform(0.0, 3.0) for bound in lower]
    order, radius = rng.choice(sorted(ORDERS)), rng.uniform(0.0, math.pi)
    sides = [sign * rng.uniform(0.05, 3.0) for sign in (-1.0, 1.0, -1.0, 1.0)]
    yield Hinge(axis, lower[0], upper[0]), lambda q: angles.hinge(q, axis, lower[0], upper[0])
    yield SwingTwist(Cone(radius)), lambda q: angles.cone(q, radius)
    yield SwingTwist(Ellipse(*sides)), lambda q: angles.ellipse(q, sides)
    yield SwingTwist(None, (lower[0], upper[0])), lambda q: angles.twist_range(q, lower[0], upper[0])
    yield EulerBox(order, lower, upper), lambda q: angles.euler(q, order, lower, upper)


@pytest.mark.parametrize("seed", few_of(range(200), 50))
def test_it_agrees_with_the_product(seed):
    rng = random.Random(seed)
    for limit, outside in cases(rng):
        rotation = random_rotation(rng)
        assert outside(clamp(limit, rotation)[:]) <= NEAR
        if (
            violation(limit, rotation) > 1e-3
            and math.pi - angles.swing_and_twist(rotation, (0, 1, 0))[0] > 0.1
        ):
            assert outside(rotation[:]) > NEAR or isinstance(limit, EulerBox)


def test_it_finds_what_is_outside():
    half_turn = (0.0, 0.6, 0.0, 0.8)
    assert angles.ellipse(half_turn, (-0.52, 0.7, -0.35, 0.44)) == pytest.approx(math.pi - 0.7)
    assert angles.cone(Quaternion((0, 0, 1), 1.0)[:], 0.4) == pytest.approx(0.6, abs=1e-6)
    assert angles.hinge(Quaternion((1, 0, 0), 1.0)[:], (1, 0, 0), -0.2, 0.3) == pytest.approx(0.7, abs=1e-6)
    assert angles.hinge(Quaternion((0, 0, 1), 0.2)[:], (1, 0, 0), -1, 1) == pytest.approx(0.2, abs=1e-6)
    assert angles.twist_range(Quaternion((0, 1, 0), -1.0)[:], 0.0, 2.0) == pytest.approx(1.0, abs=1e-6)
    box = ("XYZ", (-0.1,) * 3, (0.1,) * 3)
    assert angles.euler(Quaternion((0, 1, 0), 0.5)[:], *box) == pytest.approx(0.4, abs=1e-6)


@pytest.mark.parametrize(
    "seed",
    [
        722418,  # restarts without end
        739115,  # a bend of a bone's length squared over next to none
        743626,  # weights of 1e9 and 1e-4 on joints without length
    ],
)
def test_what_was_found_once_stays_mended(seed):
    with warnings.catch_warnings():
        core.prepare()
        assert core.run(seed).faults == []


@pytest.fixture
def worker():
    """Starts Python in a session, as a case's process; it ends with the test."""
    started = []

    def start(words):
        command = [sys.executable, "-c", words]
        started.append(
            subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        assert started[-1].stdout.readline() == b"ready\n"
        return started[-1]

    yield start
    for process in started:
        checks.end(process)
        process.communicate()


WORKS = "import time\nwhile time.process_time() < 0.3: pass\n"


@pytest.mark.parametrize(
    "started", [WORKS, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''{WORKS}'''])\n"]
)
def test_what_a_case_has_used_with_all_that_it_starts(worker, started):
    process = worker(started + "print('ready', flush=True)\ninput()")
    assert 0.25 <= campaign.processor_seconds(process.pid) < 5.0


@pytest.mark.parametrize(
    ("by_clock", "of_processors", "looks", "told"),
    [
        (10.0, 10.0, 19, "no end within 180 s of a processor"),
        (10.0, 0.01, 19, "no work for 180 s"),
        (170.0, 2.0, 80, ""),  # a machine that leaves a case 1 % of a processor
        (10.0, 20.0, 9, ""),
    ],
)
def test_a_case_that_hangs_is_told_from_a_busy_machine(monkeypatch, by_clock, of_processors, looks, told):
    now = [0.0, 0.0]
    monkeypatch.setattr(campaign.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(campaign, "processor_seconds", lambda _: now[1])
    pulse = campaign.Pulse(0)
    for _ in range(2):  # the second case has all its time
        said = ""
        for look in range(looks):
            assert not said, look
            now[:] = now[0] + by_clock, now[1] + of_processors
            said = pulse.hangs()
        assert said == told
        pulse.restart()
