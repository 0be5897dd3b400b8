"use strict";
// Follows the leader's events and shows them. Whatever comes from the cluster becomes text, never markup.

const SILENT_SECONDS = 15; // three beats: a stream that says nothing for longer is dead, whatever the browser thinks
const AGAIN_SECONDS = 3;
const DENSE_FROM = 120;
const SHOWN_HISTORY = 60;
const ANNOUNCE_SECONDS = 10;
const SIGNS = { well: "✓", care: "!", work: "↻", bad: "✕", rest: "‖", unknown: "…" };
const STEPS = ["Condemn", "Peers know", "Wait until dead", "Free workloads", "Restore Node"];
const STEP_OF = {
  "condemning": 0, "switching off": 0, "acknowledging": 1, "waiting": 2, "checking": 2, "freeing": 3,
  "restoring": 4, "switching on": 4,
};
const HELD = new Set(["held back", "over budget"]);
const FREED = new Set(["restoring", "switching on", "clearing"]);
const LIMIT_NAMES = {
  "no-leader": "Nobody leads", "pause": "Paused", "maintenance": "Maintenance", "dry-run": "Dry run",
  "budget": "Budget spent", "held": "No remediation may begin now", "trouble": "The leader has trouble",
};
const STATE_WORDS = {
  armed: "armed", resetting: "resets itself", booting: "booting, its gate is closed", withdrawn: "has withdrawn its promise",
  unreadable: "its record can't be read", silent: "its agent says nothing",
};

const byId = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const seen = { promise: null, fleet: null, hosts: null, history: [], trouble: { since: null, sentence: "" } };
const heard = { at: 0, offset: 0, broken: true };
const tiles = new Map();
const cards = new Map();
let source = null;
let retry = 0;
let due = 0;

// Small helpers.

function make(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function mark(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

const now = () => Date.now() / 1000 + heard.offset;
const moment = (text) => (text ? Date.parse(text) / 1000 : null);
const whole = (seconds) => `${Math.max(0, Math.floor(seconds))} s`;
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const some = (count, one, many) => (count === 1 ? one : many);

function clock(seconds) {
  const then = new Date(seconds * 1000);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  const today = then.toDateString() === new Date(now() * 1000).toDateString();
  return today ? time : `${then.toLocaleDateString([], { month: "short", day: "numeric" })} ${time.slice(0, 5)}`;
}

// The stream.

function connect() {
  clearTimeout(retry);
  retry = 0;
  if (source) source.close();
  source = new EventSource("events");
  for (const name of Object.keys(seen)) {
    source.addEventListener(name, (event) => {
      seen[name] = JSON.parse(event.data);
      if (!due) due = setTimeout(render, 0);
    });
  }
  source.addEventListener("beat", (event) => {
    heard.offset = JSON.parse(event.data).now - Date.now() / 1000;
    heard.at = Date.now() / 1000;
    heard.broken = false;
  });
  source.addEventListener("error", () => {
    heard.broken = true;
    if (source.readyState === EventSource.CLOSED) again();
    tick();
  });
}

function again() {
  if (!retry) retry = setTimeout(connect, AGAIN_SECONDS * 1000);
}

// One host, one sentence: what state it is in, and how urgent that is.

function told(host) {
  if (host.remediation === "blocked") return ["bad", "Blocked: needs an operator"];
  if (host.remediation === "running") return ["work", "Being remediated"];
  if (host.remediation === "requested") return ["care", "Remediation requested"];
  if (!host.present) return ["care", "Has no Node"];
  if (host.away) return ["care", "Not back yet"];
  if (host.maintenance) return ["rest", "In maintenance"];
  if (host.protected !== true) return ["care", host.reason ? `Not protected: ${host.reason}` : "Not protected"];
  if (!host.ready) return ["care", "Protected, not Ready"];
  return host.paused ? ["rest", "Protected, paused"] : ["well", "Protected"];
}

function verdict() {
  const { fleet, trouble } = seen;
  if (trouble.sentence) return ["bad", "This leader can't read the cluster", trouble.sentence];
  if (!fleet) return ["unknown", "Reading the cluster", ""];
  const { enrolled, protected: kept } = fleet.counts;
  const held = fleet.limits.filter((each) => each.kind !== "trouble");
  const share = `${kept} of ${enrolled} ${some(enrolled, "host", "hosts")} ${some(kept, "is", "are")} protected.`;
  if (!fleet.leads) return ["bad", "Nobody leads", "Hosts still protect themselves, but nobody frees the workloads of one that is dead."];
  const blocked = fleet.ongoing.filter((each) => each.blocked);
  if (blocked.length) return ["bad", `${names(blocked)} ${some(blocked.length, "needs", "need")} an operator`, blocked[0].sentence];
  const running = fleet.ongoing.filter((each) => !HELD.has(each.stage));
  if (running.length) return ["work", `${names(running)} ${some(running.length, "is", "are")} being remediated`, share];
  if (held.length) return ["care", LIMIT_NAMES[held[0].kind], held[0].sentence];
  if (!enrolled) return ["unknown", "No host is enrolled", "To protect one: pp-leader enroll NODE"];
  const open = enrolled - kept;
  if (open) return ["care", `${open} of ${enrolled} ${some(enrolled, "host", "hosts")} ${some(open, "is", "are")} not protected`, lastFinished()];
  if (fleet.ongoing.length) return ["care", `${names(fleet.ongoing)} ${some(fleet.ongoing.length, "waits", "wait")} for remediation`, fleet.ongoing[0].sentence];
  return ["well", enrolled === 1 ? "The one host is protected" : `All ${enrolled} hosts are protected`, lastFinished()];
}

const nameOf = (course) => course.node || course.machine || "(no node)";

function names(courses) {
  const all = courses.map(nameOf);
  return all.length > 3 ? `${all.length} hosts` : all.join(", ").replace(/, ([^,]*)$/, " and $1");
}

function lastFinished() {
  const last = seen.history.findLast((line) => line[2] === "finished");
  return last ? `The last remediation was of ${last[1]}, done at ${clock(moment(last[0]))}.` : "Nothing was remediated yet.";
}

// Rendering: everything after an event, and the clocks in between.

function render() {
  due = 0;
  performance.mark("render");
  showVerdict();
  showPromise();
  if (seen.fleet) {
    showCourses(seen.fleet.ongoing);
    showLimits(seen.fleet);
  }
  if (seen.hosts) showHosts(seen.hosts);
  showHistory();
  tick();
  performance.measure("shown", "render");
}

function showVerdict() {
  const [mood, words, more] = verdict();
  mark(byId("verdict"), "mood", mood);
  say(byId("verdict-sign"), SIGNS[mood]);
  say(byId("verdict-words"), words);
  say(byId("verdict-more"), upper(more));
  say(byId("leader"), leaderWords());
  const title = `${SIGNS[mood]} ${words} · pp-hostd`;
  if (document.title !== title) {
    document.title = title;
    byId("icon").href = icon(mood);
    announce(words);
  }
}

function leaderWords() {
  const { fleet, promise } = seen;
  if (!promise) return "";
  const here = `seen from ${promise.host}`;
  if (!fleet || !fleet.leads) return here;
  const holder = fleet.holder.replace(/_[0-9a-f]{16}$/, "");
  return holder === promise.host ? `${holder} leads` : `${holder} leads, ${here}, which stands by`;
}

function icon(mood) {
  const colour = { well: "#12805f", care: "#c27803", work: "#2f62d0", bad: "#c02a24" }[mood] || "#7a8698";
  const shape = mood === "well" ? "<circle cx='8' cy='8' r='7'/>" : "<rect x='1' y='1' width='14' height='14' rx='2'/>";
  const text = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='${colour}'>${shape}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(text)}`;
}

// Screen readers hear what changed, and no more often than a person can listen.
const announced = { at: 0, timer: 0 };
function announce(words) {
  clearTimeout(announced.timer);
  const wait = Math.max(0, announced.at + ANNOUNCE_SECONDS * 1000 - Date.now());
  announced.timer = setTimeout(() => {
    announced.at = Date.now();
    say(byId("announcement"), words);
  }, wait);
}

function showCourses(courses) {
  byId("now").hidden = !courses.length;
  const keys = courses.map((each) => (each.node || each.machine ? `${each.node} ${each.machine}` : each.sentence));
  for (const [key, card] of cards) {
    if (!keys.includes(key)) {
      card.item.remove();
      cards.delete(key);
    }
  }
  courses.forEach((course, index) => {
    if (!cards.has(keys[index])) {
      cards.set(keys[index], newCard(course));
      byId("courses").append(cards.get(keys[index]).item);
    }
    showCourse(cards.get(keys[index]), course);
  });
}

function newCard(course) {
  const card = { item: make("li", "course"), bar: make("div", "bar"), fill: make("span"), steps: make("ol", "steps") };
  const head = make("div", "course-head");
  card.stage = make("span", "stage");
  card.clock = make("span", "clock");
  card.elapsed = make("span");
  card.promised = make("small");
  card.clock.append(card.elapsed, card.promised);
  head.append(make("h3", "", nameOf(course)), card.stage, card.clock);
  card.words = make("p", "words");
  card.bar.setAttribute("role", "progressbar");
  card.bar.setAttribute("aria-label", `Remediation of ${nameOf(course)}`);
  card.bar.append(card.fill);
  card.steps.append(...STEPS.map((words) => make("li", "", words)));
  card.item.append(head, card.words, card.bar, card.steps);
  return card;
}

function showCourse(card, course) {
  card.course = course;
  const mood = course.blocked ? "bad" : HELD.has(course.stage) ? "care" : "work";
  mark(card.item, "mood", mood);
  say(card.stage, `${SIGNS[mood]} ${course.blocked ? "blocked: needs an operator" : course.stage}`);
  say(card.words, upper(course.sentence));
  const at = STEP_OF[course.stage];
  card.steps.hidden = at === undefined || course.blocked;
  [...card.steps.children].forEach((step, index) => {
    mark(step, "at", index < at ? "done" : index === at ? "now" : "later");
    if (index === at) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  });
}

function moveBar(card, at) {
  const { began, dead_by: deadBy, due: dueAt, since, stage, blocked } = card.course;
  const promised = began && deadBy && !HELD.has(stage) ? moment(deadBy) - moment(began) : 0;
  const elapsed = at - moment(began && !HELD.has(stage) ? began : since);
  say(card.elapsed, whole(elapsed));
  card.bar.hidden = !promised || blocked;
  if (!promised || blocked) {
    say(card.promised, dueAt && !blocked ? `, goes on in ${whole(moment(dueAt) - at)}` : " in this stage");
    return;
  }
  const freed = FREED.has(stage);
  const part = freed ? 1 : Math.min(0.99, Math.max(0, elapsed / promised));
  say(card.promised, freed ? ", and its workloads are free" : `, certainly dead by ${whole(promised)}`);
  card.fill.style.transform = `scaleX(${part.toFixed(4)})`;
  mark(card.bar, "over", String(!freed && elapsed > promised && STEP_OF[stage] < 3));
  const percent = String(Math.floor(part * 20) * 5);
  if (card.bar.getAttribute("aria-valuenow") !== percent) {
    card.bar.setAttribute("aria-valuenow", percent);
    card.bar.setAttribute("aria-valuetext", freed ? "The workloads are free" : `${whole(elapsed)} of ${whole(promised)}`);
  }
}

function showHosts(hosts) {
  const list = byId("hosts");
  const wanted = byId("find").value.trim().toLowerCase();
  const shown = wanted ? hosts.filter((host) => `${host.name} ${told(host)[1]}`.toLowerCase().includes(wanted)) : hosts;
  const dense = shown.length > DENSE_FROM;
  const urgent = dense ? [...shown].sort((one, other) => (told(one)[0] === "well") - (told(other)[0] === "well")) : shown;
  mark(list, "dense", String(dense));
  const present = new Set(shown.map((host) => host.name));
  for (const [name, tile] of tiles) {
    if (!present.has(name)) {
      tile.item.remove();
      tiles.delete(name);
    }
  }
  urgent.forEach((host) => showHost(host, dense));
  const firstWell = urgent.findIndex((host) => told(host)[0] === "well");
  urgent.forEach((host, index) => mark(tiles.get(host.name).item, "first", String(dense && index === firstWell)));
  const order = urgent.map((host) => tiles.get(host.name).item);
  if (order.some((item, index) => list.children[index] !== item)) {
    const focused = document.activeElement;
    list.replaceChildren(...order);
    if (list.contains(focused)) focused.focus();
  }
  rove();
  say(byId("hosts-count"), hostsCount(hosts));
  byId("hosts-none").hidden = shown.length > 0;
  say(byId("hosts-none"), wanted ? "No host has that name or state." : "No host is enrolled. To protect one: pp-leader enroll NODE");
}

function hostsCount(hosts) {
  const kept = hosts.filter((host) => host.protected === true).length;
  const others = seen.fleet ? seen.fleet.not_enrolled.length : 0;
  return `${kept} of ${hosts.length} protected${others ? `, ${others} ${some(others, "Node", "Nodes")} not enrolled` : ""}`;
}

function showHost(host, dense) {
  if (!tiles.has(host.name)) tiles.set(host.name, newTile(host));
  const tile = tiles.get(host.name);
  const [mood, words] = told(host);
  tile.host = host;
  if (tile.mood === mood && tile.words === words && tile.dense === dense) return;
  Object.assign(tile, { mood, words, dense });
  tile.item.dataset.mood = mood;
  tile.mark.textContent = SIGNS[mood];
  tile.state.textContent = words;
  tile.button.setAttribute("aria-label", `${host.name}: ${words}`);
  if (dense) tile.button.title = `${host.name}: ${words}`;
  else tile.button.removeAttribute("title");
}

function newTile(host) {
  const tile = { item: make("li"), button: make("button"), mark: make("span", "mark"), state: make("span", "state") };
  tile.button.type = "button";
  tile.button.tabIndex = -1;
  tile.mark.setAttribute("aria-hidden", "true");
  tile.button.append(tile.mark, make("span", "name", host.name), tile.state);
  tile.button.addEventListener("click", () => showDetails(tile.host));
  tile.item.append(tile.button);
  return tile;
}

// One tab stop for all hosts; arrows go on from there.
function rove() {
  const buttons = [...byId("hosts").querySelectorAll("button")];
  if (buttons.length && !buttons.some((each) => each.tabIndex === 0)) buttons[0].tabIndex = 0;
}

function step(event) {
  const buttons = [...byId("hosts").querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  const target = { Home: 0, End: buttons.length - 1, ArrowLeft: at - 1, ArrowRight: at + 1 }[event.key];
  const next = ["ArrowUp", "ArrowDown"].includes(event.key) ? besides(buttons, at, event.key === "ArrowDown") : buttons[target];
  if (at < 0 || !next) return;
  event.preventDefault();
  buttons[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function besides(buttons, at, down) {
  const here = buttons[at].getBoundingClientRect();
  const rows = buttons.map((button) => [button, button.getBoundingClientRect()]);
  const beyond = rows.filter(([, box]) => (down ? box.top >= here.bottom : box.bottom <= here.top));
  const nearest = ([, box]) => Math.abs(box.top - here.top) * 1000 + Math.abs(box.left - here.left);
  return beyond.reduce((best, each) => (!best || nearest(each) < nearest(best) ? each : best), null)?.[0];
}

function showDetails(host) {
  say(byId("details-title"), host.name);
  say(byId("details-words"), told(host)[1] + (host.message ? `: ${host.message}` : ""));
  const promise = host.self_timeout_seconds === null ? "none"
    : `resets itself within ${host.self_timeout_seconds + 2 * host.watchdog_timeout_seconds} s of its last proof`;
  const facts = [
    ["Agent", STATE_WORDS[host.state] || host.state], ["Promise", promise], ["Watchdog", host.watchdog],
    ["Gate", host.gate], ["Kubelet", host.ready ? "Ready" : "not Ready"], ["Roles", host.roles.join(", ")],
    ["Maintenance", host.maintenance && `by ${host.maintenance.who} until ${host.maintenance.until}: ${host.maintenance.why}`],
    ["This since", host.protected_since && clock(moment(host.protected_since))], ["Boot", host.boot],
    ["Version", host.version], ["Certificate ends", host.certificate_ends],
  ];
  byId("details-facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(
    ([name, value]) => [make("dt", "", name), make("dd", "", String(value))],
  ));
  byId("details-history").replaceChildren(...lines(seen.history.filter((line) => line[1] === host.name).slice(-20)));
  byId("details").showModal();
}

function lines(history) {
  return [...history].reverse().map(([when, node, stage, sentence]) => {
    const line = make("li");
    const time = make("time", "", clock(moment(when)));
    time.dateTime = when;
    time.title = when;
    line.title = stage;
    line.append(time, make("b", "", node), make("span", "", upper(sentence)));
    return line;
  });
}

let historyShown = null;
function showHistory() {
  if (seen.history === historyShown) return;
  historyShown = seen.history;
  byId("history").replaceChildren(...lines(seen.history.slice(-SHOWN_HISTORY)));
  byId("history-none").hidden = seen.history.length > 0;
}

function showLimits(fleet) {
  const rows = fleet.limits.map((limit) => {
    const until = limit.until ? ` Until ${clock(moment(limit.until))}.` : "";
    return [["no-leader", "trouble"].includes(limit.kind) ? "bad" : "care", LIMIT_NAMES[limit.kind] || limit.kind, limit.sentence + until];
  });
  if (fleet.leads && fleet.resets_left) rows.push(["well", `${fleet.resets_left} of ${fleet.resets_per_hour} remediations may begin`, "within an hour (leader.resets_per_hour)"]);
  if (!rows.length) rows.push(["well", "No limit holds", ""]);
  byId("limits").replaceChildren(...rows.map(([mood, name, words]) => {
    const item = make("li");
    item.dataset.mood = mood;
    const sign = make("span", "mark", SIGNS[mood]);
    sign.setAttribute("aria-hidden", "true");
    item.append(sign, make("p", "name", name), make("p", "words", upper(words)));
    return item;
  }));
}

let promiseShown = null;
function showPromise() {
  const promise = seen.promise;
  if (!promise || promise === promiseShown) return;
  promiseShown = promise;
  byId("promise").replaceChildren(...promise.rows.map(([seconds, words]) => {
    const row = make("li");
    row.append(make("b", "", `${seconds} s`), make("span", "", words));
    return row;
  }));
  const edges = [0, promise.unfed_seconds, promise.dead_seconds, promise.acts_seconds];
  const parts = ["a proof keeps it up", "its watchdog resets it", ""].map((words, index) => {
    const part = make("span", "", words);
    part.style.flexGrow = String(edges[index + 1] - edges[index]);
    part.style.flexBasis = "0";
    return part;
  });
  const ticks = [edges[0], edges[1], edges[3]].map((seconds) => {
    const tickMark = make("i", "", `${seconds} s`);
    tickMark.style.left = `${(100 * seconds) / edges[3]}%`;
    return tickMark;
  });
  byId("strip").replaceChildren(...parts, ...ticks);
  say(byId("outage"), `If the control plane fails: ${promise.outage}.`);
}

function tick() {
  const stale = staleSince();
  document.body.dataset.stale = String(stale !== null);
  mark(byId("link"), "state", stale !== null ? "stale" : heard.at ? "live" : "connecting");
  say(byId("link-words"), linkWords(stale));
  const at = stale === null ? now() : stale;
  for (const card of cards.values()) moveBar(card, at);
  if (!heard.broken && Date.now() / 1000 - heard.at > SILENT_SECONDS) {
    heard.broken = true;
    connect();
  }
}

// When the page last knew how the cluster is, by the leader's clock; null while it knows.
function staleSince() {
  if (!heard.at) return null;
  if (heard.broken) return heard.at + heard.offset;
  return seen.trouble.since;
}

function linkWords(stale) {
  if (stale === null) return heard.at ? "Live" : heard.broken && retry ? "Can't reach pp-leader, trying again" : "Connecting";
  const since = `Stale since ${clock(stale)} (${whole(now() - stale)})`;
  return heard.broken ? `${since}: connecting again` : `${since}: the API can't be read`;
}

byId("hosts").addEventListener("keydown", step);
byId("find").addEventListener("input", () => seen.hosts && showHosts(seen.hosts));
byId("details").addEventListener("click", (event) => event.target === byId("details") && byId("details").close());
byId("icon").href = icon("unknown");
setInterval(tick, calm.matches ? 1000 : 250);
connect();
