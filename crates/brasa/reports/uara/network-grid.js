
// ---- channels ------------------------------------------------------------------------------------------------------

// A row per channel, a column per station: who reuses what. Users of one cell share it.
function newGrid(panel) {
  const ROW = 15, HEAD = 32, LEFT = 30, RIGHT = 34, APART = 8;
  const box = html("div", { class: "grid" }, panel.box);
  const picture = svg("svg", { role: "img", "aria-label": "Which user uses which channel of which station" }, box);
  const height = HEAD + network.channels * ROW + 2;
  let width = 1, columns = [], bands = [], totals = [], held = [];

  // Room for those who ever share a channel of a station, whoever leads them, and less where never anybody is.
  function crowds() {
    const most = stationNames.map(() => 0.8);
    for (const { users } of panels.flatMap(panel => decode(episodeOf(panel)))) {
      const counts = new Map();
      for (const { station, channel } of users) {
        const key = station * network.channels + channel, n = (counts.get(key) || 0) + 1;
        counts.set(key, n);
        most[station] = Math.max(most[station], Math.min(n, 4));
      }
    }
    return most;
  }

  function build() {
    width = Math.max(box.clientWidth, 200);
    const tiers = new Set(stationNames.map(station => station.tier)).size, weights = crowds();
    const unit = (width - LEFT - RIGHT - APART * (tiers - 1)) / weights.reduce((sum, weight) => sum + weight, 0);
    let x = LEFT;
    columns = stationNames.map(({ tier }, i) => {
      if (i && stationNames[i - 1].tier !== tier) x += APART;
      x += weights[i] * unit;
      return { left: x - weights[i] * unit, wide: weights[i] * unit };
    });
    picture.textContent = "";
    set(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    bands = Array.from({ length: network.channels }, (_, channel) => {
      const y = HEAD + channel * ROW, band = svg("g", {}, picture);
      svg("rect", { x: 0, y, width, height: ROW, fill: "none" }, band);
      const shade = svg("rect", { x: LEFT, y: y + 0.5, width: width - LEFT - RIGHT, height: ROW - 1 }, band);
      svg("circle", { cx: 5, cy: y + ROW / 2, r: 4.5, style: paint(channel), fill: "var(--channel)" }, band);
      svg("text", { x: 20, y: y + ROW / 2 + 4 }, band, channel + 1);
      return shade;
    });
    const lines = columns.map(({ left, wide }) => `M${left.toFixed(1)} ${HEAD}V${height - 2}M${(left + wide).toFixed(1)} ${HEAD}V${height - 2}`);
    svg("path", { class: "lines", d: lines.join("") }, picture);
    stationNames.forEach(({ tier, short }, i) => {
      const { left, wide } = columns[i], of = columns.filter((_, other) => stationNames[other].tier === tier);
      // All numbers of a kind, or every fifth.
      const least = Math.min(...of.map(column => column.wide)), fits = least > 2 + 7 * String(of.length).length;
      if (fits || short === "1" || least > 4 && short % 5 === 0) svg("text", { x: left + wide / 2, y: HEAD - 5 }, picture, short);
      if (short !== "1") return;
      // As much of the name of a kind as its columns leave room for.
      const room = of.reduce((sum, column) => sum + column.wide, 0), name = network.tiers[tier];
      const text = name.length * 6.4 < room + APART ? name : name[0].toUpperCase();
      svg("text", { x: left + room / 2, y: 11 }, picture, text);
    });
    svg("text", { x: width - RIGHT / 2, y: HEAD - 5 }, picture, "users");
    totals = bands.map((_, channel) => svg("text", { x: width - RIGHT / 2, y: HEAD + channel * ROW + ROW / 2 + 4 }, picture));
    held = frameOf(panel).users.map(() => {
      const group = svg("g", {}, picture);
      return { group, rect: svg("rect", { rx: 2, height: ROW - 3, y: 1.5 }, group), number: svg("text", { y: ROW / 2 + 3.6 }, group) };
    });
  }

  function show() {
    const frame = frameOf(panel), { focus } = view, is = concerned(frame, focus);
    const row = focus && (focus.user != null ? frame.users[focus.user].channel : focus.channel);
    bands.forEach((band, channel) => {
      const users = frame.users.filter(user => user.channel === channel);
      set(band, { class: "band" + (row === channel ? " chosen" : "") });
      set(totals[channel], { class: "total" + (users.some(user => !user.satisfied) ? " bad" : "") });
      say(totals[channel], users.length ? String(users.length) : "");
    });
    const together = new Map();
    frame.users.forEach((user, i) => {
      const key = user.station * network.channels + user.channel;
      together.set(key, [...together.get(key) || [], i]);
    });
    frame.users.forEach((user, i) => {
      const { group, rect, number } = held[i], sharers = together.get(user.station * network.channels + user.channel);
      const column = columns[user.station], wide = (column.wide - 1) / sharers.length, x = column.left + 0.5 + sharers.indexOf(i) * wide;
      const state = is && is(user) ? "" : view.only && user.satisfied ? " gone" : is ? " quiet" : "";
      set(group, { class: `held${user.satisfied ? "" : " bad"}${state}${focus && focus.user === i ? " chosen" : ""}`, style: paint(user.channel),
        transform: `translate(${x.toFixed(1)} ${HEAD + user.channel * ROW})` });
      set(rect, { x: 1, width: Math.max(wide - 2, 1).toFixed(1) });
      set(number, { x: (wide / 2).toFixed(1) });
      say(number, wide > (i > 98 ? 23 : i > 8 ? 16 : 10) ? String(i + 1) : "");
    });
  }

  function anchor({ user, station, channel }) {
    if (user != null) ({ station, channel } = frameOf(panel).users[user]);
    const x = station == null ? LEFT + (width - LEFT - RIGHT) / 2 : columns[station].left + columns[station].wide / 2;
    return { picture, at: [x, channel == null ? HEAD / 2 : HEAD + (channel + 0.5) * ROW], r: ROW / 2 };
  }

  // A user where there is one, otherwise a row or, in the head, a column.
  function meet(event) {
    const outer = picture.getBoundingClientRect(), x = event.clientX - outer.left, y = event.clientY - outer.top;
    const channel = Math.floor((y - HEAD) / ROW), station = columns.findIndex(({ left, wide }) => x >= left && x < left + wide);
    if (channel >= network.channels) return null;
    if (channel < 0) return station < 0 ? null : { station, isGrid: true };
    const sharers = [...held.keys()].filter(i => { const user = frameOf(panel).users[i]; return user.station === station && user.channel === channel; });
    if (!sharers.length) return { channel, isGrid: true };
    const { left, wide } = columns[station];
    return { user: sharers[Math.min(sharers.length - 1, Math.floor((x - left) / wide * sharers.length))], isGrid: true };
  }
  picture.addEventListener("pointermove", event => point(meet(event)));
  picture.addEventListener("pointerleave", () => point(null));
  picture.addEventListener("click", event => hold(meet(event)));
  return { build, show, anchor, picture, held: () => held };
}
