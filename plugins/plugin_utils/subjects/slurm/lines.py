# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write nodes as lines of gres.conf and slurm.conf; equal nodes share their lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ....module_utils.host import hostlist
from ....module_utils.settings.slurm import FILES, OURS
from .model import Device, SlurmModel

_fold: Callable[[Iterable[str]], str] = hostlist.fold  # Python 3.6 on the nodes: it has no types of its own
HEAD = f"{OURS} from what was measured of the nodes; slurm_state: absent takes it away."
GRES, NODES = FILES


def gres_texts(node: SlurmModel, autodetect: str) -> list[str]:
    """Return the lines of gres.conf about a node, without its name. autodetect: none, or who else says it on the node: nvml or nvidia.

    AutoDetect=off keeps a setting for all nodes from turning what is said here into a check.
    """
    if autodetect != "none":
        return [f"AutoDetect={autodetect}"] if node.devices else []
    return [f"AutoDetect=off Name=gpu {_device(one)}" for one in node.devices]


def _device(one: Device) -> str:
    words = {
        "Type": one.type,
        "File" if len(one.files) == 1 else "MultipleFiles": ",".join(one.files),
        "Cores": one.cores,
        "Links": one.links,
    }
    return " ".join(f"{word}={value}" for word, value in words.items() if value)


def node_texts(node: SlurmModel) -> list[str]:
    """Return the line of slurm.conf about a node, without its name."""
    counts = Counter(one.type for one in node.devices)
    words = {
        "NodeAddr": node.address,
        "Boards": "1",
        "SocketsPerBoard": str(node.sockets),
        "CoresPerSocket": str(node.cores),
        "ThreadsPerCore": str(node.threads),
        "RealMemory": str(node.memory),
        "Gres": ",".join(f"gpu:{kind}:{count}" for kind, count in counts.items()),
        "Feature": ",".join(node.features),
    }
    return [" ".join(f"{word}={value}" for word, value in words.items() if value)]


def texts(node: SlurmModel, autodetect: str) -> dict[str, list[str]]:
    """Return the text of each file about a node, without its name."""
    return {GRES: gres_texts(node, autodetect), NODES: node_texts(node)}


def files(nodes: Iterable[tuple[SlurmModel, str]]) -> dict[str, str]:
    """Return the texts of the files for nodes with their autodetect."""
    said = {node.name: texts(node, autodetect) for node, autodetect in nodes}
    return {file: _content({name: one[file] for name, one in said.items()}) for file in (GRES, NODES)}


def _content(said: dict[str, list[str]]) -> str:
    equal: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(said):
        equal.setdefault(tuple(said[name]), []).append(name)
    lines = [f"NodeName={_fold(names)} {one}" for found, names in equal.items() for one in found]
    return "\n".join([HEAD, *lines, ""])
