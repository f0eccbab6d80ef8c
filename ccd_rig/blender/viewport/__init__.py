# SPDX-License-Identifier: GPL-3.0-or-later
"""What the 3D viewport shows of limits and constraints, as values: nothing here draws."""
