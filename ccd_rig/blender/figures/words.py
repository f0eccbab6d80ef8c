# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of bones: side, part of the body, name of the other side, and humans recognised by names."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, pairwise, takewhile
from typing import NamedTuple

from .role import ARM_PARTS, LEG_PARTS, SIDES, Part, Role, Side, SkeletonTree

_SIDE_WORDS = {
    "left": Side.LEFT,
    "lft": Side.LEFT,
    "lf": Side.LEFT,
    "l": Side.LEFT,
    "right": Side.RIGHT,
    "rgt": Side.RIGHT,
    "rt": Side.RIGHT,
    "r": Side.RIGHT,
    "左": Side.LEFT,
    "右": Side.RIGHT,
}
_ACROSS = {
    "left": "right",
    "lft": "rgt",
    "l": "r",
    "lf": "rt",
    "左": "右",
}
_ACROSS |= {right: left for left, right in _ACROSS.items()}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[左右]|[^\W\d_A-Za-z左右]+")
FINGERS = (
    ("thumb", "親指"),
    ("index", "人指"),
    ("mid", "中指"),
    ("ring", "薬指"),
    ("pink", "小指", "little"),
)
"""Words for fingers in names, by number."""
_NO_PART = frozenset(
    (
        *("twist", "roll", "share", "ik", "pole", "target", "leaf", "end", "nub", "tip", "top", "tweak"),
        *("helper", "adjust", "socket", "weapon", "prop", "muscle", "bulge", "rib", "ribs", "breast"),
        *("eye", "ear", "brow", "lid", "lip", "jaw", "tongue", "teeth", "tooth", "nose", "cheek", "face"),
        *("facial", "hair", "heel", "skirt"),
    )
)
_PARTS = (
    (Part.TOE, r"toe|ball|つま先"),
    (Part.HIPS, r"hips?$|pelvis"),
    (Part.NECK, r"neck"),
    (Part.HEAD, r"head"),
    (Part.SPINE, r"spine|chest|abdomen|waist|torso"),
    (Part.FINGER, "|".join(word for each in FINGERS for word in each) + "|finger"),
    (Part.LOWER_ARM, r"forearm|lowerarm|loarm|armlower|elbow"),
    (Part.UPPER_ARM, r"upperarm|uparm|armupper|shldr"),
    (Part.SHOULDER, r"clavicle|shoulder|collar|scapula"),
    (Part.HAND, r"hand|wrist"),
    (Part.THIGH, r"thigh|upperleg|upleg|legupper"),
    (Part.SHIN, r"shin|calf|lowerleg|loleg|leglower|knee"),
    (Part.FOOT, r"foot|ankle"),
    (Part.UPPER_ARM, r"arm$"),
    (Part.SHIN, r"leg$"),
    (Part.TAIL, r"tail"),
    (Part.WING, r"(?<!s)wing"),
)


class Clue(enum.Enum):
    """Clue in the name of an animal's bone, as a pattern of full words in lower case."""

    ROOT = r"root|rootjoint|armature|master|origin|world|reference"
    SKULL = r"skull|cranium"
    FACE = r"face|jaws?|mouth|chin|snout|muzzle|nose|beak|tongue|teeth|fangs?|eyes?|ears?|whiskers?"
    HAIR = r"hair.*|mane|crest|forelock|pony.*|pigtails?|braids?|bangs|髪"
    CLOTH = (
        r"skirts?|capes?|cloaks?|coats?|dress|robes?|clothe?s?|scarf|scarves|ribbons?|veils?|tassels?"
        r"|スカート|マント|リボン"
    )
    BASE = r"base|stand|pedestal|chassis|mount"
    TRUNK = r"trunk|proboscis"
    FEATHER = r".*feathers?|plumes?"
    WING = rf".*wings?|fins?|.*flippers?|{FEATHER}"
    ARM = r".*arm|.*hands?|fingers?|thumb|wrist|elbow|claws?|pincers?|pedipalps?"
    LEG = r".*legs?|.*foot|feet|.*paws?|.*hoof|hooves|thigh|toes?|ankle|knee|shin"
    HEEL = r".*heels?|かかと|踵"
    FRONT = r"front|fore|fore(leg|foot|feet|limb|paw|hoof)s?"
    HIND = r"back|rear|hind.*"


class Name(NamedTuple):
    """Information in a bone's name."""

    side: Side  # of the figure; the middle if the name has none
    part: Part | None  # of the body; None if the name has none


def bare(name: str) -> str:
    """Return a name without name space, in lower case."""
    return name.rpartition(":")[2].casefold()


def read(name: str) -> Name:
    """Read side and part from a bone's name."""
    local_name = name.rpartition(":")[2]
    words = [word.casefold() for word in _WORD.findall(local_name)]
    rest = "".join(word for word in words if word not in _SIDE_WORDS and not word.isdigit())
    part = None
    if not (_NO_PART.intersection(words) or is_loose(name)):
        part = next((each for each, pattern in _PARTS if re.search(pattern, rest)), None)
    side = _side_word(local_name)
    return Name(_SIDE_WORDS[side[0].casefold()] if side else Side.MIDDLE, part)


def says(name: str, clue: Clue) -> bool:
    """Whether a word of a name matches a clue."""
    words = _WORD.findall(name.rpartition(":")[2])
    return any(re.fullmatch(clue.value, word.casefold()) for word in words)


def is_loose(name: str) -> bool:
    """Whether a name is of hair or cloth."""
    return says(name, Clue.HAIR) or says(name, Clue.CLOTH)


def _side_word(name: str) -> re.Match[str] | None:
    """Return the word for a side: whole words precede letters, the last counts: "r_toe.L" is left."""
    matches = [match for match in _WORD.finditer(name) if match[0].casefold() in _SIDE_WORDS]
    full_words = [match for match in matches if len(match[0]) > 1 or match[0] in "左右"]
    return next(reversed(full_words or matches), None)


def finger_number(name: str) -> int | None:
    """Number of the finger or toe in a name, from 0 for the thumb; None without one."""
    words = "".join(_WORD.findall(name)).casefold()
    if "bigtoe" in words:
        return 0
    said = (number for number, names in enumerate(FINGERS) if any(word in words for word in names))
    return next(said, None)


def is_end(name: str) -> bool:
    """Whether a bone only marks the end of its parent."""
    return bool(re.search(r"leaf|nub|(^|[^a-z])(end|tip)([^a-z]|$)|_End$", name.casefold()))


def across(name: str) -> str:
    """Return the name with the other side; the name itself if it has no side.

    Blender's `flip_name` knows fewer notations of sides than rigs have.
    """
    match = _side_word(name)
    if match is None:
        return name
    other = _ACROSS[match[0].casefold()]
    if match[0].isupper():
        other = other.upper()
    elif match[0][0].isupper():
        other = other.capitalize()
    return name[: match.start()] + other + name[match.end() :]


ENOUGH = 0.75
"""Smallest share of a family's names in a rig of that family."""
_LIMBS = (*ARM_PARTS[:-1], *LEG_PARTS[1:])
_NEEDED = (Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND, Part.THIGH, Part.SHIN, Part.FOOT)
Anchors = Mapping[Role, str]
"""{role: bone} of certain roles, from which the others follow."""


def by_family(tree: SkeletonTree) -> tuple[str, dict[str, Role]]:
    """Return the family of a rig's names and the roles of its bones; ("", {}) for none."""
    known = {bare(name): name for name in reversed(tree.bones)}
    best: tuple[float, int, str, dict[Role, str]] = (0.0, 0, "", {})
    for family in FAMILIES:
        names = dict(_names(family))
        matches = {role: known[key] for role, name in names.items() if (key := bare(name)) in known}
        score = len(matches) / len(names)
        if score >= ENOUGH and (score, len(matches)) > best[:2] and _is_human(tree, matches):
            best = (score, len(matches), family.name, matches)
    _, _, name, anchors = best
    return (name, filled(tree, anchors)) if name else ("", {})


def by_words(tree: SkeletonTree) -> dict[str, Role]:
    """Return roles of a human by parts and sides in names of any family; empty if they do not suffice."""
    anchors: dict[Role, str] = {}
    for name in tree.below(""):
        side, part = read(name)
        if part in _LIMBS and side is Side.MIDDLE:
            continue
        if part in _LIMBS or part in (Part.HIPS, Part.NECK, Part.HEAD):
            anchors.setdefault(Role(part, side if part in _LIMBS else Side.MIDDLE), name)
    if not _is_human(tree, anchors):
        return {}
    hips = Role(Part.HIPS)
    if hips not in anchors:
        thighs = [anchors[Role(Part.THIGH, side)] for side in SIDES]
        anchors[hips] = tree.common(*thighs)
    return filled(tree, anchors)


def _names(family: Family) -> Iterator[tuple[Role, str]]:
    """Yield (role, name) of all bones of a family."""
    frame, words = family.trunk
    hips, *spine, neck, head = (frame.format(word) for word in words.split())
    yield Role(Part.HIPS), hips
    yield from ((Role(Part.SPINE, index=index), name) for index, name in enumerate(spine))
    yield Role(Part.NECK), neck
    yield Role(Part.HEAD), head
    frame, words = family.limbs
    for part, word in zip(_LIMBS, words.split(), strict=False):
        for side, sign in zip(SIDES, family.sides, strict=True):
            yield Role(part, side), frame.format(word, side=sign)


def _is_human(tree: SkeletonTree, anchors: Anchors) -> bool:
    """Whether both arms and both legs are present, each bone a descendant of the one before."""
    for side in SIDES:
        names = [anchors.get(Role(part, side), "") for part in _NEEDED]
        if not all(names):
            return False
        arm, leg = names[:3], names[3:]
        if not all(
            tree.path(above, below) and above != below
            for limb in (arm, leg)
            for above, below in pairwise(limb)
        ):
            return False
    return True


# --- the bones between -------------------------------------------------------------------------------------


def filled(tree: SkeletonTree, anchors: Anchors) -> dict[str, Role]:
    """Return roles of the anchors, of the bones between them, and of fingers, toes, tail and wings."""
    roles: dict[str, Role] = {}
    hips = anchors.get(Role(Part.HIPS), "")
    head = anchors.get(Role(Part.HEAD), "")
    neck = anchors.get(Role(Part.NECK), "")
    if hips:
        roles[hips] = Role(Part.HIPS)
    if hips and (neck or head):
        spine = tree.between(hips, neck or head)[:-1]  # ancestors of hips and spine are roots of the figure
        roles |= {name: Role(Part.SPINE, index=index) for index, name in enumerate(spine)}
    if hips and head:
        necks = tree.path(neck, head)[:-1] if neck and neck != head else []
        roles |= {name: Role(Part.NECK, index=index) for index, name in enumerate(necks)}
        roles[head] = Role(Part.HEAD)
    for side in SIDES:
        limb = {part: anchors.get(Role(part, side), "") for part in _LIMBS}
        arm = limb[Part.UPPER_ARM]
        above = [name for name in tree.ancestors(arm) if read(name).side is side and name not in roles]
        if above and above[-1] != arm:  # next to the trunk
            limb[Part.SHOULDER] = above[-1]
        thigh = limb[Part.THIGH]
        above = [name for name in tree.ancestors(thigh) if read(name).side is side and name not in roles]
        limb[Part.PELVIS] = above[-1] if above and above[-1] != thigh else ""
        _add_limb(tree, roles, limb, ARM_PARTS[:-1], side)
        _add_limb(tree, roles, limb, LEG_PARTS[:-1], side)
        _add_fingers(tree, roles, limb[Part.HAND], side)
        toes = [child for child in tree.children.get(limb[Part.FOOT], ()) if read(child).part is Part.TOE]
        if limb[Part.TOE] or len(toes) == 1:
            roles[limb[Part.TOE] or toes[0]] = Role(Part.TOE, side)
    tail = [name for name in tree.bones if read(name).part is Part.TAIL and name not in roles]
    if tail:
        chain = [name for name in tree.below(tail[0]) if name in tail]
        roles |= {name: Role(Part.TAIL, index=index) for index, name in enumerate(chain)}
    for side in SIDES:
        _add_wings(tree, roles, side)
    return roles


def _add_limb(
    tree: SkeletonTree,
    roles: dict[str, Role],
    limb: Mapping[Part, str],
    pieces: tuple[Part, ...],
    side: Side,
) -> None:
    """Add the anchors of a limb, with the bones between them as further bones of the part above."""
    named = [(part, limb[part]) for part in pieces if limb[part]]
    for (part, name), (_, following) in zip(named, [*named[1:], (None, "")], strict=True):
        bones = tree.path(name, following)[:-1] or [name]
        roles |= {bone: Role(part, side, index) for index, bone in enumerate(bones)}


def _add_fingers(tree: SkeletonTree, roles: dict[str, Role], hand: str, side: Side) -> None:
    """Add fingers: rows of children of the hand that are no ends and no other parts."""
    chains: list[list[str]] = []
    for child in tree.children.get(hand, ()):
        for first in _first_of_digits(tree, child):
            chain = list(_main_chain(tree, first))
            if chain and chain[0] not in roles:
                chains.append(chain)
    if all(finger_number(chain[0]) is None for chain in chains):
        chains.sort(key=lambda chain: chain[0])
    chains.sort(key=lambda chain: finger_number(chain[0]) is None)
    taken: set[int] = set()
    for chain in chains:
        number = finger_number(chain[0])
        if number is None or number in taken:
            number = next(free for free in count() if free not in taken)
        taken.add(number)
        roles |= {name: Role(Part.FINGER, side, index, number) for index, name in enumerate(chain)}


def _add_wings(tree: SkeletonTree, roles: dict[str, Role], side: Side) -> None:
    """Add wings: rows of two bones or more on hips or spine, up to feathers."""
    trunk = {name for name, role in roles.items() if role.part in (Part.HIPS, Part.SPINE)}
    number = 0
    for name, bone in tree.bones.items():
        if bone.parent in trunk and read(name) == Name(side, Part.WING):
            row = [*takewhile(_is_wing, _main_chain(tree, name))]
            if len(row) > 1:
                roles |= {wing: Role(Part.WING, side, index, number) for index, wing in enumerate(row)}
                number += 1


def _is_wing(name: str) -> bool:
    return says(name, Clue.WING) and not says(name, Clue.FEATHER)


def _first_of_digits(tree: SkeletonTree, name: str) -> Iterable[str]:
    """First bones of fingers at or below a child of the hand, palm bones left out."""
    if read(name).part is Part.FINGER:
        return [name]
    return [each for child in tree.children[name] for each in _first_of_digits(tree, child)]


def _main_chain(tree: SkeletonTree, name: str) -> Iterator[str]:
    while name and not is_end(name):
        yield name
        further = [child for child in tree.children[name] if not is_end(child)]
        name = further[0] if further else ""


# Families of human rigs -------------------------------------------------------------------------------------


class Family(NamedTuple):
    """Names of the bones of a family: frames, and the words in them. "{side}" is a word for a side."""

    name: str  # of the family. Bones' names are compared without name space and case.
    sides: tuple[str, str]  # words for left and right
    trunk: tuple[str, str]  # hips, the spine from above the hips to the chest, neck, head
    limbs: tuple[str, str]  # from shoulder to hand and from thigh to toe, which may be missing


LETTERS, SMALL, WORDS = ("L", "R"), ("l", "r"), ("Left", "Right")
_HUMAN_IK = ("{side}{}", "Shoulder Arm ForeArm Hand UpLeg Leg Foot ToeBase")
_UNREAL = ("{}_{side}", "clavicle upperarm lowerarm hand thigh calf foot ball")

FAMILIES = (
    Family(
        "Rigify metarig",
        LETTERS,
        ("{}", "spine spine.001 spine.002 spine.003 spine.004 spine.006"),
        ("{}.{side}", "shoulder upper_arm forearm hand thigh shin foot toe"),
    ),
    Family("Mixamo or HumanIK", WORDS, ("{}", "Hips Spine Spine1 Spine2 Neck Head"), _HUMAN_IK),
    Family("Unreal", SMALL, ("{}", "pelvis spine_01 spine_02 spine_03 neck_01 head"), _UNREAL),
    Family("Unreal 5", SMALL, ("{}", "pelvis spine_01 spine_03 spine_05 neck_01 head"), _UNREAL),
    Family(
        "VRoid",
        LETTERS,
        ("J_Bip_C_{}", "Hips Spine Chest UpperChest Neck Head"),
        ("J_Bip_{side}_{}", "Shoulder UpperArm LowerArm Hand UpperLeg LowerLeg Foot ToeBase"),
    ),
    Family(
        "MMD",
        ("左", "右"),
        ("{}", "下半身 上半身 上半身2 首 頭"),
        ("{side}{}", "肩 腕 ひじ 手首 足 ひざ 足首 つま先"),
    ),
    Family(
        "MMD Tools",
        LETTERS,
        ("{}", "下半身 上半身 上半身2 首 頭"),
        ("{}.{side}", "肩 腕 ひじ 手首 足 ひざ 足首 つま先"),
    ),
    Family(
        "MPFB",
        LETTERS,
        ("{}", "root spine04 spine03 spine02 neck01 head"),
        ("{}.{side}", "shoulder01 upperarm01 lowerarm01 wrist upperleg01 lowerleg01 foot"),
    ),
    Family(
        "MakeHuman",
        LETTERS,
        ("{}", "Hips Spine1 Spine2 Spine3 Neck Head"),
        ("{}_{side}", "Clavicle UpArm LoArm Hand UpLeg LoLeg Foot Toe"),
    ),
    Family(
        "Reallusion",
        LETTERS,
        ("CC_Base_{}", "Hip Waist Spine01 Spine02 NeckTwist01 Head"),
        ("CC_Base_{side}_{}", "Clavicle Upperarm Forearm Hand Thigh Calf Foot ToeBase"),
    ),
    Family(
        "Biped",
        LETTERS,
        ("Bip001 {}", "Pelvis Spine Spine1 Spine2 Neck Head"),
        ("Bip001 {side} {}", "Clavicle UpperArm Forearm Hand Thigh Calf Foot Toe0"),
    ),
    Family(
        "Daz",
        SMALL,
        ("{}", "hip abdomenLower abdomenUpper chestLower neckLower head"),
        ("{side}{}", "Collar ShldrBend ForearmBend Hand ThighBend Shin Foot Toe"),
    ),
    Family("CMU", WORDS, ("{}", "Hips LowerBack Spine Spine1 Neck Head"), _HUMAN_IK),
)
