"""Contact phases of motion whose contacts are known."""

from __future__ import annotations

import numpy as np
import pytest

from ccd_rig.errors import InvalidInput
from ccd_rig.motion.contacts import Phase, contact_phases, ground_velocity, local_ground
from ccd_rig.motion.settings import ContactThresholds

LEG = 0.9  # [m]
STILL = np.zeros(3)
FPS = 30.0


def walk(cycles=4, period=30, stance=18, stride=1.2, offset=0, in_place=False):
    """A foot that stands for `stance` of `period` frames and swings on by `stride` m in an arc of 0.1 m."""
    frames = np.arange(cycles * period)
    phase = (frames + offset) % period
    count = (frames + offset) // period
    part = np.clip((phase - stance + 1) / (period - stance), 0.0, 1.0)
    y = -stride * (count + part * part * (3.0 - 2.0 * part))
    if in_place:
        y += stride * frames / period
    z = 0.05 + 0.1 * np.sin(np.pi * part) ** 2
    return np.stack((np.full(len(frames), 0.1), y, z), axis=1), frames / FPS, phase < stance


def flags(phases, count):
    result = np.zeros(count, bool)
    for first, last in phases:
        result[first : last + 1] = True
    return result


@pytest.mark.parametrize("scale", [1.0, 0.01, 100.0])
def test_phases_of_a_walk_at_any_scale(scale):
    points, times, stands = walk()
    result = flags(contact_phases(scale * points, times, scale * LEG, STILL), len(times))
    # The frames about touch-down and lift-off are slow: at most two more on either side.
    assert result[stands].mean() > 0.97
    assert (result & ~stands).sum() <= 4 * 4


def test_a_walk_in_place_is_found_beside_the_ground_that_moves():
    left, times, _ = walk(in_place=True)
    right = walk(offset=15, in_place=True)[0]
    velocity = ground_velocity([left, right], times, LEG)
    assert velocity == pytest.approx([0.0, 1.2 * FPS / 30, 0.0], abs=1e-6)
    there = contact_phases(walk()[0], times, LEG, STILL)
    assert contact_phases(left, times, LEG, velocity) == there
    assert contact_phases(left, times, LEG, STILL) != there


@pytest.mark.parametrize("in_place", [False, True])
def test_contacts_of_a_gallop_are_shorter_than_those_of_a_walk(in_place):
    """Each foot is down for 0.08 s of 0.43, at 9 leg lengths a second; as slow, no walk has such contacts."""
    fps, period = 60.0, 26
    stride = 9.0 * LEG * period / fps
    feet = [walk(period=period, stance=5, stride=stride, offset=4 * k, in_place=in_place) for k in range(4)]
    times = np.arange(4 * period) / fps
    velocity = ground_velocity([points for points, _, _ in feet], times, LEG)
    assert velocity == pytest.approx([0.0, 9.0 * LEG if in_place else 0.0, 0.0], abs=1e-6)
    for k, (points, _, stands) in enumerate(feet):
        phases = contact_phases(points, times, LEG, velocity)
        result = flags(phases, len(times))
        assert len(phases) >= 4 and result[stands].mean() > 0.9, k
        assert (result & ~stands).sum() <= 4 * len(phases)
    slow = walk(period=period, stance=5, stride=stride / 9.0)[0]
    lasting = ContactThresholds(speed=0.2, release=1.0)
    assert all(p.last - p.first + 1 >= 6 for p in contact_phases(slow, times, LEG, STILL, lasting))


def test_quick_swings_of_a_gallop_are_no_gaps_of_a_contact():
    """Of a small animal: in the air for 0.075 s between two contacts, at 9 leg lengths a second."""
    fps, period = 120.0, 14
    points, _, stands = walk(period=period, stance=5, stride=9.0 * LEG * period / fps)
    phases = contact_phases(points, np.arange(len(points)) / fps, LEG, STILL)
    result = flags(phases, len(points))
    assert len(phases) == 4 and result[stands].mean() > 0.75 and not result[7::period].any()


def uneven(cycles=4, period=18, stance=11, stride=1.6, offset=0):
    """A foot in place as games have it: on the ground it goes back at 0.2 to 1.8 of its mean speed."""
    frames = np.arange(cycles * period)
    phase = (frames + offset) % period
    part = phase / stance
    back = stride * (0.2 * part + 0.8 * part * part)
    ahead = np.clip((phase - stance) / (period - stance), 0.0, 1.0)
    y = np.where(phase < stance, back, stride * (1.0 - ahead * ahead * (3.0 - 2.0 * ahead)))
    z = 0.05 + 0.2 * np.sin(np.pi * ahead) ** 2
    return np.stack((np.full(len(frames), 0.1), y, z), axis=1), frames / FPS, phase < stance


def test_feet_that_go_back_unevenly_are_on_ground_that_moves():
    """No half of their frames shares a speed, but all that are low go back."""
    feet = [uneven(offset=offset) for offset in (0, 9)]
    times = feet[0][1]
    velocity = ground_velocity([points for points, _, _ in feet], times, LEG)
    mean = 1.6 / 11 * FPS
    assert abs(velocity[0]) < 1e-9
    assert 0.2 * mean < velocity[1] < 1.8 * mean
    for points, _, stands in feet:
        result = flags(contact_phases(points, times, LEG, velocity), len(times))
        assert result[stands].mean() > 0.5
        assert not result[points[:, 2] > 0.15].any()


@pytest.mark.parametrize("drift", [0.0, 0.6])
def test_the_ground_stands_still_under_feet_that_slide_to_and_fro(drift):
    """A body that sways, its hips held in place: what the feet go ahead they go back, or half of it."""
    times = np.arange(120) / FPS
    way = 0.5 * np.sin(2.0 * np.pi * times) + drift * times
    feet = [np.stack((np.full(120, side), way, np.full(120, 0.05)), axis=1) for side in (-0.1, 0.1)]
    assert ground_velocity(feet, times, LEG) == pytest.approx(STILL, abs=1e-12)


def test_the_ground_stands_still_under_a_walk_through_the_world():
    left, times, _ = walk()
    assert ground_velocity([left, walk(offset=15)[0]], times, LEG) == pytest.approx(STILL, abs=1e-9)


def test_hysteresis_keeps_noise_about_a_threshold_from_making_contacts_flicker():
    times = np.arange(120) / FPS
    speed = np.where(times < 2.0, 0.36 * LEG * (1.0 + 0.2 * np.sin(40.0 * times)), 1.0)
    points = np.stack((np.cumsum(speed) / FPS, 0.0 * times, 0.0 * times), axis=1)
    at_once = ContactThresholds(release=1.0, shortest=0.0)
    assert len(contact_phases(points, times, LEG, STILL, at_once)) > 3
    kept = ContactThresholds(release=1.5, shortest=0.0)
    assert len(contact_phases(points, times, LEG, STILL, kept)) == 1


def test_a_foot_that_hovers_is_not_down():
    points, times, _ = walk()
    points[:60] += (0.0, 0.0, 0.3)
    assert contact_phases(points, times, LEG, STILL)[0].first >= 59


def climb(rise, stair=0.18, **options):
    """The two feet of a walk up (or down) stairs, one stair per step, or on a slope that is as steep.

    Feet swing 0.08 m above the higher stair, and come down on it.
    """
    feet = []
    for side, offset in enumerate((0, 15)):
        points, times, stands = walk(offset=offset, **options)
        count = (np.arange(len(times)) + offset) // 30
        part = (points[:, 2] - 0.05) / 0.1  # 0 on the ground, 1 in the middle of the swing
        swing = np.clip((np.arange(len(times)) + offset) % 30 - 18 + 1, 0, 12) / 12
        below, above = (2 * count - side) * stair * rise, (2 * count - side + 2) * stair * rise
        # Up: the rise is done by the first half of the swing; down: the sink by the second half.
        done = np.clip(2.0 * swing, 0.0, 1.0) if rise > 0 else np.clip(2.0 * swing - 1.0, 0.0, 1.0)
        points[:, 2] = 0.05 + below + (above - below) * done + 0.08 * part
        feet.append((points, stands))
    return feet, times


@pytest.mark.parametrize("rise", [1.0, -1.0, 0.3, -0.3])
def test_stairs_are_found_as_flats_are(rise):
    feet, times = climb(rise)
    flat, _ = climb(0.0)
    for (points, stands), (other, _), (level, _) in zip(feet, feet[::-1], flat, strict=True):
        result = flags(contact_phases(points, times, LEG, STILL, beside=other), len(times))
        wanted = flags(contact_phases(level, times, LEG, STILL), len(times))
        assert result[stands].mean() > 0.9
        assert (result != wanted).mean() < 0.06
        if abs(rise) == 1.0:  # without the foot beside it, only the lowest stair is found
            alone = flags(contact_phases(points, times, LEG, STILL), len(times))
            assert alone[stands].mean() < 0.6


@pytest.mark.parametrize("rise", [1.0, -1.0, 0.3, -0.3])
def test_stairs_that_are_known_need_no_other_foot(rise):
    """A tread is below the foot in all of its stance, the next one from the middle of its swing on."""
    feet, times = climb(rise)
    flat, _ = climb(0.0)
    level = np.full(len(times), 0.01)
    for side, ((points, stands), (other, _)) in enumerate(zip(feet, flat, strict=True)):
        middle = (np.arange(len(times)) + (0, 15)[side]) % 30 >= 24
        places = points[:, 2].copy()
        ground = np.empty(len(times))
        for f in range(len(times)):
            at = f
            while not stands[at] and 0 < at < len(times) - 1:
                at += 1 if middle[f] else -1
            ground[f] = places[at] - 0.05
        result = contact_phases(points, times, LEG, STILL, ground=ground)
        wanted = contact_phases(other, times, LEG, STILL, ground=level)
        assert flags(result, len(times))[stands].mean() > 0.9
        assert (flags(result, len(times)) != flags(wanted, len(times))).mean() < 0.06


def test_level_ground_that_is_known_changes_nothing():
    left, times, _ = walk(in_place=True)
    right = walk(offset=15, in_place=True)[0]
    level = np.full(len(times), -0.4)
    velocity = ground_velocity([left, right], times, LEG)
    assert (ground_velocity([left, right], times, LEG, grounds=[level, level]) == velocity).all()
    known = contact_phases(left, times, LEG, velocity, ground=level)
    assert known == contact_phases(left, times, LEG, velocity)


def test_a_foot_that_stands_on_a_known_box_is_down_and_one_beside_all_ground_is_not():
    """One foot stays on a box while the other one stands below; then it hangs over an edge, as still."""
    times = np.arange(150) / FPS
    heights = np.interp(times, [1.0, 1.3, 1.5, 3.5, 3.7, 4.0], [0.0, 0.5, 0.35, 0.35, 0.5, 0.0])
    points = np.stack((0.0 * times, 0.0 * times, 0.05 + heights), axis=1)
    standing = np.tile((0.2, 0.0, 0.05), (150, 1))
    ground = np.where((times > 1.25) & (times < 3.75), 0.35, 0.0)
    result = flags(contact_phases(points, times, LEG, STILL, beside=standing, ground=ground), 150)
    assert result[(times > 1.6) & (times < 3.4)].all() and result[times < 1.0].all()
    ground[(times > 1.25) & (times < 3.75)] = np.nan
    result = flags(contact_phases(points, times, LEG, STILL, beside=standing, ground=ground), 150)
    assert not result[(times > 1.6) & (times < 3.4)].any() and result[times < 1.0].all()
    assert contact_phases(points, times, LEG, STILL, ground=np.full(150, np.nan)) == []


def test_flat_ground_is_as_it_is_without_the_other_foot():
    left, times, _ = walk()
    right, _, _ = walk(offset=15)
    rng = np.random.default_rng(1)
    left[:, 2] += rng.normal(0.0, 0.002, len(times))
    assert contact_phases(left, times, LEG, STILL, beside=right) == contact_phases(left, times, LEG, STILL)


def test_a_foot_that_is_lifted_and_held_is_not_down():
    """For two seconds, after it went higher still: as on stairs, but for the other foot, which stays low."""
    times = np.arange(150) / FPS
    heights = np.interp(times, [1.0, 1.3, 1.5, 3.5, 3.7, 4.0], [0.0, 0.5, 0.35, 0.35, 0.5, 0.0])
    points = np.stack((0.0 * times, 0.0 * times, 0.05 + heights), axis=1)
    standing = np.tile((0.2, 0.0, 0.05), (150, 1))
    phases = contact_phases(points, times, LEG, STILL, beside=standing)
    result = flags(phases, len(times))
    assert result[times < 1.0].all() and result[times > 4.1].all()
    assert not result[(times > 1.2) & (times < 3.8)].any()
    beside = standing + np.array((0.0, 0.0, 0.35))  # the other foot stands as high: a step up
    assert flags(contact_phases(points, times, LEG, STILL, beside=beside), 150)[
        (times > 1.6) & (times < 3.4)
    ].all()


def test_a_jump_has_no_contact_at_its_top():
    times = np.arange(90) / FPS
    heights = np.maximum(0.0, 3.5 * (times - 1.0) - 4.905 * (times - 1.0) ** 2)
    points = np.stack((0.0 * times, 0.0 * times, 0.05 + heights), axis=1)
    phases = contact_phases(points, times, LEG, STILL, beside=points + np.array((0.2, 0.0, 0.0)))
    assert [(p.first <= 30, p.last >= 50) for p in phases] == [(True, False), (False, True)]


def test_short_gaps_are_closed_and_short_contacts_left_out():
    times = np.arange(90) / FPS
    points = np.zeros((90, 3))
    points[10, 2] = 1.0  # one frame of noise while it stands
    points[40:, 2] = 1.0
    points[60:62, 2] = 0.0  # two frames low in the air
    assert contact_phases(points, times, LEG, STILL, ContactThresholds(shortest=0.15)) == [Phase(0, 38)]


def test_a_foot_that_lifts_at_an_end_of_the_range_is_up_there():
    """For all that is known it stays up; so short a gap between two contacts is closed."""
    points = np.tile((0.1, 0.0, 0.05), (100, 1))
    points[[0, 50, -1], 2] = 0.35
    thresholds = ContactThresholds(shortest=0.11)
    assert contact_phases(points, np.arange(100) / FPS, LEG, STILL, thresholds) == [Phase(2, 97)]


@pytest.mark.parametrize(("speed", "phases"), [(4.0, [Phase(0, 59)]), (1.0, [])])
def test_feet_slide_by_a_quarter_of_the_speed_of_fast_ground(speed, phases):
    """By 0.8 m/s here; slow ground has the threshold, of 0.36 m/s."""
    times = np.arange(60) / FPS
    points = np.stack((0.0 * times, (speed + 0.8) * times, 0.0 * times), axis=1)
    assert contact_phases(points, times, LEG, np.array((0.0, speed, 0.0))) == phases


@pytest.mark.parametrize(("step", "seen"), [(0.2, 0.0), (0.3, 0.3)])
def test_places_within_a_quarter_of_the_height_are_one_level(step, seen):
    heights = np.array([*[0.0] * 10, 0.8, *[step] * 10])
    assert local_ground(heights, 1.0)[-10:] == pytest.approx([seen] * 10)


def test_few_frames_have_no_contact():
    assert contact_phases(np.zeros((1, 3)), np.zeros(1), LEG, STILL) == []
    assert ground_velocity([np.zeros((1, 3))], np.zeros(1), LEG).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("field", "value"), [("speed", 0.0), ("height", -1.0), ("release", 0.9), ("shortest", float("nan"))]
)
def test_thresholds_are_refused_by_name(field, value):
    with pytest.raises(InvalidInput, match=field):
        ContactThresholds(**{field: value})
