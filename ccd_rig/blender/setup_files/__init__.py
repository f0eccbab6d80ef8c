"""Set-ups of rigs (constraints and limits) as files, and kept while Rigify regenerates a rig."""
