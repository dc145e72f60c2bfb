# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Share what several modules do through their AnsibleModule: read the output of programs, replace files."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import stat
import subprocess
import tempfile

from ..machine.files import flush

# Of programs that run on a node. With SELinux, some that root starts, such as update-initramfs, may not enter the home directory
# of the user who connected, and fail there.
PLACE = "/"


def program_output(module, root):
    """Return a function that takes an argument list and returns the program's output.

    It returns None where the program is missing or fails, and where a machine recorded below ROOT is examined.
    """

    def output(arguments):
        program = module.get_bin_path(arguments[0]) if root == "/" else None
        if program is None:
            return None
        rc, out, dummy_err = module.run_command(
            [program] + arguments[1:], cwd=PLACE, environ_update={"LC_ALL": "C", "LANG": "C"}
        )
        return out if rc == 0 else None

    return output


def program_runner(module):
    """Return a function that takes an argument list and a text for standard input, and returns (exit code, output).

    What failed said why on one of both outputs. A program that is missing ends with 127, as in a shell. One that ends before it
    has read its input, as dpkg does while another package manager works, is an answer too; run_command ends the module there.
    """

    def run(arguments, data=None):
        program = module.get_bin_path(arguments[0])
        if program is None:
            return 127, "there is no such program"
        try:
            process = subprocess.Popen(
                [program] + arguments[1:],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=PLACE,
                env=dict(os.environ, LC_ALL="C", LANG="C"),
            )
        except EnvironmentError as error:
            return 127, error.strerror
        out, err = (text.decode("utf-8", "replace") for text in process.communicate((data or "").encode("utf-8")))
        return process.returncode, out + err if process.returncode else out

    return run


def label(path):
    """Give a new directory the label that the policy has for its path; it keeps its parent's where there is none.

    Fedora's policy gives some their label as they are made, such as ~/.ssh, Debian's does not.
    """
    try:
        from ansible.module_utils.compat import selinux  # fails without libselinux

        if selinux.is_selinux_enabled() == 1:
            selinux.lsetfilecon(path, selinux.matchpathcon(path, stat.S_IFDIR)[1])
    except (ImportError, EnvironmentError):
        return


def replace_file(module, path, content, check=None, in_place=False):
    """Put the bytes CONTENT in place at once, and on the disk; ``check(path of the new file)`` may refuse them before.

    ``in_place``: what cannot be replaced, such as a mounted file, is written where it is.
    """
    handle, new = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    if check is not None:
        check(new)
    move(module, new, path, in_place)


def move(module, new, path, in_place=False):
    """Move a file to its place, so that a power cut leaves the former or the new one."""
    flush(new)
    module.atomic_move(new, path, unsafe_writes=in_place)
    flush(path)  # what came from another file system was copied
