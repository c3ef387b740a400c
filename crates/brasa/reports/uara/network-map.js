
// ---- map -----------------------------------------------------------------------------------------------------------

// Metres that must be on paper, the same for all controllers and episodes: choosing another moves nothing.
const world = (() => {
  const xs = [], ys = [];
  for (const { episodes } of network.controllers) {
    for (const episode of episodes) {
      for (const [x, y, radius] of episode.stations) {
        const reach = network.has_edges ? radius : 0;
        xs.push(x - reach, x + reach);
        ys.push(y - reach, y + reach);
      }
      decode(episode).forEach(frame => frame.users.forEach(user => { xs.push(user.x); ys.push(user.y); }));
    }
  }
  const span = list => list.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
  const [[left, right], [bottom, top]] = [span(xs), span(ys)];
  return { x: (left + right) / 2, y: (bottom + top) / 2, width: Math.max(right - left, 1), height: Math.max(top - bottom, 1) };
})();
Object.assign(view.zoom, { x: world.x, y: world.y });
const MARGIN = 22, MOST_ZOOM = 16;

function zoom(by, x = view.zoom.x, y = view.zoom.y) {
  by = Math.max(1, Math.min(MOST_ZOOM, by));
  const keep = (at, middle, size) => Math.max(middle - size / 2 * (1 - 1 / by), Math.min(middle + size / 2 * (1 - 1 / by), at));
  change({ zoom: { by, x: keep(x, world.x, world.width), y: keep(y, world.y, world.height) } });
}

// Stations differ by shape, not by color alone.
const STATIONS = ["M0-11L10 7H-10Z", "M-5-5H5V5H-5Z", "M0-5.5L5.5 0L0 5.5L-5.5 0Z"];

function newMap(panel) {
  const box = html("div", { class: "map" }, panel.box);
  const picture = svg("svg", { tabindex: 0, role: "application", "aria-label": `Map ${panel.index + 1}: arrows up and down go from user to user` }, box);
  const [ground, links, posts, dots, front] = Array.from({ length: 5 }, () => svg("g", {}, picture));
  const bar = svg("path", { class: "scale" }, front), length = svg("text", {}, front);
  const buttons = html("div", { class: "zoom" }, box);
  for (const [text, label, by] of [["−", "Zoom out (−)", 0.5], ["+", "Zoom in (+)", 2], ["◻", "The whole network (0)", 0]]) {
    html("button", { type: "button", "aria-label": label, title: label }, buttons, text).onclick = () => zoom(view.zoom.by * by);
  }
  let size = [1, 1], scale = 1, cells = [], stations = [], users = [];
  const project = (x, y) => [size[0] / 2 + (x - view.zoom.x) * scale * view.zoom.by, size[1] / 2 - (y - view.zoom.y) * scale * view.zoom.by];
  const unproject = (x, y) => [view.zoom.x + (x - size[0] / 2) / scale / view.zoom.by, view.zoom.y - (y - size[1] / 2) / scale / view.zoom.by];
  const radius = () => (size[0] > 480 ? 7.5 : 5.5) * Math.min(1.5, view.zoom.by ** 0.25);
  const at = ([x, y]) => `translate(${x.toFixed(1)} ${y.toFixed(1)})`;

  // Draws anew what does not change with time.
  function build() {
    const width = Math.max(box.clientWidth, 200);
    scale = Math.min((width - 2 * MARGIN) / world.width, 640 / world.height);
    size = [width, Math.max(180, world.height * scale + 2 * MARGIN)];
    set(picture, { width, height: size[1].toFixed(1), viewBox: `0 0 ${width} ${size[1].toFixed(1)}` });
    const episode = episodeOf(panel);
    for (const layer of [ground, links, posts, dots]) layer.textContent = "";
    cells = network.has_edges ? episode.stations.map(([, , , tier]) => svg("circle", { class: `cell tier-${tier}` }, ground)) : [];
    stations = episode.stations.map(([, , , tier]) => svg("path", { d: STATIONS[tier] }, posts));
    users = decode(episode)[0].users.map(() => {
      const group = svg("g", {}, dots);
      return { group, ring: svg("circle", { class: "ring" }, group), dot: svg("circle", { class: "dot" }, group), number: svg("text", {}, group),
               link: svg("line", {}, links) };
    });
  }

  function show() {
    const frame = frameOf(panel), { focus } = view, is = concerned(frame, focus), r = radius(), places = episodeOf(panel).stations;
    const chosen = focus && (focus.user != null ? frame.users[focus.user].station : focus.station);
    cells.forEach((cell, i) => {
      const [x, y, reach] = places[i], [cx, cy] = project(x, y);
      set(cell, { cx: cx.toFixed(1), cy: cy.toFixed(1), r: (reach * scale * view.zoom.by).toFixed(1) });
    });
    stations.forEach((mark, i) => set(mark, { transform: at(project(places[i][0], places[i][1])),
      class: `station tier-${places[i][3]}${chosen === i ? " chosen" : ""}` }));
    frame.users.forEach((user, i) => {
      const { group, ring, dot, number, link } = users[i], here = project(user.x, user.y), there = project(...places[user.station]);
      const bad = user.satisfied ? "" : " bad", heeded = is && is(user);
      const state = heeded ? "" : view.only && user.satisfied ? " gone" : is ? " quiet" : "";
      set(group, { class: `user${bad}${state}${focus && focus.user === i ? " chosen" : ""}`, transform: at(here), style: paint(user.channel) });
      set(ring, { r: (r + 3.2).toFixed(1) });
      set(dot, { r: r.toFixed(1) });
      set(number, { y: (0.36 * 1.2 * r).toFixed(1), "font-size": (1.2 * r).toFixed(1) });
      say(number, r > 6 ? String(user.channel + 1) : "");
      set(link, { class: `link${bad}${state}${heeded ? " loud" : ""}`, style: paint(user.channel), x1: here[0].toFixed(1), y1: here[1].toFixed(1),
        x2: there[0].toFixed(1), y2: there[1].toFixed(1) });
    });
    // The longest round length that leaves most of the width alone.
    const perMetre = scale * view.zoom.by, round = [1000, 500, 200, 100, 50, 20, 10, 5].find(metres => metres * perMetre < 0.22 * size[0]) || 2;
    const [left, low] = [12, size[1] - 12];
    set(bar, { d: `M${left} ${low - 5}V${low}H${(left + round * perMetre).toFixed(1)}V${low - 5}` });
    set(length, { x: left + 5, y: low - 6 });
    say(length, `${round} m`);
  }

  function anchor(focus) {
    const place = focus.user != null ? frameOf(panel).users[focus.user] : { x: episodeOf(panel).stations[focus.station][0], y: episodeOf(panel).stations[focus.station][1] };
    return { picture, at: project(place.x, place.y), r: radius() + 4 };
  }

  // The nearest of what can be seen: marks may lie upon each other.
  function meet(event) {
    const outer = picture.getBoundingClientRect(), x = event.clientX - outer.left, y = event.clientY - outer.top;
    const near = { far: 14, focus: null }, frame = frameOf(panel);
    const look = (at, focus, handicap) => {
      const far = Math.hypot(at[0] - x, at[1] - y) + handicap;
      if (far < near.far) Object.assign(near, { far, focus });
    };
    frame.users.forEach((user, i) => { if (!view.only || !user.satisfied) look(project(user.x, user.y), { user: i }, 0); });
    episodeOf(panel).stations.forEach(([sx, sy], i) => look(project(sx, sy), { station: i }, 2));
    return near.focus;
  }
  let drag = null, moved = false;
  picture.addEventListener("pointerdown", event => {
    drag = { x: event.clientX, y: event.clientY, from: { ...view.zoom } };
    moved = false;
  });
  picture.addEventListener("pointermove", event => {
    if (drag && event.buttons & 1 && view.zoom.by > 1) {
      const by = scale * drag.from.by, [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      if (moved || Math.hypot(dx, dy) > 4) {
        moved = true;
        zoom(drag.from.by, drag.from.x - dx / by, drag.from.y + dy / by);
        return;
      }
    }
    point(meet(event));
  });
  picture.addEventListener("pointerleave", () => point(null));
  picture.addEventListener("click", event => { if (!moved) hold(meet(event)); });
  // Plain turns of the wheel belong to the page.
  picture.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const outer = picture.getBoundingClientRect(), [x, y] = unproject(event.clientX - outer.left, event.clientY - outer.top);
    const by = Math.max(1, Math.min(MOST_ZOOM, view.zoom.by * 2 ** (-event.deltaY / 200))), stay = view.zoom.by / by;
    zoom(by, x + (view.zoom.x - x) * stay, y + (view.zoom.y - y) * stay);
  }, { passive: false });
  // Users by number, then stations.
  picture.addEventListener("keydown", event => {
    const turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!turn) return;
    event.preventDefault();
    const frame = frameOf(panel), all = [...frame.users.keys()].filter(i => !view.only || !frame.users[i].satisfied).map(user => ({ user }));
    all.push(...stationNames.map((_, station) => ({ station })));
    const here = all.findIndex(focus => sameFocus(focus, view.focus));
    change({ focus: all[here < 0 ? (turn > 0 ? 0 : all.length - 1) : (here + turn + all.length) % all.length], pinned: true });
  });
  return { build, show, anchor, picture, users: () => users };
}
