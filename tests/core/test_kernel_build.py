"""The compiled kernel: how its modules are joined, and when the plain ones run instead."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ccd_rig import kernel
from ccd_rig.kernel import loading
from devtools import environments, packaging
from devtools import kernel as tool

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "ccd_rig/kernel"
IS_FORCED = os.environ.get("CCD_RIG_KERNEL") == "plain"

# Compiles C for a system; its arguments are the tag of that and the file.
COMPILE = """\
import pathlib, sys
from devtools import kernel
source = pathlib.Path(sys.argv[2])
(target,) = (each for each in kernel.TARGETS if each.tag == sys.argv[1])
print(kernel.compile_c(source, target, kernel.copy_headers(source.parent)))
"""
NEEDING = """\
from __future__ import annotations

from .b import (
    half,
    SIDE,
)


def f(x):
    return half(x) + SIDE
"""
NEEDED = """\
'''About b.'''

from array import array
from math import pi, sin

from .plain import nogil

SIDE = pi / 2
'''A side.'''
TABLE = (1, 2)


def half(x):
    return sin(x)
"""


@pytest.fixture
def folder(tmp_path):
    """An empty kernel."""
    shutil.copy(FOLDER / "loading.py", tmp_path)
    return tmp_path


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def test_modules_are_joined_in_the_order_of_their_imports(folder):
    write(folder, a=NEEDING, b=NEEDED)
    (folder / "a.pxd").write_text("cimport cython\nfrom .b cimport (\n  half)\ncdef double f(double x)\n")
    (folder / "b.pxd").write_text("cdef double half(double x)\n")
    source, types = tool.join(folder)
    lines = [line for line in source.splitlines() if line]
    assert lines == [
        "from cython import nogil",
        "from cython.cimports.libc.math import sin",
        "from array import array",
        "# from b.py",
        "TABLE = (1, 2)",
        "def half(x):",
        "    return sin(x)",
        "# from a.py",
        "def f(x):",
        "    return half(x) + SIDE",
        "globals().update(SIDE=SIDE)",
    ]
    assert [line for line in types.splitlines() if line] == [
        "cimport cython",
        "cdef extern from *:",
        '    """',
        "    #define kernel_pi (3.141592653589793)",
        "    #define kernel_SIDE (1.5707963267948966)",
        '    """',
        '    double pi "kernel_pi"',
        '    double SIDE "kernel_SIDE"',
        "# from b.pxd",
        "cdef double half(double x)",
        "# from a.pxd",
        "cdef double f(double x)",
    ]


def test_errors_name_the_lines_of_the_sources(folder):
    write(folder, a="from math import pi\n\n\ndef f(x):\n    return y\n")
    (folder / "a.pxd").write_text("cdef double f(double x)\n")
    joined = tool.join(folder)
    line = joined.source.splitlines().index("    return y") + 1
    assert joined.in_own_files(f"m.py:{line}:11: undeclared", "m") == "a.py:5:11: undeclared"
    line = joined.types.splitlines().index("cdef double f(double x)") + 1
    assert joined.in_own_files(f"m.pxd:{line}:0: what", "m") == "a.pxd:1:0: what"


@pytest.mark.parametrize(
    ("modules", "words"),
    [
        ({"a": "def f():\n    pass\n", "b": "X = 1\nf = 2\n"}, r"b\.py:2: 'f' is defined in a\.py too"),
        ({"a": "class F:\n    pass\n\n\ndef F():\n    pass\n"}, r"a\.py:5: 'F' is defined twice"),
        (
            {"a": "from math import sin\n", "b": "def sin(x):\n    pass\n"},
            r"b\.py: 'sin' is imported from math",
        ),
        ({"a": "from .b import f\n", "b": "from .a import g\n"}, "import each other: a, b"),
        ({"a": "from .c import f\n"}, r"a\.py imports from \.c, which is no module"),
        ({"a": "import math\n"}, r"a\.py:1: the kernel's imports must be"),
        ({"a": "from ..errors import InvalidInput\n"}, r"a\.py:1: the kernel's imports must be"),
        ({"a": "from .b import f as g\n", "b": ""}, r"a\.py:1: the kernel's imports must be"),
    ],
)
def test_what_cannot_be_joined_is_refused(folder, modules, words):
    write(folder, **modules)
    with pytest.raises(tool.KernelError, match=words):
        tool.join(folder)


def test_the_fingerprint_follows_the_sources(folder):
    write(folder, a="X = 1\n", plain="Y = 1\n")
    name = loading.module_name(folder)
    assert re.fullmatch("ccd_rig_kernel_[0-9a-f]{12}", name)
    (folder / "a.py").write_bytes(b"X = 1\r\n")
    write(folder, plain="Y = 2\n")
    assert loading.module_name(folder) == name
    write(folder, a="X = 2\n")
    other = loading.module_name(folder)
    assert other != name
    (folder / "a.pxd").write_text("cdef int x\n")
    assert loading.module_name(folder) not in (name, other)


def test_the_compiled_kernel_runs():
    module, why = loading.load(FOLDER)
    if IS_FORCED:
        assert module is None
        assert kernel.why_plain() == why != ""
        return
    assert kernel.why_plain() == ""
    assert module is kernel._compiled
    assert module.__name__ == loading.module_name(FOLDER)
    assert not str(module.__file__).endswith(".py")


def test_a_kernel_of_other_sources_is_not_used(folder, monkeypatch):
    monkeypatch.delenv("CCD_RIG_KERNEL", raising=False)
    write(folder, a="X = 1\n")
    elsewhere = folder / "packages"
    elsewhere.mkdir()
    (elsewhere / "ccd_rig_kernel_000000000000.py").write_text("")
    monkeypatch.syspath_prepend(str(elsewhere))
    module, why = loading.load(folder)
    assert module is None
    assert why == "The compiled kernel is of another version, so solving is slower: restart Blender"


def test_a_system_without_kernel_is_named(folder, monkeypatch):
    monkeypatch.delenv("CCD_RIG_KERNEL", raising=False)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    module, why = loading.load(folder)
    assert module is None
    assert why == "This package has no compiled kernel for 'Linux riscv64': solving is slower"


def test_a_kernel_that_does_not_start_is_told(folder, monkeypatch):
    monkeypatch.delenv("CCD_RIG_KERNEL", raising=False)
    elsewhere = folder / "packages"
    elsewhere.mkdir()
    (elsewhere / f"{loading.module_name(folder)}.py").write_text("raise ImportError('no libm')\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    module, why = loading.load(folder)
    assert module is None
    assert why == "The compiled kernel does not start ('no libm'): solving is slower"


def test_the_variable_forces_the_plain_modules():
    code = (
        "import bpy\n"
        "from ccd_rig import kernel\n"
        "assert kernel._compiled is None\n"
        "assert 'CCD_RIG_KERNEL' in kernel.why_plain()\n"
        "for module, names in kernel.ENTRIES:\n"
        "    plain = __import__(f'ccd_rig.kernel.{module}', fromlist=['x'])\n"
        "    assert all(getattr(kernel, name) is getattr(plain, name) for name in names)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CCD_RIG_KERNEL": "plain", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_each_entry_has_a_type():
    typed = set()
    for node in ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            typed.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            typed.add(node.target.id)
    entries = {name for _, names in kernel.ENTRIES for name in names}
    assert typed == entries | {"ENTRIES", "why_plain"}


def test_pip_installs_the_same_tools():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(tool.TOOLS) <= set(project["build-system"]["requires"])


def test_a_package_without_wheels_is_refused():
    files = {f"ccd_rig/kernel/{file.name}": file.read_bytes() for file in FOLDER.glob("*.p*")}
    problems = packaging.wheel_problems(files)
    assert len(problems) == len(tool.TARGETS) == 6
    assert all(problem.endswith("is missing from the package") for problem in problems)
    version = tool.wheel_version()
    wheel = f"wheels/ccd_rig_kernel-{version}-cp311-abi3-win_amd64.whl"
    files["blender_manifest.toml"] = f'wheels = ["./{wheel}", "./wheels/other.whl"]\n'.encode()
    (problem,) = (
        set(packaging.wheel_problems(files))
        - set(problems)
        - {f"{wheel} is listed in the manifest, but not in the package"}
    )
    assert problem == "wheels/other.whl is listed in the manifest, but not in the package"


def test_a_package_for_one_system_needs_its_wheel_alone():
    files = {f"ccd_rig/kernel/{file.name}": file.read_bytes() for file in FOLDER.glob("*.p*")}
    for target in tool.TARGETS:
        (problem,) = packaging.wheel_problems(files, (target,))
        assert target.tag in problem
    assert set(packaging.PLATFORMS) == {target.tag for target in tool.TARGETS}


def test_the_manifest_names_the_system_of_a_package(tmp_path):
    for platform in ("", "linux-x64"):
        folder = packaging.stage(tmp_path / (platform or "all"), [], platform)
        manifest = tomllib.loads((folder / "blender_manifest.toml").read_text(encoding="utf-8"))
        assert manifest.get("platforms", []) == ([platform] if platform else [])
        assert manifest["wheels"] == []


def test_a_wheel_is_the_same_to_the_byte_and_says_what_it_is(tmp_path):
    target = next(target for target in tool.TARGETS if target.tag == "win_arm64")
    head = b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0" + (0xAA64).to_bytes(2, "little")
    module = tmp_path / "ccd_rig_kernel_000000000000.pyd"
    module.write_bytes(head + bytes(100))
    wheels = []
    for name in ("one", "two"):  # folders that are not there yet
        os.utime(module, (1e9, 1e9 + len(wheels)))
        wheels.append(tool.write_wheel(module, target, "0.1.0.7", tmp_path / name))
    assert wheels[0].name == "ccd_rig_kernel-0.1.0.7-cp311-abi3-win_arm64.whl"
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert packaging.machine_of(module.read_bytes()) == ("Windows", "aarch64")


def compiled_for_windows(folder, text):
    """What comes of C: Cython's Python compiles it, or says why not."""
    folder.mkdir()
    (folder / "alone.c").write_text(text)
    python = str(environments.prepare(environments.KERNEL))
    command = [python, "-c", COMPILE, "win_amd64", str(folder / "alone.c")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_module_for_windows_takes_pythons_objects_from_what_it_imports(tmp_path):
    """A linker would make `&_Py_NoneStruct` the address of a jump to it: no object at all."""
    jumps = []
    for value in ("Py_None", "0"):
        text = f"#include <Python.h>\nPyMODINIT_FUNC PyInit_alone(void) {{ return {value}; }}\n"
        done = compiled_for_windows(tmp_path / value, text)
        assert done.returncode == 0, done.stderr
        module = Path(done.stdout.strip()).read_bytes()
        assert packaging.machine_of(module) == ("Windows", "x86_64")
        assert (b"_Py_NoneStruct" in module) == (value == "Py_None")
        jumps.append(module.count(b"\xff\x25"))  # jmp [rip + ...]
    assert jumps[0] == jumps[1]


def test_a_module_for_windows_asks_it_for_nothing_that_it_has_not(tmp_path):
    text = '#include <stdlib.h>\nchar *f(void) { return getenv("X"); }\n'
    assert "undefined symbol: getenv" in compiled_for_windows(tmp_path / "asks", text).stderr
