# SPDX-License-Identifier: GPL-3.0-or-later
"""Set-up of a figure in one step: constraints, targets, poles, ranges of joints."""
