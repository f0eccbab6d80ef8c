# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole figure put under control in one step: constraints, targets, poles."""
