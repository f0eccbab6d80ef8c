"""A range of frames, solved and keyed."""
