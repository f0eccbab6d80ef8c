"""What a rig has already of Blender's own, taken over as constraints of this extension."""
