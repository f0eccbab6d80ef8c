"""How much memory a long bake takes: of the process as the system sees it, and of Python alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _bake_pairs import add_rows, played, time_ours
from _bake_scenes import Shot, chain

FEWER = 50  # frames of the long bake to each one that tracemalloc looks at, which makes Python slow


def tell(bones: int, frames: int) -> None:
    """Print time, memory per bone and frame, and what was reached."""
    make: Callable[[int], Shot] = partial(chain, bones)
    shot = make(frames)
    add_rows(shot)
    cells = bones * frames
    before = _status("VmRSS")
    _reset_peak()
    took = time_ours(shot, frames).wall
    peak, after = _status("VmHWM"), _status("VmRSS")
    print(f"{bones} bones x {frames} frames: {took:.1f} s, {took / frames * 1e3:.3f} ms a frame")
    if before:
        print(f"process: {(peak - before) / cells:.0f} bytes per bone and frame at the peak, keys included;")
        print(f"         {(after - before) / cells:.0f} after it: the action, and what is not given back")
    else:
        print("process: measured on Linux only")
    few = max(frames // FEWER, 100)
    keys = played(shot, few)
    print(f"worst error of the first {few} frames: {keys.errors.max():.1e} m", flush=True)
    shot = make(few)
    add_rows(shot)
    tracemalloc.start()
    try:
        time_ours(shot, few)
        _, python = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(
        f"Python (tracemalloc, {few} frames): {python / (bones * few):.0f} bytes per bone and frame",
        flush=True,
    )


def _status(field: str) -> int:
    """Bytes of a line of the process' status; 0 where the system has none."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _reset_peak() -> None:
    """Let the largest size of the process start again from now (proc(5), clear_refs)."""
    clear = Path("/proc/self/clear_refs")
    if clear.is_file():
        clear.write_text("5")
