# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a subject decides and compares for a node, as its action and its checks ask for it."""

from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.answer import answer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node


def decided(subject, variables, facts, **more):
    """The decision, its problems as sentences."""
    found = subject.decide(Node(more.pop("name", "gpu-1"), variables, facts, **more))
    said = list(dict.fromkeys(describe(one) for one in found.problems))
    plan = None if found.options is None else dict(found.options)
    return {
        "plan": plan,
        "problems": said,
        "notes": list(found.notes),
        "packages": list(found.packages),
        "applies": found.applies,
    }


def compared(subject, variables, facts, **more):
    return subject.comparisons(Node(more.pop("name", "gpu-1"), variables, facts, **more))


def decide_node(subject, name, hostvars, groups, facts, boot=()):
    """The same for one of several nodes."""
    return decided(subject, hostvars[name], facts, name=name, others=hostvars, groups=groups, boot=boot)


def compare_node(subject, name, hostvars, groups, facts):
    return compared(subject, hostvars[name], facts, name=name, others=hostvars, groups=groups)


def monitored(name, hostvars, groups, facts):
    """What role monitoring does on a host, its problems as sentences."""
    found = answer(name, hostvars, groups, facts)
    return {**found, "problems": [describe(one) for one in found["problems"]]}
