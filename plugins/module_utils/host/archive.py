# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Import from the archive in which Ansible brings modules, and compile each file of it once."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import sys
import zipimport


class Importer(zipimport.zipimporter):
    """An importer that tells a file's name without compiling the file: the standard one compiles it for that, and again to run it.

    Since Python 3.10: Lib/zipimport.py, get_filename, which importlib asks for each module (Lib/importlib/_bootstrap.py,
    spec_from_loader).
    """

    def __init__(self, path):
        zipimport.zipimporter.__init__(self, path)
        if self.archive != own_archive():
            raise zipimport.ZipImportError("%s is another's" % self.archive)

    def get_filename(self, fullname):
        # Ansible's archive has sources alone.
        name = fullname.rpartition(".")[2] + ("/__init__" if self.is_package(fullname) else "") + ".py"
        return os.path.join(self.archive, self.prefix + name)


def own_archive():
    """Return the archive that this module came in; None where it is a file."""
    return getattr(sys.modules[__name__].__spec__.loader, "archive", None)


def compile_once():
    """Import the rest of the own archive through Importer, where Python would compile it twice."""
    archive = own_archive()
    if archive is None or sys.version_info < (3, 10) or Importer in sys.path_hooks:
        return
    sys.path_hooks.insert(0, Importer)
    for path in [one for one in sys.path_importer_cache if one.startswith(archive)]:
        del sys.path_importer_cache[path]
