"""Defaults of goals and joints, which properties that store them have too.

They are apart from their dataclasses: Blender declares properties when it starts, and solves later.
"""

from math import pi

WEIGHT = 1.0
"""How much a goal counts beside others."""
PRIORITY = 0
"""Rank of a goal: it never worsens goals of smaller ranks."""
CHAIN_LENGTH = 0
"""Joints that a goal may turn, counted from its tip; 0 goes up to the root."""
MAX_EXTENSION = 1.0
"""Part of its length past which a chain is not stretched."""
EXTENSION_JOINTS = 0
"""Joints whose extension counts, from the tip; 0 is the whole chain."""
POLE_ANGLE = 0.0
"""Turn of the bend from the pole [radians]."""
BALANCE_AXES = (True, True, False)
"""Axes along which the centre of mass is placed."""
SOFT = 0.0
"""Part of the length of two bones over which they ease into straight."""
TOLERANCE = 0.0
"""Angle within which a comfortable joint keeps still [radians]."""
STIFFNESS = 0.0
"""Resistance of a joint to turning, 0 to 1."""
MAX_STEP = pi
"""Largest turn of a joint in one step [radians]."""
MASS = 0.0
"""Mass of a joint for balance."""
