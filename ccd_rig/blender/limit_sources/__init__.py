"""Sources of limits: poses, other bones, Blender's limits, actions, presets."""
