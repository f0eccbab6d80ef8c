"""What visits share that choose entries of the menu "Limits" of the active bone, by pointer and keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import bpy
from drive import sh, until, view

DRAWN = 0.35  # [s] until a menu or dialog is drawn
PATIENCE = 8.0  # [s] for what a machine that is busy takes long for


class Listing:
    """A layout that only lists what a menu draws into it."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.operator_context = ""

    def operator(self, name: str, text: str = "", **_options: object) -> SimpleNamespace:
        self.entries.append(text or name)
        return SimpleNamespace()

    def menu(self, name: str, text: str = "", **_options: object) -> None:
        self.entries.append(text or name)

    def operator_menu_enum(self, name: str, _property: str, text: str = "", **_options: object) -> None:
        self.entries.append(text or name)

    def separator(self) -> None:
        """A line between entries is none."""


def entries(menu: str) -> list[str]:
    """The entries of a menu as it would open now, in their order."""
    listing = Listing()
    window, area, region = view()
    with bpy.context.temp_override(window=window, area=area, region=region):
        getattr(bpy.types, menu).draw(SimpleNamespace(layout=listing), bpy.context)
    return listing.entries


def pause() -> float:
    """Seconds in which Blender opens and draws what was asked for: longer while the machine is busy."""
    window, area, region = view()
    begin = time.monotonic()
    with bpy.context.temp_override(window=window, area=area, region=region):
        bpy.ops.wm.redraw_timer(type="DRAW_WIN_SWAP", iterations=1)
    return max(DRAWN, 4.0 * (time.monotonic() - begin))


def keys(*names: str) -> None:
    """Press keys, one after the other."""
    sh("xdotool", "key", "--delay", 60, *names)


def last_done() -> int:
    """Which operator a user has run last; another number once one more has come to its end."""
    done = bpy.context.window_manager.operators
    return done[-1].as_pointer() if done else 0


def done(name: str) -> Iterator[float]:
    """Press a key that runs an operator, and wait until it has come to its end."""
    before = last_done()
    keys(name)
    yield 0.2
    yield from until(lambda: last_done() != before, PATIENCE)
    yield 0.2


def choose(place: tuple[int, int], entry: str, *subs: int, ends: bool = True) -> Iterator[float]:
    """Open the menu "Limits" with a click on its arrow, and choose an entry with the keyboard.

    Args:
        place: of the arrow, in pixels of the screen.
        entry: the text of the entry.
        subs: which entry of the menu that it opens, from 0 on, and of the one that this opens.
        ends: whether the operator comes to an end: one that asks, or gives up, does not.
    """
    yield from point_at(place, entry, *subs)
    if ends:
        yield from done("Return")
    else:
        keys("Return")
        yield 2.0 * pause()


def choose_for_rig(entry: str) -> Iterator[float]:
    """Open the menu of the list of constraints over the view, and choose an entry that asks for more."""
    window, area, _ = view()
    main = next(each for each in area.regions if each.type == "WINDOW")
    sh("xdotool", "mousemove", main.x + main.width // 3, window.height - main.y - main.height // 2)
    yield 0.3
    with bpy.context.temp_override(window=window, area=area, region=main):
        bpy.ops.wm.call_menu("INVOKE_DEFAULT", name="CCD_RIG_MT_constraints")
    yield 2.0 * pause()
    listed = entries("CCD_RIG_MT_constraints")  # what stands above these may be grey, and is left out by keys
    keys("End", *["Up"] * (len(listed) - 1 - listed.index(entry)))
    yield pause()
    keys("Return")
    yield 2.0 * pause()


def point_at(place: tuple[int, int], entry: str, *subs: int) -> Iterator[float]:
    """The same up to the last key."""
    sh("xdotool", "mousemove", *place)
    yield 0.2
    sh("xdotool", "click", 1)
    yield pause()  # keys that come before the menu is open are lost
    listed = entries("CCD_RIG_MT_limits")
    down = listed.index(entry)
    up = len(listed) - 1 - down
    keys(*(["Home", *["Down"] * down] if down <= up else ["End", *["Up"] * up]))  # each key is a redraw
    for sub in subs:
        yield pause()
        keys("Right", *["Down"] * sub)
    yield pause()


def write(words: str) -> None:
    """Type letters as a person does."""
    sh("xdotool", "type", "--delay", 30, words)
