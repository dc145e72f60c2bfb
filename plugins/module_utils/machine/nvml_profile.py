# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Note what NVML answers, as lines that the simulated library of tests/lab/nvml answers with again: section, key, value.

A section is ``system``, the index of a GPU, or that of a MIG device in it; ``!N`` is the error N of nvml.h.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ctypes

from .nvml import VALUES

# One answer, a text or a number, or several that belong together.
PLAIN = {
    "DeviceGetName": "name", "DeviceGetUUID": "uuid", "DeviceGetVbiosVersion": "vbios", "DeviceGetInforomImageVersion": "inforom",
    "DeviceGetMinorNumber": "minor_number", "DeviceGetArchitecture": "architecture", "DeviceGetPerformanceState": "performance_state",
    "DeviceGetPersistenceMode": "persistence_mode", "DeviceGetComputeMode": "compute_mode",
    "DeviceGetCurrPcieLinkGeneration": "pcie_generation", "DeviceGetMaxPcieLinkGeneration": "pcie_max_generation",
    "DeviceGetCurrPcieLinkWidth": "pcie_width", "DeviceGetMaxPcieLinkWidth": "pcie_max_width",
    "DeviceGetPowerManagementLimit": "power_limit", "DeviceGetPowerManagementDefaultLimit": "power_default",
    "DeviceGetMaxMigDeviceCount": "mig_max_devices", "DeviceGetGpuInstanceId": "gpu_instance_id",
    "DeviceGetComputeInstanceId": "compute_instance_id", "DeviceGetRetiredPagesPendingStatus": "retired_pages_pending",
    "DeviceGetCudaComputeCapability": "compute_capability", "DeviceGetEccMode": "ecc", "DeviceGetMigMode": "mig",
    "DeviceGetPowerManagementLimitConstraints": "power_bounds", "DeviceGetRemappedRows": "remapped_rows",
    "DeviceGetCurrentClocksThrottleReasons": "throttle_reasons", "DeviceGetMarginTemperature": "temperature_margin",
    "DeviceGetPowerUsage": "power_usage",
}  # fmt: skip
SYSTEM = {
    "DeviceGetCount": "gpus",
    "SystemGetDriverVersion": "driver_version",
    "SystemGetCudaDriverVersion": "cuda_version",
}
# Those with numbers in their keys: how many arguments behind the handle make the key.
NUMBERED = {"DeviceGetTotalEccErrors": "ecc_errors", "DeviceGetTemperatureThreshold": "temperature_threshold"}
# Answers with names: (key, the names of its parts).
RECORDS = {
    "DeviceGetUtilizationRates": ("utilization", ("gpu", "memory")),
    "DeviceGetRowRemapperHistogram": ("row_histogram", ("max", "high", "partial", "low", "none")),
}
CLOCKS = {"DeviceGetMaxClockInfo": "max_clocks", "DeviceGetClockInfo": "clocks"}
SRAM = ("bThresholdExceeded", "aggregateUncParity", "aggregateUncSecDed")
LINK = {
    "DeviceGetNvLinkState": 0,
    "DeviceGetNvLinkVersion": 1,
    "DeviceGetNvLinkRemoteDeviceType": 2,
    "DeviceGetNvLinkRemotePciInfo": 3,
}
NOT_SUPPORTED = 3
MIB = 1024 * 1024


class Recorder:
    """Stands for pynvml, and notes what its functions answer in ``lines``: {(section, key): value}."""

    def __init__(self, pynvml, lines):
        self.pynvml, self.lines, self.sections, self.parts = pynvml, lines, {}, {}

    def __getattr__(self, name):
        value = getattr(self.pynvml, name)
        if not name.startswith("nvml") or not callable(value) or isinstance(value, type):
            return value

        def call(*arguments):
            try:
                answer = value(*arguments)
            except self.pynvml.NVMLError as error:
                self.note(name[4:], arguments, None, error.value)
                raise
            self.note(name[4:], arguments, answer, 0)
            return answer

        return call

    def note(self, name, arguments, answer, code):
        """Note one answer, or the code of an error."""
        if name in SYSTEM:
            self.put("system", SYSTEM[name], text_of(answer), code)
        elif name == "DeviceGetHandleByIndex":
            self.note_handle(str(arguments[0]), answer, code)
        elif arguments and address_of(arguments[0]) in self.sections:
            section = self.sections[address_of(arguments[0])]
            if name == "DeviceGetMigDeviceHandleByIndex" and code == 0:
                self.sections[address_of(answer)] = "%s.mig%d" % (section, arguments[1])
            for key, value in self.lines_of(section, name, arguments[1:], answer, code):
                self.put(section, key, value, code)

    def note_handle(self, index, handle, code):
        if code:
            self.put(index, "lost", str(code), 0)
        else:
            self.sections[address_of(handle)] = index

    def put(self, section, key, value, code):
        """Keep the first answer; parts of one line come one after another."""
        if (section, key) not in self.lines or (section, key) in self.parts:
            self.lines[section, key] = "!%d" % code if code else value

    def lines_of(self, section, name, arguments, answer, code):
        """Return [(key, value)] of one answer about a device."""
        if name in PLAIN:
            return [(PLAIN[name], text_of(answer))]
        if name in NUMBERED:
            return [(".".join([NUMBERED[name]] + [str(one) for one in arguments]), text_of(answer))]
        if name in RECORDS:
            key, names = RECORDS[name]
            return [(key, "" if code else " ".join(str(getattr(answer, one)) for one in names))]
        special = getattr(self, "of_" + name, None)
        if special:
            return special(arguments, answer, code)
        if name == "DeviceGetApplicationsClock":
            place = 0 if arguments[0] == 2 else 1  # the line has memory first, as nvidia-smi's -ac
            return self.part(section, "application_clocks", place, answer, ["0", "0"], code)
        if name in CLOCKS:
            return self.part(section, CLOCKS[name], arguments[0], answer, ["0", "0", "0"], code)
        if name in LINK:
            return self.link(section, LINK[name], arguments[0], answer, code)
        return []

    def part(self, section, key, number, value, empty, code):
        """Return a line of which one part has become known."""
        found = self.parts.setdefault((section, key), list(empty))
        if not code:
            found[number] = text_of(value)
        return [(key, " ".join(found))]

    def link(self, section, number, link, answer, code):
        if code or (number == 3 and answer is None):
            if code and number == 0 and code != NOT_SUPPORTED:
                self.lines[section, "link.%d" % link] = "!%d" % code
            return []
        value = text_of(answer.busId) if number == 3 else answer
        return self.part(section, "link.%d" % link, number, value, ["0", "0", "255", "-"], 0)

    def of_DeviceGetPciInfo(self, dummy_arguments, answer, code):
        if code:
            return [("pci_bus_id", "")]
        return [("pci_bus_id", text_of(answer.busId)), ("pci_device_id", "0x%04x" % (answer.pciDeviceId >> 16))]

    def of_DeviceGetMemoryInfo(self, arguments, answer, code):
        if code:
            return [] if arguments else [("memory_mib", "")]
        used = [("memory_used_mib", "%d %d" % (answer.used // MIB, answer.reserved // MIB))] if arguments else []
        return [("memory_mib", str(answer.total // MIB))] + used

    def of_DeviceGetRetiredPages(self, arguments, answer, code):
        return [("retired_pages.%d" % arguments[0], "" if code else str(len(answer)))]

    def of_DeviceGetTemperature(self, dummy_arguments, answer, dummy_code):
        return [("temperature", text_of(answer))]

    def of_DeviceValidateInforom(self, dummy_arguments, dummy_answer, dummy_code):
        return [("inforom_valid", "1")]

    def of_DeviceGetSramEccErrorStatus(self, arguments, dummy_answer, code):
        return [("sram", "" if code else " ".join(str(getattr(arguments[0]._obj, name)) for name in SRAM))]

    def of_DeviceGetComputeRunningProcesses_v3(self, dummy_arguments, answer, dummy_code):
        return [("processes", " ".join("%d:%d" % (one.pid, (one.usedGpuMemory or 0) // MIB) for one in answer or ()))]

    def of_DeviceGetTopologyCommonAncestor(self, arguments, answer, code):
        other = self.sections.get(address_of(arguments[0]))
        return [] if code else [("level.%s" % other, text_of(answer))]

    def of_DeviceGetP2PStatus(self, arguments, answer, dummy_code):
        other = self.sections.get(address_of(arguments[0]))
        return [("p2p.%s.%d" % (other, arguments[1]), text_of(answer))]

    def of_DeviceGetFieldValues(self, dummy_arguments, answer, dummy_code):
        found = []
        for one in answer or ():
            number = getattr(one.value, VALUES.get(one.valueType, "ullVal"))
            value = "!%d" % one.nvmlReturn if one.nvmlReturn else str(int(number))
            found.append(("field.%d.%d" % (one.fieldId, one.scopeId), value))
        return found

    def of_DeviceGetGpuFabricInfoV(self, arguments, dummy_answer, code):
        return [] if code else fabric_lines(arguments[0]._obj, arguments[0]._obj.version >> 24)

    def of_DeviceGetGpuFabricInfo(self, arguments, dummy_answer, code):
        return [("fabric_state", "")] if code else fabric_lines(arguments[0]._obj, 0)


def fabric_lines(info, version):
    lines = [("fabric_version", str(version)), ("fabric_state", str(info.state)), ("fabric_clique", str(info.cliqueId)),
             ("fabric_status", str(info.status)), ("fabric_health", str(getattr(info, "healthMask", 0))),
             ("fabric_summary", str(getattr(info, "healthSummary", 0)))]  # fmt: skip
    return lines + ([("fabric_rack", "1")] if any(bytearray(info.clusterUuid)) else [])


def address_of(handle):
    """Return by what a handle is known again; None of an invalid one."""
    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except (ctypes.ArgumentError, TypeError):
        return None


def text_of(answer):
    if isinstance(answer, (list, tuple)):
        return " ".join(text_of(one) for one in answer)
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
