# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stubs of what a driver consists of."""

from __future__ import annotations

from pathlib import Path

from .elf import kernel_module
from .model import Package, numbers, table
from .stub import SERVICE, Maker, Payload

# DKMS runs for real; in a container, whose kernel nobody loads anything into, what it calls has no compiler to wait for, but misses the
# headers as a compiler does.
BUILD = """\
#!/bin/sh
# build.sh KERNEL: compiles the modules of this directory, or puts stubs in their place.
set -e
if [ -e /etc/lab/dkms-build-fails ]; then
  cat /etc/lab/dkms-build-fails >&2
  exit 2
fi
[ -e "/lib/modules/$1/build/Makefile" ] || {
  echo "make[1]: *** /lib/modules/$1/build: No such file or directory.  Stop." >&2
  exit 2
}
systemd-detect-virt --quiet --container || exec make -C "/lib/modules/$1/build" M="$PWD" modules
for module in nvidia nvidia-uvm nvidia-modeset nvidia-drm nvidia-peermem; do
  cp "$module.stub" "$module.ko"
done
"""
# What a kernel loads: the driver's first module says which version it is, the others nothing.
KBUILD = """\
obj-m := {objects}
ccflags-y := -DVERSION='"{version}"' -DLICENCE='"{licence}"' -DKIND='"{kind}"'
"""
MODULE = """\
#include <linux/module.h>
MODULE_LICENSE(LICENCE);
MODULE_VERSION(VERSION);
"""
FIRST_MODULE = """
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static int show(struct seq_file *file, void *unused)
{
    seq_puts(file, "NVRM version: NVIDIA UNIX " KIND "  " VERSION "  Release Build\\n");
    return 0;
}

static int __init start(void)
{
    struct proc_dir_entry *directory = proc_mkdir("driver/nvidia", NULL);

    return directory && proc_create_single("version", 0444, directory, show) ? 0 : -ENOMEM;
}

static void __exit stop(void)
{
    remove_proc_subtree("driver/nvidia", NULL);
}

module_init(start);
module_exit(stop);
"""
DAEMON = Path(__file__).parents[1] / "hardware" / "files" / "persistenced"
MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")


def dkms_name(package: Package, manager: str) -> str:
    """The open modules' RPM called it nvidia-open until 570.148.08 (aws/amazon-eks-ami pull request 2284).

    Ubuntu's server drivers have one of their own.
    """
    if "-server" in package.name:
        return "nvidia-srv"
    old = manager == "dnf" and "-open-" in package.name and numbers(package.upstream) < [570, 148, 8]
    return "nvidia-open" if old else "nvidia"


def _source(maker: Maker, package: Package, payload: Payload) -> None:
    name, version = dkms_name(package, maker.manager), package.upstream
    is_open = "-open" in package.name
    place = f"/usr/src/{name}-{version}"
    lines = [f'PACKAGE_NAME="{name}"', f'PACKAGE_VERSION="{version}"', 'AUTOINSTALL="yes"', 'CLEAN="true"']
    lines.append('MAKE[0]="sh ./build.sh ${kernelver}"')
    licence = "Dual MIT/GPL" if is_open else "NVIDIA"
    for number, module in enumerate(MODULES):
        lines += [
            f'BUILT_MODULE_NAME[{number}]="{module}"',
            f'DEST_MODULE_LOCATION[{number}]="/extra"',
            f'STRIP[{number}]="no"',
        ]
        payload.files[f"{place}/{module}.stub"] = kernel_module(module.replace("-", "_"), version, licence)
        payload.files[f"{place}/{module}.c"] = (MODULE + (FIRST_MODULE if number == 0 else "")).encode()
    kind = "Open Kernel Module for x86_64" if is_open else "x86_64 Kernel Module"
    objects = " ".join(f"{module}.o" for module in MODULES)
    build = KBUILD.format(objects=objects, version=version, licence=licence, kind=kind)
    payload.files[f"{place}/Kbuild"] = build.encode()
    payload.files[f"{place}/dkms.conf"] = ("\n".join(lines) + "\n").encode()
    payload.program(f"{place}/build.sh", BUILD)


def _dkms(maker: Maker, package: Package, payload: Payload) -> None:
    name, version = dkms_name(package, maker.manager), package.upstream
    if maker.manager == "apt":
        payload.scripts["postinst"] = (
            f'if [ "$1" = configure ]; then /usr/lib/dkms/common.postinst {name} {version} "" "" "$2"; fi'
        )
        remove = '"$1" = remove ] || [ "$1" = upgrade'
    else:  # the real scriptlets swallow failures too (NVIDIA/yum-packaging-dkms-nvidia issue 5)
        payload.scripts["postinst"] = (
            f"dkms add -m {name} -v {version} || :\n"
            "for kernel in /lib/modules/*/build; do\n"
            '  [ -e "$kernel/Makefile" ] || continue\n'
            "  kernel=$(basename $(dirname $kernel))\n"
            f"  dkms build -m {name} -v {version} -k $kernel || :\n"
            f"  dkms install --force -m {name} -v {version} -k $kernel || :\n"
            "done"
        )
        remove = "1 = 1"
    payload.scripts["prerm"] = f"if [ {remove} ]; then dkms remove -m {name} -v {version} --all || :; fi"


def _nvml(maker: Maker, package: Package, payload: Payload) -> None:
    maker.library(payload, "libnvidia-ml", package.upstream, maker.libraries["nvml"])


def _cuda(maker: Maker, package: Package, payload: Payload) -> None:
    maker.library(payload, "libcuda", package.upstream, maker.libraries["empty"])
    if maker.manager == "apt":
        # Configuration: a removed libnvidia-compute-NNN leaves it (`rc` in NVIDIA/nvidia-docker issues 1364 and 1506).
        payload.files["/etc/OpenCL/vendors/nvidia.icd"] = b"libnvidia-opencl.so.1\n"


SMI = """\
#!/bin/sh
# Says what the real one says about versions, and about a module of another version.
version={version}
if [ -r /proc/driver/nvidia/version ]; then
  grep -q " $version " /proc/driver/nvidia/version && {{
    echo "NVIDIA-SMI $version             Driver Version: $version"
    exit 0
  }}
  echo "Failed to initialize NVML: Driver/library version mismatch"
  echo "NVML library version: ${{version%.*}}"
  exit 18
fi
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."
exit 9
"""


def _smi(_maker: Maker, package: Package, payload: Payload) -> None:
    payload.program("/usr/bin/nvidia-smi", SMI.format(version=package.upstream))


def _persistenced(maker: Maker, package: Package, payload: Payload) -> None:
    """The daemon of a simulated machine, with the unit, the user and the udev rule of its packager."""
    packer = "el" if maker.manager == "dnf" else "debian" if package.name == "nvidia-persistenced" else "ubuntu"
    row = table("persistenced")[packer]
    payload.program("/usr/bin/nvidia-persistenced", DAEMON.read_text(encoding="utf-8"))
    payload.files["/usr/lib/systemd/system/nvidia-persistenced.service"] = row["unit"].encode()
    if "user" in row:
        payload.scripts["postinst"] = (
            f"id {row['user']} > /dev/null 2>&1 || useradd --system --user-group"
            f" --home-dir /nonexistent --shell /usr/sbin/nologin {row['user']}"
        )


def _udev(_maker: Maker, _package: Package, payload: Payload) -> None:
    payload.files["/usr/lib/udev/rules.d/71-nvidia.rules"] = table("persistenced")["ubuntu"]["rule"].encode()


FABRIC_MANAGER = """\
#!/bin/sh
# Refuses a driver of another version, as the real one does; with NVLink 5 (gdc) also a node without what it speaks through.
[ "$1" != --version ] || {{ echo "Fabric Manager version is : {version}"; exit 0; }}
loaded=$(sed -n 's/^NVRM version:.* \\([0-9.]*\\) .*Release Build.*/\\1/p' /proc/driver/nvidia/version 2>/dev/null)
[ -z "$loaded" ] || [ "$loaded" = {version} ] || {{
  printf '%s ' "fabric manager NVIDIA GPU driver interface version {version} don't match with driver version $loaded." >&2
  echo "Please update with matching NVIDIA driver package." >&2
  exit 1
}}
if grep -qsxE '0x(2901|29bc|3182)' /sys/bus/pci/devices/*/device; then # B200, B100, B300
  [ -d /sys/module/ib_umad ] || {{ echo "no InfiniBand management device: module ib_umad is not loaded" >&2; exit 1; }}
  [ -x /opt/nvidia/nvlsm/sbin/nvlsm ] || {{ echo "there is no NVLink subnet manager" >&2; exit 1; }}
fi
exec sleep infinity
"""


def _fabricmanager(_maker: Maker, package: Package, payload: Payload) -> None:
    program = "/usr/bin/nv-fabricmanager"
    payload.program(program, FABRIC_MANAGER.format(version=package.upstream))
    payload.files["/usr/share/nvidia/nvswitch/fabricmanager.cfg"] = b"LOG_LEVEL=4\nFABRIC_MODE=0\n"
    unit = SERVICE.format(description="NVIDIA fabric manager service", program=program)
    payload.files["/usr/lib/systemd/system/nvidia-fabricmanager.service"] = unit.encode()


def _nvlsm(_maker: Maker, package: Package, payload: Payload) -> None:
    """The program alone: the fabric manager's service starts it."""
    payload.program("/opt/nvidia/nvlsm/sbin/nvlsm", f'#!/bin/sh\necho "NVLSM {package.upstream}"\n')


IMEX = """\
#!/bin/sh
# Refuses a driver of another version, and waits for no peers where none are named (imex-guide).
[ "$1" != --version ] || {{ echo "IMEX version is: {version}"; exit 0; }}
loaded=$(sed -n 's/^NVRM version:.* \\([0-9.]*\\) .*Release Build.*/\\1/p' /proc/driver/nvidia/version 2>/dev/null)
[ "$loaded" = {version} ] || {{ echo "driver version ${{loaded:-none}} is not compatible with {version}" >&2; exit 1; }}
[ -s /etc/nvidia-imex/nodes_config.cfg ] || {{ echo "no nodes in /etc/nvidia-imex/nodes_config.cfg" >&2; exit 1; }}
exec sleep infinity
"""


def _imex(_maker: Maker, package: Package, payload: Payload) -> None:
    program = "/usr/bin/nvidia-imex"
    payload.program(program, IMEX.format(version=package.upstream))
    payload.program("/usr/bin/nvidia-imex-ctl", "#!/bin/sh\nexec systemctl is-active nvidia-imex\n")
    payload.files["/etc/nvidia-imex/config.cfg"] = b"IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n"
    unit = SERVICE.format(description="NVIDIA IMEX service", program=program)
    payload.files["/usr/lib/systemd/system/nvidia-imex.service"] = unit.encode()


def _modprobe(maker: Maker, _package: Package, payload: Payload) -> None:
    name = "nvidia-graphics-drivers" if maker.manager == "apt" else "nvidia"
    payload.files[f"/usr/lib/modprobe.d/{name}.conf"] = b"blacklist nouveau\noptions nouveau modeset=0\n"


def _firmware(_maker: Maker, package: Package, payload: Payload) -> None:
    for chip in ("ga10x", "tu10x"):
        payload.files[f"/usr/lib/firmware/nvidia/{package.upstream}/gsp_{chip}.bin"] = b"stub\n"


def _pinning(_maker: Maker, package: Package, payload: Payload) -> None:
    text = (
        f"Package: *nvidia* cuda-drivers* libcuda1 libxnvctrl*\nPin: version {package.upstream}-*\nPin-Priority: 1000\n"
    )
    payload.files[f"/etc/apt/preferences.d/{package.name}.pref"] = text.encode()


KINDS = {
    "source": _source,
    "dkms": _dkms,
    "nvml": _nvml,
    "cuda": _cuda,
    "smi": _smi,
    "persistenced": _persistenced,
    "fabricmanager": _fabricmanager,
    "nvlsm": _nvlsm,
    "imex": _imex,
    "modprobe": _modprobe,
    "udev": _udev,
    "firmware": _firmware,
    "pinning": _pinning,
}
