# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry a compiled kernel module from one node to another: what ``dkms build`` would have left there.

DKMS has archives of its own. ``dkms ldtarball`` executes the dkms.conf of the archive as root and, in every version since
2.8, refuses a module that its package has added already. So the archive holds compiled files only, and the node that takes
them keeps the source and the configuration of its own package: DKMS installs, removes and rebuilds the module as any other.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import zlib

from ..machine.files import flush, make_directories, replace
from ..machine.problems import problem

SENTENCES = {
    "module_invalid_name": "{subject} is no name of a module, a kernel or an architecture",
    "module_configured": "{subject} exists and was not written by this module: the node has a configuration of its own",
    "module_not_installed": "DKMS has no module {subject} installed for kernel {kernel}",
    "module_no_source": "DKMS has no source of {subject}",
    "module_archive_invalid": "The archive is not one of module {subject}: {reason}",
    "module_other_inputs": "{subject} was compiled for kernel {kernel} from another source, other headers or another configuration",
    "module_other_key": "{subject} was signed with another key than that of this node, whose kernel demands signatures",
}
MARK = "# Written by allreduce.gpu: another node compiles this module for these kernels.\n"
MANIFEST = "manifest.json"
# Bytes, and members; what claims more is not an archive of a driver.
LARGEST, LARGEST_MANIFEST, MOST = 2 << 30, 1 << 20, 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]*")
_FILE = re.compile(r"[A-Za-z0-9_-]+\.ko(\.(gz|xz|zst))?|Module\.symvers")


class ArchiveError(Exception):
    """The reason why a module was not carried. ``problem``: its record, which the text describes."""

    def __init__(self, code, subject, **detail):
        super(ArchiveError, self).__init__(SENTENCES[code].format(subject=subject, **detail))
        self.problem = problem(code, subject, **detail)


class Place:
    """The place where DKMS keeps a module for an architecture, on this machine below ``root``."""

    def __init__(self, name, arch, kernels, root="/"):
        for word in [name, arch] + list(kernels):
            if not _NAME.fullmatch(word):
                raise ArchiveError("module_invalid_name", word)
        self.name, self.arch, self.kernels, self.root = name, arch, kernels, root
        self.dkms = os.path.join(root, "var/lib/dkms", name)
        self.override = os.path.join(root, "etc/dkms", name + ".conf")

    def built(self, version, kernel):
        """Return the directory of the compiled files."""
        return os.path.join(self.dkms, version, kernel, self.arch)


def wait(place):
    """Tell DKMS not to build for the kernels, until release() does; return whether that changed anything.

    The packages of a driver build its module when they are installed. Other kernels are not affected, even if an
    interrupted run leaves the file.
    """
    text = MARK + 'case "$kernelver" in\n%s) BUILD_EXCLUSIVE_KERNEL="^compiled-elsewhere$" ;;\nesac\n' % "|".join(
        place.kernels
    )
    found = _text(place.override)
    if found is not None and not found.startswith(MARK):
        raise ArchiveError("module_configured", place.override)
    if found == text:
        return False
    if not os.path.isdir(os.path.dirname(place.override)):
        make_directories(os.path.dirname(place.override))
    replace(place.override, text)
    return True


def release(place):
    """Let DKMS build again; return whether anything kept it from that."""
    waits = is_waiting(place)
    if waits:
        os.unlink(place.override)
    return waits


def is_waiting(place):
    """Return True if wait() keeps DKMS from building."""
    return (_text(place.override) or "").startswith(MARK)


def pack(place, path, certificate):
    """Write the files that are installed for the kernels to an archive at PATH; return its manifest.

    certificate: SHA-256 of the certificate that DKMS signs with, None where it has none
    """
    manifest = {"module": place.name, "arch": place.arch, "certificate": certificate, "kernels": {}}
    if not os.path.isdir(os.path.dirname(path)):
        make_directories(os.path.dirname(path))
    with tarfile.open(path + ".part", "w:gz", compresslevel=1) as tar:
        os.chmod(path + ".part", 0o600)
        for kernel in place.kernels:
            version = _installed(place, kernel)
            manifest["kernels"][kernel] = {"version": version, "inputs": inputs(place, version, kernel)}
            directory = os.path.join(place.built(version, kernel), "module")
            for name in sorted(name for name in os.listdir(directory) if _FILE.fullmatch(name)):
                tar.add(os.path.join(directory, name), "%s/%s" % (kernel, name), filter=_plain)
        content = json.dumps(manifest).encode("utf-8")
        member = tarfile.TarInfo(MANIFEST)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    flush(path + ".part")
    os.rename(path + ".part", path)
    return manifest


def unpack(place, path, certificate, signed):
    """Put the files of an archive where DKMS keeps what it has built; return the kernels that got them.

    What does not fit this node, or is anything else than a module's files, is refused before anything is in place.
    signed: whether the kernel demands signatures; certificate: as for pack, of this node
    """
    aside = os.path.join(place.dkms, ".allreduce")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        make_directories(aside)
        manifest = _extract(place, path, aside)
        if signed and (certificate is None or manifest["certificate"] != certificate):
            raise ArchiveError("module_other_key", place.name)
        return [kernel for kernel in place.kernels if _accept(place, kernel, manifest["kernels"], aside)]
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _accept(place, kernel, packed, aside):
    """Move the files of one kernel into place; return False where DKMS has built them itself."""
    found = packed.get(kernel)
    files = os.path.join(aside, kernel)
    if not found or not any(".ko" in name for name in (os.listdir(files) if os.path.isdir(files) else ())):
        raise ArchiveError("module_not_installed", place.name, kernel=kernel)
    if found["inputs"] != inputs(place, found["version"], kernel):
        raise ArchiveError("module_other_inputs", "%s %s" % (place.name, found["version"]), kernel=kernel)
    built = place.built(found["version"], kernel)
    if os.path.isdir(os.path.join(built, "module")):
        return False
    shutil.rmtree(built, ignore_errors=True)
    make_directories(built)
    os.rename(files, os.path.join(built, "module"))
    return True


def inputs(place, version, kernel):
    """Return a digest of what the module is compiled from: source, DKMS's configuration of it, kernel headers, RDMA stack."""
    source = os.path.join(place.dkms, version, "source")
    if not os.path.isdir(source):
        raise ArchiveError("module_no_source", "%s %s" % (place.name, version))
    digest = hashlib.sha256()
    headers = os.path.join(place.root, "lib/modules", kernel, "build")
    paths = [(path, os.path.relpath(path, source)) for path in _files(source)]
    paths += [(os.path.join(headers, name), "headers " + name) for name in (".config", "Module.symvers")]
    paths += [(path, os.path.basename(path)) for path in _overrides(place, version, kernel)]
    # nvidia-peermem is compiled against it.
    rdma = os.path.join(place.root, "usr/src/ofa_kernel")
    paths += [(path, path) for path in _files(rdma) if path.endswith("/Module.symvers")]
    for path, name in paths:
        digest.update(("%s %s\n" % (_digest(path), name)).encode("utf-8"))
    return digest.hexdigest()


def _overrides(place, version, kernel):
    """Return the files with which an administrator changes the build, without that of wait()."""
    directory = os.path.dirname(place.override)
    prefixes = ("-%s" % version, "--%s" % kernel)
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    names = [name for name in names if name.endswith(".conf") and name.startswith(place.name)]
    names = [name for name in names if name[len(place.name) :].startswith((".conf",) + prefixes)]
    return [os.path.join(directory, name) for name in names if not (name == place.name + ".conf" and is_waiting(place))]


def _installed(place, kernel):
    """Return the version that DKMS has installed for a kernel."""
    link = os.path.join(place.dkms, "kernel-%s-%s" % (kernel, place.arch))
    parts = os.readlink(link).split("/") if os.path.islink(link) else []
    if parts[1:] != [kernel, place.arch] or not os.path.isdir(os.path.join(place.dkms, *(parts + ["module"]))):
        raise ArchiveError("module_not_installed", place.name, kernel=kernel)
    return parts[0]


def _extract(place, path, aside):
    """Extract an archive's files below ASIDE; return its manifest. Nothing else than such files gets out of it."""
    manifest, left, count = None, LARGEST, 0
    try:
        with gzip.open(path) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r:") as tar:
            for member in tar:
                left, count = left - member.size, count + 1
                kernel, _slash, name = member.name.partition("/")
                plain = member.isreg() and not member.issparse() and member.size >= 0
                if left < 0 or count > MOST or not plain or os.path.lexists(os.path.join(aside, member.name)):
                    raise ValueError("member %s" % ascii(member.name[:80]))
                if member.name == MANIFEST and member.size <= LARGEST_MANIFEST:
                    manifest = json.loads(tar.extractfile(member).read().decode("utf-8"))
                elif kernel in place.kernels and _FILE.fullmatch(name):
                    _write(tar.extractfile(member), os.path.join(aside, kernel), name)
                else:
                    raise ValueError("member %s" % ascii(member.name[:80]))
        _check(place, manifest)
    except (
        tarfile.TarError,
        zlib.error,
        AttributeError,
        EOFError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise ArchiveError("module_archive_invalid", place.name, reason=error)
    except EnvironmentError as error:
        if error.errno is not None:
            raise
        raise ArchiveError("module_archive_invalid", place.name, reason=error)  # gzip says so
    return manifest


def _check(place, manifest):
    """Raise ValueError or a kindred error where a manifest is not one of this module."""
    if not isinstance(manifest, dict) or (manifest["module"], manifest["arch"]) != (place.name, place.arch):
        raise ValueError("its manifest is of another module")
    for kernel, found in manifest["kernels"].items():
        if not _NAME.fullmatch(found["version"]) or not isinstance(found["inputs"], str):
            raise ValueError("its manifest of kernel %s" % kernel)
    if not isinstance(manifest["certificate"], (str, type(None))):
        raise ValueError("its manifest's certificate")


class _Bounded:
    """An archive that is read in small pieces only: tarfile reads headers into memory whose length the archive itself says."""

    def __init__(self, stream):
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size=-1):
        if not 0 <= size <= 2 * LARGEST_MANIFEST or self.tell() > LARGEST + (LARGEST >> 1):
            raise ValueError("a header of %d bytes" % size)
        return self._stream.read(size)


def _write(stream, directory, name):
    if not os.path.isdir(directory):
        os.mkdir(directory, 0o755)
    with open(os.path.join(directory, name), "xb") as out:
        os.fchmod(out.fileno(), 0o644)
        shutil.copyfileobj(stream, out)


def _plain(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def _files(root):
    """Return the regular files below ROOT, sorted."""
    found = []
    for directory, _directories, names in os.walk(root):
        found += [os.path.join(directory, name) for name in names]
    return sorted(path for path in found if os.path.isfile(path))


def _digest(path):
    try:
        with open(path, "rb") as stream:
            digest = hashlib.sha256()
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
            return digest.hexdigest()
    except (IOError, OSError):
        return "none"


def _text(path):
    try:
        with io.open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except (IOError, OSError):
        return None
