"""Compile the kernel: join its modules, let Cython write C, and let zig's compiler make a module or wheels.

    python devtools/kernel.py c FOLDER    what Cython writes: a path that the next three may take
    python devtools/kernel.py module FOLDER [C]    the module for this machine, and its wheel
    python devtools/kernel.py wheels FOLDER [C]    wheels for all other systems
    python devtools/kernel.py sanitized FOLDER [C]    a module for this machine, under sanitizers
    python devtools/kernel.py bounds FOLDER    the same, of other C that checks each index

Runs in a Python, 3.11 or later, that has Cython and ziglang; importing it needs the standard library alone
and Python 3.9. One machine compiles for all systems. Every bit of the result is decided by the sources, this
file, the versions in `TOOLS` and the minor version of the Python whose headers are included.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib.util
import math
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "ccd_rig/kernel"
TOOLS = ("cython==3.3.1", "ziglang==0.17.1")
TIMEOUT = 600  # [s] the first use of a target compiles parts of its C library
DISTRIBUTION = "ccd_rig_kernel"
PYTHON_TAG = "cp311-abi3"  # one file serves Python 3.11 and all later ones

DIRECTIVES = (
    "infer_types=True",
    "boundscheck=False",
    "wraparound=False",
    "cdivision=True",
    "initializedcheck=False",
    "auto_pickle=False",  # problems are not stored: a third of the time to compile
    "binding=False",
)
CHECKED = (*(each for each in DIRECTIVES if "check" not in each), "boundscheck=True", "initializedcheck=True")
"""Of the variant `bounds`: an index out of range is told on stderr, and the function ends."""
SANITIZER = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")
LINES = ("-g1", "-fno-var-tracking")  # reports name lines; places of variables take as long as all else
VARIANTS = ("bounds", "sanitized")

# No contraction to fused operations: the same bits on every processor.
FLAGS = ("-O3", "-ffp-contract=off", "-DPy_LIMITED_API=0x030B0000", "-DCYTHON_LIMITED_API=1", "-g0")
# Vectors and quaternions are passed in memory between functions that are not inlined: a tenth of the time.
INLINED = ("-mllvm", "-inline-threshold=1500")

# What the C asks Windows for, by library. With MinGW's C library in its place zig compiles that first: two
# minutes of a processor for each target. `OWN` is what MinGW's headers name and Windows has by no such name.
IMPORTED = {
    "ntdll": ("__chkstk", "___chkstk_ms == __chkstk"),  # touches the pages of a large frame in turn
    "ucrtbase": (
        *("__stdio_common_vsprintf", "floor", "fmod", "free", "malloc", "memcmp", "memcpy", "memmove"),
        *("memset", "sqrt", "strlen", "strrchr"),
    ),
}
JUMPS = ("PyObject_GenericGetAttr", "PyObject_SelfIter")
"""Functions of Python that tables of the C hold the addresses of. All else is reached by what is imported: a
jump to it would stand for objects such as None."""
OWN = """\
#include <math.h>
#include <stdarg.h>
#include <stddef.h>

int __stdio_common_vsprintf(unsigned long long, char *, size_t, const char *, void *, va_list);

int vsnprintf(char *text, size_t size, const char *format, va_list values)
{
    return __stdio_common_vsprintf(2 /* as C99 has it */, text, size, format, NULL, values);
}

int __fpclassify(double x)
{
    return __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x);
}

int DllMainCRTStartup(void *module, unsigned reason, void *reserved)
{
    return 1;
}
"""

# Python's own configuration is that of the machine it runs on; of this the limited API needs only sizes.
PYCONFIG = """\
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H
#if defined(_WIN32)
#define MS_WINDOWS 1
#define MS_WIN64 1
#define MS_WIN32 1
#define NT_THREADS 1
#define HAVE_DECLSPEC_DLL 1
#define Py_ENABLE_SHARED 1
#define SIZEOF_LONG 4
#define ALIGNOF_LONG 4
#define SIZEOF_WCHAR_T 2
#else
#define SIZEOF_LONG 8
#define ALIGNOF_LONG 8
#define SIZEOF_WCHAR_T 4
#define HAVE_PTHREAD_H 1
#define HAVE_SYS_TIME_H 1
#endif
#define SIZEOF_PID_T 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_TIME_T 8
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_TYPES_H 1
#define STDC_HEADERS 1
#define WITH_THREAD 1
#endif
"""


class KernelError(Exception):
    """The kernel cannot be compiled; the message says where and why."""


class Target(NamedTuple):
    """A system and processor: what zig, a wheel's name and the platform module call it."""

    zig: str
    tag: str
    system: str
    machines: tuple[str, ...]

    @property
    def suffix(self) -> str:
        return ".pyd" if self.system == "Windows" else ".abi3.so"


TARGETS = (
    Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", "Linux", ("x86_64", "amd64")),
    Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", "Linux", ("aarch64", "arm64")),
    Target("x86_64-windows-gnu", "win_amd64", "Windows", ("x86_64", "amd64")),
    Target("aarch64-windows-gnu", "win_arm64", "Windows", ("aarch64", "arm64")),
    Target("x86_64-macos.11.0", "macosx_11_0_x86_64", "Darwin", ("x86_64", "amd64")),
    Target("aarch64-macos.11.0", "macosx_11_0_arm64", "Darwin", ("aarch64", "arm64")),
)


def target_of_this_machine() -> Target | None:
    """The target that this Python can load, if there is one."""
    machine = platform.machine().lower()
    for target in TARGETS:
        if target.system == platform.system() and machine in target.machines:
            return target
    return None


def load_names(folder: Path = FOLDER):
    """Load the kernel's module `loading` by itself: its package needs Blender."""
    spec = importlib.util.spec_from_file_location("kernel_loading", folder / "loading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_hash(folder: Path = FOLDER) -> str:
    """Hash of all that decides what is built: sources, this file with its tools, and the version."""
    parts = (module_name(folder).encode(), Path(__file__).read_bytes(), extension_version().encode())
    return hashlib.sha256(b"\n".join(parts).replace(b"\r\n", b"\n")).hexdigest()[:12]


def module_name(folder: Path = FOLDER) -> str:
    """What the module that is compiled from these sources is called."""
    return load_names(folder).module_name(folder)


def extension_version() -> str:
    """The version in the extension's manifest."""
    words = (ROOT / "blender_manifest.toml").read_text(encoding="utf-8")
    match = re.search(r'^version = "(.+)"$', words, re.MULTILINE)
    if match is None:
        raise KernelError("blender_manifest.toml has no version")
    return match[1]


def wheel_version(folder: Path = FOLDER) -> str:
    """The extension's version, and a number that changes with all that is built.

    Blender does not install a wheel whose name and version it has already.
    """
    return f"{extension_version()}.{int(build_hash(folder)[:8], 16)}"


# --- Join


class Joined(NamedTuple):
    """One module's source and C types, made of all modules'; a line `# from FILE` stands before each part."""

    source: str
    types: str

    def in_own_files(self, words: str, name: str) -> str:
        """What Cython says of lines of the joined module, said of lines of the files that it is made of."""

        def place(match: re.Match[str]) -> str:
            lines = (self.types if match[1] == "pxd" else self.source).splitlines()
            line = int(match[2])
            for above in range(min(line, len(lines)), 0, -1):
                if lines[above - 1].startswith(PART):
                    return f"{lines[above - 1][len(PART) :]}:{line - above}:"
            return match[0]

        return re.sub(rf"\b{name}\.(pyx?|pxd):(\d+):", place, words)


PART = "# from "


def join(folder: Path = FOLDER) -> Joined:
    """Put all modules of a folder into one, so that the C compiler sees all functions at once.

    Raises:
        KernelError: a name stands for two things, or a module imports what cannot be joined.
    """
    files = load_names(folder).source_files(folder)
    modules = {file.stem: Module(file) for file in files if file.suffix == ".py"}
    order = _ordered(modules)
    names: dict[str, str] = {}
    for module in (modules[name] for name in order):
        for name, line in module.names.items():
            if name in names:
                raise KernelError(f"{module.file.name}:{line}: {name!r} is defined in {names[name]} too")
            names[name] = module.file.name
    taken = {name: module for module in modules.values() for name in module.from_math}
    for name in sorted(set(taken) & set(names)):
        raise KernelError(f"{names[name]}: {name!r} is imported from math by {taken[name].file.name}")
    types = [types_of(folder / f"{name}.pxd") for name in ("plain", *order)]
    constants = _constants([modules[name] for name in order], "\n".join(types))
    of_c = sorted(name for name in taken if name not in MATH_CONSTANTS)
    imports = sorted({line for module in modules.values() for line in module.imports})
    shown = ", ".join(f"{name}={name}" for name in constants if name not in MATH_CONSTANTS)
    source = [
        "from cython import nogil",
        f"from cython.cimports.libc.math import {', '.join(of_c)}" if of_c else "",
        *imports,
        *(modules[name].body(set(constants)) for name in order),
        f"globals().update({shown})",
    ]
    types = ["cimport cython", _macros(constants), *types]
    return Joined("\n".join(source) + "\n", "\n".join(types) + "\n")


MATH_CONSTANTS = {"pi": math.pi, "tau": math.tau, "e": math.e, "inf": math.inf, "nan": math.nan}


class Module:
    """One of the kernel's modules: what it defines, and what it imports.

    Attributes:
        file: path of the source.
        tree: its syntax.
        needs: the kernel's modules that it imports from.
        names: what it defines at the top level, with line numbers.
        from_math: names that it imports from `math`.
        imports: other imports of the standard library, as source.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = file.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, file.name)
        self.needs: list[str] = []
        self.names: dict[str, int] = {}
        self.from_math: list[str] = []
        self.imports: list[str] = []
        self.left_out: list[ast.stmt] = []
        for node in self.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._take_import(node)
                self.left_out.append(node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                self.left_out.append(node)  # what documents the module or a constant
            for name in _defined(node):
                if self.names.setdefault(name, node.lineno) != node.lineno:
                    raise KernelError(f"{file.name}:{node.lineno}: {name!r} is defined twice")

    def _take_import(self, node: ast.Import | ast.ImportFrom) -> None:
        plain = isinstance(node, ast.ImportFrom) and not any(a.asname or a.name == "*" for a in node.names)
        if not isinstance(node, ast.ImportFrom) or not plain or node.level > 1 or not node.module:
            raise KernelError(
                f"{self.file.name}:{node.lineno}: the kernel's imports must be `from module import name`, of"
                " the standard library or of a module beside it"
            )
        if node.level:
            if node.module != "plain":
                self.needs.append(node.module)
        elif node.module == "math":
            self.from_math += [a.name for a in node.names]
        elif node.module != "__future__":
            self.imports.append(ast.unparse(node))

    def body(self, without: set[str]) -> str:
        """The source without imports, comments of its own on the module, and the constants `without`."""
        nodes = [*self.left_out, *(node for node in self.tree.body if set(_defined(node)) & without)]
        lines = self.text.splitlines()
        for node in nodes:
            for at in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[at] = ""
        return "\n".join([f"{PART}{self.file.name}", *lines])


def _defined(node: ast.stmt) -> list[str]:
    """Names that a statement at the top level defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _ordered(modules: dict[str, Module]) -> list[str]:
    """Names of the modules, each after those that it imports from."""
    order: list[str] = []

    def put(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise KernelError(f"these modules import each other: {', '.join(path)}")
        if name not in modules:
            raise KernelError(f"{path[-1]}.py imports from .{name}, which is no module of the kernel")
        for needed in sorted(modules[name].needs):
            if needed not in order:
                put(needed, (*path, name))
        if name not in order:
            order.append(name)

    for name in sorted(modules):
        put(name, ())
    return order


def _constants(modules: list[Module], types: str) -> dict[str, float]:
    """Numbers that modules name at their top level, and those of `math`, unless their C type is declared."""
    values: dict[str, float] = {}
    scope = dict(vars(math))
    for module in modules:
        for name in module.from_math:
            if name in MATH_CONSTANTS:
                values[name] = MATH_CONSTANTS[name]
        for node in module.tree.body:
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            try:
                value = eval(ast.unparse(node.value), {"__builtins__": {}}, scope)
            except Exception:
                continue  # not a number, such as a table
            if len(node.targets) == 1 and isinstance(value, (int, float)):
                scope[name] = value
                if not re.search(rf"^\s*cdef\b.*\b{name}\b\s*$", types, re.MULTILINE):
                    values[name] = value
    return values


def _macros(constants: dict[str, float]) -> str:
    """Declare constants in C, so that they need no Python object and the compiler sees their value."""
    special = {"inf": "__builtin_inf()", "-inf": "(-__builtin_inf())", "nan": '__builtin_nan("")'}
    defines = [f"    #define kernel_{n} {special.get(repr(v), f'({v!r})')}" for n, v in constants.items()]
    kinds = [
        f'    {"double" if isinstance(v, float) else "int"} {n} "kernel_{n}"' for n, v in constants.items()
    ]
    if not constants:
        return ""
    return "\n".join(["cdef extern from *:", '    """', *defines, '    """', *kinds])


def types_of(file: Path) -> str:
    """The text of a `.pxd` file, without what it takes from those that are joined with it."""
    if not file.is_file():
        return ""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    words = file.read_text(encoding="utf-8")
    for taken in (r"^from \.\w* cimport (\([^)]*\)|.*)$", r"^cimport cython$"):
        words = re.sub(taken, blank, words, flags=re.MULTILINE)
    return f"{PART}{file.name}\n{words}"


# --- Compile


def write_c(name: str, joined: Joined, folder: Path, directives: tuple[str, ...] = DIRECTIVES) -> Path:
    """Let Cython translate a joined module; returns the path of the C source in `folder`."""
    (folder / f"{name}.py").write_text(joined.source, encoding="utf-8", newline="\n")
    (folder / f"{name}.pxd").write_text(joined.types, encoding="utf-8", newline="\n")
    cython = [sys.executable, "-m", "cython", "-3", "--no-docstrings", "-X", ",".join(directives)]
    try:
        _run([*cython, f"{name}.py", "-o", f"{name}.c"], folder)
    except KernelError as error:
        words = re.sub(r"^performance hint: .*\n", "", str(error), flags=re.MULTILINE)
        raise KernelError(joined.in_own_files(words, name)) from None
    return folder / f"{name}.c"


def compile_c(source: Path, target: Target, headers: Path) -> Path:
    """Compile and link for a target; returns the path of the module, beside `source`.

    Args:
        source: what Cython wrote, `NAME.c`.
        target: where it is to run.
        headers: as `copy_headers` makes them.
    """
    folder = source.parent / target.tag
    folder.mkdir(exist_ok=True)
    module = f"{source.stem}{target.suffix}"
    zig = [sys.executable, "-m", "ziglang"]
    # Relative paths only: absolute ones would differ from machine to machine.
    shutil.copyfile(source, folder / source.name)
    compiler = [*zig, "cc", "-target", target.zig, *FLAGS, *INLINED, f"-I{headers}"]
    if target.system == "Linux":
        _run([*compiler, "-shared", "-fPIC", "-s", source.name, "-o", module, "-lm"], folder)
    elif target.system == "Darwin":
        _run([*compiler, "-shared", "-s", "-undefined", "dynamic_lookup", source.name, "-o", module], folder)
    else:
        (folder / "own.c").write_text(OWN)
        _run([*compiler, "-c", "own.c", "-o", "own.o"], folder)
        _run([*compiler, "-c", source.name, "-o", "kernel.o"], folder)
        # Of Python's library it imports the names that the object asks for.
        names = [name for name in undefined_names((folder / "kernel.o").read_bytes()) if "Py" in name[:3]]
        machine = "i386:x86-64" if target.zig.startswith("x86_64") else "arm64"
        python = [name if name in JUMPS else f"{name} DATA" for name in names]
        libraries = {"python3": python, **IMPORTED}
        for library, exported in libraries.items():
            lines = [f"LIBRARY {library}.dll", "EXPORTS", *exported, ""]
            (folder / f"{library}.def").write_text("\n".join(lines))
            files = ["-d", f"{library}.def", "-l", f"lib{library}.a", "-D", f"{library}.dll"]
            _run([*zig, "dlltool", "-m", machine, *files], folder)
        linker = [*zig, "cc", "-target", target.zig, "-shared", "-s", "-nostdlib"]
        _run([*linker, "own.o", "kernel.o", *(f"lib{each}.a" for each in libraries), "-o", module], folder)
    return folder / module


def compile_sanitized(source: Path, headers: Path) -> Path:
    """Compile for this machine under the sanitizers; returns the path of the module, beside `source`.

    Python has to be started with what `sanitizer_libraries` says.
    """
    module = source.with_name(f"{source.stem}.abi3.so")
    flags = [flag for flag in FLAGS if flag[:2] not in ("-O", "-g")]
    compiler = [sanitizing_compiler(), "-O1", *LINES, *flags, *SANITIZER, f"-I{headers}"]
    _run([*compiler, "-shared", "-fPIC", source.name, "-o", module.name, "-lm"], source.parent)
    return module


def sanitizing_compiler() -> str:
    """The path of a compiler of this machine that has the sanitizers.

    Raises:
        KernelError: there is none; one line that says what to do.
    """
    path = shutil.which("gcc")
    if path is None or platform.system() != "Linux":
        raise KernelError(
            "the sanitized kernel needs Linux and gcc: on Debian, as root, `apt-get install gcc`"
        )
    return path


def sanitizer_libraries() -> list[str]:
    """Paths of the libraries that a Python without sanitizers has to load first, by LD_PRELOAD.

    Raises:
        KernelError: as `sanitizing_compiler`.
    """
    queries = [[sanitizing_compiler(), f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    paths = [subprocess.check_output(each, text=True).strip() for each in queries]
    return [os.path.realpath(path) for path in paths]


def copy_headers(folder: Path) -> Path:
    """Copy Python's headers, with a configuration that fits every target; returns their folder.

    Raises:
        KernelError: this Python has no headers.
    """
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").is_file():
        raise KernelError(f"{sys.executable} has no headers: {include / 'Python.h'} is missing")
    copy = folder / "include"
    shutil.copytree(include, copy, ignore=shutil.ignore_patterns("internal", "numpy"))
    (copy / "pyconfig.h").unlink(missing_ok=True)
    (copy / "pyconfig.h").write_text(PYCONFIG)
    return copy


def undefined_names(content: bytes) -> list[str]:
    """Names of other modules that an object file for Windows (COFF) asks for, without `__imp_`."""
    table, count = struct.unpack_from("<II", content, 8)
    strings = table + 18 * count
    names = set()
    at = 0
    while at < count:
        name, _, section, _, kind, more = struct.unpack_from("<8sIhHBB", content, table + 18 * at)
        if name[:4] == b"\0\0\0\0":
            start = strings + struct.unpack_from("<I", name, 4)[0]
            name = content[start : content.index(b"\0", start)]
        if section == 0 and kind == 2:  # undefined, external
            words = name.rstrip(b"\0").decode("ascii")
            names.add(words[6:] if words.startswith("__imp_") else words)
        at += 1 + more
    return sorted(names)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": "315532800", "ZERO_AR_DATE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise KernelError(f"no end within {TIMEOUT} s: {' '.join(command)}") from error
    if done.returncode:
        raise KernelError(f"{' '.join(command[:4])}:\n{done.stdout.decode(errors='replace')[-6000:]}")


# --- Module and wheels


def build(
    targets: list[Target], output: Path, folder: Path = FOLDER, written: Path | None = None
) -> list[Path]:
    """Compile for `targets`; returns the modules' paths, each in a folder of `output` named by its tag.

    Args:
        targets: where the modules are to run.
        output: their folder.
        folder: of the sources.
        written: what Cython made of them, if it has run.

    Raises:
        KernelError: the sources cannot be compiled.
    """
    output.mkdir(parents=True, exist_ok=True)
    modules = []
    with tempfile.TemporaryDirectory(prefix="ccd_rig_kernel_") as scratch:
        headers = copy_headers(Path(scratch))
        source = _source(Path(scratch), folder, written)
        for target in targets:
            built = compile_c(source, target, headers)
            place = output / target.tag / built.name
            place.parent.mkdir(exist_ok=True)
            shutil.copyfile(built, place)
            modules.append(place)
    return modules


def _source(scratch: Path, folder: Path, written: Path | None) -> Path:
    """The path of the C in a folder to compile it in."""
    if written is not None:
        return Path(shutil.copy(written, scratch))
    return write_c(module_name(folder), join(folder), scratch)


def build_variant(variant: str, output: Path, folder: Path = FOLDER, written: Path | None = None) -> Path:
    """Compile `bounds` or `sanitized` for this machine; returns the module's path in `output`.

    `bounds` is compiled from C of its own, `sanitized` from what is `written`, as by `build`.

    Raises:
        KernelError: the sources cannot be compiled, or this machine has no compiler with sanitizers.
    """
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ccd_rig_kernel_") as scratch:
        headers = copy_headers(Path(scratch))
        if variant == "sanitized":
            built = compile_sanitized(_source(Path(scratch), folder, written), headers)
        else:
            source = write_c(module_name(folder), join(folder), Path(scratch), CHECKED)
            built = compile_c(source, require_target(), headers)
        return Path(shutil.copyfile(built, output / built.name))


def require_target() -> Target:
    """The target that this Python can load.

    Raises:
        KernelError: there is none.
    """
    target = target_of_this_machine()
    if target is None:
        raise KernelError(f"no kernel for {platform.system()} {platform.machine()}")
    return target


def write_wheel(module: Path, target: Target, version: str, output: Path) -> Path:
    """Pack a module as a wheel; returns its path. The same module makes the same bytes."""
    info = f"{DISTRIBUTION}-{version}.dist-info"
    tag = f"{PYTHON_TAG}-{target.tag}"
    files = {
        module.name: module.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"
            "Summary: The compiled kernel of CCD Rig\nLicense: GPL-3.0-or-later\nRequires-Python: >=3.11\n"
        ).encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: ccd_rig\nRoot-Is-Purelib: false\nTag: {tag}\n"
        ).encode(),
    }
    rows = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"{DISTRIBUTION}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main(arguments: list[str]) -> None:
    what, output = arguments[0], Path(arguments[1])
    written = Path(arguments[2]) if len(arguments) > 2 else None
    if what == "c":
        print(write_c(module_name(), join(), output))
        return
    if what in VARIANTS:
        print(build_variant(what, output, written=written))
        return
    here = target_of_this_machine()
    targets = [each for each in TARGETS if each != here] if what == "wheels" else [require_target()]
    with tempfile.TemporaryDirectory(prefix="ccd_rig_kernel_") as scratch:
        for module, target in zip(build(targets, Path(scratch), written=written), targets, strict=True):
            print(write_wheel(module, target, wheel_version(), output))
            if what == "module":
                print(shutil.copyfile(module, output / module.name))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KernelError as error:
        sys.exit(f"kernel: {error}")
