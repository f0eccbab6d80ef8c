"""Damped least squares over all joints at once, inside the limits."""
