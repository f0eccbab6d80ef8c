"""From a pose and goals to a pose that meets them."""
