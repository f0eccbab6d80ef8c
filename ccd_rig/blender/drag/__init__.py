"""Bones that are pulled in Pose Mode."""
