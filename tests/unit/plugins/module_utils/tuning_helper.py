# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded server with two sockets, as role tuning finds it: {path: text, or ("link", target)}."""

import os

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             {nproc}                {nproc}                processes
Max open files            1024                 524288               files
Max locked memory         {memlock}              {memlock}              bytes
"""
STATUS = "Name:\tsystemd\nCapBnd:\t{caps}\n"
ALL, WITHOUT_RESOURCE = "000001ffffffffff", "000001fffeffffff"
BOOT = "5d2c4c8e-0f0b-4f1e-9f0e-1b2c3d4e5f60\n"
CMDLINE = "BOOT_IMAGE=/vmlinuz-6.1.0-40-amd64 root=/dev/sda2 ro quiet\n"


def limits(memlock="8388608", nproc="unlimited"):
    return LIMITS.format(memlock=memlock, nproc=nproc)


def server(**more):
    """Two NUMA nodes with two processors each, a scaling driver, one adapter, Debian's files. more: further /proc/sys keys."""
    files = {
        "/proc/sys/vm/swappiness": "60\n",
        "/proc/sys/vm/zone_reclaim_mode": "0\n",
        "/proc/sys/vm/min_free_kbytes": "90112\n",
        "/proc/sys/kernel/numa_balancing": "1\n",
        "/proc/sys/kernel/random/boot_id": BOOT,
        "/proc/sys/fs/nr_open": "1048576\n",
        "/proc/sys/net/core/rmem_max": "212992\n",
        "/proc/sys/net/core/wmem_max": "212992\n",
        "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t33554432\n",
        "/proc/sys/net/ipv4/tcp_wmem": "4096\t16384\t4194304\n",
        "/proc/meminfo": "MemTotal:       1056000000 kB\nHugepagesize:       2048 kB\n",
        "/proc/cmdline": CMDLINE,
        "/proc/1/limits": limits(),
        "/proc/1/status": STATUS.format(caps=ALL),
        "/proc/1/uid_map": "         0          0 4294967295\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/sys/devices/system/cpu/cpuidle/current_driver": "intel_idle\n",
        "/sys/class/net/ens1/device": ("link", "../../../devices/pci0000:16/0000:16:00.0"),
        "/sys/devices/pci0000:16/0000:16:00.0/numa_node": "1\n",
        "/sys/devices/system/node/node0/cpulist": "0-1\n",
        "/sys/devices/system/node/node1/cpulist": "2-3\n",
        "/etc/security/limits.conf": "# Debian's\n",
    }
    for cpu in range(4):
        place = f"/sys/devices/system/cpu/cpu{cpu}"
        files[f"{place}/cpufreq/scaling_governor"] = "schedutil\n"
        files[f"{place}/power/pm_qos_resume_latency_us"] = "0\n"
    for number, cpu in ((120, 0), (121, 2), (122, 3)):
        files[f"/sys/devices/pci0000:16/0000:16:00.0/msi_irqs/{number}"] = "msix\n"
        files[f"/proc/irq/{number}/smp_affinity_list"] = f"{cpu}\n"
    files.update({f"/proc/sys/{key}": text for key, text in more.items()})
    return files


def snapshot(root):
    """{path: bytes, or where a link points} of everything below ROOT, and its directories."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(str(path)))
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found
