# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that decide whether adapters reach the GPUs' memory: DMA buffers, asked of the libraries, and peer memory clients.

A loaded module is not evidence: nvidia_peermem counts once it is registered with the RDMA core.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine import child
from . import gpudirect_probe

SECONDS = 20
CLIENTS = ("nv_mem", "nv_mem_nc")
PEERS = "/sys/kernel/mm/memory_peers"
MODULE = "/sys/module/nvidia_peermem"
# Modules of the RDMA core that may have what a client registers with.
CORES = ("ib_core", "ib_uverbs")
# What a client registers with; the kernel of kernel.org does not have it, those of NVIDIA's drivers and of Ubuntu do.
REGISTRATION = "ib_register_peer_memory_client"


def read_gpudirect(tree, adapters, probes=None):
    """Return {verbs, adapters, cuda, gpus, peermem}. adapters: their names.

    probes: (of the verbs, of CUDA) as gpudirect_probe has them; None starts nothing, as on a recorded machine.
    """
    verbs, cuda = probes or (None, None)
    return {
        "verbs": ask_verbs(adapters, verbs),
        "cuda": ask_cuda(cuda),
        "peermem": read_peermem(tree),
    }


def probes():
    """Return the probes of this machine's own libraries."""
    return gpudirect_probe.probe_verbs, gpudirect_probe.probe_cuda


def ask_verbs(adapters, probe, seconds=SECONDS):
    """Return {code: ok or why nothing is known, adapters: {name: {code, errno}}}."""
    code, said = _ask(probe, seconds)
    found = {one["device"]: {"code": one["code"], "errno": one["errno"]} for one in said if "device" in one}
    silent = "not_listed" if code == "ok" else code
    for name in adapters:
        found.setdefault(name, {"code": silent, "errno": None})
    return {"code": code, "adapters": found}


def ask_cuda(probe, seconds=SECONDS):
    """Return {code, status of cuda.h, version, gpus: {PCI address: whether it exports DMA buffers}}."""
    code, said = _ask(probe, seconds)
    return {
        "code": code,
        "status": next((one["status"] for one in said if "status" in one), None),
        "version": next((one["cuda"] for one in said if "cuda" in one), None),
        "gpus": {one["gpu"]: one["dma_buf"] for one in said if "gpu" in one},
    }


def _ask(probe, seconds):
    """Return (code, records): ok, what the probe says of all, not_asked, crashed or timeout."""
    if probe is None:
        return "not_asked", []
    said, ended = child.bounded(probe, seconds)
    whole = [one["code"] for one in said if "code" in one and "device" not in one]
    if ended == "done":
        return (whole[0] if whole else "ok"), said
    return "timeout" if ended == "timeout" else "crashed", said


def read_peermem(tree):
    """Return {module: version of the loaded one, clients: {name: version}, registered, offered}.

    registered: True where the RDMA core lists a client of NVIDIA's or is held by the module; False where the module is not
    loaded, or is loaded and the core lists other clients only; None where a loaded module shows neither.
    offered: whether this kernel's RDMA core takes clients at all; None where it does not show its symbols.
    """
    clients = {name: tree.text("%s/%s/version" % (PEERS, name)) for name in CLIENTS}
    clients = {name: version for name, version in clients.items() if version is not None}
    loaded = tree.exists(MODULE)
    held = any(tree.exists("/sys/module/%s/holders/nvidia_peermem" % core) for core in CORES)
    registered = True if clients or held else None if loaded and not tree.exists(PEERS) else False
    module = tree.text(MODULE + "/version")
    symbols = tree.text("/proc/kallsyms")
    return {
        "module": (module or "") if loaded else None,
        "clients": clients,
        "registered": registered,
        "offered": " " + REGISTRATION in symbols if symbols else None,
    }
