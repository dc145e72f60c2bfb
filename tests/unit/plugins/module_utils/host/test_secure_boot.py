# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot, from the firmware's variables."""

import hashlib
import struct
import uuid

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import secure_boot
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree

X509, SHA256 = "a5c059a1-94e4-4aa7-87b5-ab155c2bf072", "c1c41626-504c-4092-aca9-41f936934328"
OURS, VENDOR, OTHER = b"\x30\x82ours" * 40, b"\x30\x82the vendor's" * 30, b"\x30\x82another" * 35
OFF, ON = b"\0", b"\1"
DKMS = "/var/lib/dkms/mok.pub"


def signatures(kind, *contents, header=b""):
    """One EFI_SIGNATURE_LIST of contents of one length (UEFI specification, 32.4.1)."""
    owner = uuid.uuid4().bytes_le
    sizes = (28 + len(header) + sum(16 + len(one) for one in contents), len(header), 16 + len(contents[0]))
    return uuid.UUID(kind).bytes_le + struct.pack("<III", *sizes) + header + b"".join(owner + one for one in contents)


def machine(root, variables=None, files=None):
    """A root with firmware variables {name: value}, and other files {path: content}."""
    guids = {"SecureBoot": secure_boot.GLOBAL, "SetupMode": secure_boot.GLOBAL, "db": secure_boot.IMAGES}
    found = {
        f"{secure_boot.VARIABLES}/{name}-{guids.get(name, secure_boot.SHIM)}": b"\6\0\0\0" + value
        for name, value in (variables or {}).items()
    }
    for path, content in {**found, **(files or {})}.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return FileTree(str(root))


@pytest.mark.parametrize(
    ("variables", "enforced"),
    [
        (None, False),
        ({"SecureBoot": ON, "SetupMode": OFF}, True),
        ({"SecureBoot": OFF, "SetupMode": OFF}, False),
        ({"SecureBoot": ON, "SetupMode": ON}, False),
        ({"SecureBoot": ON, "SetupMode": OFF, "MokSBStateRT": ON}, False),
        ({"SecureBoot": ON, "SetupMode": OFF, "MokSBStateRT": OFF}, True),
        ({"BootCurrent": OFF}, False),
    ],
    ids=["no UEFI", "on", "off", "setup mode", "shim checks nothing", "shim checks", "no such variable"],
)
def test_whether_signatures_are_demanded(tmp_path, variables, enforced):
    assert secure_boot.read_secure_boot(machine(tmp_path, variables), {})["enforced"] is enforced


def test_a_firmware_that_cannot_be_asked_is_no_guess(tmp_path):
    (tmp_path / "sys" / "firmware" / "efi" / "efivars").mkdir(parents=True)
    assert secure_boot.read_secure_boot(FileTree(str(tmp_path)), {})["enforced"] is None


VENDORS = signatures(X509, VENDOR)


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"MokListRT": VENDORS}, "unknown"),
        ({"MokListRT": VENDORS + signatures(X509, OURS)}, "enrolled"),
        ({"MokListRT": signatures(SHA256, b"h" * 32, b"i" * 32) + signatures(X509, OURS)}, "enrolled"),
        ({"MokListRT": signatures(X509, OURS, header=b"head")}, "enrolled"),
        ({"MokListRT": VENDORS, "MokListRT1": signatures(X509, OURS)}, "enrolled"),
        ({"MokListRT": VENDORS, "db": signatures(X509, OURS)}, "enrolled"),
        ({"MokListRT": VENDORS, "MokNew": signatures(X509, OURS)}, "pending"),
        ({"MokListRT": VENDORS, "MokNew": signatures(X509, OTHER)}, "unknown"),
        ({"MokListRT": VENDORS, "MokNew": signatures(X509, OTHER) + signatures(X509, OURS)}, "pending"),
        ({"MokListRT": signatures(SHA256, OURS)}, "unknown"),
        ({"MokListRT": signatures(X509, OURS)[:-5]}, "unknown"),
        ({"MokListRT": b"\0" * 64}, "unknown"),
        ({"MokListRT": b""}, "unknown"),
    ],
)
def test_where_the_key_stands(tmp_path, variables, key):
    found = secure_boot.read_secure_boot(machine(tmp_path, variables, {DKMS: OURS}), {})
    assert (found["key"], found["certificate"], found["shim"]) == (key, DKMS, True)
    assert found["fingerprint"] == hashlib.sha256(OURS).hexdigest()


def test_a_long_list_is_in_the_tables_of_shim(tmp_path):
    files = {DKMS: OURS, secure_boot.TABLES + "/MokListRT": VENDORS + signatures(X509, OURS)}
    found = secure_boot.read_secure_boot(machine(tmp_path, {"SecureBoot": ON}, files), {})
    assert (found["key"], found["shim"]) == ("enrolled", True)


UBUNTU = "/var/lib/shim-signed/mok/MOK.der"
OWN = b'# mok_certificate="/x"\nmok_signing_key="/root/our.key"\nmok_certificate="/root/our.der"\n'


@pytest.mark.parametrize(
    ("system", "files", "certificate", "key"),
    [
        ("debian", {}, DKMS, None),
        ("debian", {DKMS: OURS, UBUNTU: OTHER}, DKMS, "unknown"),
        ("ubuntu", {}, UBUNTU, None),
        ("ubuntu", {UBUNTU: OURS, DKMS: OTHER}, UBUNTU, "unknown"),
        ("rocky", {DKMS: OTHER, "/root/our.der": OURS, "/etc/dkms/framework.conf": OWN}, "/root/our.der", "unknown"),
        ("ubuntu", {"/etc/dkms/framework.conf.d/site.conf": OWN}, "/root/our.der", None),
    ],
)
def test_which_certificate_is_dkms_s(tmp_path, system, files, certificate, key):
    found = secure_boot.read_secure_boot(machine(tmp_path, None, files), {"ID": system})
    assert (found["certificate"], found["key"], found["shim"]) == (certificate, key, False)
    assert (found["fingerprint"] is None) is (key is None)
