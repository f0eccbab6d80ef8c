"""Evaluated frames: base poses, targets, influences, the ground, and what they depend on."""
