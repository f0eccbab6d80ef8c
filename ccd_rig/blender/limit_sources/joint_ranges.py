# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranges of motion of joints, degrees. docs/guide/limit_presets.md has the same numbers with their sources.

HUMAN counts from the anatomical position: upright, arms hanging, feet flat.

- American Academy of Orthopaedic Surgeons, "Joint Motion: Method of Measuring and Recording", Chicago 1965:
  limbs, spine, fingers, toes. Norkin & White, "Measurement of Joint Motion", gives these values among others.
- Neumann, "Kinesiology of the Musculoskeletal System": the clavicle. Its elevation is part of the arm's 180.

DOG has angles inside the joint; 180 is straight. Jaegger, Marcellin-Little & Levine measured them on 16
Labrador Retrievers: "Reliability of goniometry in Labrador Retrievers", American Journal of Veterinary
Research 63, 2002, 979-986. Comments mark values that are chosen, since no measurement is published.
"""

from __future__ import annotations

HUMAN: dict[str, dict[str, float]] = {
    "lumbar and thoracic spine": {"flexion": 80, "extension": 25, "bending": 35, "rotation": 45},
    "cervical spine": {"flexion": 45, "extension": 45, "bending": 45, "rotation": 60},
    "clavicle": {"elevation": 45, "depression": 10, "protraction": 30, "retraction": 30},
    # 20 of the 75 of adduction: beyond it the trunk is in the way, except in front of the chest. 45 if the
    # arm is spread at rest: an ellipse about that pose would leave a hanging arm too little to the back.
    "shoulder": {
        "abduction": 180,
        "adduction": 20,
        "adduction, spread": 45,
        "flexion": 180,
        "extension": 60,
        "horizontal flexion": 135,
        "horizontal extension": 45,
        "internal rotation": 70,
        "external rotation": 90,
    },
    # 5 degrees short of straight: the side to which elbow and knee bend is then always defined.
    "elbow": {"extension to": 5, "flexion": 150},
    "forearm": {"pronation": 80, "supination": 80},
    "wrist": {"flexion": 80, "extension": 70, "radial deviation": 20, "ulnar deviation": 30},
    "hip": {
        "flexion": 120,
        "extension": 30,
        "abduction": 45,
        "adduction": 30,
        "internal rotation": 45,
        "external rotation": 45,
    },
    "knee": {"extension to": 3, "flexion": 135},
    # The toes turn in and out below the ankle; 20 degrees of it are allowed to either side.
    "ankle": {"dorsiflexion": 20, "plantarflexion": 50, "inversion": 35, "eversion": 15, "turning": 20},
    "toes": {"extension": 70, "flexion": 45},
    "finger, first joint": {"flexion": 90, "extension": 45, "spreading": 20},
    "finger, second joint": {"extension": 0, "flexion": 100},
    "finger, last joint": {"extension": 0, "flexion": 90},
    "thumb, first joint": {"flexion": 15, "extension": 20, "abduction": 70, "adduction": 0},
    "thumb, second joint": {"extension": 0, "flexion": 50},
    "thumb, last joint": {"extension": 20, "flexion": 80},
}

DOG: dict[str, dict[str, float]] = {
    "shoulder": {"flexion": 57, "extension": 165},
    "elbow": {"flexion": 36, "extension": 165},
    "carpus": {"flexion": 32, "extension": 196},
    "hip": {"flexion": 50, "extension": 162},
    "stifle": {"flexion": 42, "extension": 162},
    "tarsus": {"flexion": 39, "extension": 164},
    # Chosen: angles of a standing dog, for rigs without the shoulder blade or pelvis to measure from.
    "standing": {"shoulder": 115, "hip": 110},
    # Chosen: swing of legs to the side and rotation, as animators use them.
    "aside": {"abduction": 45, "adduction": 30, "rotation": 45},
}

NECK = {"flexion": 90, "extension": 90, "bending": 90, "rotation": 90}
"""Neck and head of an animal on four legs, sum of all bones. Chosen: the muzzle reaches the ground."""

STRAIGHT = 10.0
"""Degrees by which an elbow or a knee may be past its end at rest and still bend to one side only."""

TAIL = {"each bone at most": 45.0, "whole tail": 270.0, "rotation of each bone": 10.0}
"""Chosen: no measurement of an entire tail is known to us."""
