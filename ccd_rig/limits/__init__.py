"""What a joint may do: shapes of limits, the nearest allowed rotation, and what lies inside what."""
