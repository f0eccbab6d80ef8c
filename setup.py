"""The part of building the Python package that compiles: pyproject.toml says the rest."""

import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent))
from devtools import kernel


class CompileKernel(build_ext):
    """Leaves the work to devtools/kernel.py."""

    def build_extension(self, ext: Extension) -> None:
        target = kernel.target_of_this_machine()
        assert target is not None
        (module,) = kernel.build([target], Path(self.build_temp))
        place = Path(self.get_ext_fullpath(ext.name))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, place)


# Elsewhere the kernel runs uncompiled, and the package fits every system.
HERE = kernel.target_of_this_machine() is not None
setup(
    ext_modules=[Extension(kernel.module_name(), [], py_limited_api=True)] if HERE else [],
    cmdclass={"build_ext": CompileKernel},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HERE else {},
)
