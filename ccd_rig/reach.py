"""How far a chain can reach: what no solve can do better than, and the straightest pose towards a far target."""

from __future__ import annotations

import math

from .steps import Body


def _links(body: Body, k: int) -> list[float]:
    """Lengths of the rigid pieces between the joints that may move for goal `k`, and from the last one to its effector."""
    chain = body.chains[k]
    heads = [body.heads[i] for i in chain] + [body.carried[k][0]]
    return [(after - before).length for before, after in zip(heads, heads[1:], strict=False)]


def reach(body: Body, k: int) -> float:
    """Length of goal `k`'s chain when stretched, in the model's unit."""
    return math.fsum(_links(body, k))


def bound(body: Body, k: int) -> float:
    """A distance between effector and target that goal `k` cannot go below, whatever the joints do; 0 if it may be met.

    The effector stays in a shell about the head of the chain's first joint: no further out than the sum of the links,
    no further in than the longest link less all others. 0 also where the shell is not known: other goals move the
    chain's base, or a joint on the way does not inherit rotation, so that its links do not turn rigidly.
    """
    chain = body.chains[k]
    if not chain:
        return (body.carried[k][0] - body.targets[k]).length
    others = {i for other in range(len(body.goals)) if other != k for i in body.chains[other]}
    below = body.skeleton.chain(chain[0])[:-1]
    if body.pivots[k] or any(i in others for i in below):
        return 0.0
    links = _links(body, k)
    outer = math.fsum(links)
    inner = max(0.0, 2.0 * max(links) - outer)
    distance = (body.targets[k] - body.heads[chain[0]]).length
    return max(distance - outer, inner - distance, 0.0)


def stretch(body: Body) -> None:
    """One pass from the root that points every link at its target: the straight chain, at once, where limits allow it.

    Sweeps creep towards a stretched chain (their steps grow smaller as it straightens); this does not.
    """
    for i in body.movable:
        k = body.serves[i][0]
        chain = body.chains[k]
        place = chain.index(i)
        body.stretch(i, chain[place + 1] if place + 1 < len(chain) else -1, k)
    body.rebuild()
