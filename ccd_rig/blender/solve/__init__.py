"""One solved frame."""
