# SPDX-License-Identifier: GPL-3.0-or-later
"""A cycle of an armature along a curve, over ground that is a height or meshes."""
