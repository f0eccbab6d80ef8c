"""A cycle of a figure carried on along a curve over the ground."""
