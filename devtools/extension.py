"""The extension from this checkout, registered in a Python that has Blender's module, not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
NAME = "ccd_rig_extension"


def load() -> ModuleType:
    """Import and register the extension; its modules are then below `ccd_rig_extension`."""
    file = ROOT / "__init__.py"
    spec = importlib.util.spec_from_file_location(NAME, file, submodule_search_locations=[str(ROOT)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    module.register()
    return module
