"""Checks of a set-up: errors and warnings with their remedies."""
