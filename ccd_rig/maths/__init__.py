"""Mathematics that knows nothing of skeletons: rotations, best fits, checks of numbers."""
