# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell whether the kernel loads signed modules only (Secure Boot), and whether it trusts the key that DKMS signs with.

Read from the firmware's variables, as mokutil reads them; the exit status of `mokutil --test-key` changed its meaning.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import re
import struct

VARIABLES = "/sys/firmware/efi/efivars"
# Lists that are too long for the firmware, as shim hands them to the kernel.
TABLES = "/sys/firmware/efi/mok-variables"
GLOBAL, SHIM, IMAGES = (
    "8be4df61-93ca-11d2-aa0d-00e098032b8c",
    "605dab50-e046-4300-abb6-3dd810dd8b23",
    "d719b2cb-3d3a-4596-a3bc-dad00e67656f",
)
# EFI_CERT_X509_GUID as the variables have it: the first three parts are little-endian.
X509 = b"\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72"
# What DKMS signs with unless its configuration says otherwise.
CERTIFICATE, UBUNTUS = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"


def read_secure_boot(tree, release):
    """Return the contract's ``secure_boot`` mapping; ``release``: fields of os-release.

    ``enforced``: whether the kernel demands signatures, None where the firmware could not be asked; ``shim``: whether
    keys can be enrolled at the console; ``certificate``: path of DKMS's; ``fingerprint``: its SHA-256; ``key``: enrolled,
    pending or unknown to the firmware. The last two are None where there is no certificate yet.
    """
    certificate = _certificate(tree, release)
    content = _bytes(tree, certificate)
    return {
        "enforced": _enforced(tree),
        "shim": _variable(tree, "MokListRT", SHIM) is not None or tree.exists(TABLES + "/MokListRT"),
        "certificate": certificate,
        "fingerprint": hashlib.sha256(content).hexdigest() if content else None,
        "key": _state(tree, content) if content else None,
    }


def _enforced(tree):
    if not tree.exists("/sys/firmware/efi"):
        return False
    secure = _variable(tree, "SecureBoot", GLOBAL)
    if secure is None:
        # A firmware without Secure Boot has no such variable; without the file system, its state is not known.
        return False if tree.names(VARIABLES) else None
    # shim can be told to check nothing; the kernel follows it.
    return secure[:1] == b"\1" and not any(
        (_variable(tree, name, guid) or b"")[:1] == b"\1"
        for name, guid in (("SetupMode", GLOBAL), ("MokSBStateRT", SHIM))
    )


def _certificate(tree, release):
    """Path of the certificate that DKMS's configuration names, else of the distribution's."""
    files = ["/etc/dkms/framework.conf"]
    files += ["/etc/dkms/framework.conf.d/%s" % name for name in tree.names("/etc/dkms/framework.conf.d")]
    named = []
    for path in files:
        named += re.findall(r"(?m)^\s*mok_certificate=[\"']?([^\"'\s#]+)", tree.text(path) or "")
    return named[-1] if named else UBUNTUS if release.get("ID") == "ubuntu" else CERTIFICATE


def _state(tree, certificate):
    trusted = (
        _variables(tree, "MokListRT", SHIM) + _variables(tree, "db", IMAGES) + [_bytes(tree, TABLES + "/MokListRT")]
    )
    if any(certificate in certificates(one) for one in trusted if one):
        return "enrolled"
    pending = any(certificate in certificates(one) for one in _variables(tree, "MokNew", SHIM))
    return "pending" if pending else "unknown"


def certificates(lists):
    """Return the X.509 certificates (DER) in a variable that holds EFI_SIGNATURE_LISTs."""
    found = []
    while len(lists) >= 28:
        size, header, each = struct.unpack("<III", lists[16:28])
        if size < 28 or size > len(lists) or each <= 16:
            break
        if lists[:16] == X509:
            entries = lists[28 + header : size]
            found += [entries[start + 16 : start + each] for start in range(0, len(entries) - each + 1, each)]
        lists = lists[size:]
    return found


def _variables(tree, name, guid):
    """Return a list that was split over several variables: NAME, NAME1, NAME2, …"""
    found, number = [], 0
    while True:
        value = _variable(tree, name + (str(number) if number else ""), guid)
        if value is None:
            return found
        found.append(value)
        number += 1


def _variable(tree, name, guid):
    """Return the value of a firmware variable, without its four bytes of attributes; None where it is not there."""
    content = _bytes(tree, "%s/%s-%s" % (VARIABLES, name, guid))
    return content[4:] if content else None


def _bytes(tree, path):
    try:
        with open(tree.path(path), "rb") as stream:
            return stream.read()
    except (IOError, OSError):
        return None
