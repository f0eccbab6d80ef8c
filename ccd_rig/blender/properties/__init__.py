"""Stored properties of armatures and pose bones, and their values for the core."""
