/* Copyright: The allreduce.gpu authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Answers as libnvidia-ml.so.1 from a profile. Test equipment: nothing in roles/ or plugins/ knows of it.
 *
 * The profile (named by $SIMULATED_NVML, else /etc/simulated-nvml/profile) has lines "<section> <key> <value>", where the
 * section is "system" or a GPU's index. A line of the file <profile>.state has precedence; what a caller sets is written
 * there, so it persists across processes. A key that is missing is answered with NOT_SUPPORTED.
 * The value "!<n>" makes a call fail with NVML's return code <n>.
 * "<index> lost <n>": no handle, as of a GPU that was lost before the program began. "<index> failing <n> <calls>": after so
 * many calls of a program for this GPU, each further one fails with <n>, for the handle too: a GPU that is lost meanwhile.
 * "<index> hanging <seconds>": each call for it takes so long, as where the driver waits for a device.
 */
#define _GNU_SOURCE /* statx */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
       INSUFFICIENT_SIZE = 7, FUNCTION_NOT_FOUND = 13, OPERATING_SYSTEM = 17, ARGUMENT_VERSION_MISMATCH = 25 };

typedef struct device *handle; /* index + 1, and 1000 * (index + 1) + number + 1 for MIG devices */
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned char cluster[16]; unsigned status; uint32_t clique; unsigned char state; } fabric_info;

static int initialized;

static const char *profile(void) {
    const char *path = getenv("SIMULATED_NVML");
    return path ? path : "/etc/simulated-nvml/profile";
}

/* A file's text, read again where it has changed; slot 0 is for the profile, 1 for its state. NULL: there is none. */
static const char *text_of(const char *path, int slot) {
    static struct { struct statx seen; char path[1024]; char *text; } kept[2];
    struct statx now;
    FILE *file;
    /* stat() is a symbol of glibc 2.33, which not every replica has. */
    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &now) != 0) return NULL;
    if (kept[slot].text && strcmp(kept[slot].path, path) == 0 && kept[slot].seen.stx_ino == now.stx_ino &&
        kept[slot].seen.stx_size == now.stx_size && kept[slot].seen.stx_mtime.tv_sec == now.stx_mtime.tv_sec &&
        kept[slot].seen.stx_mtime.tv_nsec == now.stx_mtime.tv_nsec) return kept[slot].text;
    if (!(file = fopen(path, "r"))) return NULL;
    free(kept[slot].text);
    kept[slot].text = calloc(1, (size_t)now.stx_size + 2);
    kept[slot].text[0] = '\n'; /* every line has one before it */
    if (fread(kept[slot].text + 1, 1, (size_t)now.stx_size, file) == 0) kept[slot].text[1] = 0;
    fclose(file);
    snprintf(kept[slot].path, sizeof kept[slot].path, "%s", path);
    kept[slot].seen = now;
    return kept[slot].text;
}

static int find(const char *path, int slot, const char *section, const char *key, char *value, size_t size) {
    char wanted[128];
    const char *text = text_of(path, slot), *found;
    snprintf(wanted, sizeof wanted, "\n%s %s ", section, key);
    if (!text || !(found = strstr(text, wanted))) return 0;
    found += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(found, "\n"), found);
    return 1;
}

static int get(const char *section, const char *key, char *value, size_t size) {
    char state[1024];
    snprintf(state, sizeof state, "%s.state", profile());
    if (!find(state, 1, section, key, value, size) && !find(profile(), 0, section, key, value, size)) return NOT_SUPPORTED;
    return value[0] == '!' ? atoi(value + 1) : OK;
}

static int set(const char *section, const char *key, const char *value) {
    char path[1024], next[1040], line[512], wanted[128];
    FILE *old, *fresh;
    snprintf(path, sizeof path, "%s.state", profile());
    snprintf(next, sizeof next, "%s.%d", path, (int)getpid());
    snprintf(wanted, sizeof wanted, "%s %s ", section, key);
    if (get("system", "unprivileged", line, sizeof line) == OK) return NO_PERMISSION;
    if (!(fresh = fopen(next, "w"))) return NO_PERMISSION;
    if ((old = fopen(path, "r"))) {
        while (fgets(line, sizeof line, old))
            if (strncmp(line, wanted, strlen(wanted)) != 0) fputs(line, fresh);
        fclose(old);
    }
    fprintf(fresh, "%s%s\n", wanted, value);
    return fclose(fresh) == 0 && rename(next, path) == 0 ? OK : OPERATING_SYSTEM;
}

static long number_of(handle device) { return (long)(intptr_t)device; }

static const char *section_of(handle device) {
    static char section[32];
    long number = number_of(device);
    if (number >= 1000) snprintf(section, sizeof section, "%ld.mig%ld", number / 1000 - 1, number % 1000 - 1);
    else snprintf(section, sizeof section, "%ld", number - 1);
    return section;
}

/* Count a call for a GPU; its MIG devices go with it. Tests with several machines in one process start again. */
static int calls[64];
void simulated_reset(void) { memset(calls, 0, sizeof calls); }
static int survives(long index) {
    char section[32], value[64];
    int code = OK, after = 0;
    snprintf(section, sizeof section, "%ld", index);
    if (get(section, "lost", value, sizeof value) == OK) return atoi(value);
    if (get(section, "hanging", value, sizeof value) == OK) sleep(atoi(value));
    if (get(section, "failing", value, sizeof value) != OK) return OK;
    sscanf(value, "%d %d", &code, &after);
    return calls[index & 63]++ < after ? OK : code;
}

static int device_text(handle device, const char *key, char *value, size_t size) {
    if (!initialized) return UNINITIALIZED;
    if (!device) return INVALID_ARGUMENT;
    int rc = survives((number_of(device) >= 1000 ? number_of(device) / 1000 : number_of(device)) - 1);
    return rc == OK ? get(section_of(device), key, value, size) : rc;
}

static int device_numbers(handle device, const char *key, unsigned *first, unsigned *second) {
    char value[64] = "";
    int rc = device_text(device, key, value, sizeof value);
    unsigned one = 0, two = 0;
    if (rc != OK) return rc;
    sscanf(value, "%u %u", &one, &two);
    if (first) *first = one;
    if (second) *second = two;
    return OK;
}

static int device_set(handle device, const char *key, unsigned value) {
    char text[64], old[64];
    int rc = device_text(device, key, old, sizeof old);
    if (rc != OK) return rc;
    snprintf(text, sizeof text, "%u", value);
    return set(section_of(device), key, text);
}

static int text_into(int rc, const char *value, char *out, unsigned size) {
    if (rc == OK && strlen(value) >= size) return INSUFFICIENT_SIZE;
    if (rc == OK) strcpy(out, value);
    return rc;
}

static void fill_pci(const char *address, unsigned device_id, pci_info *pci) {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    memset(pci, 0, sizeof *pci);
    sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
    pci->domain = domain;
    pci->bus = bus;
    pci->device = slot;
    pci->pci_device_id = device_id << 16 | 0x10de;
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.%X", domain & 0xffff, bus & 0xff, slot & 0x1f, function & 7);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.%X", domain, bus & 0xff, slot & 0x1f, function & 7);
}

/* --- the library itself --- */

int nvmlInitWithFlags(unsigned flags) {
    char value[64];
    int rc = get("system", "init", value, sizeof value);
    (void)flags;
    if (rc == NOT_SUPPORTED) rc = OK; /* only a fault needs a line */
    initialized = rc == OK;
    return rc;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { initialized = 0; return OK; }

const char *nvmlErrorString(int rc) {
    switch (rc) {
        case OK: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case INVALID_ARGUMENT: return "Invalid Argument";
        case NOT_SUPPORTED: return "Not Supported";
        case NO_PERMISSION: return "Insufficient Permissions";
        case NOT_FOUND: return "Not Found";
        case 9: return "Driver Not Loaded";
        case 10: return "Timeout";
        case 15: return "GPU is lost";
        case 16: return "GPU requires reset";
        case 18: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}

int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    char value[128] = "";
    return text_into(get("system", "nvml_version", value, sizeof value), value, out, size);
}
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    char value[128] = "";
    return initialized ? text_into(get("system", "driver_version", value, sizeof value), value, out, size) : UNINITIALIZED;
}
int nvmlSystemGetCudaDriverVersion(int *out) {
    char value[64] = "";
    int rc = initialized ? get("system", "cuda_version", value, sizeof value) : UNINITIALIZED;
    if (rc == OK) *out = atoi(value);
    return rc;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) { return nvmlSystemGetCudaDriverVersion(out); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    char value[64] = "0";
    int rc = initialized ? get("system", "gpus", value, sizeof value) : UNINITIALIZED;
    if (rc == OK) *count = (unsigned)atoi(value);
    return rc;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *device) {
    unsigned count = 0;
    int rc = nvmlDeviceGetCount_v2(&count);
    if (rc != OK) return rc;
    if (index >= count) return INVALID_ARGUMENT;
    if ((rc = survives(index)) != OK) return rc;
    *device = (handle)(intptr_t)(index + 1);
    return OK;
}

#define TEXT(function, key) \
    int function(handle device, char *out, unsigned size) { \
        char value[256] = ""; \
        return text_into(device_text(device, key, value, sizeof value), value, out, size); \
    }
#define NUMBER(function, key) \
    int function(handle device, unsigned *out) { return device_numbers(device, key, out, NULL); }
#define PAIR(function, key) \
    int function(handle device, unsigned *one, unsigned *two) { return device_numbers(device, key, one, two); }
#define SETTER(function, key) \
    int function(handle device, unsigned value) { return device_set(device, key, value); }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom")
NUMBER(nvmlDeviceGetMinorNumber, "minor_number")
NUMBER(nvmlDeviceGetArchitecture, "architecture")
NUMBER(nvmlDeviceGetPerformanceState, "performance_state")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence_mode")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_max_generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_max_width")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, "mig_max_devices")
NUMBER(nvmlDeviceGetGpuInstanceId, "gpu_instance_id")
NUMBER(nvmlDeviceGetComputeInstanceId, "compute_instance_id")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pages_pending")
PAIR(nvmlDeviceGetCudaComputeCapability, "compute_capability")
PAIR(nvmlDeviceGetEccMode, "ecc")
PAIR(nvmlDeviceGetMigMode, "mig")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_bounds")
SETTER(nvmlDeviceSetPersistenceMode, "persistence_mode")
SETTER(nvmlDeviceSetComputeMode, "compute_mode")

int nvmlDeviceSetPowerManagementLimit(handle device, unsigned limit) {
    unsigned low = 0, high = 0;
    int rc = device_numbers(device, "power_bounds", &low, &high);
    if (rc != OK) return rc;
    return limit < low || limit > high ? INVALID_ARGUMENT : device_set(device, "power_limit", limit);
}

/* ECC and MIG modes wait for a reset: only the pending half changes; MIG mode at once where "mig_activation" is 0. */
static int set_pending(handle device, const char *key, unsigned value) {
    char text[64];
    unsigned current = 0;
    int rc = device_numbers(device, key, &current, NULL);
    if (rc != OK) return rc;
    snprintf(text, sizeof text, "%u %u", current, value);
    return set(section_of(device), key, text);
}
int nvmlDeviceSetEccMode(handle device, unsigned mode) { return set_pending(device, "ecc", mode); }
int nvmlDeviceSetMigMode(handle device, unsigned mode, int *activation) {
    unsigned idle = 0;
    char text[64];
    int rc = set_pending(device, "mig", mode);
    *activation = device_numbers(device, "mig_activation", &idle, NULL) == OK ? (int)idle : OK;
    if (rc != OK || device_numbers(device, "mig_activation", &idle, NULL) != OK || idle != OK) return rc;
    /* The GPU was reset for it, and forgets what lasts only while it is initialised. */
    snprintf(text, sizeof text, "%u %u", mode, mode);
    device_set(device, "persistence_mode", 0);
    device_set(device, "compute_mode", 0);
    return set(section_of(device), "mig", text);
}

/* Clocks: "application_clocks <memory> <graphics>" and its "default_…", "memory_clocks <MHz> …", and for each memory clock
 * "graphics_clocks.<memory> <highest> <lowest> <step>". Locked clocks can be set, and not read, as in the real library. */
static int clock_of(handle device, const char *key, unsigned kind, unsigned *out) {
    unsigned memory = 0, graphics = 0;
    int rc = device_numbers(device, key, &memory, &graphics);
    if (rc == OK) *out = kind == 2 ? memory : graphics;
    return rc;
}
int nvmlDeviceGetApplicationsClock(handle device, unsigned kind, unsigned *out) {
    return clock_of(device, "application_clocks", kind, out);
}
int nvmlDeviceGetDefaultApplicationsClock(handle device, unsigned kind, unsigned *out) {
    return clock_of(device, "default_application_clocks", kind, out);
}
/* "max_clocks <graphics> <SM> <memory>", by NVML's numbers of clocks. */
static int clocks_from(handle device, const char *key, unsigned kind, unsigned *out) {
    char value[64] = "";
    unsigned clocks[3] = {0, 0, 0};
    int rc = device_text(device, key, value, sizeof value);
    if (rc != OK) return rc;
    if (kind > 2 || sscanf(value, "%u %u %u", clocks, clocks + 1, clocks + 2) != 3) return INVALID_ARGUMENT;
    *out = clocks[kind];
    return OK;
}
int nvmlDeviceGetMaxClockInfo(handle device, unsigned kind, unsigned *out) {
    return clocks_from(device, "max_clocks", kind, out);
}
static int clocks_into(const unsigned *clocks, unsigned found, unsigned *count, unsigned *out) {
    unsigned room = *count;
    *count = found;
    if (room < found || !out) return INSUFFICIENT_SIZE;
    memcpy(out, clocks, found * sizeof *out);
    return OK;
}
int nvmlDeviceGetSupportedMemoryClocks(handle device, unsigned *count, unsigned *out) {
    char value[256] = "", *next = value, *end;
    unsigned clocks[32], found = 0;
    int rc = device_text(device, "memory_clocks", value, sizeof value);
    if (rc != OK) return rc;
    for (; found < 32; next = end, found++) {
        clocks[found] = (unsigned)strtoul(next, &end, 10);
        if (end == next) break;
    }
    return clocks_into(clocks, found, count, out);
}
int nvmlDeviceGetSupportedGraphicsClocks(handle device, unsigned memory, unsigned *count, unsigned *out) {
    char key[32], value[64] = "";
    unsigned clocks[512], found = 0, high = 0, low = 0, step = 0;
    snprintf(key, sizeof key, "graphics_clocks.%u", memory);
    int rc = device_text(device, key, value, sizeof value);
    if (rc != OK) return rc == NOT_SUPPORTED ? NOT_FOUND : rc;
    if (sscanf(value, "%u %u %u", &high, &low, &step) != 3 || step == 0) return INVALID_ARGUMENT;
    for (; high >= low && found < 512; high -= step) clocks[found++] = high;
    return clocks_into(clocks, found, count, out);
}
static int set_pair(handle device, const char *key, unsigned one, unsigned two) {
    char text[64];
    snprintf(text, sizeof text, "%u %u", one, two);
    return set(section_of(device), key, text);
}
int nvmlDeviceSetApplicationsClocks(handle device, unsigned memory, unsigned graphics) {
    unsigned old = 0;
    int rc = device_numbers(device, "application_clocks", &old, NULL);
    return rc == OK ? set_pair(device, "application_clocks", memory, graphics) : rc;
}
int nvmlDeviceResetApplicationsClocks(handle device) {
    unsigned memory = 0, graphics = 0;
    int rc = device_numbers(device, "default_application_clocks", &memory, &graphics);
    return rc == OK ? set_pair(device, "application_clocks", memory, graphics) : rc;
}
static int lock_clocks(handle device, const char *key, unsigned low, unsigned high) {
    char value[256] = "";
    int rc = device_text(device, "memory_clocks", value, sizeof value);
    if (rc != OK) return rc;
    return low > high ? INVALID_ARGUMENT : set_pair(device, key, low, high);
}
int nvmlDeviceSetGpuLockedClocks(handle device, unsigned low, unsigned high) {
    return lock_clocks(device, "locked_graphics", low, high);
}
int nvmlDeviceSetMemoryLockedClocks(handle device, unsigned low, unsigned high) {
    return lock_clocks(device, "locked_memory", low, high);
}
int nvmlDeviceResetGpuLockedClocks(handle device) { return lock_clocks(device, "locked_graphics", 0, 0); }
int nvmlDeviceResetMemoryLockedClocks(handle device) { return lock_clocks(device, "locked_memory", 0, 0); }

int nvmlDeviceGetPciInfo_v3(handle device, pci_info *pci) {
    char address[64] = "", id[64] = "0";
    int rc = device_text(device, "pci_bus_id", address, sizeof address);
    if (rc != OK) return rc;
    device_text(device, "pci_device_id", id, sizeof id);
    fill_pci(address, (unsigned)strtoul(id, NULL, 0), pci);
    return OK;
}

int nvmlDeviceGetMemoryInfo(handle device, memory_info *memory) {
    unsigned mib = 0;
    int rc = device_numbers(device, "memory_mib", &mib, NULL);
    if (rc != OK) return rc;
    unsigned used = 0, reserved = 0;
    device_numbers(device, "memory_used_mib", &used, &reserved);
    memory->total = (unsigned long long)mib << 20;
    memory->used = (unsigned long long)(used + reserved) << 20;
    memory->free = memory->total - memory->used;
    return OK;
}
/* "memory_used_mib <used> <reserved>": the first version counts both as used */
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_info_v2;
int nvmlDeviceGetMemoryInfo_v2(handle device, memory_info_v2 *memory) {
    memory_info old;
    unsigned used = 0, reserved = 0;
    int rc = nvmlDeviceGetMemoryInfo(device, &old);
    if (rc != OK) return rc;
    if (memory->version != (2u << 24 | sizeof *memory)) return ARGUMENT_VERSION_MISMATCH;
    device_numbers(device, "memory_used_mib", &used, &reserved);
    memory->total = old.total;
    memory->free = old.free;
    memory->reserved = (unsigned long long)reserved << 20;
    memory->used = (unsigned long long)used << 20;
    return OK;
}

/* "power_usage <mW>", "utilization <GPU %> <memory %>" and "clocks <graphics> <SM> <memory>" */
NUMBER(nvmlDeviceGetPowerUsage, "power_usage")
typedef struct { unsigned gpu, memory; } utilization;
int nvmlDeviceGetUtilizationRates(handle device, utilization *rates) {
    return device_numbers(device, "utilization", &rates->gpu, &rates->memory);
}
int nvmlDeviceGetClockInfo(handle device, unsigned kind, unsigned *out) {
    return clocks_from(device, "clocks", kind, out);
}

/* "link.<n> <active> <version> <remote type> <remote address or ->" */
static int nvlink(handle device, unsigned link, unsigned *active, unsigned *version, unsigned *type, char *address) {
    char key[32], value[128] = "";
    snprintf(key, sizeof key, "link.%u", link);
    int rc = device_text(device, key, value, sizeof value);
    if (rc != OK) return rc;
    return sscanf(value, "%u %u %u %63s", active, version, type, address) == 4 ? OK : INVALID_ARGUMENT;
}
int nvmlDeviceGetNvLinkState(handle device, unsigned link, unsigned *active) {
    unsigned version, type;
    char address[64];
    return nvlink(device, link, active, &version, &type, address);
}
int nvmlDeviceGetNvLinkVersion(handle device, unsigned link, unsigned *version) {
    unsigned active, type;
    char address[64];
    return nvlink(device, link, &active, version, &type, address);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(handle device, unsigned link, unsigned *type) {
    unsigned active, version;
    char address[64];
    return nvlink(device, link, &active, &version, type, address);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(handle device, unsigned link, pci_info *pci) {
    unsigned active, version, type;
    char address[64];
    int rc = nvlink(device, link, &active, &version, &type, address);
    if (rc != OK) return rc;
    if (address[0] == '-') return NOT_SUPPORTED;
    fill_pci(address, 0, pci);
    return OK;
}

/* "field.<id>.<scope>", else "field.<id>"; NVML_FI_DEV_NVLINK_GET_SPEED also "link_speed.<n>", else "link_speed", MB/s. A field without
 * a line is one that the driver or the GPU does not know. Types as in the real library: T.Limits are signed, recovery action and PCIe
 * counters are unsigned int, memory errors and link counters unsigned long long. */
typedef struct { unsigned field, scope; long long timestamp, latency; unsigned type, rc; unsigned long long value; } field_value;
enum { LINK_SPEED = 164, PCIE_REPLAYS = 94, MEMORY_TEMPERATURE = 82, FIRST_TLIMIT = 193, LAST_TLIMIT = 196, RECOVERY_ACTION = 230 };
static unsigned type_of(unsigned field) {
    if (field >= FIRST_TLIMIT && field <= LAST_TLIMIT) return 5; /* NVML_VALUE_TYPE_SIGNED_INT */
    if (field == LINK_SPEED || field == PCIE_REPLAYS || field == MEMORY_TEMPERATURE || field == RECOVERY_ACTION) return 1;
    return 3; /* NVML_VALUE_TYPE_UNSIGNED_LONG_LONG; 1 is NVML_VALUE_TYPE_UNSIGNED_INT */
}
static int field_text(handle device, unsigned field, unsigned scope, char *value, size_t size) {
    char keys[4][32];
    int rc = NOT_SUPPORTED;
    snprintf(keys[0], sizeof keys[0], "field.%u.%u", field, scope);
    snprintf(keys[1], sizeof keys[1], "field.%u", field);
    snprintf(keys[2], sizeof keys[2], "link_speed.%u", scope);
    snprintf(keys[3], sizeof keys[3], "link_speed");
    for (int n = 0; n < (field == LINK_SPEED ? 4 : 2) && rc == NOT_SUPPORTED; n++) rc = get(section_of(device), keys[n], value, size);
    return rc;
}
int nvmlDeviceGetFieldValues(handle device, int count, field_value *values) {
    char value[64];
    int rc = device_text(device, "uuid", value, sizeof value);
    if (rc != OK) return rc;
    for (int n = 0; n < count; n++) {
        rc = field_text(device, values[n].field, values[n].scope, value, sizeof value);
        values[n].rc = (unsigned)rc;
        values[n].type = type_of(values[n].field);
        values[n].value = rc != OK ? 0 : values[n].type == 5 ? (unsigned)atoi(value) : strtoull(value, NULL, 10);
    }
    return OK;
}

int nvmlDeviceGetTopologyCommonAncestor(handle device, handle other, unsigned *level) {
    char key[32];
    snprintf(key, sizeof key, "level.%ld", number_of(other) - 1);
    return device_numbers(device, key, level, NULL);
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned number, handle *mig) {
    char section[64], value[64];
    snprintf(section, sizeof section, "%s.mig%u", section_of(device), number);
    if (get(section, "uuid", value, sizeof value) != OK) return NOT_FOUND;
    *mig = (handle)(intptr_t)(1000 * number_of(device) + number + 1);
    return OK;
}

int nvmlDeviceGetGpuFabricInfo(handle device, fabric_info *info) {
    unsigned state = 0;
    int rc = device_numbers(device, "fabric_state", &state, NULL);
    if (rc != OK) return rc;
    memset(info, 0, sizeof *info);
    /* A fabric that spans a rack has the identity of a cluster. */
    if (device_numbers(device, "fabric_rack", NULL, NULL) == OK) memset(info->cluster, 0xab, sizeof info->cluster);
    device_numbers(device, "fabric_clique", &info->clique, NULL);
    info->state = (unsigned char)state;
    return OK;
}

/* GpuFabricInfoV: "fabric_version <newest that this driver knows>" (3), "fabric_health <mask>", "fabric_summary", "fabric_clique",
 * "fabric_status"; a mask of 0 is "not supported" throughout. */
typedef struct {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned mask;
    unsigned char summary;
} fabric_info_v;
int nvmlDeviceGetGpuFabricInfoV(handle device, fabric_info_v *info) {
    unsigned newest = 3, number = 0, version = info->version >> 24;
    char mask[64] = "0";
    fabric_info old;
    device_numbers(device, "fabric_version", &newest, NULL);
    if (newest == 0) return FUNCTION_NOT_FOUND;
    if (version < 2 || version > newest) return ARGUMENT_VERSION_MISMATCH;
    int rc = nvmlDeviceGetGpuFabricInfo(device, &old);
    if (rc != OK) return rc;
    memcpy(info->cluster, old.cluster, sizeof info->cluster);
    info->status = device_numbers(device, "fabric_status", &number, NULL) == OK ? number : OK;
    info->clique = old.clique;
    info->state = old.state;
    device_text(device, "fabric_health", mask, sizeof mask);
    info->mask = (unsigned)strtoul(mask, NULL, 0);
    if (version >= 3) info->summary = device_numbers(device, "fabric_summary", &number, NULL) == OK ? (unsigned char)number : 0;
    return OK;
}

int nvmlDeviceGetTotalEccErrors(handle device, unsigned kind, unsigned counter, unsigned long long *count) {
    char key[64], value[64] = "0";
    snprintf(key, sizeof key, "ecc_errors.%u.%u", kind, counter);
    int rc = device_text(device, key, value, sizeof value);
    if (rc == OK) *count = strtoull(value, NULL, 10);
    return rc;
}
int nvmlDeviceGetRemappedRows(handle device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
    char value[64] = "";
    int rc = device_text(device, "remapped_rows", value, sizeof value);
    if (rc != OK) return rc;
    return sscanf(value, "%u %u %u %u", correctable, uncorrectable, pending, failed) == 4 ? OK : INVALID_ARGUMENT;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(handle device, unsigned long long *reasons) {
    char value[64] = "0";
    int rc = device_text(device, "throttle_reasons", value, sizeof value);
    if (rc == OK) *reasons = strtoull(value, NULL, 0);
    return rc;
}
int nvmlDeviceGetCurrentClocksEventReasons(handle device, unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

/* "sram <threshold exceeded> <uncorrected parity> <uncorrected SEC-DED>", of the GPU's life */
typedef struct {
    unsigned version;
    unsigned long long aggregate_parity, aggregate_secded, aggregate_corrected, volatile_parity, volatile_secded, volatile_corrected;
    unsigned long long l2, sm, pcie, mcu, other;
    unsigned threshold_exceeded;
} sram_status;
int nvmlDeviceGetSramEccErrorStatus(handle device, sram_status *status) {
    char value[64] = "";
    unsigned exceeded = 0;
    unsigned long long parity = 0, secded = 0;
    int rc = device_text(device, "sram", value, sizeof value);
    if (rc != OK) return rc;
    if (status->version != (1u << 24 | sizeof *status)) return ARGUMENT_VERSION_MISMATCH;
    if (sscanf(value, "%u %llu %llu", &exceeded, &parity, &secded) != 3) return INVALID_ARGUMENT;
    memset(&status->aggregate_parity, 0, sizeof *status - offsetof(sram_status, aggregate_parity));
    status->threshold_exceeded = exceeded;
    status->aggregate_parity = parity;
    status->aggregate_secded = secded;
    return OK;
}

/* "row_histogram <max> <high> <partial> <low> <none>": banks by the spare rows that they have left */
typedef struct { unsigned max, high, partial, low, none; } row_histogram;
int nvmlDeviceGetRowRemapperHistogram(handle device, row_histogram *banks) {
    char value[64] = "";
    int rc = device_text(device, "row_histogram", value, sizeof value);
    if (rc != OK) return rc;
    return sscanf(value, "%u %u %u %u %u", &banks->max, &banks->high, &banks->partial, &banks->low, &banks->none) == 5 ? OK : INVALID_ARGUMENT;
}

/* "retired_pages.<cause> <number>", of which the addresses are made up; cause 0: single-bit errors, 1: a double-bit one */
int nvmlDeviceGetRetiredPages(handle device, unsigned cause, unsigned *count, unsigned long long *addresses) {
    char key[40];
    unsigned found = 0, room;
    snprintf(key, sizeof key, "retired_pages.%u", cause);
    int rc = device_numbers(device, key, &found, NULL);
    if (rc != OK) return rc;
    room = *count;
    *count = found;
    if (found > room || (found && !addresses)) return INSUFFICIENT_SIZE;
    for (unsigned page = 0; page < found; page++) addresses[page] = page << 12;
    return OK;
}

/* "inforom_valid 1", or "!14" for one that is corrupted */
int nvmlDeviceValidateInforom(handle device) {
    char value[64] = "";
    return device_text(device, "inforom_valid", value, sizeof value);
}

/* "temperature", "temperature_threshold.<type>", "temperature_margin": degrees Celsius */
int nvmlDeviceGetTemperature(handle device, unsigned sensor, unsigned *degrees) {
    return sensor == 0 ? device_numbers(device, "temperature", degrees, NULL) : INVALID_ARGUMENT;
}
int nvmlDeviceGetTemperatureThreshold(handle device, unsigned type, unsigned *degrees) {
    char key[40];
    snprintf(key, sizeof key, "temperature_threshold.%u", type);
    return device_numbers(device, key, degrees, NULL);
}
typedef struct { unsigned version; int margin; } margin_temperature;
int nvmlDeviceGetMarginTemperature(handle device, margin_temperature *info) {
    char value[64] = "";
    int rc = device_text(device, "temperature_margin", value, sizeof value);
    if (rc != OK) return rc;
    if (info->version != (1u << 24 | sizeof *info)) return ARGUMENT_VERSION_MISMATCH;
    info->margin = atoi(value);
    return OK;
}

/* "processes <pid>:<MiB> …", those that compute */
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_info;
int nvmlDeviceGetComputeRunningProcesses_v3(handle device, unsigned *count, process_info *infos) {
    char value[512] = "", *next = value;
    process_info found[32];
    unsigned number = 0, room = *count;
    unsigned long long mib = 0;
    int rc = device_text(device, "processes", value, sizeof value), length = 0;
    if (rc != OK) return rc;
    while (number < 32 && sscanf(next, " %u:%llu%n", &found[number].pid, &mib, &length) == 2) {
        found[number].used = mib << 20;
        found[number].gpu_instance = found[number].compute_instance = 0xFFFFFFFF;
        next += length;
        number++;
    }
    *count = number;
    if (number > room) return INSUFFICIENT_SIZE;
    if (number) memcpy(infos, found, number * sizeof *found);
    return OK;
}

#include "simulated_questions.c"
