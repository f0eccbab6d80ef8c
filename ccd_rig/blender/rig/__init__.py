"""Bones as joints, and the channels of a bone."""
