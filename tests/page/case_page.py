"""The leader's page in a real Chromium: of real leaders, and of clusters in any state, on any screen."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from pp_hostd.model.leader_status import Told
from tests.harness.bed.relay import Mode
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.page.browser import DESKTOP, PHONE, Browser
from tests.page.conftest import Save
from tests.page.forward import Forward
from tests.page.painted import INFO, Onlooker, Painted, course, node
from tests.scenarios.leading import LEADERS, WAIT_SECONDS, LeaderStage

DEAD_BY = re.compile(r"certainly dead by (\d+) s")
ELAPSED = "return parseInt(document.querySelector('.clock span').textContent)"
RECORD = """
window.recorded = [];
const tell = () => {
  const parts = ["#verdict", ".course .stage", ".course .clock", ".course .clock span"];
  recorded.push(parts.map((part) => document.querySelector(part)?.textContent || ""));
};
new MutationObserver(tell).observe(document.body, {childList: true, subtree: true, characterData: true});
"""
"""Keeps what the page shows from now on, also while another window is before it."""


@pytest.fixture(scope="module")
def stage() -> Iterator[LeaderStage]:
    """On a real control plane, where leaders have the rights that `pp-leader install` gives, and no more."""
    with RealCluster.start() as cluster, LeaderStage.on(cluster) as stage:
        yield stage


def test_a_reset_is_shown_live_by_the_leader_and_by_the_one_that_stands_by(
    stage: LeaderStage, browser: Browser
) -> None:
    *_, lost = stage.begin()
    for host in stage.bed.hosts.values():
        stage.contents.report(host.name, ready=True)
    leader = stage.leader()
    standby = next(name for name in LEADERS if name != leader)
    with contextlib.ExitStack() as stack:
        windows = {}
        for name in (leader, standby):
            forward = stack.enter_context(contextlib.closing(Forward(stage.bed.hosts[name])))
            windows[name] = browser.new_window()
            browser.emulate()
            browser.open(forward.url)
            browser.shows("All 5 hosts are protected")
            browser.run(RECORD)
        assert browser.text("#leader") == f"{leader} leads, seen from {standby}, which stands by"
        stage.bed.cut(lost.name)
        stage.request(lost)
        lost.await_down()
        for name, window in windows.items():
            browser.switch(window)
            browser.shows("Workloads released", "#history")
            told = browser.run("return recorded")
            assert any(f"{lost.name} is being remediated" in verdict for verdict, *_ in told), (name, told)
            waiting = [clock for _, stage_word, clock, _ in told if "waiting" in stage_word]
            assert len(set(waiting)) > 3, (name, told)
            promised = [int(seconds) for clock in waiting for seconds in DEAD_BY.findall(clock)]
            # Later, where the others took long to acknowledge; dates are in whole seconds.
            assert min(promised, default=0) >= WAIT_SECONDS - 1, (name, told)
        stage.bed.heal()
        stage.bed.boot(lost.name)
        eventually(lambda: stage.is_well(lost), "the host is back", 60)
        stage.contents.report(lost.name, ready=True)
        for window in windows.values():
            browser.switch(window)
            browser.shows("All 5 hosts are protected")
            browser.shows("Nothing is left to do", "#history")
            assert not browser.run("return document.querySelectorAll('.course').length")


def test_a_page_that_is_cut_off_says_since_when_it_is_stale_and_finds_back(
    stage: LeaderStage, browser: Browser
) -> None:
    stage.begin()
    host = stage.bed.hosts[stage.leader()]
    with contextlib.closing(Forward(host)) as forward:
        browser.open(forward.url)
        browser.shows("hosts are", "#verdict")
        browser.shows("Live", "#link")
        forward.cut()
        browser.shows("Stale since", "#link")
        assert browser.run("return document.body.dataset.stale") == "true"
        forward.mend()
        browser.shows("Live", "#link")
        assert browser.run("return document.body.dataset.stale") == "false"
        stage.bed.set_api(Mode.SWALLOW, hosts=[host.name])
        browser.shows("can't be read", "#link")
        stage.bed.set_api(Mode.PASS)
        browser.shows("Live", "#link")


NAMES = [f"control-{number}" for number in (1, 2, 3)] + [f"worker-{number}" for number in range(1, 10)]
RESETTING = ("Resetting", "it has decided to reset itself, for condemnation 15")
WAITING = "half of 12 nodes know that it is condemned; waiting until its host is certainly dead"


def test_what_comes_from_the_cluster_is_text(cluster: EmbeddedCluster, browser: Browser) -> None:
    markup = "<img src=x onerror=document.title='caught'><script>1</script>"
    with contextlib.closing(Painted(cluster, [node("w-1", ("Odd", markup))])) as painted:
        painted.says(course("w-1", "waiting", markup, 5))
        browser.open(Onlooker(cluster).url)
        browser.shows(markup, ".course .words")
        browser.run("document.querySelector('#hosts button').click()")
        browser.shows(markup, "#details")
        browser.shows(INFO.version, "#details")
        browser.shows("2027-03-01T12:00:00Z", "#details")
        assert browser.run("return [document.images.length, document.scripts.length]") == [0, 1]


def test_what_is_blocked_and_has_no_node_has_a_card_of_its_own(cluster: EmbeddedCluster, browser: Browser) -> None:
    with contextlib.closing(Painted(cluster, [node("w-1")])) as painted:
        told = ["there is no Machine infra/a", "there is no Machine infra/b"]
        painted.says(*(course("", "held back", sentence, 5, refused=True) for sentence in told))
        browser.open(Onlooker(cluster).url)
        browser.shows("(no node)", "#verdict")
        shown = "return [...document.querySelectorAll('.course')].map((each) => each.innerText)"
        eventually(lambda: len(browser.run(shown)) == len(told), "each has a card")
        for sentence, card in zip(told, browser.run(shown)):
            assert card.startswith("(no node)") and sentence[1:] in card


def test_the_clocks_of_the_reader_and_of_the_leader_may_differ(cluster: EmbeddedCluster, browser: Browser) -> None:
    with contextlib.closing(Painted(cluster, [node("w-1", RESETTING, condemned=True)])) as painted:
        painted.says(course("w-1", "waiting", WAITING, 10))
        undo = browser.before_each_page("const own = Date.now; Date.now = () => own() + 7200000")
        browser.open(Onlooker(cluster).url)
        browser.shows("certainly dead by 44 s", ".course .clock")
        assert 10 <= browser.run(ELAPSED) < 600
        undo()


def test_hundreds_of_hosts_are_seen_at_a_glance_and_found_by_name_and_by_keyboard(
    cluster: EmbeddedCluster, browser: Browser
) -> None:
    odd = {"worker-77": node("worker-77", ("NoWatchdog", "it has no watchdog"))}
    names = [f"worker-{number}" for number in range(1, 501)]
    with contextlib.closing(Painted(cluster, [odd.get(name) or node(name) for name in names])):
        browser.open(Onlooker(cluster).url)
        browser.shows("1 of 500 hosts is not protected")
        shown = browser.run("return [...document.querySelectorAll('#hosts button')].map((each) => each.ariaLabel)")
        assert len(shown) == 500 and shown[:2] == ["worker-77: Not protected: NoWatchdog", "worker-1: Protected"]
        browser.keys("#hosts button", "\ue014\ue014")  # the right arrow
        assert browser.run("return document.activeElement.ariaLabel") == "worker-2: Protected"
        browser.keys("#find", "worker-49")
        assert browser.run("return document.querySelectorAll('#hosts button').length") == 11


def test_nothing_is_announced_while_only_the_clock_goes_on(cluster: EmbeddedCluster, browser: Browser) -> None:
    with contextlib.closing(Painted(cluster, [node("w-1", RESETTING, condemned=True)])) as painted:
        painted.says(course("w-1", "waiting", WAITING, 10))
        browser.open(Onlooker(cluster).url)
        browser.shows("w-1 is being remediated", "#announcement")
        watch = "window.said = 0; new MutationObserver(() => said++).observe(arguments[0], {childList: true})"
        browser.run(watch.replace("arguments[0]", "document.querySelector('#announcement')"))
        before = browser.run(ELAPSED)
        eventually(lambda: browser.run(ELAPSED) > before + 3, "the clock goes on")
        assert browser.run("return said") == 0
        painted.says()
        painted.changes(node("w-1"))
        browser.shows("The one host is protected", "#announcement")


@pytest.mark.parametrize("dark", [False, True])
def test_every_word_stands_out_from_its_ground(cluster: EmbeddedCluster, browser: Browser, dark: bool) -> None:
    nodes = [node("w-1", RESETTING, condemned=True), node("w-2", ("Unarmed", "it has no watchdog")), node("w-3")]
    with contextlib.closing(Painted(cluster, nodes)) as painted:
        onlooker = Onlooker(cluster)
        states = {
            "is being remediated": [
                course("w-1", "waiting", WAITING, 10),
                course("w-4", "held back", "over budget", 3),
            ],
            "needs an operator": [course("w-1", "waiting", "it has promised nothing", 10, refused=True)],
            "not protected": [],
        }
        browser.emulate(dark=dark)
        browser.open(onlooker.url)
        for words, courses in states.items():
            painted.says(*courses, held="too many are sick" if courses else "")
            browser.shows(words, "#verdict")
            assert browser.run(CONTRAST) == []
        painted.nobody_leads()
        browser.shows("Nobody leads", "#verdict")
        assert browser.run(CONTRAST) == []


CONTRAST = """
const paint = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (rgb) => rgb.slice(0, 3).map((value) => value / 255)
  .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
const ground = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = paint(getComputedStyle(each).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
};
const poor = [];
for (const element of document.querySelectorAll('body *')) {
  const text = [...element.childNodes].filter((each) => each.nodeType === 3).map((each) => each.data.trim()).join('');
  if (!text || !element.checkVisibility() || element.closest('.unseen, .skip')) continue;
  const [one, other] = [light(paint(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
  const ratio = (one + 0.05) / (other + 0.05);
  if (ratio < 4.5) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
}
return poor;
"""
"""Words whose contrast is less than WCAG's 4.5."""


def test_a_phone_shows_all_of_it_and_who_wants_calm_gets_it(cluster: EmbeddedCluster, browser: Browser) -> None:
    with contextlib.closing(Painted(cluster, map(node, NAMES))) as painted:
        painted.says(course("worker-3", "waiting", WAITING, 10))
        browser.emulate(PHONE, calm=True)
        browser.open(Onlooker(cluster).url)
        browser.shows("certainly dead by 44 s")
        assert browser.run("return document.documentElement.scrollWidth") == PHONE[0]
        fill = "return getComputedStyle(document.querySelector('.bar span')).transitionDuration"
        assert browser.run(fill) == "0s"
        browser.emulate(DESKTOP)
        assert browser.run(fill) == "0.25s"


def test_a_screen_reader_finds_headings_a_progress_bar_and_named_hosts(
    cluster: EmbeddedCluster, browser: Browser
) -> None:
    with contextlib.closing(Painted(cluster, map(node, NAMES))) as painted:
        painted.says(course("worker-3", "waiting", WAITING, 10))
        browser.open(Onlooker(cluster).url)
        browser.shows("worker-3 is being remediated")
        found = browser.devtools("Accessibility.getFullAXTree")["nodes"]
        named = {(each["role"]["value"], each.get("name", {}).get("value")) for each in found if not each["ignored"]}
        assert {
            ("heading", "worker-3 is being remediated"),
            ("heading", "Hosts"),
            ("heading", "Limits"),
            ("heading", "What the settings promise"),
            ("heading", "History"),
            ("progressbar", "Remediation of worker-3"),
            ("button", "worker-3: Being remediated"),
            ("button", "worker-1: Protected"),
            ("searchbox", "Find a host"),
        } <= named


def test_the_pictures_of_the_docs(browser: Browser, save: Save) -> None:
    """Of stopped clocks, so that a picture changes only if the page does."""
    stop = browser.before_each_page("Date.now = () => 1e12")
    browser.devtools("Emulation.setTimezoneOverride", timezoneId="UTC")
    for show in (show_a_remediation, show_hundreds):
        with EmbeddedCluster.start() as cluster:
            show(cluster, browser, save)
    stop()


AT = datetime(2027, 3, 1, 12, 0, tzinfo=timezone.utc)


def show_a_remediation(cluster: EmbeddedCluster, browser: Browser, save: Save) -> None:
    with contextlib.closing(Painted(cluster, map(node, NAMES), AT)) as painted:
        painted.says(history=EARLIER)
        browser.open(Onlooker(cluster, AT).url)
        browser.shows("All 12 hosts are protected")
        save("page")
        painted.says(course("worker-3", "waiting", WAITING, 17, at=AT), history=[*EARLIER, *LATELY])
        painted.changes(node("worker-3", RESETTING, condemned=True, ready=False))
        browser.shows("11 of 12 hosts are protected", "#verdict")
        browser.shows("Being remediated", "#hosts")
        save("page-remediation")
        browser.emulate(dark=True)
        save("page-dark")
        browser.emulate(PHONE)
        save("page-phone")
        browser.emulate()
        painted.says(history=EARLIER)
        painted.changes(node("worker-3"))
        painted.nobody_leads()
        browser.shows("Nobody leads")
        browser.shows("12 of 12 protected", "#hosts-count")
        save("page-nobody-leads")


def show_hundreds(cluster: EmbeddedCluster, browser: Browser, save: Save) -> None:
    odd = {
        "worker-77": node("worker-77", RESETTING, condemned=True, ready=False),
        "worker-123": node("worker-123", ("NoWatchdog", "it has no watchdog")),
    }
    names = [f"worker-{number}" for number in range(1, 501)]
    with contextlib.closing(Painted(cluster, [odd.get(name) or node(name) for name in names], AT)) as painted:
        painted.says(course("worker-77", "waiting", WAITING.replace("12", "500"), 17, at=AT), history=EARLIER)
        browser.open(Onlooker(cluster, AT).url)
        browser.shows("498 of 500 protected", "#hosts-count")
        save("page-500-hosts")


def told(before_seconds: float, name: str, *lines: tuple[float, str, str]) -> list[Told]:
    began = AT - timedelta(seconds=before_seconds)
    return [Told(began + timedelta(seconds=after), name, stage, sentence) for after, stage, sentence in lines]


LATELY = told(
    17,
    "worker-3",
    (0, "condemning", "cordoning its Node"),
    (0, "condemning", "condemning its machine"),
    (1, "waiting", "at least half of 12 nodes know; it is dead 44 s after they did, at the latest"),
)
EARLIER = told(
    7300,
    "worker-5",
    (0, "condemning", "condemning its machine"),
    (1, "waiting", "at least half of 12 nodes know; it is dead 44 s after they did, at the latest"),
    (45, "freeing", "it had 44 s to reset itself; deleting its Node"),
    (46, "freeing", "freeing its workloads"),
    (47, "restoring", "workloads released; recreating the Node"),
    (49, "finished", "nothing is left to do"),
)
