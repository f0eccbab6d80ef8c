"""Joint limits: their shapes, projection onto them, random rotations, fitting, mirroring and drawing."""
