# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of the clusters that people have, on a phone and on a desktop: everything fits, equal things stand once, what passed is folded."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html
from ansible_collections.allreduce.gpu.tests.report import samples
from ansible_collections.allreduce.gpu.tests.report.page import Page

pytestmark = pytest.mark.browser

PHONE, DESKTOP = 390, 1400
# Pixels of the whole page as it opens: {sample: (on a phone, on a desktop)}.
HEIGHTS = {
    "one": (5400, 4000),
    "equal": (5200, 3800),
    "differing": (11000, 6850),
    "hundred": (5100, 3750),
    "dgx": (11300, 6500),
}
# Of every visible cell of a table: the box of its content beside that of the cell, and where the next cell of the row begins.
_CELLS = """
return [...document.querySelectorAll("th, td")].filter(one => one.checkVisibility() && one.textContent.trim() &&
    !one.closest(".hidden, .matrix") && getComputedStyle(one).position !== "absolute" &&
    getComputedStyle(one.closest("thead") || one).position !== "absolute").map(cell => {
  const range = document.createRange(); range.selectNodeContents(cell);
  const own = range.getBoundingClientRect(), box = cell.getBoundingClientRect();
  const next = cell.nextElementSibling && cell.nextElementSibling.getBoundingClientRect();
  const beside = next && Math.abs(next.top - box.top) < 2 ? next.left : Infinity;
  return [cell.textContent.trim().slice(0, 60), own.right, Math.min(box.right, beside), box.width, box.height];
});
"""


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """{sample: its report as a file}."""
    folder = tmp_path_factory.mktemp("samples")
    for name, make in samples.SAMPLES.items():
        (folder / f"{name}.html").write_text(html.render(make()), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in samples.SAMPLES}


@pytest.fixture
def show(browser, files):
    """Show a sample at a width."""

    def shown(name, width=DESKTOP):
        page = Page(browser, width, 900)
        page.show(files[name])
        return page

    yield shown
    Page(browser, DESKTOP, 900).reset()


def opened(page):
    page.open()
    return page


every = pytest.mark.parametrize("name", list(samples.SAMPLES))
both_widths = pytest.mark.parametrize("width", [PHONE, DESKTOP])


@every
@both_widths
def test_nothing_runs_into_the_next_column_or_out_of_the_page(show, name, width):
    page = opened(show(name, width))
    assert page.ask("return document.documentElement.scrollWidth") <= width
    cells = page.ask(_CELLS)
    assert len(cells) > 50
    assert [cell for cell in cells if cell[1] > cell[2] + 0.5] == []


@every
def test_no_text_stands_in_a_column_a_hand_wide(show, name):
    """What has many words has the room for them, or is folded: no cell is taller than eight lines."""
    page = show(name, DESKTOP)
    page.ask("document.querySelectorAll('details:not(.rest)').forEach(one => { one.open = true; })")
    cells = page.ask(_CELLS)
    assert [cell for cell in cells if cell[4] > 8 * 24] == []


@every
@both_widths
def test_the_page_is_as_long_as_what_it_has_to_say(show, name, width):
    assert show(name, width).screenshot().size[1] <= HEIGHTS[name][width == DESKTOP]


@every
def test_what_passed_is_folded(show, name):
    page = show(name)
    seen = page.boxes("section[aria-labelledby=checks] td, section[aria-labelledby=checks] tbody[class] td")
    rows = page.boxes("section[aria-labelledby=checks] details tbody tr")
    assert seen and rows == []
    passed = page.ask(
        "return [...document.querySelectorAll('section[aria-labelledby=checks] td .passed, section[aria-labelledby=nodes] td .passed')]"
        ".map(one => [one.closest('details').open, one.checkVisibility()])"
    )
    assert passed and {tuple(one) for one in passed} == {(False, False)}


def test_equal_nodes_are_shown_once(show):
    page = show("equal")
    assert [one.text for one in page.elements("section[aria-labelledby=nodes] article h3")] == [
        "gpu-1, gpu-2 (2 nodes)"
    ]
    assert [one.text for one in page.elements("article.machine h3")] == ["gpu-1, gpu-2 (2 nodes) ok"]
    groups = [one.text for one in page.elements("section[aria-labelledby=checks] summary h3")]
    assert groups == ["gpu-1, gpu-2", "cluster"]
    names = page.ask(
        "return [...document.querySelectorAll('section[aria-labelledby=nodes] tbody th')].map(one => one.textContent)"
    )
    assert len(names) > 60 and len(set(names)) == len(names)


def test_what_equal_nodes_measured_differently_is_in_one_cell(show):
    page = opened(show("hundred"))
    groups = [one.text for one in page.elements("section[aria-labelledby=checks] summary h3")]
    assert groups == ["gpu-7, gpu-8", "gpu-[1-6,9-100]", "cluster"]
    cells = [one.text for one in page.elements("section[aria-labelledby=checks] td[data-label=Measured]")]
    assert "1 ms gpu-1\n2 ms gpu-2\n3 ms gpu-3\n95 other values in report.json" in cells
    (row,) = page.elements("section[aria-labelledby=attention] td[data-label=Measured]")
    assert row.text == "7 ms gpu-7\n8 ms gpu-8"


@both_widths
def test_a_long_list_is_folded_and_what_to_do_stays_in_sight(show, width):
    page = show("one", width)
    why, fix = page.boxes("tr.why")
    assert why["height"] + fix["height"] < (90 if width == DESKTOP else 200)
    text = page.text("tr.why")
    assert "nvidia-package-0 is missing" in text and "11 more" in text and "nvidia-package-9" not in text
    assert "run site, which has not" in page.elements("tr.why")[1].text
    page.elements("tr.why summary")[0].click()
    assert "nvidia-package-9 is missing" in page.text("tr.why")
    (missing,) = [one.text for one in page.elements("section[aria-labelledby=nodes] tbody tr") if "missing" in one.text]
    assert "nvidia-package-0" in missing and "nvidia-package-9" not in missing


@both_widths
def test_what_a_figure_does_not_say_stands_beside_it(show, width):
    page = show("equal", width)
    caveat = "The nodes share the processors of one machine: this efficiency says nothing about GPUs or a network."
    (said,) = [one.text for one in page.elements("#verdict li") if "efficiency" in one.text]
    assert said.endswith(f"scaling efficiency 93%. {caveat}")
    assert caveat in page.text("section[aria-labelledby=training] figure.chart")
    assert "not checked (verify_gpu_compute: false)" in page.text("article.machine")
    assert "a simulated machine" in page.text("article.machine")
    (picture,), (words,) = page.boxes("figure.chart svg"), page.boxes("figure.chart .caveat")
    assert 0 <= words["top"] - picture["bottom"] < 40


def test_on_hardware_of_its_own_a_figure_stands_alone(show):
    page = show("hundred")
    assert page.elements(".caveat") == []
    assert page.text("#verdict").endswith("scaling efficiency 93%.")


@pytest.mark.parametrize("name", ["one", "differing"])
@both_widths
def test_the_benchmark_stands_near_the_top(show, name, width):
    page = show(name, width)
    (benchmark,), (nodes,) = page.boxes("#benchmark"), page.boxes("#nodes")
    assert benchmark["top"] < min(1300, nodes["top"])


@every
def test_the_header_names_inventory_and_collection(show, name):
    page = show(name)
    assert page.text("#origin").startswith("Inventory cluster/hosts.yml · allreduce.gpu 1.2.3 · State of ")
    assert page.boxes("#origin")[0]["bottom"] < 400


@both_widths
def test_the_loss_is_drawn(show, width):
    page = show("hundred", width)
    pictures, lines = page.boxes(".losses svg"), page.boxes(".losses polyline")
    assert len(pictures) == len(lines) == 2
    for picture, line in zip(pictures, lines, strict=True):
        assert line["width"] > 0.95 * picture["width"] and line["height"] > 0.9 * picture["height"]
        assert line["left"] >= picture["left"] - 1.5 and line["right"] <= picture["right"] + 1.5
    assert "train_ddp.py on 2 nodes from 2.3 to " in page.text(".losses")
    assert page.elements(".losses svg:not([role=img]:has(title):has(desc))") == []


def test_gpus_are_not_drawn_for_a_run_on_processors(show):
    assert "The GPUs meanwhile" not in show("equal").text("section[aria-labelledby=training]")
    assert "The GPUs meanwhile" in show("differing").text("section[aria-labelledby=training]")


@pytest.mark.parametrize("name", ["one", "equal"])
def test_notes_stand_on_their_own(show, name):
    page = show(name)
    nodes = {"one": "gpu-1", "equal": "gpu-1, gpu-2"}[name]
    assert [one.text for one in page.elements(".notes li")] == [
        f"{nodes} oom kills: 2 killed: python3. Look at the jobs."
    ]
    others = [one.text for one in page.elements("section:not([aria-labelledby=notes])")]
    assert not any("2 killed" in text for text in others)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@every
def test_text_stands_out_from_its_ground(show, name, scheme):
    page = show(name, PHONE)
    page.media(scheme=scheme)
    found = opened(page).contrasts()
    assert len(found) > 100
    assert [(text, ratio) for text, ratio in found if ratio < 4.5 and not text.startswith("GPU")] == []


@every
def test_a_screen_reader_finds_its_way(show, name):
    page = opened(show(name))
    levels = [int(one.tag_name[1]) for one in page.elements("h1, h2, h3, h4")]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    assert page.elements("th:not([scope]), table:not(:has(caption))") == []
    ids = page.ask("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
