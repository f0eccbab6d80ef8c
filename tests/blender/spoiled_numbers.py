"""Numbers of the constraint, the joints and the solver that make no sense."""

from __future__ import annotations

from sound_rig import NAN, hand, limit, set_raw, spoil_key


def chain_length_negative(rig):
    set_raw(hand(rig), "chain_length", -3)


def weight_zero(rig):
    set_raw(hand(rig), "weight", 0.0)


def weight_is_nan(rig):
    hand(rig).weight = NAN


def influence_zero(rig):
    hand(rig).influence = 0.0


def influence_is_nan(rig):
    hand(rig).influence = NAN


def influence_becomes_nan(rig):
    spoil_key(rig, "ccd_rig.constraints[0].influence", 4, NAN)


def stiffness_is_nan(rig):
    rig.pose.bones["bone_1"].ccd_rig.stiffness = NAN


def max_step_is_nan(rig):
    rig.pose.bones["bone_1"].ccd_rig.max_step = NAN


def solver_tolerance_is_nan(rig):
    rig.ccd_rig.solver.position_tolerance = NAN


def step_fraction_is_nan(rig):
    rig.ccd_rig.solver.step_fraction = NAN


def hinge_contradicts_itself(rig):
    limit(rig, kind="HINGE", hinge_lower=1.0, hinge_upper=0.5)


def hinge_without_axis(rig):
    limit(rig, kind="HINGE", axis=(0, 0, 0))


def hinge_axis_is_nan(rig):
    limit(rig, kind="HINGE", axis=(0, NAN, 0))


def hinge_is_nan(rig):
    limit(rig, kind="HINGE", hinge_upper=NAN)


def cone_is_nan(rig):
    limit(rig, kind="CONE", cone_radius=NAN)


def ellipse_is_nan(rig):
    limit(rig, kind="ELLIPSE", z_lower=NAN)


def twist_contradicts_itself(rig):
    limit(rig, kind="TWIST", twist_lower=0.4, twist_upper=0.1)


def euler_contradicts_itself(rig):
    limit(rig, kind="EULER", euler_lower=(0, 1.0, 0), euler_upper=(1, 0.5, 1))


def euler_is_nan(rig):
    limit(rig, kind="EULER", euler_lower=(NAN, 0, 0))


def limit_of_another_version(rig):
    set_raw(rig.pose.bones["bone_1"].ccd_rig.limit, "kind", 99)


def euler_order_of_another_version(rig):
    limit(rig, kind="EULER")
    set_raw(rig.pose.bones["bone_1"].ccd_rig.limit, "euler_order", 99)


def kind_of_another_version(rig):
    set_raw(rig.ccd_rig.constraints["Hand"], "kind", 99)


def method_of_another_version(rig):
    set_raw(rig.ccd_rig.constraints["Hand"], "method", 99)


def sweep_of_another_version(rig):
    set_raw(rig.ccd_rig.solver, "sweep", 99)


def comfort_outside_the_limit(rig):
    limit(rig, kind="HINGE", hinge_lower=0.0, hinge_upper=0.5)
    region = rig.pose.bones["bone_1"].ccd_rig.comfort.region
    region.kind, region.hinge_lower, region.hinge_upper = "HINGE", -0.5, 0.3


def comfort_contradicts_itself(rig):
    region = rig.pose.bones["bone_1"].ccd_rig.comfort.region
    region.kind, region.hinge_lower, region.hinge_upper = "HINGE", 0.5, 0.3


def comfort_tolerance_is_nan(rig):
    rig.pose.bones["bone_1"].ccd_rig.comfort.tolerance = NAN
