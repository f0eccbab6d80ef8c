from installed import AS_MODULE

# `openjd` is installed beside the bpy module; the Blender program has no such Python environment.
collect_ignore = [] if AS_MODULE else ["test_openjd.py"]
