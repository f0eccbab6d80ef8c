"""Bones as joints, the channels of bones, and clamps that show a pose without writing channels."""
