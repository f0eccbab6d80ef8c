"""Motions as arrays over frames: interpolation, key reduction."""
