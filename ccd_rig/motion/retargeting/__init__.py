"""From the motion of one figure to what another one should do."""
