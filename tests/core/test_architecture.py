"""docs/development/architecture.md against the code: its drawing, and its table of what a new part takes.

Each line of the table is followed on a copy of the sources: text is inserted in the files that it names, and
the new part works.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devtools import drawing

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / drawing.PAGE


def rows() -> dict[str, set[str]]:
    """By what is added, the files that the table of the page names, from the project's root."""
    table = PAGE.read_text(encoding="utf-8").partition("## To add")[2]
    files_of = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] not in ("", "---"):
            files = re.findall(r"`([\w/]+\.py)`", cells[2])
            files_of[cells[1]] = {file if file.startswith("panels/") else f"ccd_rig/{file}" for file in files}
    return files_of


Insertions = dict[str, list[tuple[str, str]]]
"""By file from the project's root, texts that stand once in it, each with the text to insert before it."""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By what is added, how its script failed, if it did: one copy of the sources follows all lines."""
    folder = tmp_path_factory.mktemp("followed")
    for each in ("ccd_rig", "operators", "panels", "viewport"):
        copy = folder / "rig_copy" / each
        shutil.copytree(ROOT / each, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "rig_copy/__init__.py").touch()
    for insertions, _ in ADDITIONS.values():
        for name, pairs in insertions.items():
            file = folder / "rig_copy" / name
            text = file.read_text(encoding="utf-8")
            for before, inserted in pairs:
                assert text.count(before) == 1, f"{name}: {text.count(before)} times {before!r}"
                text = text.replace(before, inserted + before)
            file.write_text(text, encoding="utf-8")
    scripts = {added: script for added, (_, script) in ADDITIONS.items()}
    run = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(scripts),
        env={**os.environ, "CCD_RIG_KERNEL": "plain", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ended = run.stdout.rpartition("ENDED ")[2]
    assert ended, run.stdout + run.stderr
    return json.loads(ended)


RUN = '''
import json, os, sys, traceback
import bpy
from rig_copy import operators, panels
from rig_copy.ccd_rig import blender
blender.register(), operators.register(), panels.register()

def armature(*names):
    """Bones of 1 m in a row, active and in Pose Mode."""
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for height, name in enumerate(names):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = (0.0, 0.0, height), (0.0, 0.0, height + 1.0)
        bone.parent = rig.data.edit_bones[names[height - 1]] if height else None
    bpy.ops.object.mode_set(mode="POSE")
    return rig

def turned_target():
    target = bpy.data.objects.new("Target", None)
    target.rotation_euler = (0.0, 0.0, -1.0)
    bpy.context.scene.collection.objects.link(target)
    return target

class Layout:
    """A layout, or a panel with one, that notes what is drawn on it."""
    def __init__(self):
        self.drawn, self.layout = [], self
    def __getattr__(self, call):
        return lambda *values, **keywords: (self.drawn.append((call, values, keywords)), self)[1]
    def shown(self):
        return [values[1] for call, values, _ in self.drawn if call == "prop"]

ended = {}
for added, script in json.load(sys.stdin).items():
    bpy.ops.wm.read_homefile(use_empty=True)
    try:
        exec(compile(script, added, "exec"), dict(globals()))
        ended[added] = ""
    except Exception:
        ended[added] = traceback.format_exc()
print("ENDED", json.dumps(ended), flush=True)
os._exit(0)
'''
"""Runs scripts by what is added, each in an empty file, with the copy registered, and what they share."""


def test_the_drawing_is_up_to_date():
    """`python3 dev.py docs --drawing` draws it anew."""
    shown = PAGE.read_text(encoding="utf-8").partition(drawing.BEGIN)[2].partition(drawing.END)[0]
    assert shown == drawing.drawing(ROOT)


def test_an_arrow_that_follows_from_others_is_left_out():
    needs = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert drawing.reduced(needs) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_imports_are_read_from_all_folders():
    needs = drawing.imports(ROOT)
    assert "ccd_rig.blender.bake" in needs["operators"]
    assert {"ccd_rig.kernel", "ccd_rig.maths"} <= needs["ccd_rig.limits"]
    assert needs["ccd_rig.kernel"] == set()


@pytest.mark.parametrize("added", rows())
def test_named_files_are_there(added):
    assert rows()[added]
    for file in rows()[added]:
        assert (ROOT / file).is_file(), f"architecture.md, to add {added}: there is no {file}"


# A goal ---------------------------------------------------------------------------------------------

GOAL: Insertions = {
    "ccd_rig/goals.py": [
        (
            "GOALS: tuple[type[Goal], ...]",
            '''
@dataclass(frozen=True)
class PlaneGoal(ChainGoal):
    """A bone's tail should lie on a plane."""

    number: ClassVar[int] = 6
    label: ClassVar[str] = "plane goal on joint '{joint}'"
    target_kind: ClassVar[TargetKind] = TargetKind.POINT

    joint: str
    target: Vector
    normal: Vector
    weight: float = 1.0
    priority: int = 0
    chain_length: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        store(self, "normal", _unit(self.normal, f"{self.name}: normal"))

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        tail = (0.0, skeleton.joints[skeleton.index(self.joint)].length, 0.0)
        return {**super().row(skeleton), "goal_point": tail, "goal_axis": unit_rows([self.normal[:]])}


''',
        ),
        ("PoleGoal, BalanceGoal)\n", "PlaneGoal, "),
    ],
    "ccd_rig/public.py": [("    PoleGoal,\n", "    PlaneGoal,\n")],
    "ccd_rig/__init__.py": [('    "PoleGoal",\n', '    "PlaneGoal",\n')],
    "ccd_rig/kernel/goals.py": [
        ("ROWS = (", "PLANE = 6\n"),
        (')\n"""Rows of the residual, by kind."""', ", 1"),
        ("kind == POSITION or kind == BALANCE:", "kind == PLANE or "),
        (
            "    elif kind == BALANCE:\n        gather_mass(p)",
            """    elif kind == PLANE:
        over = dot(subtract(goal_point(p, k), target), vector_at(p.goal_axis, 3 * k))
        p.residual[row] = by_length * over
        p.distance[k] = fabs(over)
""",
        ),
        (
            "    elif kind == BALANCE:\n        balance_rows",
            """    elif kind == PLANE:
        point_row(p, row, joint, goal_point(p, k), scaled(vector_at(p.goal_axis, 3 * k), by_length))
""",
        ),
    ],
    "ccd_rig/kernel/ccd.py": [
        ("    POLE,\n", "    PLANE,\n"),
        (
            "        elif kind == BALANCE:\n            count = add_balance",
            """        elif kind == PLANE:
            end, normal = vector_at(p.effector, 3 * k), vector_at(p.goal_axis, 3 * k)
            arm, off = subtract(end, head), scaled(normal, dot(subtract(target, end), normal))
            count = add_pair(p, count, arm, add(arm, off), weight)
""",
        ),
    ],
}


GOAL_SCRIPT = """
from rig_copy.ccd_rig import *
from mathutils import Vector
skeleton, pose = planar_chain([1.0, 1.0, 1.0], [0.2, 0.2, 0.2])
names = [joint.name for joint in skeleton.joints]
plane = PlaneGoal(names[2], Vector((0.3, 0.0, 0.0)), Vector((1.0, 0.0, 0.0)))
point = PositionGoal(names[1], Vector((0.9, 0.9, 0.0)))
for solver in Solver:
    result = solve(skeleton, pose, [plane, point], SolverSettings(solver=solver))
    assert result.status is SolveStatus.CONVERGED, result
    tail = forward_kinematics(skeleton, result.pose)[2].point(Vector((0.0, 1.0, 0.0)))
    assert abs(tail.x - 0.3) < 1e-3, tail
    assert abs(result.errors[0].distance - abs(tail.x - 0.3)) < 1e-5, result
"""
"""A plane for a bone's tail: solved beside a point, by each method."""


# A limit --------------------------------------------------------------------------------------------

LIMIT: Insertions = {
    "ccd_rig/limits/shapes.py": [
        (
            "LIMITS: tuple[type[Limit], ...]",
            '''@dataclass(frozen=True)
class Ball(Limit):
    """A rotation by up to `angle` radians about any axis."""

    angle: float
    row: Row = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        store(self, "angle", within("Ball.angle", self.angle, 0.0, pi))
        store(self, "row", kind_row(4.0, (self.angle,)))

    def sample(self, random: Random) -> Quaternion:
        return next(q for q in iter(lambda: sample(None, random), None) if angle_of(q) <= self.angle)

    def outside_of(self, limit: Ball) -> str | None:
        return _range("angle", 0.0, self.angle, 0.0, limit.angle)

    def carried(self, turn: Quaternion) -> Ball:
        return self

    def rim(self, rotation: Quaternion) -> Rim | None:
        points = _rim_points((0.0, 1.0, 0.0), Cone(self.angle))
        return Rim(points, rotation @ _BONE, self.angle - angle_of(rotation))


''',
        ),
        ("ReversedLimit)\n", "Ball, "),
    ],
    "ccd_rig/public.py": [("    Comfort,\n    Cone,\n", "    Ball,\n")],
    "ccd_rig/__init__.py": [('    "Comfort",\n', '    "Ball",\n')],
    "ccd_rig/kernel/limits.py": [
        (":\n            return False\n    return True\n\n\ndef are_numbers", " and kind != 4.0"),
        (
            "    return nearest_in_box(rows, at, q)\n",
            """    if rows[at] == 4.0:
        v = Vector(q.x, q.y, q.z)
        size = length(v)
        if 2.0 * atan2(size, fabs(q.w)) <= rows[at + 6] + LIMIT_ROUNDING:
            return q
        v = scaled(v, sin(0.5 * rows[at + 6]) / size)
        return Quaternion(copysign(cos(0.5 * rows[at + 6]), q.w), v.x, v.y, v.z)
""",
        ),
        (
            "    else:\n        count, held = normals_of_swing_twist",
            """    elif rows[at] == 4.0:
        v = Vector(seen.x, seen.y, seen.z)
        count, held = 0, 0
        if length(v) > 0.0 and 2.0 * atan2(length(v), fabs(seen.w)) >= rows[at + 6] - margin:
            put_vector(normals, at_normals, scaled(v, copysign(1.0, seen.w) / length(v)))
            count = 1
""",
        ),
    ],
    "ccd_rig/blender/properties/limits.py": [
        (
            "_KINDS = (\n",
            """class BallKind(LimitKind):
    __slots__ = ()

    number = 6
    label = "Ball"
    description = "The bone turns by the same angle about every axis"
    swings = (("ball_angle", (1.0, 0.0, 0.0)),)

    def value(self, group: Any) -> Limit:
        from ...limits.shapes import Ball

        return Ball(_radians(group.ball_angle))

    def values(self, limit: Limit | None) -> Mapping[str, Any] | None:
        from ...limits.shapes import Ball

        return {"ball_angle": limit.angle} if isinstance(limit, Ball) else None

    def lines(self, group: Any) -> Iterator[Line]:
        yield Line((Shown(group, "ball_angle"),))


""",
        ),
        ('    EulerKind("EULER"),\n', '    BallKind("BALL"),\n'),
        (
            "    x_lower: _angle(",
            '    ball_angle: _angle("Angle", "Largest turn about any axis", math.pi / 4, 0.0, math.pi)\n',
        ),
    ],
}


LIMIT_SCRIPT = """
import random
import bpy
from mathutils import Quaternion, Vector
from rig_copy.ccd_rig import *
from rig_copy.ccd_rig.blender.limit_sources import bones
from rig_copy.ccd_rig.blender.properties.joints import joint_settings
from rig_copy.ccd_rig.blender.properties.limits import limit_value, store_limits
from rig_copy.ccd_rig.blender.viewport import limits
from rig_copy.panels import bone as panel

ball, rng = Ball(0.3), random.Random(0)
assert all(contains(ball, sample(ball, rng), 1e-9) for _ in range(20))
away = Quaternion(Vector((1.0, 2.0, 3.0)).normalized(), 1.0)
assert abs(clamp(ball, away).angle - 0.3) < 1e-5
upper, lower = Joint("a", limit=ball), Joint("b", 0, Vector((0.0, 1.0, 0.0)), limit=ball)
skeleton = Skeleton([upper, lower])
goal = PositionGoal("b", Vector((0.3, 1.965, 0.0)))
result = solve(skeleton, Pose.rest(skeleton), [goal])
assert result.status is SolveStatus.CONVERGED, result
result = solve(skeleton, Pose.rest(skeleton), [PositionGoal("b", Vector((2.0, 0.0, 0.0)))])
assert result.status is SolveStatus.OPTIMAL, result
assert all(contains(ball, q) for q in result.pose.rotations)

rig = armature("bone")
bone = rig.pose.bones["bone"]
store_limits({bone: ball})
group = bone.ccd_rig.limit
assert group.kind == "BALL" and abs(limit_value(group).angle - 0.3) < 1e-6
assert abs(joint_settings(rig, ["bone"])["bone"]["limit"].angle - 0.3) < 1e-6
(handle,) = limits.handles(group, limit_value(group), Quaternion())
limits.drag_to(group, handle, 0.5)
assert abs(group.ball_angle - 0.5) < 1e-6
assert bones.has_bound(bone, "SWING") and not bones.has_bound(bone, "MIN")
assert limit_value(group).rim(Quaternion()).margin > 0.4

rig.data.bones.active = rig.data.bones["bone"]
layout = Layout()
panel.CCD_RIG_PT_bone.draw(layout, bpy.context)
assert "ball_angle" in layout.shown()
"""
"""The same angle about every axis: held by solves, drawn, stored, dragged, set at a pose and shown."""


# A kind of constraint -------------------------------------------------------------------------------

KIND: Insertions = {
    "ccd_rig/blender/properties/constraint_kinds.py": [
        (
            "# All kinds ---",
            '''class Align(Reach):
    """An axis of the bone points along an axis of the target."""

    __slots__ = ()

    number = 3
    label = "Align"
    description = "An axis of the bone points along an axis of the target, wherever that is"
    icon = "CON_TRACKTO"
    unused = (*Reach.unused, "method")
    fixed = MappingProxyType({"use_position": False, "rotation": "DIRECTION"})
    panels = ("importance",)

    def chain_length(self, _armature_object: bpy.types.Object, _tip: str) -> int:
        return 1

    def problems(
        self, armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, _keeps_body: bool
    ) -> Iterator[Problem]:
        if all(armature_object.pose.bones[constraint.tip].lock_rotation):
            yield Problem("ERROR", constraint.name, f"Constraint '{constraint.name}': unlock its bone")

    def lines(self, constraint: Any) -> Iterator[Line]:
        yield Line((Shown(constraint, "bone_axis"), Shown(constraint, "target_axis")), heading="Axes")


''',
        ),
        ("Plant(PLANT))}", 'Align("ALIGN"), '),
    ]
}


KIND_SCRIPT = """
import bpy
from mathutils import Vector
from rig_copy.ccd_rig.blender import checks, setup_files
from rig_copy.ccd_rig.blender.properties import constraint_kinds, constraint_list
from rig_copy.panels import constraints

target, rig = turned_target(), armature("upper", "lower")
row = constraint_list.add(rig, "Aligned", "lower")
row.target = target
assert bpy.ops.ccd_rig.constraint_kind(kind="ALIGN") == {"FINISHED"}
assert (row.kind, row.chain_length) == ("ALIGN", 1)
assert constraint_kinds.value_of(row).rotation == "DIRECTION"
assert setup_files.setup_of(rig).constraints[0]["kind"] == "ALIGN"

rig.pose.bones["lower"].lock_rotation = (True, True, True)
assert "unlock its bone" in str(checks.problems(rig, bpy.context.scene))
rig.pose.bones["lower"].lock_rotation = (False, False, False)
assert not checks.problems(rig, bpy.context.scene)

layout = Layout()
constraints._draw_row(layout, bpy.context, rig, row)
shown = layout.shown()
assert "bone_axis" in shown and "target_axis" in shown and "use_position" not in shown, shown
menu = next(keywords for call, _, keywords in layout.drawn if call == "operator_menu_enum")
assert (menu["text"], menu["icon"]) == ("Align", "CON_TRACKTO")
assert not constraints.CCD_RIG_PT_rotation.poll(bpy.context)
assert constraints.CCD_RIG_PT_importance.poll(bpy.context)

assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
bpy.context.view_layer.update()
along = target.matrix_world.to_quaternion() @ Vector((0.0, 1.0, 0.0))
points = rig.pose.bones["lower"].matrix.to_quaternion() @ Vector((0.0, 1.0, 0.0))
assert points.angle(along) < 2e-3, points
"""
"""An axis along a target's: chosen, stored, checked, shown and solved on a real armature."""


# A setting of a constraint --------------------------------------------------------------------------

SETTING_OF_A_CONSTRAINT: Insertions = {
    "ccd_rig/blender/properties/constraint_values.py": [
        (
            "    effector_offset: tuple",
            '    forward: bool = SETTING.boolean("Forward", "Point to it, not away", default=True)\n',
        )
    ],
    "ccd_rig/blender/properties/constraint_kinds.py": [
        (
            "        wanted.append(DirectionGoal(",
            "        axis = axis if constraint.forward else -axis\n",
        ),
        (
            '        end = Shown(constraint, "use_tail", is_active',
            '        yield Line((Shown(constraint, "forward"),))\n',
        ),
    ],
}


SETTING_OF_A_CONSTRAINT_SCRIPT = """
import bpy
from mathutils import Vector
from rig_copy.ccd_rig.blender import setup_files
from rig_copy.ccd_rig.blender.properties import constraint_kinds, constraint_list
from rig_copy.panels import constraints

target, rig = turned_target(), armature("bone")
row = constraint_list.add(rig, "Pointing", "bone")
row.target, row.use_position, row.rotation = target, False, "DIRECTION"
assert constraint_kinds.value_of(row).forward is True, "not its default"
assert "forward" not in setup_files.setup_of(rig).constraints[0]

layout = Layout()
constraints._draw_row(layout, bpy.context, rig, row)
assert "forward" in layout.shown()

along = target.rotation_euler.to_matrix() @ Vector((0.0, 1.0, 0.0))
for forward, wanted in ((True, along), (False, -along)):
    row.forward = forward
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.context.view_layer.update()
    points = rig.pose.bones["bone"].matrix.to_quaternion() @ Vector((0.0, 1.0, 0.0))
    assert points.angle(wanted) < 2e-3, (forward, points)
setup = setup_files.setup_of(rig)
assert setup.constraints[0]["forward"] is False
row.property_unset("forward")
setup_files.apply(rig, setup)
assert row.forward is False
"""
"""Whether an axis points away from the target's: stored, saved, shown and solved."""


# An order of joints ---------------------------------------------------------------------------------

ORDER: Insertions = {
    "ccd_rig/settings.py": [("\n\nclass Solver(enum.Enum):", '    BY_TWOS = "BY_TWOS"\n')],
    "ccd_rig/kernel/ccd.py": [
        ("LARGEST_ERROR = 6\n", "BY_TWOS = 7\n"),
        (
            "    else:\n        longest = largest_first",
            """    elif order == BY_TWOS:
        for first in range(2):
            for n in range(first, count, 2):
                longest = max(longest, visit(p, p.moving[n], fraction))
""",
        ),
    ],
    "ccd_rig/kernel/pose.py": [(':\n        raise ValueError("kernel: unknown order', " + 1")],
    "ccd_rig/blender/properties/solver_settings.py": [
        (
            "    (Sweep.LARGEST_ERROR,",
            '    (Sweep.BY_TWOS, "By Twos", "Every other bone from the root, then those between", 7),\n',
        )
    ],
}


ORDER_SCRIPT = """
import bpy
from mathutils import Vector
from rig_copy.ccd_rig import *
from rig_copy.ccd_rig.blender.properties.solver_settings import solver_settings
skeleton, pose = planar_chain([1.0] * 5, [0.2] * 5)
goal = PositionGoal(skeleton.joints[-1].name, Vector((1.0, 2.0, 0.0)), Vector((0.0, 0.0, 0.0)))
poses = set()
for sweep in (Sweep.BY_TWOS, Sweep.ROOT_TO_TIP, Sweep.LARGEST_ERROR):
    result = solve(skeleton, pose, [goal], SolverSettings(solver=Solver.CCD, sweep=sweep))
    assert result.status is SolveStatus.CONVERGED, result
    poses.add(tuple(tuple(q) for q in result.pose.rotations))
assert len(poses) == 3
rig = armature("bone")
rig.ccd_rig.solver.sweep = "BY_TWOS"
assert solver_settings(rig).sweep is Sweep.BY_TWOS
"""
"""Every other joint, then those between: solved by CCD, and chosen on an armature."""


# A setting of the solver ----------------------------------------------------------------------------


SETTING_OF_THE_SOLVER: Insertions = {
    "ccd_rig/settings.py": [
        ("        comfort: whether", "        eagerness: how eager it is.\n"),
        ("    comfort: bool = True\n", "    eagerness: int = 3\n"),
    ]
}
SETTING_OF_THE_SOLVER_SCRIPT = """
import bpy
from rig_copy.ccd_rig.blender.properties.solver_settings import solver_settings
from rig_copy.ccd_rig.blender import setup_files
rig = armature("bone")
group = rig.ccd_rig.solver
assert group.bl_rna.properties["eagerness"].description == "How eager it is", "no tooltip"
assert group.eagerness == 3
group.eagerness = 5
assert solver_settings(rig).eagerness == 5
assert setup_files.setup_of(rig).rig["solver"]["eagerness"] == 5
"""
"""Its property, tooltip, value and place in set-up files come from one file."""


# A setting of a bake --------------------------------------------------------------------------------


SETTING_OF_A_BAKE: Insertions = {
    "ccd_rig/blender/bake/settings.py": [
        ("        switch_to_fk: whether", "        eagerness: how eager it is.\n"),
        ("    switch_to_fk: bool = True\n", "    eagerness: int = 3\n"),
    ]
}
SETTING_OF_A_BAKE_SCRIPT = """
import bpy
from rig_copy.ccd_rig.blender.bake import settings, start
from rig_copy.ccd_rig.blender.cli import bake_command, command_line
from rig_copy.panels import bake as panel
rig = armature("bone")
options = rig.ccd_rig.bake
assert options.bl_rna.properties["eagerness"].description == "How eager it is", "no tooltip"
assert "eagerness" in bpy.ops.ccd_rig.bake.get_rna_type().properties
assert options.eagerness == 3
options.eagerness = 5
made = settings.bake_settings(bpy.context.scene, options, rig, (1, 10))
assert made.eagerness == 5
usual = settings.BakeSettings(1, 10)
assert start.fingerprint(made) != start.fingerprint(usual)
words = command_line.parse(["bake", "shot.blend", "--eagerness", "7"])
assert bake_command.bake_settings(words, bpy.context.scene).eagerness == 7
assert bake_command.bake_settings(command_line.parse(["bake"]), bpy.context.scene).eagerness == 3

layout = Layout()
panel.CCD_RIG_PT_bake_more.draw(layout, bpy.context)
assert layout.shown()[-3:] == ["eagerness", "switch_to_fk", "verify"], layout.shown()
"""
"""Its property, tooltip, word, place in the panel and fingerprint come from one file."""


ADDITIONS = {
    "a goal": (GOAL, GOAL_SCRIPT),
    "a limit": (LIMIT, LIMIT_SCRIPT),
    "a kind of constraint": (KIND, KIND_SCRIPT),
    "a setting of a constraint": (SETTING_OF_A_CONSTRAINT, SETTING_OF_A_CONSTRAINT_SCRIPT),
    "an order of joints": (ORDER, ORDER_SCRIPT),
    "a setting of the solver": (SETTING_OF_THE_SOLVER, SETTING_OF_THE_SOLVER_SCRIPT),
    "a setting of a bake": (SETTING_OF_A_BAKE, SETTING_OF_A_BAKE_SCRIPT),
}
"""By the lines of the table: what is inserted, and the script that needs it."""


@pytest.mark.parametrize("added", ADDITIONS)
def test_a_line_of_the_table_is_followed(failures, added):
    """Texts are inserted in exactly the files that the line names, and what is added works."""
    assert {file for file in ADDITIONS[added][0] if not file.endswith(".pxd")} == rows()[added]
    assert not failures[added], failures[added]
