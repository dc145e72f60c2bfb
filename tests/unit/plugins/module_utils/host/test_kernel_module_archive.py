# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes that are two directories, with the tree of DKMS in each: a module that one has compiled goes to the other."""

import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernel_module_archive as archive

KERNEL, OLDER, VERSION = "6.1.0-40-amd64", "6.1.0-39-amd64", "535.261.03"
FILES = {"nvidia.ko": b"the module" * 1000, "nvidia-uvm.ko.xz": b"another", "Module.symvers": b"0x1 nv_x\n"}
KEY, OTHER_KEY = "a" * 64, "b" * 64


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def node(root, kernels=(KERNEL, OLDER), built=()):
    """A node with the driver's source, with headers, and with what DKMS has built for some kernels."""
    write(root / f"usr/src/nvidia-{VERSION}/nv.c", b"int nv;\n")
    dkms = root / "var/lib/dkms/nvidia"
    (dkms / VERSION).mkdir(parents=True)
    (dkms / VERSION / "source").symlink_to(root / f"usr/src/nvidia-{VERSION}")
    for kernel in kernels:
        write(root / f"lib/modules/{kernel}/build/.config", f"CONFIG_X={kernel}\n".encode())
    for kernel in built:
        for name, content in FILES.items():
            write(dkms / VERSION / kernel / "x86_64" / "module" / name, content)
        (dkms / f"kernel-{kernel}-x86_64").symlink_to(f"{VERSION}/{kernel}/x86_64")
    return archive.Place("nvidia", "x86_64", list(kernels), str(root))


@pytest.fixture
def pair(tmp_path):
    """The giver, the taker, and where the archive is."""
    giver = node(tmp_path / "giver", built=(KERNEL, OLDER))
    return giver, node(tmp_path / "taker"), str(tmp_path / "archives" / "module.tar.gz")


def taken(place):
    """Files that the node got, by kernel and name."""
    found = {}
    for kernel in (KERNEL, OLDER):
        directory = os.path.join(place.built(VERSION, kernel), "module")
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            path = os.path.join(directory, name)
            assert os.stat(path).st_mode & 0o777 == 0o644
            with open(path, "rb") as stream:
                found[kernel, name] = stream.read()
    return found


def refused(pair, path=None, signed=False, certificate=None):
    """The code with which the archive is refused; nothing may be in place then."""
    _giver, taker, packed = pair
    with pytest.raises(archive.ArchiveError) as error:
        archive.unpack(taker, path or packed, certificate, signed)
    assert taken(taker) == {}
    assert not os.path.exists(os.path.join(taker.dkms, ".allreduce"))
    return error.value.problem["code"]


def test_what_was_compiled_goes_to_the_other_node(pair):
    giver, taker, path = pair
    archive.pack(giver, path, None)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert archive.unpack(taker, path, None, signed=False) == [KERNEL, OLDER]
    assert taken(taker) == {(kernel, name): content for kernel in (KERNEL, OLDER) for name, content in FILES.items()}
    assert not os.path.exists(os.path.join(taker.dkms, ".allreduce"))


def test_what_the_node_has_built_itself_stays(pair):
    giver, taker, path = pair
    archive.pack(giver, path, None)
    own = os.path.join(taker.built(VERSION, OLDER), "module")
    os.makedirs(own)
    assert archive.unpack(taker, path, None, signed=False) == [KERNEL]
    assert os.listdir(own) == []


def test_only_what_is_installed_is_packed(pair):
    giver, _taker, path = pair
    os.unlink(os.path.join(giver.dkms, f"kernel-{OLDER}-x86_64"))
    with pytest.raises(archive.ArchiveError) as error:
        archive.pack(giver, path, None)
    assert error.value.problem == {
        "code": "module_not_installed", "subject": "nvidia", "detail": {"kernel": OLDER},
    }  # fmt: skip
    assert not os.path.exists(path)


OTHER_INPUTS = {
    "source": f"usr/src/nvidia-{VERSION}/nv.c",
    "another file of the source": f"usr/src/nvidia-{VERSION}/more.c",
    "the kernel's configuration": f"lib/modules/{OLDER}/build/.config",
    "the kernel's symbols": f"lib/modules/{KERNEL}/build/Module.symvers",
    "the RDMA stack": "usr/src/ofa_kernel/x86_64/6.1/Module.symvers",
    "an override": "etc/dkms/nvidia.conf",
    "an override of a version": f"etc/dkms/nvidia-{VERSION}.conf",
    "an override of a kernel": f"etc/dkms/nvidia--{KERNEL}.conf",
}


@pytest.mark.parametrize("changed", OTHER_INPUTS)
@pytest.mark.parametrize("side", [0, 1])
def test_a_module_of_other_inputs_is_refused(pair, changed, side):
    write(Path(pair[side].root, OTHER_INPUTS[changed]), b"another\n")
    archive.pack(pair[0], pair[2], None)
    with pytest.raises(archive.ArchiveError) as error:
        archive.unpack(pair[1], pair[2], None, signed=False)
    assert error.value.problem["code"] == "module_other_inputs"


@pytest.mark.parametrize("other", ["etc/dkms/framework.conf", "etc/dkms/zfs.conf", "etc/dkms/nvidia-fs.conf"])
def test_what_is_not_an_input_is_ignored(pair, other):
    giver, taker, path = pair
    write(Path(taker.root, other), b"another\n")
    archive.pack(giver, path, None)
    assert archive.unpack(taker, path, None, signed=False) == [KERNEL, OLDER]


def test_a_version_that_the_node_does_not_have_is_refused(pair):
    giver, taker, path = pair
    archive.pack(giver, path, None)
    os.rename(os.path.join(taker.dkms, VERSION), os.path.join(taker.dkms, "550.1"))
    assert refused(pair) == "module_no_source"


@pytest.mark.parametrize(
    ("packed", "own", "fits"), [(KEY, KEY, True), (KEY, OTHER_KEY, False), (None, KEY, False), (None, None, False)]
)
def test_where_signatures_are_demanded_the_key_must_be_the_same(pair, packed, own, fits):
    giver, taker, path = pair
    archive.pack(giver, path, packed)
    if fits:
        assert archive.unpack(taker, path, own, signed=True) == [KERNEL, OLDER]
    else:
        assert refused(pair, signed=True, certificate=own) == "module_other_key"


@pytest.mark.parametrize("own", [None, OTHER_KEY])
def test_where_none_are_demanded_keys_do_not_matter(pair, own):
    giver, taker, path = pair
    archive.pack(giver, path, KEY)
    assert archive.unpack(taker, path, own, signed=False) == [KERNEL, OLDER]


def forged(path, *members, **manifest):
    """Write an archive of members (name, content, or a list of a type) and a manifest that says what is given."""
    said = {"module": "nvidia", "arch": "x86_64", "certificate": None, "kernels": {}, **manifest}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (*members, (archive.MANIFEST, json.dumps(said).encode())):
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content[0], "/etc/shadow"
                tar.addfile(member)


BAD_MEMBERS = {
    "a path outside": ("../../../../etc/cron.d/x", b"* * * * * root id\n"),
    "an absolute path": ("/etc/cron.d/x", b"* * * * * root id\n"),
    "below the kernel": (f"{KERNEL}/sub/nvidia.ko", b"x"),
    "up from the kernel": (f"{KERNEL}/../nvidia.ko", b"x"),
    "a script": (f"{KERNEL}/dkms.conf", b"POST_INSTALL=x\n"),
    "another kernel": ("6.9/nvidia.ko", b"x"),
    "the same once more": (f"{KERNEL}/nvidia.ko", b"y"),
    "a symbolic link": (f"{KERNEL}/nvidia-uvm.ko", [tarfile.SYMTYPE]),
    "a hard link": (f"{KERNEL}/nvidia-uvm.ko", [tarfile.LNKTYPE]),
    "a device": (f"{KERNEL}/nvidia-uvm.ko", [tarfile.CHRTYPE]),
    "a FIFO": (f"{KERNEL}/nvidia-uvm.ko", [tarfile.FIFOTYPE]),
    "a directory": (f"{KERNEL}/nvidia-uvm.ko", [tarfile.DIRTYPE]),
}


@pytest.mark.parametrize("bad", BAD_MEMBERS)
def test_an_archive_with_anything_else_is_refused(pair, bad):
    forged(pair[2], (f"{KERNEL}/nvidia.ko", b"x"), BAD_MEMBERS[bad])
    assert refused(pair) == "module_archive_invalid"


@pytest.mark.parametrize(
    "manifest",
    [
        {"module": "zfs"}, {"arch": "aarch64"}, {"kernels": []}, {"kernels": {KERNEL: {}}}, {"certificate": 1},
        {"kernels": {KERNEL: {"version": "../../x", "inputs": "x"}}}, {"kernels": {KERNEL: {"version": "1", "inputs": 1}}},
    ],
)  # fmt: skip
def test_a_manifest_of_anything_else_is_refused(pair, manifest):
    forged(pair[2], (f"{KERNEL}/nvidia.ko", b"x"), **manifest)
    assert refused(pair) == "module_archive_invalid"


def test_an_archive_that_grows_without_bound_is_refused(pair, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST", 5000)
    archive.pack(pair[0], pair[2], None)
    assert refused(pair) == "module_archive_invalid"


def raw(name, size, kind=tarfile.REGTYPE, headers=None):
    """The header of a member that claims this size."""
    member = tarfile.TarInfo(name)
    member.size, member.type, member.pax_headers = size, kind, headers or {}
    return member.tobuf(tarfile.PAX_FORMAT if headers else tarfile.GNU_FORMAT)


HEADERS = {
    "a header that fills the memory": raw("x", 1 << 40, tarfile.XHDTYPE),
    "a name that does": raw("x", 1 << 40, tarfile.GNUTYPE_LONGNAME),
    "a size below zero": raw(f"{KERNEL}/nvidia.ko", 0, headers={"size": "-1099511627776"}),
    "another name further on": raw(f"{KERNEL}/nvidia.ko", 0, headers={"path": "../../../../etc/cron.d/x"}),
    "a file with holes": raw(f"{KERNEL}/nvidia.ko", 0, tarfile.GNUTYPE_SPARSE),
    "a size that no disk has": raw(f"{KERNEL}/nvidia.ko", 1 << 60),
}


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_headers_that_claim_anything_are_refused(pair, name):
    os.makedirs(os.path.dirname(pair[2]))
    with gzip.open(pair[2], "wb") as stream:
        stream.write(HEADERS[name] + b"\0" * (64 << 20))
    assert refused(pair) == "module_archive_invalid"


def test_members_without_end_are_refused(pair):
    forged(pair[2], *((f"{KERNEL}/m{number}.ko", b"") for number in range(archive.MOST + 1)))
    assert refused(pair) == "module_archive_invalid"


@pytest.mark.parametrize("kept", [0, 40, 300])
def test_a_truncated_archive_is_refused(pair, kept):
    archive.pack(pair[0], pair[2], None)
    with open(pair[2], "rb+") as stream:
        stream.truncate(kept)
    assert refused(pair) == "module_archive_invalid"


def test_an_archive_without_a_module_is_refused(pair):
    manifest = {
        kernel: {"version": VERSION, "inputs": archive.inputs(pair[0], VERSION, kernel)} for kernel in (KERNEL, OLDER)
    }
    forged(pair[2], (f"{KERNEL}/Module.symvers", b"x"), kernels=manifest)
    assert refused(pair) == "module_not_installed"


def test_what_is_no_archive_is_refused(pair):
    os.makedirs(os.path.dirname(pair[2]))
    with gzip.open(pair[2], "wb") as stream:
        stream.write(b"no archive" * 100)
    assert refused(pair) == "module_archive_invalid"


@pytest.mark.parametrize(
    "words", [("../x", "x86_64", []), ("nvidia", "x/y", []), ("nvidia", "x86_64", ["6.1) id ;; x"])]
)
def test_names_that_are_none_are_refused(words):
    with pytest.raises(archive.ArchiveError) as error:
        archive.Place(*words)
    assert error.value.problem["code"] == "module_invalid_name"


def test_dkms_waits_until_it_is_released(pair):
    _giver, taker, _path = pair
    assert archive.wait(taker) and not archive.wait(taker)
    assert archive.is_waiting(taker)
    assert archive.release(taker) and not archive.release(taker)
    assert not os.path.exists(taker.override)


def test_waiting_is_no_input(pair):
    """The node that waits and the one that does not compile the same."""
    giver, taker, _path = pair
    archive.wait(taker)
    assert archive.inputs(taker, VERSION, KERNEL) == archive.inputs(giver, VERSION, KERNEL)


def test_a_configuration_of_the_administrator_stays(pair):
    _giver, taker, _path = pair
    write(Path(taker.override), b"MAKE=mine\n")
    with pytest.raises(archive.ArchiveError) as error:
        archive.wait(taker)
    assert error.value.problem["code"] == "module_configured"
    assert not archive.release(taker)
    with open(taker.override) as stream:
        assert stream.read() == "MAKE=mine\n"


@pytest.mark.parametrize(("kernel", "builds"), [(KERNEL, False), (OLDER, False), ("6.1.0-41-amd64", True)])
def test_dkms_builds_for_other_kernels_meanwhile(pair, kernel, builds):
    """As DKMS reads it: sourced by bash with kernelver, then [[ ! $kernelver =~ $BUILD_EXCLUSIVE_KERNEL ]]."""
    _giver, taker, _path = pair
    archive.wait(taker)
    script = '. "$1"; [[ $BUILD_EXCLUSIVE_KERNEL && ! $kernelver =~ $BUILD_EXCLUSIVE_KERNEL ]] && exit 77; exit 0'
    run = subprocess.run(["bash", "-c", script, "x", taker.override], env={"kernelver": kernel}, check=False)
    assert (run.returncode == 0) is builds
