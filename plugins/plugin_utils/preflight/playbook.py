# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tags of the playbooks that Ansible was started with, as --list-tags shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible.playbook import Playbook
from ansible.playbook.block import Block
from ansible.utils.collection_loader._collection_finder import _get_collection_playbook_path
from ansible.vars.manager import VariableManager


def tags_of(playbooks: Iterable[str], loader: Any) -> set[str]:
    """Return the tags of all tasks that are known without running one.

    playbooks: paths, or names in a collection; loader: a DataLoader
    """
    manager = VariableManager(loader=loader)
    plays = [
        play
        for name in playbooks
        for play in Playbook.load(_path(name), variable_manager=manager, loader=loader).get_plays()
    ]
    return {str(tag) for play in plays for block in play.compile() for tag in _tags(block)}


def _path(playbook: str) -> str:
    found = _get_collection_playbook_path(playbook)
    return str(found[1] if found else playbook)


def _tags(block: Block) -> Iterator[Any]:
    for task in [*block.block, *block.rescue, *block.always]:
        if isinstance(task, Block):
            yield from _tags(task)
        else:
            yield from task.tags
