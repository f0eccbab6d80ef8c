"""Where the mass of a bone sits, and how long it counts, where importers have invented its tail."""

from __future__ import annotations

import bpy
import pytest
import rigs
from mathutils import Vector
from rigs import B

FLOAT32 = 1e-5


@pytest.fixture
def armature(ext):
    return ext.module("ccd_rig.blender.rig.armature")


def invented(rig, way=(0.0, 1.0, 0.0)):
    """Tails along one axis, as far away as the nearest child, as an importer of glTF makes them."""
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    for bone in bones:
        bone.use_connect = False
    for bone in bones:
        lengths = [(child.head - bone.head).length for child in bone.children]
        bone.tail = bone.head + min(lengths, default=bone.length) * Vector(way)
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.update()
    return rig


ARM = [
    B("upper", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    B("fore", (1.0, 0.0, 0.0), (1.0, 0.0, 3.0), "upper"),
    B("hand", (1.0, 0.0, 3.0), (1.0, 0.0, 8.0), "fore"),
    B("thumb", (2.0, 0.0, 4.0), (2.0, 0.0, 5.0), "hand"),
    B("finger", (0.0, 0.0, 4.0), (0.0, 0.0, 4.5), "hand"),
]


def test_invented_tails_count_for_nothing(armature):
    """Known by hand: from head to the child's head; to the middle of two; on from the parent without any."""
    rig = invented(rigs.armature(ARM))
    lengths = armature.mass_lengths(rig.data)
    around = 2.0**0.5
    assert lengths == pytest.approx({"upper": 1, "fore": 3, "hand": around, "thumb": 1, "finger": 0.5})
    middles = {bone.name: armature.mass_middle(bone) for bone in rig.pose.bones}
    there = {
        "upper": (0.5, 0.0, 0.0),
        "fore": (1.0, 0.0, 1.5),
        "hand": (1.0, 0.0, 3.5),
        "thumb": (2.0 + 0.5 / around, 0.0, 4.0 + 0.5 / around),
        "finger": (-0.25 / around, 0.0, 4.0 + 0.25 / around),
    }
    for name, place in there.items():
        assert (middles[name] - Vector(place)).length < FLOAT32, name


def test_tails_that_meet_children_count(armature):
    """Those of a rig that was made by hand; also of bones whose own children begin elsewhere."""
    rig = rigs.armature([*ARM, B("apart", (3.0, 0.0, 9.0), (3.0, 0.0, 9.5), "hand")])
    assert armature.mass_lengths(rig.data) == pytest.approx(
        {bone.name: bone.length for bone in rig.data.bones}
    )
    for bone in rig.pose.bones:
        assert (armature.mass_middle(bone) - 0.5 * (bone.head + bone.tail)).length < FLOAT32
    rig.data.bones["fore"].use_deform = False
    assert "fore" not in armature.mass_lengths(rig.data)


def test_children_that_do_not_deform_end_no_bone(armature):
    """A socket for a sword, a meter off, makes no hand longer."""
    rig = invented(rigs.armature([*ARM, B("socket", (1.0, 9.0, 3.0), (1.0, 9.0, 4.0), "hand")]))
    rig.data.bones["socket"].use_deform = False
    assert armature.mass_lengths(rig.data)["hand"] == pytest.approx(2.0**0.5)


def test_a_bone_alone_keeps_its_tail(armature):
    rig = invented(rigs.armature([*ARM, B("ball", (5.0, 0.0, 0.0), (5.0, 0.0, 2.0))]))
    assert armature.mass_lengths(rig.data)["ball"] == pytest.approx(2.0)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_balance_is_the_same_with_invented_tails(bake, armature, scale):
    """A chain whose joints are where they were: only the last bone's end is not known, and it has no mass."""
    bones = [B(f"bone_{i}", (0, 0, i), (0, 0, i + 1), f"bone_{i - 1}" if i else None) for i in range(5)]
    places = []
    for is_invented in (False, True):
        rig = rigs.armature(bones)
        if is_invented:
            invented(rig)
        for i in range(4):
            rig.pose.bones[f"bone_{i}"].ccd_rig.mass = 1.0 + i
        rig.pose.bones["bone_0"].scale = (scale,) * 3
        rigs.activate(rig)
        bpy.ops.object.mode_set(mode="POSE")
        rig.data.bones.active = rig.data.bones["bone_3"]
        assert bpy.ops.ccd_rig.constraint_add(kind="BALANCE", chain_length=3) == {"FINISHED"}
        bpy.ops.object.mode_set(mode="OBJECT")
        (row,) = rig.ccd_rig.constraints
        start = (1 * 0.5 + 2 * 1.5 + 3 * 2.5 + 4 * 3.5) / 10.0 * scale
        assert (row.target.matrix_world.translation - Vector((0, 0, start))).length < FLOAT32
        row.target.location += Vector((0.4, 0.2, -0.1))
        rigs.update()
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
        assert report.unsolved() == (), report.summary()
        bpy.context.scene.frame_set(2)
        seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        heads = [seen.matrix_world @ seen.pose.bones[f"bone_{i}"].head for i in range(5)]
        middles = [(1.0 + i) * 0.5 * (heads[i] + heads[i + 1]) for i in range(4)]
        aside = sum(middles, Vector()) / 10.0 - row.target.matrix_world.translation
        assert Vector([each * on for each, on in zip(aside, row.balance_axes, strict=True)]).length < 1e-4
        places.append(heads)
    for made, guessed in zip(*places, strict=True):
        assert (made - guessed).length < 1e-3
