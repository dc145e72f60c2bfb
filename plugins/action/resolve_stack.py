# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.resolve_stack: reads facts, asks the resolver, contacts no node."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version

from ..plugin_utils.documents.door import misfits
from ..plugin_utils.environments.extras import problems, with_packages
from ..plugin_utils.node.screen import show_errors
from ..plugin_utils.planning.decide import answered, decide
from ..plugin_utils.planning.plan import READS, planned_stack
from ..plugin_utils.planning.published import tables_for
from ..plugin_utils.planning.questions import question_from_facts
from ..plugin_utils.problems.phrases import clean
from ..plugin_utils.problems.problem import Problem, ProblemError, refuse
from ..plugin_utils.stack.components import COMPONENTS
from ..plugin_utils.stack.explain import conflict_message, refusal_sentences
from ..plugin_utils.stack.tables import load
from ..plugin_utils.stack.why import explanation
from ..plugin_utils.subjects.sentences import describe_all, told
from ..plugin_utils.workers import prepare

load()  # here, so that the tables are read once before forks, not once in every fork
prepare()


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        options = self._options()
        facts = (task_vars or {}).get("ansible_facts") or {}
        try:
            refuse(misfits((task_vars or {}).get("inventory_hostname", "the host"), {"ansible_facts": facts}, READS))
            question = question_from_facts(options, facts, ansible_version)
            self._check(options["packages"], (task_vars or {}).get("inventory_hostname"))
            answer = self._planned(options["plan"], question, task_vars or {})
            tables = (
                load() if answer and not options["explain"] else tables_for(question, options["lock"], options["renew"])
            )
            answer = answer or decide(question, lock=options["lock"], renew=options["renew"], tables=tables)
        except ProblemError as error:
            show_errors(self._display, map(told, error.problems))
            raise AnsibleActionFail(describe_all(error.problems), result={"cause": error.problems[0].code}) from None
        if answer["stack"] is None and options["on_conflict"] == "fail":
            show_errors(self._display, refusal_sentences(answer))
            raise AnsibleActionFail(clean(conflict_message(answer)), result={"changed": False, **answer})
        if answer["stack"]:
            answer = {**answer, "stack": with_packages(answer["stack"], options["packages"])}
        result.update(answer, changed=False)
        if options["explain"]:
            result["explanation"] = explanation(tables, question, options["explain"])
        if options["publish"] and answer["stack"]:
            result["ansible_facts"] = {"gpu_stack": answer["stack"]}
        return result

    @staticmethod
    def _check(packages, host):
        found = [Problem(one.code, one.subject, {**one.detail, "scope": host}) for one in problems(packages)]
        if found:
            raise ProblemError(*found)

    @staticmethod
    def _planned(plan, question, task_vars):
        stack = planned_stack(plan, task_vars.get("inventory_hostname"), question)
        return stack and answered(stack)

    def _options(self):
        _validation, options = self.validate_argument_spec(
            {
                "os": {"type": "raw"},
                "arch": {"type": "str"},
                "gpus": {"type": "list", "elements": "raw"},
                "gpu_models": {"type": "dict", "default": {}},
                "take_charge": {"type": "bool", "default": False},
                "python": {"type": "str"},
                "interpreter": {"type": "str"},
                "profile": {"type": "str"},
                "request": {"type": "dict", "default": {}},
                "environments": {"type": "str", "choices": ["one", "split"]},
                "packages": {"type": "list", "elements": "str", "default": []},
                "ansible_core": {"type": "str"},
                "suites": {"type": "list", "elements": "str"},
                "nvswitches": {"type": "int"},
                "kernels": {"type": "list", "elements": "str"},
                "lock": {"type": "path"},
                "renew": {"type": "bool", "default": False},
                "index": {"type": "str"},
                "plan": {"type": "dict", "default": {}},
                "on_conflict": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
                "explain": {"type": "str", "choices": [one.name for one in COMPONENTS]},
                "publish": {"type": "bool", "default": False},
            }
        )
        return options
