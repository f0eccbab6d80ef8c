"""Joints, poses, forward kinematics, and ways to make skeletons."""
