"""A visit to a real Blender window: roles that no name tells are asked for before anything is made."""

from __future__ import annotations

from visits import pixels, saw

SCRIPT = "drive_roles.py"
ERRORS = ()
LEG = "rgb(78,212,143)"  # the colour of left legs
HEAD = "rgb(221,121,205)"  # of the head, at the far end of the figure


def test_roles_are_shown_and_nothing_is_made_yet(visit):
    step = saw(visit, "asked")
    assert step["asked"]
    assert step["roles"] > 20
    assert (step["constraints"], step["objects"]) == (0, 1)


def test_escape_makes_nothing_and_shows_them_no_more(visit):
    assert saw(visit, "escape") == {"roles": 0, "asked": False, "constraints": 0, "objects": 1}


def test_bones_have_the_colours_of_their_roles_as_long_as_the_dialog_is_open(visit):
    """Without anti-aliasing Blender draws a view once, and so showed them when something else redrew it."""
    assert pixels("asked", LEG) > 300
    assert pixels("before", LEG) < 30
    assert pixels("escaped", LEG) < 30


def test_a_handle_that_is_dragged_ends_the_colours_of_roles(visit):
    """They lay over the figure until another command, and dragging a handle is none."""
    assert pixels("made", LEG) > 300
    assert pixels("dragging", LEG) < 30


def test_the_dialog_stands_beside_the_figure_though_the_pointer_is_on_it(visit):
    """It covered the bones whose colours it asks to compare."""
    assert pixels("asked", HEAD) > 30
    assert pixels("before", HEAD) < 10


def test_return_makes_what_is_listed(visit):
    step = saw(visit, "return")
    assert step["constraints"] == 7
    assert not step["asked"]


def test_sure_roles_are_not_asked_for(visit):
    step = saw(visit, "sure")
    assert step["constraints"] == 6
    assert not step["asked"]
