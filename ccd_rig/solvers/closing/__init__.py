"""The closing phase of one solve: damped least squares from where CCD has come."""
