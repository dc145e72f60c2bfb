# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stub package brings: what checks and other packages look at, in the places of the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .catalogue import Package, numbers
from .elf import kernel_module

LIBRARIES = {"apt": "/usr/lib/x86_64-linux-gnu", "dnf": "/usr/lib64"}


@dataclass
class Payload:
    """Files by path (bytes, or the target of a link), the paths that are programs, and scripts by their Debian names."""

    files: dict[str, bytes | str] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    scripts: dict[str, str] = field(default_factory=dict)


class Builder:
    """Makes payloads; libraries: {"nvml": bytes, "empty": bytes}."""

    def __init__(self, manager: str, libraries: dict[str, bytes]):
        self.manager = manager
        self.libraries = libraries
        self.directory = LIBRARIES[manager]

    def build(self, package: Package) -> Payload:
        payload = Payload()
        for kind in package.files:
            KINDS[kind](self, package, payload)
        return payload

    def library(self, payload: Payload, name: str, version: str, content: bytes, soname: str = "1") -> None:
        payload.files[f"{self.directory}/{name}.so.{version}"] = content
        payload.files[f"{self.directory}/{name}.so.{soname}"] = f"{name}.so.{version}"


def _program(payload: Payload, path: str, text: str) -> None:
    payload.files[path] = text.encode()
    payload.programs.add(path)


# --- driver -----------------------------------------------------------------------------------------------------------

# DKMS runs for real; what it calls has no compiler to wait for, but misses the headers as a compiler does.
BUILD = """\
#!/bin/sh
# build.sh KERNEL: "compiles" the modules of this directory.
set -e
if [ -e /etc/lab/dkms-build-fails ]; then
  cat /etc/lab/dkms-build-fails >&2
  exit 2
fi
[ -e "/lib/modules/$1/build/Makefile" ] || {
  echo "make[1]: *** /lib/modules/$1/build: No such file or directory.  Stop." >&2
  exit 2
}
for module in nvidia nvidia-uvm nvidia-modeset nvidia-drm nvidia-peermem; do
  cp "$module.stub" "$module.ko"
done
"""
MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")


def dkms_name(package: Package, manager: str) -> str:
    """The open modules' RPM called it nvidia-open until 570.148.08 (aws/amazon-eks-ami pull request 2284).

    Ubuntu's server drivers have one of their own.
    """
    if "-server" in package.name:
        return "nvidia-srv"
    old = manager == "dnf" and "-open-" in package.name and numbers(package.upstream) < [570, 148, 8]
    return "nvidia-open" if old else "nvidia"


def _source(builder: Builder, package: Package, payload: Payload) -> None:
    name, version = dkms_name(package, builder.manager), package.upstream
    is_open = "-open" in package.name
    place = f"/usr/src/{name}-{version}"
    lines = [f'PACKAGE_NAME="{name}"', f'PACKAGE_VERSION="{version}"', 'AUTOINSTALL="yes"', 'CLEAN="true"']
    lines.append('MAKE[0]="sh ./build.sh ${kernelver}"')
    for number, module in enumerate(MODULES):
        lines += [
            f'BUILT_MODULE_NAME[{number}]="{module}"',
            f'DEST_MODULE_LOCATION[{number}]="/extra"',
            f'STRIP[{number}]="no"',
        ]
        licence = "Dual MIT/GPL" if is_open else "NVIDIA"
        payload.files[f"{place}/{module}.stub"] = kernel_module(module.replace("-", "_"), version, licence)
    payload.files[f"{place}/dkms.conf"] = ("\n".join(lines) + "\n").encode()
    _program(payload, f"{place}/build.sh", BUILD)


def _dkms(builder: Builder, package: Package, payload: Payload) -> None:
    name, version = dkms_name(package, builder.manager), package.upstream
    if builder.manager == "apt":
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


def _nvml(builder: Builder, package: Package, payload: Payload) -> None:
    builder.library(payload, "libnvidia-ml", package.upstream, builder.libraries["nvml"])


def _cuda(builder: Builder, package: Package, payload: Payload) -> None:
    builder.library(payload, "libcuda", package.upstream, builder.libraries["empty"])


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


def _smi(_builder: Builder, package: Package, payload: Payload) -> None:
    _program(payload, "/usr/bin/nvidia-smi", SMI.format(version=package.upstream))


SERVICE = """\
[Unit]
Description={description}
[Service]
Type=simple
ExecStart={program}
[Install]
WantedBy=multi-user.target
"""


def _persistenced(_builder: Builder, _package: Package, payload: Payload) -> None:
    program = "/usr/bin/nvidia-persistenced"
    _program(payload, program, "#!/bin/sh\nexec sleep infinity\n")
    unit = SERVICE.format(description="NVIDIA Persistence Daemon", program=program)
    payload.files["/usr/lib/systemd/system/nvidia-persistenced.service"] = unit.encode()


FABRIC_MANAGER = """\
#!/bin/sh
# Refuses a driver of another version, as the real one does.
[ "$1" != --version ] || {{ echo "Fabric Manager version is : {version}"; exit 0; }}
loaded=$(sed -n 's/^NVRM version:.* \\([0-9.]*\\) .*Release Build.*/\\1/p' /proc/driver/nvidia/version 2>/dev/null)
[ -z "$loaded" ] || [ "$loaded" = {version} ] || {{
  printf '%s ' "fabric manager NVIDIA GPU driver interface version {version} don't match with driver version $loaded." >&2
  echo "Please update with matching NVIDIA driver package." >&2
  exit 1
}}
exec sleep infinity
"""


def _fabricmanager(_builder: Builder, package: Package, payload: Payload) -> None:
    program = "/usr/bin/nv-fabricmanager"
    _program(payload, program, FABRIC_MANAGER.format(version=package.upstream))
    payload.files["/usr/share/nvidia/nvswitch/fabricmanager.cfg"] = b"LOG_LEVEL=4\nFABRIC_MODE=0\n"
    unit = SERVICE.format(description="NVIDIA fabric manager service", program=program)
    payload.files["/usr/lib/systemd/system/nvidia-fabricmanager.service"] = unit.encode()


def _modprobe(builder: Builder, _package: Package, payload: Payload) -> None:
    name = "nvidia-graphics-drivers" if builder.manager == "apt" else "nvidia"
    payload.files[f"/usr/lib/modprobe.d/{name}.conf"] = b"blacklist nouveau\noptions nouveau modeset=0\n"


def _firmware(_builder: Builder, package: Package, payload: Payload) -> None:
    for chip in ("ga10x", "tu10x"):
        payload.files[f"/usr/lib/firmware/nvidia/{package.upstream}/gsp_{chip}.bin"] = b"stub\n"


def _pinning(_builder: Builder, package: Package, payload: Payload) -> None:
    text = (
        f"Package: *nvidia* cuda-drivers* libcuda1 libxnvctrl*\nPin: version {package.upstream}-*\nPin-Priority: 1000\n"
    )
    payload.files[f"/etc/apt/preferences.d/{package.name}.pref"] = text.encode()


# --- kernels ----------------------------------------------------------------------------------------------------------


def _kernel_release(package: Package) -> str:
    if package.architecture == "x86_64":
        return f"{package.version}.x86_64"
    return package.name.partition("-")[2].partition("-")[2]  # linux-image-RELEASE


def _kernel(_builder: Builder, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    payload.files[f"/boot/vmlinuz-{release}"] = b"stub\n"
    for name in ("modules.builtin", "modules.order"):
        payload.files[f"/usr/lib/modules/{release}/{name}"] = b""


def _headers(builder: Builder, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    tree = f"/usr/src/linux-headers-{release}" if builder.manager == "apt" else f"/usr/src/kernels/{release}"
    payload.files[f"{tree}/Makefile"] = b"# stub\n"
    payload.files[f"{tree}/include/config/auto.conf"] = b""  # dkms takes a tree without include for missing
    payload.files[f"{tree}/.config"] = b'CONFIG_CC_VERSION_TEXT=""\n'
    payload.files[f"/usr/lib/modules/{release}/build"] = tree
    # What came before the headers is compiled now: Ubuntu's packages call such hooks, dkms of EPEL brings one.
    if builder.manager == "apt":
        hooks = "/etc/kernel/header_postinst.d"
        payload.scripts["postinst"] = f"[ ! -d {hooks} ] || run-parts --arg={release} {hooks}"
    else:
        payload.scripts["postinst"] = f"[ ! -x /usr/sbin/dkms ] || dkms autoinstall -k {release} || :"


def _dkms_program(_builder: Builder, _package: Package, payload: Payload) -> None:
    payload.files["/usr/sbin/dkms"] = "/usr/libexec/lab/dkms"


# --- CUDA -------------------------------------------------------------------------------------------------------------


def _toolkit(package: Package) -> str:
    """12.4 of cuda-nvcc-12-4, cuda-toolkit-12-4-config-common."""
    return ".".join([part for part in package.name.split("-") if part.isdigit()][:2])


def _nvcc(_builder: Builder, package: Package, payload: Payload) -> None:
    release = _toolkit(package)
    text = f"Cuda compilation tools, release {release}, V{package.upstream}"
    _program(payload, f"/usr/local/cuda-{release}/bin/nvcc", f'#!/bin/sh\necho "{text}"\n')


def _cudart(builder: Builder, package: Package, payload: Payload) -> None:
    place = f"/usr/local/cuda-{_toolkit(package)}"
    major = package.upstream.partition(".")[0]
    payload.files[f"{place}/targets/x86_64-linux/lib/libcudart.so.{package.upstream}"] = builder.libraries["empty"]
    payload.files[f"{place}/targets/x86_64-linux/lib/libcudart.so.{major}"] = f"libcudart.so.{package.upstream}"
    payload.files[f"{place}/lib64"] = "targets/x86_64-linux/lib"


def _cuda_config(builder: Builder, package: Package, payload: Payload) -> None:
    """The package behind the `cuda` alternative: a newer toolkit takes /usr/local/cuda over in automatic mode."""
    release = _toolkit(package)
    major, minor = release.split(".")
    place = f"/usr/local/cuda-{release}"
    libraries = f"{place}/targets/x86_64-linux/lib\n"
    payload.files[f"/etc/ld.so.conf.d/{major}88_cuda-{major}.conf"] = (
        f"/usr/local/cuda-{major}/targets/x86_64-linux/lib\n".encode()
    )
    payload.files[f"{place}/.config-common"] = libraries.encode()
    install, remove = [], []
    for name, link in (("cuda", "/usr/local/cuda"), (f"cuda-{major}", f"/usr/local/cuda-{major}")):
        install.append(f"update-alternatives --install {link} {name} {place} {int(major) * 10 + int(minor)}")
        remove.append(f"update-alternatives --remove {name} {place}")
    payload.scripts["postinst"] = "\n".join(install)
    condition = '[ "$1" = remove ]' if builder.manager == "apt" else '[ "$1" = 0 ]'
    payload.scripts["prerm"] = f"if {condition}; then\n" + "\n".join(remove) + "\nfi"


def _cudnn(builder: Builder, package: Package, payload: Payload) -> None:
    version = ".".join(package.upstream.split(".")[:3])
    builder.library(payload, "libcudnn", version, builder.libraries["empty"], soname=version.partition(".")[0])


def _cudnn_dev(_builder: Builder, package: Package, payload: Payload) -> None:
    parts = zip(("MAJOR", "MINOR", "PATCHLEVEL"), package.upstream.split("."), strict=False)
    text = "".join(f"#define CUDNN_{name} {number}\n" for name, number in parts)
    payload.files["/usr/include/cudnn_version.h"] = text.encode()


def _nccl(builder: Builder, package: Package, payload: Payload) -> None:
    builder.library(payload, "libnccl", package.upstream, builder.libraries["empty"], soname="2")


def _nccl_dev(_builder: Builder, package: Package, payload: Payload) -> None:
    parts = zip(("MAJOR", "MINOR", "PATCH"), package.upstream.split("."), strict=True)
    payload.files["/usr/include/nccl.h"] = "".join(f"#define NCCL_{name} {number}\n" for name, number in parts).encode()


def _prebuilt(builder: Builder, package: Package, payload: Payload) -> None:
    """linux-modules-nvidia-580-server-open-KERNEL, whose version ends in +DRIVER; kmod-nvidia-DRIVER-KERNEL."""
    if builder.manager == "dnf":
        kernel = f"{package.name.split('-', 3)[3]}.{package.version.partition('-')[2].partition('.')[2]}.x86_64"
        place = f"/usr/lib/modules/{kernel}/extra/drivers/video/nvidia/nvidia.ko"
        payload.files[place] = kernel_module("nvidia", package.upstream, "NVIDIA")
        return
    flavour, _, kernel = package.name.removeprefix("linux-modules-nvidia-").partition("-open-")
    is_open = bool(kernel)
    if not is_open:
        flavour, _, kernel = flavour.partition("-server-")
    branch = flavour.removesuffix("-server").partition("-")
    kernel = kernel or branch[2]
    folder = f"nvidia-{branch[0]}{'srv' if '-server' in package.name else ''}{'-open' if is_open else ''}"
    content = kernel_module("nvidia", package.version.partition("+")[2], "Dual MIT/GPL" if is_open else "NVIDIA")
    payload.files[f"/usr/lib/modules/{kernel}/kernel/{folder}/nvidia.ko"] = content


KINDS: dict[str, Callable[[Builder, Package, Payload], None]] = {
    "source": _source,
    "dkms": _dkms,
    "nvml": _nvml,
    "cuda": _cuda,
    "smi": _smi,
    "persistenced": _persistenced,
    "fabricmanager": _fabricmanager,
    "modprobe": _modprobe,
    "firmware": _firmware,
    "pinning": _pinning,
    "kernel": _kernel,
    "headers": _headers,
    "prebuilt": _prebuilt,
    "dkms_program": _dkms_program,
    "nvcc": _nvcc,
    "cudart": _cudart,
    "cuda_config": _cuda_config,
    "cudnn": _cudnn,
    "cudnn_dev": _cudnn_dev,
    "nccl": _nccl,
    "nccl_dev": _nccl_dev,
}
