"""Choose a frame of a motion as its reference pose."""

from __future__ import annotations

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from .figure_map import FigureMap
from .motions import SourceMotion


def straightest_frame(figure_map: FigureMap, source: SourceMotion) -> int:
    """Index of the frame most like a figure standing in a T or an A pose; the first of equally good ones.

    There arms are straight, and legs straight down.

    Args:
        figure_map: names limbs.
        source: F frames, upright.
    """
    scores: Array = np.zeros(len(source.times))
    for limb in figure_map.limbs:
        names = (limb.upper, limb.middle, limb.end)
        upper, middle, end = (source.heads[:, source.index(figure_map.sources[name])] for name in names)
        length = batch.length(middle - upper, -1) + batch.length(end - middle, -1)
        extent = upper[:, 2] - end[:, 2] if limb in figure_map.legs else batch.length(end - upper, -1)
        scores += extent / np.maximum(length, 1e-12) / len(figure_map.limbs)
    return int(np.argmax(np.round(scores, 6)))
