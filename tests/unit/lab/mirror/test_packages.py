# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stub packages as the tools that read packages, modules and indexes see them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.lab.mirror import apt, catalogue, deb, dnf, keys, rpm
from tests.lab.mirror.elf import kernel_module
from tests.lab.mirror.payload import Builder

LIBRARIES = {"nvml": b"nvml", "empty": b"empty"}


def needs(*tools):
    return pytest.mark.skipif(any(not shutil.which(tool) for tool in tools), reason=f"needs {', '.join(tools)}")


def run(*argv, check=True, **options):
    return subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, check=check, **options)


def package(slug, name, upstream):
    return next(p for p in catalogue.packages(slug) if p.name == name and p.upstream == upstream)


@needs("dpkg-deb")
def test_dpkg_reads_what_we_write(tmp_path):
    stub = package("ubuntu2204", "nvidia-dkms-550-open", "550.163.01")
    source = package("ubuntu2204", "nvidia-kernel-source-550-open", "550.163.01")
    for one in (stub, source):
        (tmp_path / f"{one.name}.deb").write_bytes(deb.write(one, Builder("apt", LIBRARIES).build(one)))
    fields = run("dpkg-deb", "--field", tmp_path / f"{stub.name}.deb", "Version", "Depends", "Conflicts").stdout
    assert "Version: 550.163.01-0ubuntu1" in fields
    assert "Depends: dkms, nvidia-kernel-source-550-open (<= 550.163.01-1ubuntu1)" in fields
    assert "Conflicts: nvidia-dkms-kernel" in fields
    run("dpkg-deb", "--extract", tmp_path / f"{source.name}.deb", tmp_path / "root")
    tree = tmp_path / "root/usr/src/nvidia-550.163.01"
    assert 'PACKAGE_NAME="nvidia"' in (tree / "dkms.conf").read_text()
    failed = run("sh", "build.sh", "9.9-none", check=False, cwd=tree)
    assert (failed.returncode, "No such file or directory" in failed.stderr) == (2, True)
    objects = (tree / "Kbuild").read_text().partition("\n")[0].removeprefix("obj-m := ").split()
    assert [(tree / one).with_suffix(".c").exists() for one in objects] == [True] * 5
    assert "NVRM version: " in (tree / "nvidia.c").read_text()


@pytest.mark.parametrize(
    ("device", "has", "said"),
    [
        ("0x20b2", [], ""),  # A100
        ("0x2901", ["sys/module/ib_umad", "opt/nvidia/nvlsm/sbin/nvlsm"], ""),
        ("0x2901", ["opt/nvidia/nvlsm/sbin/nvlsm"], "module ib_umad is not loaded"),
        ("0x3182", ["sys/module/ib_umad"], "there is no NVLink subnet manager"),
    ],
)
def test_the_fabric_manager_of_nvlink_5_wants_module_and_subnet_manager(tmp_path, device, has, said):
    for path in ["sys/bus/pci/devices/0000:1b:00.0/", *has]:
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:1b:00.0/device").write_text(f"{device}\n", encoding="utf-8")
    stub = next(one for one in catalogue.packages("ubuntu2204") if one.name == "nvidia-fabricmanager")
    script = Builder("apt", LIBRARIES).build(stub).files["/usr/bin/nv-fabricmanager"].decode()
    script = re.sub(r"(?<=[ \[])/(?=sys/|opt/|proc/)", f"{tmp_path}/", script).replace("sleep infinity", "true")
    done = run("sh", "-c", script, check=False)
    assert (done.returncode, said in done.stderr) == (1 if said else 0, True)


@needs("modinfo")
def test_modinfo_reads_a_module(tmp_path):
    (tmp_path / "nvidia.ko").write_bytes(kernel_module("nvidia", "580.65.06", "Dual MIT/GPL"))
    assert run("modinfo", "-F", "version", tmp_path / "nvidia.ko").stdout == "580.65.06\n"
    assert run("modinfo", "-F", "license", tmp_path / "nvidia.ko").stdout == "Dual MIT/GPL\n"


@pytest.mark.parametrize(
    ("slug", "name", "upstream", "expected"),
    [
        ("rhel8", "kmod-nvidia-open-dkms", "550.163.01", "/usr/src/nvidia-open-550.163.01/dkms.conf"),
        ("rhel8", "kmod-nvidia-open-dkms", "570.172.08", "/usr/src/nvidia-570.172.08/dkms.conf"),
        ("rhel9", "kmod-nvidia-latest-dkms", "535.183.06", "/usr/src/nvidia-535.183.06/dkms.conf"),
        ("ubuntu2404", "libnvidia-compute", "595.58.03", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.595.58.03"),
        ("rhel9", "libnvidia-ml", "580.178.04", "/usr/lib64/libnvidia-ml.so.1"),
        ("ubuntu2204", "cuda-nvcc-12-4", "12.4.131", "/usr/local/cuda-12.4/bin/nvcc"),
        ("rhel9", "libcudnn9-cuda-12", "9.10.2.21", "/usr/lib64/libcudnn.so.9"),
        ("ubuntu2204", "libnccl-dev", "2.21.5", "/usr/include/nccl.h"),
    ],
)
def test_files_lie_where_the_real_ones_do(slug, name, upstream, expected):
    manager = catalogue.repositories()[slug]["manager"]
    assert expected in Builder(manager, LIBRARIES).build(package(slug, name, upstream)).files


@pytest.mark.parametrize(
    ("dist", "kernel", "owner"),
    [("el8", "4.18.0-553.el8_10", "kernel-core"), ("el9", "5.14.0-570.12.1.el9_6", "kernel-modules-core")],
)
def test_the_directory_that_modules_are_compiled_in_belongs_to_the_kernel(dist, kernel, owner):
    """Headers alone are not enough on Enterprise Linux, and a kernel's core is not a whole kernel."""
    builder, found = Builder("dnf", LIBRARIES), catalogue.distribution(dist)
    files = {p.name: builder.build(p).files for p in found if p.version == kernel}
    assert [name for name in files if f"/usr/lib/modules/{kernel}.x86_64/build" in files[name]] == [owner]
    assert [name for name in files if f"/boot/vmlinuz-{kernel}.x86_64" in files[name]] == ["kernel-core"]
    drivers = [name for name in files if any("/kernel/drivers/" in path for path in files[name])]
    assert drivers == ["kernel-modules"]
    needed = {name for p in found if p.name == "kernel-core" and p.version == kernel for name in p.depends}
    assert not [relation for relation in needed if relation.startswith("kernel-modules-uname-r")]


@pytest.mark.parametrize(
    ("dist", "relation"), [("el8", "kernel-devel-uname-r"), ("el9", "(kernel-devel-matched if kernel-core)")]
)
def test_dkms_brings_headers(dist, relation):
    (dkms,) = [package for package in catalogue.distribution(dist) if package.name == "dkms"]
    assert relation in dkms.depends


def test_the_kernels_of_a_series_have_metapackages_of_their_own():
    found = {(p.name, p.version): p for p in catalogue.archive("jammy")}
    newest = found["linux-generic-hwe-22.04", "6.8.0-84.84~22.04.1"]
    assert "linux-headers-generic-hwe-22.04 (= 6.8.0-84.84~22.04.1)" in newest.depends
    assert found["linux-headers-generic-hwe-22.04", "6.8.0-84.84~22.04.1"].depends == (
        "linux-headers-6.8.0-84-generic",
    )
    assert found["linux-headers-generic", "5.15.0.151.151"].depends == ("linux-headers-5.15.0-151-generic",)


@needs("rpmbuild")
def test_rpm_reads_what_we_build(tmp_path):
    stubs = [p for p in catalogue.packages("rhel8") if p.name in ("nvidia-driver-NVML", "libnvidia-ml")][:3]
    (tmp_path / "out").mkdir()
    rpm.build(stubs, Builder("dnf", LIBRARIES), tmp_path / "out")
    files = sorted((tmp_path / "out").glob("*.rpm"))
    assert len(files) == 3
    query = run(
        "rpm", "-qp", "--qf", "%{NAME} %{EPOCH}:%{VERSION}-%{RELEASE} %{ARCH}\n", "--provides", "--list", files[0]
    )
    assert "nvidia-driver-NVML 3:470.256.02-1.el8 x86_64" in query.stdout
    assert "cuda-nvml(x86-64) = 3:470.256.02-1.el8" in query.stdout
    assert "/usr/lib64/libnvidia-ml.so.470.256.02" in query.stdout


def test_streams_filter_a_branch_to_itself():
    packages = catalogue.packages("rhel9")
    *streams, default = dnf.modules(packages, "el9")
    found = {stream["data"]["stream"]: stream["data"] for stream in streams}
    assert default["data"]["stream"] == "open-dkms"
    assert set(default["data"]["profiles"]) == set(found)
    artifacts = found["550-open"]["artifacts"]["rpms"]
    assert "kmod-nvidia-open-dkms-3:550.163.01-1.el9.x86_64" in artifacts
    assert all(":550." in one for one in artifacts if not one.startswith("dnf-plugin-nvidia"))
    assert not [one for one in artifacts if "latest-dkms" in one]
    assert "515-open" in found and "470-open" not in found and "610-dkms" not in found


@pytest.fixture(scope="module")
def key_place(tmp_path_factory):
    place = tmp_path_factory.mktemp("keys")
    keys.ensure(place)
    return place


@needs("gpg", "gpgv")
def test_signatures_are_what_their_names_say(key_place, tmp_path):
    chosen = [p for p in catalogue.packages("debian12") if p.name == "nvidia-fabricmanager"]
    apt.build_nvidia("debian12", chosen, Builder("apt", LIBRARIES), tmp_path, key_place)
    ring = tmp_path / "ring.gpg"
    run("gpg", "--batch", "--homedir", tmp_path, "--dearmor", "--output", ring, key_place / "lab.pub")

    def verified(index):
        return run("gpgv", "--keyring", ring, index, check=False).returncode == 0

    assert verified(tmp_path / "InRelease")
    assert verified(tmp_path / ".lab/expired/InRelease")
    assert not verified(tmp_path / ".lab/unknown-key/InRelease")
    assert re.search(r"^Valid-Until: ", (tmp_path / ".lab/expired/Release").read_text(), re.MULTILINE)
    release = (tmp_path / "Release").read_text()
    assert "Label: NVIDIA CUDA\n" in release
    assert not re.search("^(Suite|Codename|Valid-Until):", release, re.MULTILINE)
    newest = max(chosen, key=lambda p: catalogue.numbers(p.upstream))
    assert f"Version: {newest.version}\n" in (tmp_path / "Packages").read_text()
    assert f"Version: {newest.version}\n" not in (tmp_path / ".lab/lagging/Packages").read_text()


@needs("gpg")
def test_the_sha1_key_is_the_same_key_bound_by_sha1(key_place):
    for name, digest in (("lab", 10), ("sha1", 2)):
        packets = run("gpg", "--batch", "--list-packets", key_place / f"{name}.pub").stdout
        assert re.findall(r"digest algo (\d+)", packets) == [str(digest)], name
    shown = {
        run("gpg", "--batch", "--show-keys", "--with-colons", key_place / f"{n}.pub").stdout.split("fpr:")[1]
        for n in ("lab", "sha1")
    }
    assert {text.split("\n")[0].strip(":") for text in shown} == {keys.fingerprint(key_place)}
