# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of one armature on another."""
