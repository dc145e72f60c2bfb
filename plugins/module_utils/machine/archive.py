# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import from the archive in which Ansible brings modules, and keep on the node what that compiles.

Python compiles what is in an archive on every run, and since 3.10 twice (Lib/zipimport.py, get_filename).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib
import marshal
import os
import pwd
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder

SOURCES = "ansible_collections/allreduce/gpu/plugins/module_utils/"
SYSTEM, PERSONAL = "/var/cache/allreduce", ".cache/allreduce"  # root's, and another user's in the home directory
SEAL = hashlib.sha256().digest_size


class Compiled:
    """A finder and loader of modules; ``modules``: {name: (whether it is a package, its code as marshal writes it)}."""

    def __init__(self, modules, archive):
        self.modules, self.archive = modules, archive

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.modules:
            return None
        return ModuleSpec(fullname, self, origin=self.archive, is_package=self.modules[fullname][0])

    def create_module(self, dummy_spec):
        return None

    def exec_module(self, module):
        code = marshal.loads(self.modules[module.__name__][1])  # noqa: S302 (only what read_kept trusts)
        exec(code, module.__dict__)  # noqa: S102 pylint: disable=exec-used


def own_archive():
    """Return the archive that this module came in; None where it is a file."""
    return getattr(sys.modules[__name__].__spec__.loader, "archive", None)


def compile_once(name, directory=None):
    """Import the rest of the own archive as it was compiled before, or else keep it as compiled now; ``name``: of the Ansible module."""
    archive = own_archive()
    if archive is None or any(isinstance(finder, Compiled) for finder in sys.meta_path):
        return
    place = os.path.join(directory or cache_directory(), "%s.%s" % (name, sys.implementation.cache_tag))
    with zipfile.ZipFile(archive) as opened:
        infos = [info for info in opened.infolist() if info.filename.startswith(SOURCES)]
        # What a zip file itself knows its content by.
        known = [(info.filename, info.CRC, info.file_size) for info in infos]
        key = repr((sys.version, known)).encode("utf-8")
        body = read_kept(place, key)
        if body is None:
            body = marshal.dumps({module_name(info.filename): compiled(opened, info.filename) for info in infos})
            keep(place, key, body)
    sys.meta_path.insert(0, Compiled(marshal.loads(body), archive))  # noqa: S302


def cache_directory():
    """Return where this user's code is kept: never where another user's environment says, whose files would be run."""
    user = os.geteuid()
    return SYSTEM if user == 0 else os.path.join(pwd.getpwuid(user).pw_dir, PERSONAL)


@contextmanager
def kept_bytecode(name):
    """Let Python keep what it compiles of a module in a file where this user may not write, or is told not to."""
    spec = PathFinder.find_spec(name)
    if spec is None or not spec.cached or os.path.exists(spec.cached) or sys.version_info < (3, 8):
        yield
        return
    before = sys.dont_write_bytecode, sys.pycache_prefix  # novm: only where there is one, see above
    sys.dont_write_bytecode, sys.pycache_prefix = False, cache_directory()  # novm: only where there is one, see above
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = before  # novm: only where there is one, see above


def module_name(filename):
    """Return the dotted name of a file in the archive."""
    name = filename[: -len(".py")].replace("/", ".")
    return name[: -len(".__init__")] if name.endswith(".__init__") else name


def compiled(opened, filename):
    """Return (whether a file of the archive is a package, its code)."""
    code = compile(opened.read(filename), os.path.join("allreduce.gpu", filename), "exec", dont_inherit=True)
    return filename.endswith("/__init__.py"), marshal.dumps(code)


def read_kept(place, key):
    """Return the value that was kept for this key; None of another's file, and of one that is for other sources or is damaged."""
    try:
        with open(place, "rb") as opened:
            status = os.fstat(opened.fileno())
            content = opened.read()
    except EnvironmentError:
        return None
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return None
    body = content[SEAL:]
    return body if content[:SEAL] == seal(key, body) else None


def keep(place, key, body):
    """Write a file for read_kept; where the disk is full or read-only nothing is kept."""
    temporary = None
    try:
        os.makedirs(os.path.dirname(place), 0o755, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(place))
        with os.fdopen(handle, "wb") as opened:
            opened.write(seal(key, body) + body)
        os.rename(temporary, place)
    except EnvironmentError:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


def seal(key, body):
    return hashlib.sha256(key + body).digest()
