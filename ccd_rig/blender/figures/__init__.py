# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bones of a figure are: hands, feet, spine, told by names, by Rigify's marks and by structure."""
