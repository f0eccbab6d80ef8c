"""What single precision leaves open: numbers below which nothing is told apart."""

# Radians by which a rotation may be outside a limit and still count as inside: a rotation rounded to single
# precision turns by up to 1.2e-7, and is turned again when it goes through a product or two.
ROUNDING = 1e-6


# Sine of an angle, or length of a part of a unit quaternion, that single precision cannot tell from zero: the
# rounding of a unit vector's components (2^-24 each) adds up to about 1e-7; ten times that has a direction
# made of noise only.
NOISE = 1e-6
