# SPDX-License-Identifier: GPL-3.0-or-later
"""What the words in a bone's name say: its side, its part of the body, the name of the bone across."""

import enum
import re
from typing import NamedTuple

from .role import Part, Side

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
"""How names of fingers begin, by number."""
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
    (Part.WING, r"wing"),
)


class Clue(enum.Enum):
    """What a word in a name tells of a bone of any animal, as a pattern of whole words in small letters."""

    ROOT = r"root|rootjoint|armature|master|origin|world|reference"
    SKULL = r"skull|cranium"
    FACE = r"face|jaws?|mouth|chin|snout|muzzle|nose|beak|tongue|teeth|fangs?|eyes?|ears?|whiskers?"
    FEATHER = r".*feathers?|plumes?"
    WING = rf".*wings?|fins?|.*flippers?|{FEATHER}"
    ARM = r".*arm|.*hands?|fingers?|thumb|wrist|elbow|claws?|pincers?|pedipalps?"
    LEG = r".*legs?|.*foot|feet|.*paws?|.*hoof|hooves|thigh|toes?|ankle|knee|shin"
    FRONT = r"front|fore|fore(leg|foot|feet|limb|paw|hoof)s?"
    HIND = r"back|rear|hind.*"


class Name(NamedTuple):
    """What a name says.

    Attributes:
        side: of the figure, the middle where the name tells none.
        part: None where the name tells none.
    """

    side: Side
    part: Part | None


def bare(name: str) -> str:
    """A name without its name space, in small letters."""
    return name.rpartition(":")[2].casefold()


def read(name: str) -> Name:
    """What a name says of its bone."""
    words = [word.casefold() for word in _WORD.findall(name.rpartition(":")[2])]
    sides = [word for word in words if word in _SIDE_WORDS]
    rest = "".join(word for word in words if word not in _SIDE_WORDS and not word.isdigit())
    part = None
    if not _NO_PART.intersection(words):
        part = next((each for each, pattern in _PARTS if re.search(pattern, rest)), None)
    return Name(_side_of(sides), part)


def says(name: str, clue: Clue) -> bool:
    """Whether a word of a name is a clue."""
    words = _WORD.findall(name.rpartition(":")[2])
    return any(re.fullmatch(clue.value, word.casefold()) for word in words)


def _side_of(sides: list[str]) -> Side:
    """A whole word counts before a letter, and of letters the last: "r_toe.L" is a left rear toe."""
    whole = [word for word in sides if len(word) > 1 or word in "左右"]
    told = whole or sides
    return _SIDE_WORDS[told[-1]] if told else Side.MIDDLE


def finger_number(name: str) -> int | None:
    """Which finger or toe a name says, from 0 for the thumb; None where it says none."""
    words = "".join(_WORD.findall(name)).casefold()
    if "bigtoe" in words:
        return 0
    said = (number for number, names in enumerate(FINGERS) if any(word in words for word in names))
    return next(said, None)


def is_end(name: str) -> bool:
    """Whether a bone only marks where the one before it ends."""
    return bool(re.search(r"leaf|nub|(^|[^a-z])(end|tip)([^a-z]|$)|_End$", name.casefold()))


def across(name: str) -> str:
    """The name of the bone on the other side; the name itself where it tells no side.

    Blender's own `flip_name` knows fewer ways to write a side than rigs have.
    """
    found = [match for match in _WORD.finditer(name) if match[0].casefold() in _SIDE_WORDS]
    if not found:
        return name
    whole = [match for match in found if len(match[0]) > 1 or match[0] in "左右"]
    match = (whole or found)[-1]
    other = _ACROSS[match[0].casefold()]
    if match[0].isupper():
        other = other.upper()
    elif match[0][0].isupper():
        other = other.capitalize()
    return name[: match.start()] + other + name[match.end() :]
