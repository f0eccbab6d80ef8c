# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones at rest as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .role import RestBone


class SkeletonTree:
    """Bones by name, with their children in the order of the bones."""

    def __init__(self, bones: Iterable[RestBone]) -> None:
        self.bones = {bone.name: bone for bone in bones}
        self.children: dict[str, list[str]] = {name: [] for name in ("", *self.bones)}
        for bone in self.bones.values():
            parent = bone.parent if bone.parent in self.bones else ""
            self.children[parent].append(bone.name)

    def ancestors(self, name: str) -> Iterator[str]:
        """Yield a bone and its ancestors, upwards."""
        while name in self.bones:
            yield name
            name = self.bones[name].parent

    def below(self, name: str) -> Iterator[str]:
        """Yield a bone and its descendants, parents first; the empty name is the parent of roots."""
        left = [name]
        while left:
            name = left.pop()
            yield name
            left += reversed(self.children[name])

    def is_below(self, name: str, above: str) -> bool:
        """Whether a bone is `above`, or a descendant of it."""
        return above in self.ancestors(name)

    def path(self, above: str, below: str) -> list[str]:
        """Bones from an ancestor to a descendant, both included; empty if they are not related so."""
        upwards: list[str] = []
        for name in self.ancestors(below):
            upwards.append(name)
            if name == above:
                return upwards[::-1]
        return []

    def common(self, one: str, other: str) -> str:
        """Lowest common ancestor, which may be one of the two bones; empty without one."""
        above = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in above), "")
