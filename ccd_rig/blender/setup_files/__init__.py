"""Constraints and limits of a rig outside the .blend file, and kept while the rig is generated anew."""
