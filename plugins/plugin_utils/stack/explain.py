# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons where there is no stack: the smallest sets of constraints and facts that clash, and the rules that make them clash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from ..problems.sentence import Sentence
from .answer import Answer, Conflict
from .blame import Part, keep
from .components import RULES, component
from .hosts import other_hosts
from .judge import CERTAIN, Doubts, Session
from .model import Question, Slot, Solution
from .nearest import Relaxed, relax
from .rule import Rule
from .search import solve
from .slots import slots
from .wording import advice_text, listed, sentences


def conflicts(
    session: Session,
    question: Question,
    found: Sequence[Sequence[Part]],
    joint: Relaxed | None,
    doubts: Doubts = CERTAIN,
) -> list[Conflict]:
    """Return conflicts in the shape users get them; joint: what is proposed for all of them together."""
    proposed: dict[str, Relaxed | None] = {}
    for name in dict.fromkeys(name for parts in found for name, _value in parts):
        if question.constraints.get(name, "latest") != "latest":
            proposed[name] = relax(session, question, [name], doubts=doubts)
    return [describe(session, question, parts, proposed, joint) for parts in found]


def describe(
    session: Session,
    question: Question,
    parts: Sequence[Part],
    proposed: Mapping[str, Relaxed | None],
    joint: Relaxed | None,
) -> Conflict:
    """Return one conflict: its rules with a sentence each, and what to set instead."""
    rules, reasons = refusal(session, question, parts)
    values = _values(question, parts)
    instead = alternatives(sorted(values), proposed, joint)
    hints = [rule.hint for rule in rules if rule.hint]
    if not any(value for changes in instead for value in changes.values()):  # nothing keeps what was asked for
        hints += other_hosts(session, question, parts)
    return {
        "rule": rules[0].name if rules else "no-such-build",
        "rules": [rule.name for rule in rules],
        "between": sorted(values),
        "values": dict(sorted(values.items())),
        "reasons": reasons,
        "reason": sentences(reasons),
        "alternatives": instead,
        "suggestion": "; or ".join([*map(advice_text, instead), *hints]) or None,
        "source": ", ".join(dict.fromkeys(source for rule in rules for source in rule.sources)),
    }


def refusal(session: Session, question: Question, parts: Sequence[Part]) -> tuple[list[Rule], list[str]]:
    """Return the rules that make these parts clash, and a sentence for each; without a rule, why nothing is there."""
    left = keep(question, parts)
    rules = smallest_rules(session, left)
    return rules, [reason_of(session, left, rule, rules) for rule in rules] or [unfillable(session, left)]


def _values(question: Question, parts: Sequence[Part]) -> dict[str, str]:
    """Return the values that were asked for or found, by the name of the constraint or fact."""
    values: dict[str, str] = {}
    for name, value in parts:
        if name == "os":
            value = f"{question.system['id']} {question.system['version']}"
        value = value or str(getattr(question, name))
        values[name] = f"{values[name]}, {value}" if name in values else value
    return values


def alternatives(
    names: Sequence[str], proposed: Mapping[str, Relaxed | None], joint: Relaxed | None
) -> list[Mapping[str, str | None]]:
    """Return the changes to make, each enough for the whole request: one constraint of the conflict, else all that takes changes."""
    found = [one.changes for name in names if (one := proposed.get(name))]
    if not found and joint and set(joint.changes) & set(names):
        return [joint.changes]
    return list(found)


def smallest_rules(session: Session, question: Question) -> list[Rule]:
    """Return the fewest rules that still leave the question without a stack; none when a slot has no candidate to begin with."""
    planned = {slot.component for slot in slots(question)}
    rules = [rule for rule in RULES if planned.issuperset(rule.choices)]  # others judge nothing here
    if solve(session, question, []) is None:
        return []
    step = len(rules) // 2
    while step:
        for start in range(0, len(rules), step):
            fewer = rules[:start] + rules[start + step :]
            if len(fewer) < len(rules) and solve(session, question, fewer) is None:
                rules = fewer
                break
        else:
            step //= 2
    return rules


def unfillable(session: Session, question: Question) -> str:
    """Return the reason why a slot has no candidate at all, whatever the rules say."""
    for slot in slots(question):
        if not session.candidates(question, slot):
            return _no_candidate(session, question, slot)
    return "nothing fits"


def _no_candidate(session: Session, question: Question, slot: Slot) -> str:
    constraints = ", ".join(f"{name} {constraint}" for name, constraint in sorted(question.constraints.items()))
    host = f" for {question.os['id']} {question.os['version']}" if question.os else ""
    told = component(slot.component).missing(session.tables, question)
    return told or f"there is no {slot.component}{host} with {constraints}"


def reason_of(session: Session, question: Question, rule: Rule, rules: Sequence[Rule]) -> str:
    """Return the objection of a rule to the stack one would get without this rule alone, in one sentence for all kinds of GPUs."""
    judge = session.judge(question, [rule])
    said: list[str] = []
    for solution in _solutions_without(session, question, rule, rules):
        pools = [[one for slot, one in solution.items() if slot.component == kind] for kind in rule.choices]
        said += [reason for chosen in product(*pools) for reason in judge.reasons(*chosen)][:1]
    return ", and ".join(dict.fromkeys(said)) or f"rule {rule.name} objects"


def _solutions_without(session: Session, question: Question, rule: Rule, rules: Sequence[Rule]) -> Iterable[Solution]:
    """Return the stack without a rule; where kinds of GPUs clash, the stack of each kind without the others."""
    if len(question.gpus) > 1:
        alone = (solve(session, replace(question, gpus=(gpu,)), rules) for gpu in question.gpus)
        return [solution for solution in alone if solution]
    others = [one for one in RULES if one is not rule], [one for one in rules if one is not rule]
    return [next(filter(None, (solve(session, question, one) for one in others)), {})]


def conflict_sentence(conflict: Conflict) -> Sentence:
    """Return the three levels of a conflict: its values, the reasons, and other values to set."""
    who = [f"{name} {value}" for name, value in conflict["values"].items()]
    what = f"{listed(who)} do not fit together" if len(who) > 1 else f"{listed(who)} does not fit"
    return Sentence(what, conflict["suggestion"] or "", why=conflict["reason"])


def conflict_line(conflict: Conflict) -> str:
    """Return one conflict as a sentence: who with whom, why, and what to set instead."""
    who = ", ".join(f"{name} {value}" for name, value in conflict["values"].items())
    return f"{who}: {conflict['reason']}" + (f" ({conflict['suggestion']})" if conflict["suggestion"] else "")


def refusal_sentences(answer: Answer) -> list[Sentence]:
    """Return all conflicts, each with what to set instead, and what works in place of all that was asked for."""
    works = f"ask for {answer['suggestion']['text']}" if answer["suggestion"] else ""
    return [*map(conflict_sentence, answer["conflicts"]), Sentence("No stack fits this host and this request", works)]


def conflict_message(answer: Answer) -> str:
    """Return all conflicts in one message, with what to ask for instead."""
    lines = [conflict_line(conflict) for conflict in answer["conflicts"]]
    if answer["suggestion"]:
        lines.append(f"What works: {answer['suggestion']['text']}")
    return "No stack fits this host and this request. " + ". ".join(lines) + "."
