"""Dragging of bones in Pose Mode."""
