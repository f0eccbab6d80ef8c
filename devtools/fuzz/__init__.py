"""Random set-ups, far from what anybody would make, and a judge that shares nothing with what it judges.

`python3 dev.py fuzz` starts it; see `campaign`.
"""
