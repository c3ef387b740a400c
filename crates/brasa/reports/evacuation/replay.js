// The replay of an evacuation: a map, a chart of what responders did, and one clock for both.
"use strict";
const replay = data.replay, root = document.getElementById("replay");

// ---- what happened -------------------------------------------------------------------------------------------------

const STATES = ["unaware", "waiting for help", "walking out", "led by an adult", "led by a responder", "out", "dead"];
const MOBILITY = ["adult", "child", "limited mobility"];
const [OUT, DEAD] = [5, 6];
const DOING = ["waits", "walks", "searches", "is down"];
const ACTIVITIES = [["search", "var(--crew)"], ["walk", "var(--walk)"], ["escort", "var(--escort)"], ["wait", "var(--idle)"], ["down", "var(--ink)"]];
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Lists of changes and of spells, as values at every tick.
function decode(run, building) {
  if (run.frames) return run.frames;
  const n = run.ticks + 1, nodes = building.nodes.length;
  const grid = (lists, Type = Uint8Array) => {
    const all = Array.from({ length: nodes }, () => new Type(n));
    for (const [node, list] of lists) {
      for (let i = 0, t = 0; i < list.length; i += 2) { t += list[i]; all[node].fill(list[i + 1], t); }
    }
    return all;
  };
  const spread = spells => {
    let start = 0;
    const of = new Uint16Array(n);
    const list = spells.map((spell, i) => {
      const out = { start, n: spell[0], spell };
      of.fill(i, start, start + spell[0]);
      start += spell[0];
      return out;
    });
    return { of, list };
  };
  const crew = run.crew.map(spread), people = run.people.map(spread);
  const harm = run.harm.map(list => {
    const all = new Uint8Array(n);
    for (let i = 0, t = 0; i < list.length; i += 2) { t += list[i]; all.fill(list[i + 1], t); }
    return all;
  });
  let tick = 0;
  const decisions = run.decisions.map(([since, responder, node]) => ({ tick: tick += since, responder, node }));
  run.frames = { n, fire: grid(run.fire), smoke: grid(run.smoke), lost: grid(run.lost), swept: grid(run.swept), crew, people, harm, decisions };
  return run.frames;
}
const bits = x => { let n = 0; for (; x; x &= x - 1) n++; return n; };

// Where somebody is at a tick: at a node, or a share of the way to another.
function crewAt(frames, r, t) {
  const { of, list } = frames.crew[r], { start, spell: [, node, to, doing, escorting, whole, before] } = list[of[t]];
  return { node, to, share: doing === 1 ? (t - start + before) / whole : 0, doing, escorting };
}
function personAt(frames, i, t) {
  const { of, list } = frames.people[i], { start, n, spell: [, node, to, state, leader] } = list[of[t]];
  return { node, to, share: node === to ? 0 : (t - start + 1) / (n + 1), state, leader };
}

function countAt(run, building, t) {
  const frames = decode(run, building);
  const active = frames.crew.filter((_, r) => crewAt(frames, r, t).doing !== 3).length;
  let swept = 0, lost = 0, rooms = 0;
  building.nodes.forEach((node, i) => {
    if (!node.sweeps) return;
    rooms++;
    if (bits(frames.swept[i][t]) >= Math.min(node.sweeps, Math.max(active, 1))) swept++;
    else if (frames.lost[i][t]) lost++;
  });
  let out = 0, dead = 0;
  frames.people.forEach((_, i) => { const { state } = personAt(frames, i, t); out += state === OUT; dead += state === DEAD; });
  return { rooms, swept, lost, people: frames.people.length, out, dead, active };
}

// ---- state ---------------------------------------------------------------------------------------------------------

const view = { controller: replay.controllers.includes("trained") ? "trained" : replay.controllers[0], episode: 0, time: 0, playing: false,
               speed: 10, think: false, layer: 0, decision: -1 };
const current = () => {
  const episode = replay.episodes[view.episode], run = episode.runs[view.controller], building = replay.buildings[episode.building];
  return { run, building, frames: decode(run, building) };
};
const clock = ticks => {
  const secs = Math.round(ticks * replay.tick_secs);
  return `${Math.floor(secs / 60)}:${String(secs % 60).padStart(2, "0")}`;
};
// The floor is known from where it is drawn.
const short = node => node.name.replace(/^F-?\d+_(?=.)/, "");

// ---- page ----------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
function svg(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text != null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}
function html(name, attributes, parent, text) {
  const element = document.createElement(name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text != null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}
// Sets only what changed: most of a frame is as the one before.
function set(element, attributes) {
  const known = element.known || (element.known = {});
  for (const key in attributes) {
    const value = attributes[key];
    if (known[key] !== value) { known[key] = value; element.setAttribute(key, value); }
  }
}
function say(element, text) { if (element.said !== text) { element.said = text; element.textContent = text; } }

html("h2", {}, root, "Replay");
const top1 = html("div", { class: "row" }, root);
function choice(label, names, get, choose) {
  const group = html("div", { class: "choice", role: "group", "aria-label": label }, top1);
  const buttons = names.map((name, i) => {
    const button = html("button", { type: "button" }, group, name);
    button.onclick = () => choose(i);
    return button;
  });
  return () => buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(get() === i)));
}
const showController = choice("Controller", replay.controllers, () => replay.controllers.indexOf(view.controller),
  i => change({ controller: replay.controllers[i] }));
const showEpisode = choice("Episode", replay.episodes.map((_, i) => "episode " + (i + 1)), () => view.episode, i => change({ episode: i }));
const where = html("span", { style: "color:var(--soft);font-size:14px" }, top1), planTools = html("span", { class: "screen" }, top1);
const thinkLabel = html("label", { class: "push" }, top1);
const thinkBox = html("input", { type: "checkbox" }, thinkLabel);
thinkLabel.append("attention");
const layers = html("select", { "aria-label": "Layer of attention" }, top1);
thinkBox.onchange = () => change({ think: thinkBox.checked });
layers.onchange = () => change({ layer: Number(layers.value) });

const facts = html("div", { class: "facts row" }, root);
const fact = label => {
  const box = html("div", {}, facts), value = html("b", {}, box);
  html("span", {}, box, label);
  return { box, value, number: value.appendChild(document.createTextNode("")), of: html("small", {}, value) };
};
const timeFact = fact("since the alarm"), tickFact = fact("tick"), sweptFact = fact("rooms swept"), lostFact = fact("rooms lost"), outFact = fact("people out"),
      deadFact = fact("dead"), crewFact = fact("responders");

const stage = html("div", { class: "stage" }, root);
const mapBox = html("div", { class: "map", role: "group", tabindex: 0, "aria-label": "Plan. The arrows up and down go from place to place." }, stage);
const tip = html("div", { class: "tip", role: "status" }, stage);
mapBox.addEventListener("keydown", event => {
  const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key], n = map.places.length;
  if (event.key === "Escape") hovered = -1;
  else if (turn && !event.ctrlKey && !event.metaKey && !event.altKey) hovered = hovered < 0 ? (turn > 0 ? 0 : n - 1) : (hovered + turn + n) % n;
  else return;
  event.preventDefault();
  showTip();
});
mapBox.addEventListener("blur", () => { hovered = -1; showTip(); });
const thought = html("div", { class: "thought" }, stage);

const controls = html("div", { class: "row" }, root);
const play = html("div", { class: "play" }, controls);
const ICONS = { start: "M3 3h2v10H3zM14 3v10L6 8z", back: "M12 3v10L4 8z", play: "M4 2v12l10-6z", pause: "M4 2h3v12H4zM9 2h3v12H9z", next: "M4 3v10l8-5z", end: "M11 3h2v10h-2zM2 3v10l8-5z" };
function button(icon, label, action, style = "") {
  const element = html("button", { type: "button", title: label, "aria-label": label, class: style }, play);
  const picture = svg("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": true }, element);
  element.icon = svg("path", { d: ICONS[icon] }, picture);
  element.onclick = action;
  return element;
}
button("start", "To the start (Home)", () => seek(0));
button("back", "One tick back (←)", () => step(-1));
const go = button("play", "Play (space)", () => toggle(), "go");
button("next", "One tick on (→)", () => step(1));
button("end", "To the end (End)", () => seek(current().run.ticks));
const speeds = html("select", { "aria-label": "Speed" }, controls);
[1, 2, 5, 10, 20, 50].forEach(x => html("option", { value: x }, speeds, x + "×"));
speeds.onchange = () => { view.speed = Number(speeds.value); };
const hint = html("span", { class: "push hint", style: "font-size:13px;color:var(--soft)" }, controls);
hint.innerHTML = "<kbd>space</kbd> play &nbsp;<kbd>←</kbd> <kbd>→</kbd> step &nbsp;<kbd>shift</kbd> 10 steps";

const axis = html("div", { class: "axis" }, root);
const slider = html("input", { type: "range", min: 0, step: 1, "aria-label": "Time" }, axis);
slider.oninput = () => seek(Number(slider.value));
const gantt = svg("svg", { class: "gantt", role: "img", "aria-label": "What each responder did" }, root);
const legends = html("div", {}, root);

