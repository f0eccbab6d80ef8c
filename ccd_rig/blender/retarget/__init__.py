# SPDX-License-Identifier: GPL-3.0-or-later
"""Retargeting: the motion of one armature as keys of another."""
