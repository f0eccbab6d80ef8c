"""Solving of one evaluated frame: goals of constraints, groups, methods, planted bones."""
