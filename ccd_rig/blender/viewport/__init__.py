# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawings and handles of limits, constraints and targets in the 3D viewport, as values without drawing."""
