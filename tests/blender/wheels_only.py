"""The compiled kernel as users get it: from the wheel that Blender has installed, not the environment's."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder


class WheelsOnly:
    """An import finder that takes the kernel from the user's folder of Blender, or nowhere."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not name.startswith("ccd_rig_kernel_"):
            return None
        user = os.environ["BLENDER_USER_RESOURCES"]
        spec = PathFinder.find_spec(name, [folder for folder in sys.path if folder.startswith(user)])
        if spec is None:
            raise ModuleNotFoundError(f"{name} is in no wheel that is installed", name=name)
        return spec
