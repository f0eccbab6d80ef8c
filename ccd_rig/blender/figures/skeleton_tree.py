# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones at rest as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .role import RestBone


class SkeletonTree:
    """Bones by name, with their children in the order in which they were given."""

    def __init__(self, bones: Iterable[RestBone]) -> None:
        self.bones = {bone.name: bone for bone in bones}
        self.children: dict[str, list[str]] = {name: [] for name in ("", *self.bones)}
        for bone in self.bones.values():
            parent = bone.parent if bone.parent in self.bones else ""
            self.children[parent].append(bone.name)

    def ancestors(self, name: str) -> Iterator[str]:
        """The bone itself and all above it, upwards."""
        while name in self.bones:
            yield name
            name = self.bones[name].parent

    def below(self, name: str) -> Iterator[str]:
        """The bone itself and all below it, parents first; an empty name stands for what roots hang on."""
        left = [name]
        while left:
            name = left.pop()
            yield name
            left += reversed(self.children[name])

    def is_below(self, name: str, above: str) -> bool:
        """Whether a bone is another one, or hangs on it."""
        return above in self.ancestors(name)

    def path(self, above: str, below: str) -> list[str]:
        """Bones from one to another below it, both included; empty where the second does not hang on it."""
        found: list[str] = []
        for name in self.ancestors(below):
            found.append(name)
            if name == above:
                return found[::-1]
        return []

    def common(self, one: str, other: str) -> str:
        """The lowest bone on which both hang, or which is one of them; empty for none."""
        above = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in above), "")
