"""Limits of bones from what is there already: poses, other bones, Blender's own limits, actions, presets."""
