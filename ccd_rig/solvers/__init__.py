"""Solvers: one pose, many poses, motions, drags, retargeting, walks and closed forms."""
