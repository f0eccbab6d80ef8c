"""Keys: F-curves, actions, slots and NLA strips. The only code that depends on the version of Blender."""
