# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe whether GPUs reach each other's memory, as the driver says of each pair: without it collectives go over the host's memory."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import Counter

from ..machine.nvml_errors import UNUSABLE
from ..machine.topology import gpu_label
from .findings import fault, judged, unanswered

CHECK, EXPECTED = "p2p_access", "as their connection allows"
# nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t of nvml.h; the words of "nvidia-smi topo -p2p".
WAYS = {0: "read", 1: "write"}
STATES = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled",
    5: "not supported",
    6: "unknown",
}
FEWEST = 3  # pairs that have a majority


def read_p2p_access(nvml, gpus):
    """Return ({(pci_bus_id, pci_bus_id): {read, write: one of STATES, or NVML's error}}, {pci_bus_id: errors of one that is lost}).

    ``gpus``: of gpu_node. Those that are cut into instances, or made by a hypervisor, have no peers and are not asked.
    """
    able = [gpu for gpu in gpus if "nvml" in gpu["seen_by"] and not gpu["mig"]["current"] and not gpu.get("vgpu")]
    handles = [(gpu["pci_bus_id"], nvml.attempt("DeviceGetHandleByIndex", gpu["index"])[0]) for gpu in able]
    handles = [(address, handle) for address, handle in handles if handle is not None]
    pairs, errors = {}, {}
    for number, (address, handle) in enumerate(handles):
        for other, other_handle in handles[number + 1 :]:
            found = {way: ask(nvml, handle, other_handle, index) for index, way in WAYS.items()}
            pairs[address, other] = found
            if set(found.values()) & set(UNUSABLE):
                errors.update(whose(nvml, ((address, handle), (other, other_handle))))
    return pairs, errors


def ask(nvml, handle, other, index):
    status, failed = nvml.attempt("DeviceGetP2PStatus", handle, other, index)
    return failed["code"] if failed else STATES.get(status, "unknown")


def whose(nvml, handles):
    """Return {address: errors} of those of a pair that do not answer for themselves either."""
    found = {}
    for address, handle in handles:
        failed = nvml.attempt("DeviceGetUUID", handle)[1]
        if failed:
            found[address] = {"DeviceGetP2PStatus": failed["code"]}
    return found


def p2p_access(gpus, pairs, topology):
    """Judge pairs of GPUs that answer: NVLink always allows it, and PCIe what most pairs at the same distance have."""
    labels = {gpu["pci_bus_id"]: gpu for gpu in gpus}
    known = [
        (labels[one], labels[other], found)
        for (one, other), found in sorted(pairs.items())
        if one in labels and other in labels
    ]
    groups = {}
    for gpu, other, found in known:
        code = topology.get(gpu_label(gpu), {}).get(gpu_label(other))
        groups.setdefault((code, gpu["name"], other["name"]), []).append((gpu, other, found))
    bad = []
    for (code, dummy, dummy_other), members in sorted(groups.items(), key=str):
        joined = (code or "").startswith("NV")
        usual, count = Counter(words(found) for dummy, dummy_other, found in members).most_common(1)[0]
        allowed = usual == "ok" and len(members) >= FEWEST and 2 * count > len(members)
        bad += [pair_finding(gpu, other, found, joined, allowed) for gpu, other, found in members]
    return [judged(CHECK, EXPECTED, "known of %d pairs" % len(known), bad)] if known else []


def words(found):
    """Return the words for both ways, once where they are the same."""
    states = [found[way] for way in sorted(found)]
    return states[0] if len(set(states)) == 1 else ", ".join("%s %s" % (way, found[way]) for way in sorted(found))


def pair_finding(gpu, other, found, joined, allowed):
    """Find fault with a pair; ``joined``: by NVLink, ``allowed``: most pairs of its kind can."""
    states, name = set(found.values()), gpu_label(gpu)
    text = "%s to %s: %s" % (name, gpu_label(other), words(found))
    refused = states - set(STATES.values())
    if states == {"ok"}:
        return None
    if refused:
        return no_pair(name, sorted(refused)[0])
    if "disabled" in states:
        return fault(CHECK, "disabled", EXPECTED, text, name)
    if joined:
        return fault(CHECK, "unknown" if states == {"unknown"} else "nvlink", EXPECTED, text, name)
    return fault(CHECK, "unlike", EXPECTED, text, name) if allowed else None


def no_pair(name, code):
    """Find that NVML refused to say; older drivers and GPUs do not have the question."""
    if code in ("not_supported", "function_missing", "invalid_argument") or code in UNUSABLE:
        return None
    return unanswered(CHECK, EXPECTED, name, code)
