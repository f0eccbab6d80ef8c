"""One evaluated frame."""
