"""Cyclic Coordinate Descent: joint by joint, each by its exact best move."""
