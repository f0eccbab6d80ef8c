# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators share that write or read a JSON file."""

from bpy.props import StringProperty


class JsonFile:
    """The file browser lists JSON files."""

    filename_ext = ".json"
    filter_glob: StringProperty(
        name="Files", description="Which files are listed", default="*.json", options={"HIDDEN"}
    )
