"""Closed forms for one chain and one point."""
