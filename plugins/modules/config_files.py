#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: config_files
short_description: Manage several small configuration files in one step
version_added: 0.1.0
description:
  - Writes, corrects and removes a list of files and directories in one execution on the node, where
    M(ansible.builtin.template) takes two for every file.
  - For files of some kilobytes whose content the controller renders; large or binary files are for M(ansible.builtin.copy).
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file.
    support: full
options:
  files:
    description: Files and directories, managed in this order.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path on the node. Missing directories above it are created, with mode V(0755).
        type: path
        required: true
      state:
        description: V(absent) removes a file, never a directory.
        type: str
        choices: [file, directory, absent]
        default: file
      content:
        description: The whole text of a file.
        type: str
      section:
        description: Section of an INI file that O(files[].settings) belong to.
        type: str
        default: main
      settings:
        description:
          - Settings of an INI file, in place of its whole text. The rest of the file stays as it is.
          - An empty value removes a setting.
        type: dict
      block:
        description:
          - Lines of a file that another tool manages, in place of its whole text. The rest of the file stays as it is.
          - Empty lines remove the block, and leave the file's mode and owner; no file is made for them.
          - The markers around it are those of M(ansible.builtin.blockinfile).
        type: str
      block_name:
        description: Name of the block in its markers.
        type: str
        default: allreduce.gpu
      block_first:
        description: Whether a new block goes to the beginning of the file instead of its end.
        type: bool
        default: false
      commented_out:
        description: Lines outside the block to comment out, as an expression that matches a whole line.
        type: str
        default: ''
      in_place:
        description: Whether the file is written in place where it cannot be replaced, such as one that is mounted in a container.
        type: bool
        default: false
      mode:
        description: Permissions as four octal digits in quotes.
        type: str
        default: '0644'
      owner:
        description: Name of the owner.
        type: str
        default: root
      group:
        description: Name of the group.
        type: str
        default: root
      follow:
        description:
          - Whether a symbolic link counts as what it points to. V(false) refuses one where users other than root may write to the directory above.
        type: bool
        default: true
      as_owner:
        description:
          - Whether to read and write with the rights of O(files[].owner) alone, where they may write to the directory above.
            Links that they put in the way then lead to nothing that they could not read or change themselves.
        type: bool
        default: false
      validate:
        description: Program and arguments that check a new file before it takes its place; V(%s) stands for it.
        type: list
        elements: str
        default: []
      then:
        description:
          - Program and arguments to run once the file is in place or gone, such as V(ldconfig); once for all entries that name the same.
          - If it fails, or the execution is interrupted before its end, the next execution runs it again.
        type: list
        elements: str
        default: []
      then_if:
        description: Path, which may contain wildcards, without which O(files[].then) does not run.
        type: str
        default: ''
  secrets:
    description: Strings in the files to hide in output and logs, such as the password of a proxy.
    type: list
    elements: str
    default: []
  noted:
    description:
      - Entries of O(files) to note, so that M(allreduce.gpu.node_state) reports their state, with the value that it has
        where they are as declared.
      - The controller side of this module sets it. Where the fact then shows that all files are as declared, nothing runs on the node.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Keep nouveau from loading
  allreduce.gpu.config_files:
    files:
      - path: /etc/modprobe.d/allreduce-nouveau.conf
        content: |
          blacklist nouveau
          options nouveau modeset=0
        then: [update-initramfs, -u, -k, all]
        then_if: /boot/initrd.img-*

- name: Name the nodes in the file that they look in first
  allreduce.gpu.config_files:
    files:
      - path: /etc/hosts
        block: |
          10.0.0.11 gpu-1
          10.0.0.12 gpu-2
        commented_out: 127\.0\.1\.1\s.*
        in_place: true

- name: Set dnf's proxy
  allreduce.gpu.config_files:
    files:
      - path: /etc/dnf/dnf.conf
        settings: {proxy: "{{ proxy }}"}
    secrets: ["{{ proxy | urlsplit('password') }}"]
"""

RETURN = r"""
changed_paths:
  description:
    - Paths of the entries that changed, or would change in check mode.
    - Also of those that an execution before changed, which ended before what follows them.
  returned: success
  type: list
  elements: str
  sample: [/etc/modprobe.d/allreduce-nouveau.conf]
seen:
  description: State of the files of O(noted), as in fact C(gpu_node_state.files).
  returned: when the module ran and not in check mode
  type: dict
  sample: {/etc/modprobe.d/allreduce-old.conf: absent}
"""

import glob

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import config_files, seen_files
from ..module_utils.host.ansible_module import PLACE, label, replace_file
from ..module_utils.machine.files import FileTree

SPEC = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["file", "directory", "absent"], "default": "file"},
    "content": {"type": "str"},
    "section": {"type": "str", "default": "main"},
    "settings": {"type": "dict"},
    "block": {"type": "str"},
    "block_name": {"type": "str", "default": "allreduce.gpu"},
    "block_first": {"type": "bool", "default": False},
    "commented_out": {"type": "str", "default": ""},
    "in_place": {"type": "bool", "default": False},
    "mode": {"type": "str", "default": "0644"},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "follow": {"type": "bool", "default": True},
    "as_owner": {"type": "bool", "default": False},
    "validate": {"type": "list", "elements": "str", "default": []},
    "then": {"type": "list", "elements": "str", "default": []},
    "then_if": {"type": "str", "default": ""},
}


def writer(module, wanted):
    """Return a function that writes a file of an entry, once the entry's program has checked it."""
    validate = wanted["validate"]

    def write(path, content):
        def check(new):
            rc, out, err = module.run_command([new if word == "%s" else word for word in validate])
            if rc != 0:
                module.fail_json(msg="%s would be refused by %s: %s" % (path, validate[0], (err or out).strip()))

        replace_file(module, path, config_files.as_bytes(content), check if validate else None, wanted["in_place"])

    return write


def follow(module, changed):
    """Run what follows the entries at the changed paths, and those where an execution before did not reach its end.

    Return the paths of these entries; in check mode, of those that it would follow.
    """
    late = seen_files.unnoted(FileTree(), module.params["noted"]) | seen_files.due(FileTree())
    commands, paths = [], []
    for entry in module.params["files"]:
        due = entry["path"] in changed or seen_files.name(entry) in late
        if due and entry["then"] and (not entry["then_if"] or glob.glob(entry["then_if"])):
            paths.append(entry["path"])
            commands += [] if entry["then"] in commands else [entry["then"]]
    for command in [] if module.check_mode else commands:
        rc, out, err = module.run_command(command, cwd=PLACE)
        if rc != 0:
            said = " ".join((err or out).split()) or "it printed nothing"
            text = "The files are as declared, but %s ended with %d: %s. The next run tries it again."
            module.fail_json(msg=text % (" ".join(command), rc, said))
    return paths


def begin(module, plans):
    """Note what follows the entries that change: those of files with secrets have no other note."""
    names = {seen_files.name(wanted) for wanted, _found, steps in plans if steps and wanted["then"]}
    if names and not module.params["noted"]:
        seen_files.note_due(FileTree(), seen_files.due(FileTree()) | names)


def end(module):
    """Forget what followed these entries."""
    due, names = seen_files.due(FileTree()), {seen_files.name(entry) for entry in module.params["files"]}
    if due & names:
        seen_files.note_due(FileTree(), due - names)


def main():
    """Plan every entry, then take the steps."""
    files = {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": SPEC,
        "required_if": [["state", "file", ["content", "settings", "block"], True]],
        "mutually_exclusive": [["content", "settings", "block"]],
    }
    secrets = {"type": "list", "elements": "str", "default": [], "no_log": True}
    noted = {"type": "dict", "default": {}}
    spec = {"files": files, "secrets": secrets, "noted": noted}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)

    try:
        pairs = [(wanted, config_files.found(wanted)) for wanted in module.params["files"]]
        pairs = [(config_files.completed(wanted, found), found) for wanted, found in pairs]
        plans = [(wanted, found, config_files.plan(wanted, found)) for wanted, found in pairs]
        if not module.check_mode:
            begin(module, plans)
            for wanted, _found, steps in plans:
                config_files.apply(wanted, steps, writer(module, wanted), label)
    except (EnvironmentError, KeyError, ValueError) as error:
        module.fail_json(msg="Cannot keep the files as declared: %s." % error)
    changes = [plan for plan in plans if plan[2]]
    paths = [wanted["path"] for wanted, _found, _steps in changes]
    paths += [path for path in follow(module, paths) if path not in paths]
    if not module.check_mode:
        end(module)
    seen = (
        {}
        if module.check_mode
        else {"seen": seen_files.note(FileTree(), module.params["noted"], module.params["files"])}
    )
    module.exit_json(
        changed=bool(paths),
        changed_paths=paths,
        diff=[config_files.diff(*change) for change in changes],
        **seen,
    )


if __name__ == "__main__":
    main()
