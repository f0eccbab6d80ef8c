"""Modules of `dev.py`: environments, packaging, checks and window tests. Not in the extension."""
