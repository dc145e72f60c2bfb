# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a node's health in the text format of Prometheus (prometheus.io/docs/instrumenting/exposition_formats)."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import SEVERITIES
from .metric_table import GPU_LABELS, METRICS

VERDICTS = ("ok",) + tuple(reversed(SEVERITIES))


def render(document):
    """Return the text of a document of health, see health.document; what is not known has no sample, and no metric without one."""
    lines = []
    for metric in METRICS:
        samples = gpu_samples(metric, document) if metric.labels == GPU_LABELS else node_samples(metric, document)
        if samples:
            lines.append("# HELP %s %s." % (metric.name, metric.meaning))
            lines.append("# TYPE %s %s" % (metric.name, metric.kind))
        for values, number in samples:
            lines.append("%s%s %s" % (metric.name, labelled(metric.labels, values), number_text(number)))
    return "\n".join(lines) + "\n"


def node_samples(metric, document):
    """Return [(values of the labels, number)] of a metric of the node."""
    if metric.value == "verdict":
        return [((verdict,), verdict == document["verdict"]) for verdict in VERDICTS]
    if metric.value == "findings":
        # Two findings of a check about one subject are one series.
        found = {
            (one["check"], one["subject"] or "node", one["severity"], one["action_class"] or "monitor")
            for one in document["findings"]
        }
        return [(values, 1) for values in sorted(found)]
    number = document.get(metric.value)
    return [] if number is None else [((), number)]


def gpu_samples(metric, document):
    """Return [(values of the labels, number)] of a metric of each GPU that has it."""
    samples = []
    for gpu in document["gpus"]:
        number = gpu["values"].get(metric.value)
        if number is not None and gpu["index"] is not None:
            index = str(gpu["index"])
            labels = (index, gpu["uuid"] or "", "nvidia" + index, gpu["name"] or "", document["host"])
            samples.append((labels, number))
    return samples


def labelled(names, values):
    if not names:
        return ""
    return "{%s}" % ",".join('%s="%s"' % (name, escaped(value)) for name, value in zip(names, values))


def escaped(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number_text(number):
    """Return a number as Prometheus reads it; whole ones without a fraction, times to the millisecond."""
    if isinstance(number, float) and number != int(number):
        return repr(round(number, 9))
    return str(int(number))
