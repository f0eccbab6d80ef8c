# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition of figures: roles of bones by names, by Rigify's marks and by structure at rest."""
