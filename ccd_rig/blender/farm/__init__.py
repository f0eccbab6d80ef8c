"""Bakes on a render farm: job bundles of Open Job Description, and the work of their tasks."""
