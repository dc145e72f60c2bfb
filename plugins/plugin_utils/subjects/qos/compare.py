# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the classes that a node's interfaces have with what was decided for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ....module_utils.host.tc import MAJOR
from ....module_utils.settings import qos_plan
from ...documents.comparison import Comparison, Remedy, Status, compared, undecided
from ...documents.qos import HtbClass, QosNode, Shaped
from .decide import DEFAULT, TRAINING, Shaping, Share, is_ours
from .rates import rate_text

COMPONENT = "qos"
ROOT = MAJOR + qos_plan.ROOT
NAMES = {TRAINING: "training", DEFAULT: "everything else"}
# Python 3.6 on the nodes: they have no types of their own.
_is_close: Callable[[int | None, int], bool] = qos_plan.is_close


def compare_shares(shapings: Iterable[Shaping], digest: str, node: QosNode) -> list[Comparison]:
    """Return a comparison of the rules, and of rate, guarantee and ceiling of each class of each interface."""
    loaded = node.table == digest
    state = "as declared" if loaded else "others" if node.table else None
    found = [compared(COMPONENT, "rules", "as declared", state, loaded, Remedy.APPLY, "rules")]
    for one in shapings:
        found += _interface(one, node)
    return found


def compare_unmeasured(reason: str = "") -> list[Comparison]:
    """Return the one comparison of a node whose traffic was not looked at, or, for this reason, cannot be shaped as declared."""
    return [undecided(COMPONENT, "qos", "as declared", reason, "shares")]


def compare_absent(recorded: bool) -> list[Comparison]:
    """Return the differences of a node that is to have no classes of ours: that it has."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, "qos", "as it was", "shaped", Status.UNWANTED, Remedy.APPLY, "shares")]


def _interface(one: Shaping, node: QosNode) -> Iterator[Comparison]:
    link = node.interfaces.get(one.name)
    shaped = link.shaped if link and is_ours(link) else None
    yield from _device(one, one.name, shaped)
    if one.ifb:
        other = node.interfaces.get(one.ifb)
        passes = bool(link and link.shaped and link.shaped.redirect == one.ifb)
        yield from _device(one, one.ifb, other.shaped if other and passes and is_ours(other) else None)


def _device(one: Shaping, device: str, shaped: Shaped | None) -> Iterator[Comparison]:
    """Compare the whole rate and each class of a device, which has none where shaped is None."""
    found = {known.handle: known for known in shaped.classes} if shaped else {}
    rate = found[ROOT].rate if ROOT in found else None
    agrees, state = _is_close(rate, one.rate), rate_text(rate) if rate else None
    yield compared(COMPONENT, f"rate of {device}", rate_text(one.rate), state, agrees, Remedy.APPLY, "shares")
    for share in one.classes:
        known = found.get(MAJOR + share.minor)
        agrees = known is not None and _is_close(known.rate, share.rate) and _is_close(known.ceil, share.ceil)
        subject = f"{NAMES[share.minor]} on {device}"
        yield compared(COMPONENT, subject, _words(share), _words(known), agrees, Remedy.APPLY, "shares")


def _words(share: Share | HtbClass | None) -> str:
    """Return the rates of a class at least and at most."""
    if share is None or share.rate is None or share.ceil is None:
        return ""
    return f"{rate_text(share.rate)} to {rate_text(share.ceil)}"
