"""Motions as arrays over frames: interpolation, smoothing, key reduction."""
