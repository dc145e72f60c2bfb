# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources of a Debian archive that add components to what a host already uses. Pure functions."""

from __future__ import annotations


def additional_sources(mirrors: list[dict], components: list[str]) -> list[dict]:
    """Return [{uri, suites, components, signed_by}]: what to add so that every suite of the archive has ``components``.

    ``mirrors`` is the list ``apt_mirrors`` of node_state. Only entries that bear the component ``main`` count as the
    archive, so the answer is the same before and after the sources it describes are in place. It names the same
    keyring as the entry it extends: apt refuses two entries of one archive that disagree about it.
    """
    sources: dict[tuple, dict] = {}
    for mirror in mirrors:
        lacking = [component for component in components if component not in mirror["components"]]
        if "main" not in mirror["components"] or not lacking:
            continue
        key = (mirror["uri"], tuple(lacking), mirror.get("signed_by"))
        source = sources.setdefault(key, {"uri": key[0], "suites": [], "components": lacking, "signed_by": key[2]})
        if mirror["suite"] not in source["suites"]:
            source["suites"].append(mirror["suite"])
    return list(sources.values())
