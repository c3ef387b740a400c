// The replay of a network: two controllers side by side, each with a map and a grid of channels, and one clock for both.
"use strict";
const network = data.network, root = document.getElementById("network");

// ---- what happened -------------------------------------------------------------------------------------------------

// The frames of an episode as lists of users, with what is counted over them.
function decode(episode) {
  let at = [];
  return episode.decoded || (episode.decoded = episode.frames.map(frame => {
    at = frame.users || at;
    const users = frame.rate_mbps.map((rate, i) => {
      const [station, channel, level] = frame.links.slice(3 * i, 3 * i + 3);
      return { x: at[2 * i], y: at[2 * i + 1], station, channel, level, rate, sinr: frame.sinr_db[i], satisfied: frame.satisfied[i] === "1" };
    });
    const satisfied = users.filter(user => user.satisfied).length;
    return { step: frame.step, users, satisfied, share: satisfied / users.length, rate: users.reduce((sum, user) => sum + user.rate, 0) };
  }));
}
const names = network.controllers.map(controller => controller.name);
const firstOf = network.controllers[0].episodes;

// What stations are called: by their kind, counted from one.
const stationNames = firstOf[0].stations.map(([, , , tier], i, all) => {
  const before = all.slice(0, i).filter(other => other[3] === tier).length;
  return { tier, name: `${network.tiers[tier]} ${before + 1}`, short: String(before + 1) };
});

// Twenty colors as far from each other as they can be for people who see all colors and for those who do not (protanopia,
// deuteranopia, tritanopia), neighbors the farthest. More channels repeat them: the number in a dot decides.
const PALETTE = ["#fe7802", "#6022a2", "#8ed7ef", "#b01003", "#6b89f9", "#998667", "#324d78", "#16f7c3", "#b2d10f", "#d05fc8",
                 "#b65a18", "#7d2e3f", "#f499a7", "#d8db84", "#8d4bb7", "#d39dfa", "#076b6f", "#3fc168", "#c287a2", "#5c7c92"];
const paint = channel => {
  const fill = PALETTE[channel % PALETTE.length], [r, g, b] = [1, 3, 5].map(i => (parseInt(fill.slice(i, i + 2), 16) / 255) ** 2.2);
  return `--channel:${fill};--on:${0.2126 * r + 0.7152 * g + 0.0722 * b > 0.23 ? "#000" : "#fff"}`;
};

// ---- state ---------------------------------------------------------------------------------------------------------

const find = (name, other) => names.includes(name) ? names.indexOf(name) : other;
const first = find("trained", 0), second = find("greedy", names.findIndex((_, i) => i !== first));
const view = { controllers: names.length > 1 ? [first, second] : [first], episode: 0, moment: 0, playing: false, only: false, focus: null,
               pinned: false, zoom: { by: 1, x: 0, y: 0 } };
const episodeOf = panel => network.controllers[view.controllers[panel.index]].episodes[view.episode];
// Steps that somebody shows: an episode that is over stays as it ended.
const moments = () => [...new Set(panels.flatMap(panel => decode(episodeOf(panel)).map(frame => frame.step)))].sort((a, b) => a - b);
const frameOf = panel => {
  const step = moments()[view.moment];
  return decode(episodeOf(panel)).findLast(frame => frame.step <= step);
};

// Whom a focus on a user, a station or a channel concerns: of a user all who share the channel and so disturb each other.
function concerned(frame, focus) {
  if (!focus) return null;
  const { user, station, channel } = focus;
  if (user != null) return other => other.channel === frame.users[user].channel;
  return other => station == null ? other.channel === channel : other.station === station;
}

// ---- page ----------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function element(made, attributes, parent, text) {
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text != null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
const svg = (name, attributes, parent, text) => element(document.createElementNS(SVG, name), attributes, parent, text);
const html = (name, attributes, parent, text) => element(document.createElement(name), attributes, parent, text);
// Sets only what changed: most of a frame is as the one before.
function set(made, attributes) {
  const known = made.known || (made.known = {});
  for (const key in attributes) {
    const value = String(attributes[key]);
    if (known[key] !== value) { known[key] = value; made.setAttribute(key, value); }
  }
}
function say(made, text) { if (made.said !== text) { made.said = text; made.textContent = text; } }
function choice(parent, label, options, get, choose) {
  const group = html("div", { class: "choice", role: "group", "aria-label": label }, parent);
  const buttons = options.map((name, i) => {
    const button = html("button", { type: "button" }, group, name);
    button.onclick = () => choose(i);
    return button;
  });
  return () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(get() === i)));
}

html("h2", {}, root, "Network");
html("p", {}, root, "The same layouts, walks and fading for every controller. Point at a user, a station or the grid; a click holds it.");
const top1 = html("div", { class: "row" }, root);
const showEpisode = choice(top1, "Episode", firstOf.map((_, i) => "episode " + (i + 1)), () => view.episode, i => change({ episode: i }));
const onlyLabel = html("label", {}, top1);
const only = html("input", { type: "checkbox" }, onlyLabel);
onlyLabel.append("only unsatisfied");
only.onchange = () => change({ only: only.checked });
html("span", { class: "push hint" }, top1).innerHTML =
  "<kbd>space</kbd> play &nbsp;<kbd>←</kbd> <kbd>→</kbd> step &nbsp;<kbd>↑</kbd> <kbd>↓</kbd> on a map: users &nbsp;<kbd>esc</kbd> release";
const timeBox = html("div", {}, root);
const panelsBox = html("div", { class: "panels" }, root);
const legends = html("div", {}, root);

const LINES = ["var(--c0)", "var(--c1)"];
const panels = view.controllers.map((_, index) => {
  const box = html("div", { class: "panel" }, panelsBox), head = html("div", { class: "row" }, box);
  html("span", { class: "swatch", style: `background:${LINES[index]}` }, head);
  const panel = { index, box };
  panel.showController = choice(head, `Controller ${index + 1}`, names, () => view.controllers[index], i => {
    const controllers = [...view.controllers];
    controllers[index] = i;
    change({ controllers });
  });
  const facts = html("div", { class: "facts" }, box);
  const fact = (name, label, unit) => {
    const one = html("div", {}, facts), value = html("b", {}, one);
    const number = html("span", { id: `network-${index}-${name}` }, value);
    html("small", {}, value, unit);
    return { number, label: html("span", {}, one, label) };
  };
  panel.facts = { satisfied: fact("satisfied", "", " %"), rate: fact("rate", "sum of rates", " Mb/s"), step: fact("step", "", "") };
  panel.tools = html("div", { class: "files screen" }, box);
  panel.map = newMap(panel);
  panel.grid = newGrid(panel);
  panel.tip = html("div", { class: "tip", role: "status" }, box);
  return panel;
});

function showFacts(panel) {
  const frame = frameOf(panel), { steps } = episodeOf(panel), { satisfied, rate, step } = panel.facts;
  say(satisfied.number, (100 * frame.share).toFixed(1));
  say(satisfied.label, `${frame.satisfied} of ${frame.users.length} users satisfied`);
  say(rate.number, frame.rate.toFixed(2));
  say(step.number, `${frame.step + 1} of ${steps}`);
  const isOver = frame.step + 1 === steps;
  say(step.label, isOver && moments()[view.moment] > frame.step ? "step, over since" : isOver ? "step, the last" : "step");
}

// ---- words ---------------------------------------------------------------------------------------------------------

const list = users => users.map(i => i + 1).join(", ");
function words(panel, focus) {
  const frame = frameOf(panel), is = concerned(frame, focus), users = [...frame.users.keys()].filter(i => is(frame.users[i]));
  const bad = users.filter(i => !frame.users[i].satisfied), rate = users.reduce((sum, i) => sum + frame.users[i].rate, 0);
  const group = [users.length ? `${users.length === 1 ? "user" : users.length + " users:"} ${list(users)}` : "nobody"];
  if (users.length) group.push(`${rate.toFixed(2)} Mb/s together`);
  if (bad.length) group.push(`unsatisfied: ${list(bad)}`);
  if (focus.user != null) {
    const user = frame.users[focus.user], others = users.filter(i => i !== focus.user);
    const level = network.levels > 1 ? `, power ${user.level + 1} of ${network.levels}` : "";
    return [`user ${focus.user + 1}`, [`${stationNames[user.station].name}, channel ${user.channel + 1}${level}`,
      user.sinr == null ? "no signal" : `SINR ${user.sinr.toFixed(1)} dB, needs ${network.min_sinr_db}`,
      `${user.rate.toFixed(3)} Mb/s, ${user.satisfied ? "satisfied" : "unsatisfied"}`,
      others.length ? `shares the channel with ${list(others)}` : "alone on the channel"]];
  }
  const { station, channel } = focus;
  if (station == null) return [`channel ${channel + 1}`, group];
  const radius = episodeOf(panel).stations[station][2];
  return [stationNames[station].name, network.has_edges ? [`cell of ${radius} m`, ...group] : group];
}
function showTip(panel) {
  const { tip, box } = panel, { focus } = view;
  tip.style.display = focus ? "block" : "none";
  if (!focus) return;
  const [title, lines] = words(panel, focus);
  tip.textContent = "";
  html("b", {}, tip, title);
  lines.forEach(line => html("div", {}, tip, line));
  const { picture, at: [x, y], r } = (focus.isGrid ? panel.grid : panel.map).anchor(focus);
  const here = picture.getBoundingClientRect(), outer = box.getBoundingClientRect();
  const left = here.left - outer.left + x, above = here.top - outer.top + y - r - tip.offsetHeight - 6;
  tip.style.left = Math.max(0, Math.min(outer.width - tip.offsetWidth, left - tip.offsetWidth / 2)) + "px";
  tip.style.top = (above >= here.top - outer.top ? above : here.top - outer.top + y + r + 6) + "px";
}
const sameFocus = (a, b) => JSON.stringify(a) === JSON.stringify(b);
function point(focus) { if (!view.pinned && !sameFocus(view.focus, focus)) change({ focus }); }
// A click holds what it meets; the same again, or nothing, releases.
function hold(focus) {
  const isSame = view.pinned && sameFocus(view.focus, focus);
  change({ pinned: Boolean(focus) && !isSame, focus });
}
