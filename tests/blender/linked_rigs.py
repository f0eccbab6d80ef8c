"""Armatures that come from a library: linked, and overridden."""

from __future__ import annotations

import bpy


def linked(rig, folder):
    """Save an armature as a library in a folder; in a new file, it linked from there."""
    name, path = rig.name, str(folder / "library.blend")
    bpy.data.libraries.write(path, {rig})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = [name]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    return wanted.objects[0]


def override_of(rig):
    """A library override of a linked armature, which may be changed."""
    made = rig.override_create(remap_local_usages=True)
    made.override_library.is_system_override = False
    return made


def overridden(rig, folder):
    """Save an armature as a library in a folder; in a new file, an override of it."""
    return override_of(linked(rig, folder))


def collected(rig):
    """Move an armature from the scene's collection to one of its own, and return the armature."""
    own = bpy.data.collections.new("Character")
    bpy.context.scene.collection.children.link(own)
    own.objects.link(rig)
    bpy.context.scene.collection.objects.unlink(rig)
    return rig


def character(rig, folder):
    """Save an armature's collection as a library in a folder; in a new file, an override of all in it."""
    (own,) = rig.users_collection
    name, path = own.name, str(folder / "library.blend")
    bpy.data.libraries.write(path, {own})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.collections = [name]
    scene, layer = bpy.context.scene, bpy.context.view_layer
    made = wanted.collections[0].override_hierarchy_create(scene, layer, do_fully_editable=True)
    return next(each for each in made.all_objects if each.type == "ARMATURE")
