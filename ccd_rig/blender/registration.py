# SPDX-License-Identifier: GPL-3.0-or-later
"""What is registered in Blender: properties with their callbacks, and the classes of a package."""

import enum
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from functools import cache, partialmethod
from importlib import import_module
from math import inf
from pkgutil import iter_modules
from typing import Any, TypeVar

from bpy import app, props, utils

from ..errors import InvalidInput


class Declare:
    """Declares properties that share options, each with a label and a tooltip."""

    def __init__(self, **shared: Any) -> None:
        """Take the keywords that all properties get."""
        self._shared = shared

    def _declare(self, function: Any, name: str, description: str, **keywords: Any) -> Any:
        return self.declared(function(name=name, description=description, **{**self._shared, **keywords}))

    def declared(self, declared: Any) -> Any:
        """Return what stands for a property in its class: the property."""
        return declared

    boolean = partialmethod(_declare, props.BoolProperty)
    booleans = partialmethod(_declare, props.BoolVectorProperty)
    integer = partialmethod(_declare, props.IntProperty)
    number = partialmethod(_declare, props.FloatProperty)
    vector = partialmethod(_declare, props.FloatVectorProperty)
    text = partialmethod(_declare, props.StringProperty)
    enum = partialmethod(_declare, props.EnumProperty)
    pointer = partialmethod(_declare, props.PointerProperty)

    def of(self, table: type, name: str, /, **shown: Any) -> Any:
        """Declare the property of a field of a dataclass: a switch, a number, or a name of an enum.

        Label, default, range and tooltip are the field's; keywords in `shown` take their place.
        """
        each = next(each for each in fields(table) if each.name == name)
        least, most = each.metadata.get("range", (-inf, inf))
        keywords = {
            "name": name.replace("_", " ").title(),
            "default": each.default.name if isinstance(each.default, enum.Enum) else each.default,
            **({"min": least} if least > -inf else {}),
            **({"max": most} if most < inf else {}),
            **shown,
        }
        if "description" not in shown:
            keywords["description"] = field_help(table, name)
        if "items" in shown:
            return self.enum(**keywords)
        if isinstance(each.default, bool):  # before int: a bool is one
            return self.boolean(**keywords)
        return (self.integer if isinstance(each.default, int) else self.number)(**keywords)

    def rows(self, name: str, description: str, **keywords: Any) -> Any:
        """Declare a collection; a library override that may change it may also add rows."""
        if "override" in self._shared:
            keywords["override"] = self._shared["override"] | {"USE_INSERTION"}
        return self._declare(props.CollectionProperty, name, description, **keywords)


def field_help(table: type, name: str) -> str:
    """Return the line of a dataclass's docstring on a field as a tooltip: no unit, source or full stop."""
    lines = _attributes(table)
    if name not in lines:
        raise InvalidInput(f"{table.__name__}'s docstring does not say what '{name}' is")
    words = _ASIDE.sub("", " ".join(lines[name].split())).rstrip(".")
    return words[:1].upper() + words[1:]


_ATTRIBUTE = re.compile(r"^ +(\w+): (.*?)(?=^ +\w+: |^ *$|\Z)", re.MULTILINE | re.DOTALL)
_ASIDE = re.compile(r" \([A-Z][^()]*\)| \[[^\[\]]*\]")


@cache
def _attributes(table: type) -> dict[str, str]:
    """Return the lines of a dataclass's docstring by field."""
    return dict(_ATTRIBUTE.findall((table.__doc__ or "").partition("Attributes:")[2]))


class DeclareFields(Declare):
    """Declares fields of a dataclass, each by the property that stores it, whose default is the field's."""

    def declared(self, declared: Any) -> Any:
        """Return the field of a property; that of a pointer holds the name of the object."""
        keywords = declared.keywords
        if "items" in keywords:
            default = keywords.get("default", keywords["items"][0][0])
        elif "size" in keywords:
            default = keywords.get("default", (0.0,) * keywords["size"])
        else:
            default = keywords.get("default", _EMPTY[declared.function])
        return field(default=default, metadata={"property": declared, "declare": self})


_EMPTY: dict[Any, Any] = {
    props.BoolProperty: False,
    props.FloatProperty: 0.0,
    props.IntProperty: 0,
    props.PointerProperty: "",
    props.StringProperty: "",
}


def properties_of(table: Any) -> dict[str, Any]:
    """Return the properties that store the fields of a dataclass, by name; see `DeclareFields`."""
    return {each.name: each.metadata["property"] for each in fields(table) if "property" in each.metadata}


OVERRIDE = {"LIBRARY_OVERRIDABLE"}
STORED = Declare(override=OVERRIDE)
"""Properties of armatures and bones, which a library override may change."""
UNANIMATED = Declare(override=OVERRIDE, options=set())
"""Like `STORED`, without keys and drivers."""
SETTING = DeclareFields(override=OVERRIDE)
"""Settings of a constraint: fields of a dataclass, stored by properties as those of `STORED`."""
KEYED = DeclareFields(override=OVERRIDE)
"""Like `SETTING`, of settings that a bake reads at every frame if keys or drivers move them."""
LAST = Declare()
"""Properties that keep their value, such as options of commands from call to call."""
ONCE = Declare(options={"SKIP_SAVE"})
"""Options of commands that have their default in each call."""
HIDDEN = Declare(options={"HIDDEN", "SKIP_SAVE"})
"""Like `ONCE`, not shown."""


class Calls:
    """Functions that properties call, which are attached only while the classes are registered.

    The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._plain: list[tuple[dict[str, Any], str, Any]] = []

    def attach(self, group: Any, names: Iterable[str], **functions: Callable[..., Any]) -> None:
        """Let properties of a class that is not registered yet call functions, such as `update`."""
        declared = group.__annotations__
        for name in names:
            plain = declared[name]
            self._plain.append((declared, name, plain))
            declared[name] = plain.function(**plain.keywords, **functions)

    def detach(self) -> None:
        """Restore the plain properties after the classes were unregistered."""
        while self._plain:
            declared, name, plain = self._plain.pop()
            declared[name] = plain


waiting: list[Callable[[], None]] = []
"""What begins with the first use of the extension; empty once it has begun."""


def use() -> None:
    """Note that the extension is used: what listens to Blender begins."""
    for begin in list(waiting):
        begin()


Handler = TypeVar("Handler", bound=Callable[..., None])


class Handlers:
    """Functions of a module that Blender calls on events while they are registered."""

    def __init__(self) -> None:
        """Start without any."""
        self._functions: list[tuple[str, Any]] = []

    def on(self, *events: str) -> Callable[[Handler], Handler]:
        """Decorate a function to call on events, which `bpy.app.handlers` names; opened files keep it."""

        def added(function: Handler) -> Handler:
            self._functions += [(event, app.handlers.persistent(function)) for event in events]
            return function

        return added

    def register(self) -> None:
        """Let Blender call the functions, unless it does already."""
        for event, function in self._functions:
            if function not in getattr(app.handlers, event):
                getattr(app.handlers, event).append(function)

    def unregister(self) -> None:
        """Let Blender call them no more."""
        for event, function in self._functions:
            if function in getattr(app.handlers, event):  # unless another add-on has cleared the list
                getattr(app.handlers, event).remove(function)


def classes_in(package: str, files: Sequence[str] = ()) -> list[type]:
    """Return the classes CCD_RIG_* of modules of a package, in the order of modules and definitions.

    `files`: names of the modules; empty for all.
    """
    names = files or [info.name for info in iter_modules(import_module(package).__path__)]
    modules = [import_module(f"{package}.{name}") for name in names]
    return [
        member
        for module in modules
        for name, member in vars(module).items()
        if name.startswith("CCD_RIG_") and isinstance(member, type) and member.__module__ == module.__name__
    ]


def register_classes(package: str, files: Sequence[str] = ()) -> None:
    """Register the classes of `classes_in`."""
    for each in classes_in(package, files):
        utils.register_class(each)


def unregister_classes(package: str, files: Sequence[str] = ()) -> None:
    """Unregister the classes of `classes_in`, in the opposite order."""
    for each in reversed(classes_in(package, files)):
        utils.unregister_class(each)
