/* Copyright: The allreduce.gpu authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A part of simulated_nvml.c: what schedulers and DCGM ask, and no module of ours. Signatures are those of nvml.h (NVIDIA/DCGM,
 * sdk/nvidia/nvml/dcgm_nvml.h). tests/unit/lab/test_nvml_questions.py names who asks what.
 */

/* "cpu_affinity <list of processors>" and "numa_node <n>", as sysfs has them; a mask has 64 bits in each word. */
static int affinity_of(handle device, const char *key, unsigned size, unsigned long *words) {
    char value[512] = "", *next = value, *end;
    int rc = device_text(device, key, value, sizeof value);
    if (size == 0 || !words) return INVALID_ARGUMENT;
    if (rc != OK) return rc;
    memset(words, 0, size * sizeof *words);
    while (*next) {
        unsigned long first = strtoul(next, &end, 10), last = first;
        if (end == next) break;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (; first <= last && first < 64ul * size; first++) words[first / 64] |= 1ul << first % 64;
        next = *end == ',' ? end + 1 : end;
    }
    return OK;
}
int nvmlDeviceGetCpuAffinity(handle device, unsigned size, unsigned long *words) {
    return affinity_of(device, "cpu_affinity", size, words);
}
int nvmlDeviceGetCpuAffinityWithinScope(handle device, unsigned size, unsigned long *words, unsigned scope) {
    return scope > 1 ? INVALID_ARGUMENT : affinity_of(device, "cpu_affinity", size, words);
}
int nvmlDeviceGetMemoryAffinity(handle device, unsigned size, unsigned long *words, unsigned scope) {
    return scope > 1 ? INVALID_ARGUMENT : affinity_of(device, "numa_node", size, words);
}

/* "attributes <multiprocessors> <slices of the GPU instance> <of the compute instance>": of MIG devices only */
typedef struct { unsigned multiprocessors, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices; unsigned long long mib; } attributes;
int nvmlDeviceGetAttributes_v2(handle device, attributes *found) {
    char value[64] = "";
    unsigned mib = 0;
    int rc = device_text(device, "attributes", value, sizeof value);
    if (rc == OK) rc = device_numbers(device, "memory_mib", &mib, NULL);
    if (rc != OK) return rc;
    memset(found, 0, sizeof *found);
    found->mib = mib;
    return sscanf(value, "%u %u %u", &found->multiprocessors, &found->gpu_slices, &found->compute_slices) == 3 ? OK : INVALID_ARGUMENT;
}
int nvmlDeviceIsMigDeviceHandle(handle device, unsigned *is_mig) { *is_mig = number_of(device) >= 1000; return OK; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle mig, handle *device) {
    if (number_of(mig) < 1000) return INVALID_ARGUMENT;
    *device = (handle)(intptr_t)(number_of(mig) / 1000);
    return OK;
}

/* Names of functions without a version, and with older ones, that the library still has; the old address has no long form. */
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
int nvmlDeviceGetHandleByIndex(unsigned index, handle *device) { return nvmlDeviceGetHandleByIndex_v2(index, device); }
static int old_pci(int rc, const pci_info *pci, void *out) {
    if (rc == OK) memcpy(out, pci, offsetof(pci_info, bus_id));
    return rc;
}
int nvmlDeviceGetPciInfo_v2(handle device, void *out) {
    pci_info pci;
    int rc = nvmlDeviceGetPciInfo_v3(device, &pci);
    return old_pci(rc, &pci, out);
}
int nvmlDeviceGetPciInfo(handle device, void *out) { return nvmlDeviceGetPciInfo_v2(device, out); }
int nvmlDeviceGetNvLinkRemotePciInfo(handle device, unsigned link, void *out) {
    pci_info pci;
    int rc = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci);
    return old_pci(rc, &pci, out);
}
static int handle_with(const char *key, const char *wanted, handle *device) {
    unsigned count = 0;
    int rc = nvmlDeviceGetCount_v2(&count);
    for (unsigned index = 0; rc == OK && index < count; index++) {
        char section[32], value[128] = "";
        snprintf(section, sizeof section, "%u", index);
        /* An address may have more digits of the domain, or none. */
        if (get(section, key, value, sizeof value) != OK) continue;
        size_t length = strlen(value), other = strlen(wanted);
        if (strcasecmp(length > other ? value + length - other : value, other > length ? wanted + other - length : wanted) == 0)
            return nvmlDeviceGetHandleByIndex_v2(index, device);
    }
    return rc == OK ? NOT_FOUND : rc;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, handle *device) { return handle_with("pci_bus_id", address, device); }
int nvmlDeviceGetHandleByPciBusId(const char *address, handle *device) { return handle_with("pci_bus_id", address, device); }
int nvmlDeviceGetHandleByUUID(const char *uuid, handle *device) { return handle_with("uuid", uuid, device); }
int nvmlDeviceGetIndex(handle device, unsigned *index) {
    int rc = device_numbers(device, "minor_number", index, NULL);
    if (rc == OK) *index = (unsigned)number_of(device) - 1;
    return rc;
}
NUMBER(nvmlDeviceGetBrand, "brand")
TEXT(nvmlDeviceGetSerial, "serial")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
NUMBER(nvmlDeviceGetPcieReplayCounter, "field.94")

/* "p2p.<other>.<way>", else "p2p.<other>": nvmlGpuP2PStatus_t of a pair, by NVML_P2P_CAPS_INDEX_* */
int nvmlDeviceGetP2PStatus(handle device, handle other, unsigned way, unsigned *status) {
    char key[40], value[64];
    int rc = device_text(other, "uuid", value, sizeof value);
    if (rc != OK) return rc;
    snprintf(key, sizeof key, "p2p.%ld.%u", number_of(other) - 1, way);
    rc = device_numbers(device, key, status, NULL);
    if (rc != NOT_SUPPORTED) return rc;
    snprintf(key, sizeof key, "p2p.%ld", number_of(other) - 1);
    return device_numbers(device, key, status, NULL);
}

/* Processes: the first version has no instances, the second is like the third. None draws, and none goes through MPS. */
typedef struct { unsigned pid; unsigned long long used; } old_process_info;
int nvmlDeviceGetComputeRunningProcesses_v2(handle device, unsigned *count, process_info *infos) {
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}
int nvmlDeviceGetComputeRunningProcesses(handle device, unsigned *count, old_process_info *infos) {
    process_info found[32];
    unsigned room = *count, number = 32;
    int rc = nvmlDeviceGetComputeRunningProcesses_v3(device, &number, found);
    if (rc != OK) return rc;
    *count = number;
    if (number > room) return INSUFFICIENT_SIZE;
    for (unsigned one = 0; one < number; one++) infos[one] = (old_process_info){found[one].pid, found[one].used};
    return OK;
}
static int no_processes(handle device, unsigned *count) {
    char value[512];
    int rc = device_text(device, "processes", value, sizeof value);
    if (rc == OK) *count = 0;
    return rc;
}
#define NO_PROCESSES(function) \
    int function(handle device, unsigned *count, void *infos) { (void)infos; return no_processes(device, count); }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* Each process is sampled once, at the utilization of the GPU; none is asked of a GPU with MIG, as of "utilization" itself. */
typedef struct { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; } process_sample;
int nvmlDeviceGetProcessUtilization(handle device, process_sample *samples, unsigned *count, unsigned long long since) {
    process_info found[32];
    unsigned number = 32, room = *count, gpu = 0, memory = 0;
    int rc = device_numbers(device, "utilization", &gpu, &memory);
    if (rc == OK) rc = nvmlDeviceGetComputeRunningProcesses_v3(device, &number, found);
    if (rc != OK) return rc;
    *count = since ? 0 : number;
    if (*count == 0) return NOT_FOUND;
    if (!samples || room < number) return INSUFFICIENT_SIZE;
    for (unsigned one = 0; one < number; one++) samples[one] = (process_sample){found[one].pid, 1, gpu, memory, 0, 0};
    return OK;
}

/* What DCGM also asks, and no machine here has: as a GPU answers that does not support it. */
#define UNSUPPORTED(function) \
    int function(handle device) { char value[8]; return device_text(device, "unsupported", value, sizeof value); }
UNSUPPORTED(nvmlDeviceGetAccountingBufferSize)
UNSUPPORTED(nvmlDeviceGetAccountingMode)
UNSUPPORTED(nvmlDeviceGetAccountingPids)
UNSUPPORTED(nvmlDeviceGetAccountingStats)
UNSUPPORTED(nvmlDeviceGetAutoBoostedClocksEnabled)
UNSUPPORTED(nvmlDeviceGetBAR1MemoryInfo)
UNSUPPORTED(nvmlDeviceGetDecoderUtilization)
UNSUPPORTED(nvmlDeviceGetEncoderStats)
UNSUPPORTED(nvmlDeviceGetEncoderUtilization)
UNSUPPORTED(nvmlDeviceGetFBCStats)
UNSUPPORTED(nvmlDeviceGetFanSpeed)
UNSUPPORTED(nvmlDeviceGetGpuInstanceProfileInfo)
UNSUPPORTED(nvmlDeviceGetGpuInstances)
UNSUPPORTED(nvmlDeviceGetInforomConfigurationChecksum)
UNSUPPORTED(nvmlDeviceGetInforomVersion)
UNSUPPORTED(nvmlDeviceGetMemoryErrorCounter)
UNSUPPORTED(nvmlDeviceGetNvLinkErrorCounter)
UNSUPPORTED(nvmlDeviceGetPlatformInfo)
UNSUPPORTED(nvmlDeviceGetSupportedVgpus)
UNSUPPORTED(nvmlDeviceGetUnrepairableMemoryFlag)
UNSUPPORTED(nvmlDeviceGetVirtualizationMode)
