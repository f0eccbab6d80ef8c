"""What `dev.py` runs: environments, packaging, checks and window tests. Never part of the extension."""
