# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List what can be requested, from the components: role stack's options, the module's documentation, the example in docs/stack.md."""

from __future__ import annotations

import textwrap

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.keys import Key
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.request_keys import KEYS

WIDTH = 140
COMMENT = 28


def sample() -> str:
    """Return a request with every key, as a block of YAML."""
    return "\n".join(["```yaml", "gpu_stack_request:", *map(_line, KEYS.values()), "```"])


def _line(key: Key) -> str:
    line = f"  {key.name}: {key.sample}"
    return f"{line:{COMMENT}}# {key.comment}" if key.comment else line


def options() -> str:
    """Return the keys as options of role stack's argument specification."""
    return "\n".join(line for key in KEYS.values() for line in _option(key))


def _option(key: Key) -> list[str]:
    lines = [f"{key.name}:", "  type: str"]
    if key.choices:
        lines.append(f"  choices: [{', '.join(key.choices)}]")
    if len(key.docs) == 1:
        return [*lines, f"  description: {key.docs[0]}"]
    return [*lines, "  description:", *(f"    - {text}" for text in key.docs)]


def item() -> str:
    """Return an item that names every key, for the module's documentation."""
    words = {key.name: f" ({', '.join(f'V({word})' for word in key.choices)})" for key in KEYS.values() if key.choices}
    named = [f"C({name}){words.get(name, '') if name != 'environments' else ''}" for name in KEYS]
    text = f"- What the user wants, any subset of {', '.join(named)}."
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def components() -> str:
    """Return the components that can be explained, for the module's documentation."""
    names = textwrap.wrap(", ".join(one.name for one in COMPONENTS), 120)
    return f"choices: [{f'{chr(10)}      '.join(names)}]"
