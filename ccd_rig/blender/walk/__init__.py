# SPDX-License-Identifier: GPL-3.0-or-later
"""Walk of an armature's cycle along a curve, over ground that is a height or meshes."""
