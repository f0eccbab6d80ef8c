"""Types of what the kernel's `__init__.py` takes from its modules, compiled or plain."""

ENTRIES: tuple[tuple[str, tuple[str, ...]], ...]

def why_plain() -> str: ...
