"""Tests for a Python that has Blender as a module: the Blender program cannot run them."""

MODULE_ALONE = (
    "solve/test_other_kernels.py",
    "test_demo.py",
    "test_fuzz_judges.py",
    "test_module_start.py",
    "test_openjd.py",
)
"""Files of this folder: the demo, campaigns, `openjd`, and what starts processes that import Blender."""
