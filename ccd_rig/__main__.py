"""`python -m ccd_rig`: the command line where Blender is installed as a Python module."""

from .blender import register, unregister
from .blender.cli.module_start import start

if __name__ == "__main__":
    start(register, unregister)
