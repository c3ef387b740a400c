// Two figures of every group and baseline. The front joins the groups that no other group beats in both.
const trade = id => document.getElementById("trade-" + id);
const figures = data.figures;
// Of several groups with two figures there may be a trade-off; of one group there is none.
if (figures.length > 1 && data.groups.length > 1) {
  document.getElementById("trade-off").hidden = false;
  // The two figures that most groups trade against each other.
  const pairs = figures.flatMap((x, i) => figures.slice(i + 1).map((y, j) => [i, i + 1 + j]));
  const [, first] = pairs.reduce((best, [i, j]) => {
    const n = frontOf(figures[i], figures[j]).length;
    return n > best[0] ? [n, [i, j]] : best;
  }, [0, [0, 1]]);
  for (const [select, chosen] of [[trade("x"), first[0]], [trade("y"), first[1]]]) {
    figures.forEach((figure, i) => select.add(new Option(figure.label, i)));
    select.value = chosen;
    select.onchange = drawTradeOff;
  }
  trade("note").textContent = "Large: mean of a group; small: its seeds; hollow: a baseline. The dashed line joins the groups that no other group beats in both.";
  drawTradeOff();
}

// Means that exist in both, with their index.
function pairsOf(xs, ys) {
  return xs.map((value, i) => [value, ys[i], i]).filter(([a, b]) => a != null && b != null);
}

// The groups that no other group beats in both figures, from left to right.
function frontOf(x, y) {
  const groups = pairsOf(x.groups, y.groups);
  const beats = (a, b) => {
    const [dx, dy] = [(a[0] - b[0]) * (x.more ? 1 : -1), (a[1] - b[1]) * (y.more ? 1 : -1)];
    return dx >= 0 && dy >= 0 && dx + dy > 0;
  };
  const isDistinct = (p, i) => groups.findIndex(other => other[0] === p[0] && other[1] === p[1]) === i;
  return groups.filter((p, i) => isDistinct(p, i) && !groups.some(other => beats(other, p))).sort((a, b) => a[0] - b[0]);
}

function drawTradeOff() {
  const x = figures[trade("x").value], y = figures[trade("y").value];
  const WIDE = 1032, HIGH = 420, LEFT = 108, BOTTOM = 48, RIGHT = 150, TOP = 14;
  const groups = pairsOf(x.groups, y.groups), baselines = pairsOf(x.baselines, y.baselines);
  const seeds = data.groups.flatMap((_, g) => pairsOf(x.runs[g], y.runs[g]).map(([a, b]) => [a, b, g]));
  // A baseline that is far away would press everything else together.
  const near = (values, value) => { const low = Math.min(...values), high = Math.max(...values), room = 3 * (high - low || Math.abs(high) || 1); return value > low - room && value < high + room; };
  const shown = baselines.filter(([a, b]) => near(seeds.map(p => p[0]), a) && near(seeds.map(p => p[1]), b));
  const scale = (values, from, to) => {
    const low = Math.min(...values), high = Math.max(...values), pad = 0.06 * (high - low || Math.abs(high) || 1);
    const place = value => from + (to - from) * (value - low + pad) / (high - low + 2 * pad);
    const raw = (high - low + 2 * pad) / 5, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= raw), ticks = [];
    for (let at = Math.ceil((low - pad) / step) * step; at <= high + pad; at += step) ticks.push(at);
    return { place, ticks };
  };
  const all = [...seeds, ...groups, ...shown];
  const across = scale(all.map(p => p[0]), LEFT, WIDE - RIGHT), up = scale(all.map(p => p[1]), HIGH - BOTTOM, TOP);
  const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
  const add = (tag, attributes, text) => {
    const element = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text != null) element.textContent = text;
    svg.append(element);
    return element;
  };
  const short = value => (value || 0).toLocaleString("en", { maximumSignificantDigits: 4 });
  for (const tick of across.ticks) {
    add("line", { class: "rule", x1: across.place(tick), x2: across.place(tick), y1: TOP, y2: HIGH - BOTTOM });
    add("text", { class: "tick", x: across.place(tick), y: HIGH - BOTTOM + 18, "text-anchor": "middle" }, short(tick));
  }
  for (const tick of up.ticks) {
    add("line", { class: "rule", x1: LEFT, x2: WIDE - RIGHT, y1: up.place(tick), y2: up.place(tick) });
    add("text", { class: "tick", x: LEFT - 8, y: up.place(tick) + 4, "text-anchor": "end" }, short(tick));
  }
  const better = figure => figure.more ? "more is better" : "less is better";
  add("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 8, "text-anchor": "middle" }, `${x.label} (${better(x)})`);
  add("text", { transform: `translate(14 ${(TOP + HIGH - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${y.label} (${better(y)})`);
  add("polyline", { class: "front", points: frontOf(x, y).map(p => `${across.place(p[0])},${up.place(p[1])}`).join(" ") });
  const fill = group => `var(--g${group % COLORS})`;
  seeds.forEach(([a, b, g]) => add("circle", { cx: across.place(a), cy: up.place(b), r: 2.5, style: `fill:${fill(g)};opacity:.55` }));
  // Names stand apart where points are close.
  const taken = [];
  const name = (a, b, text, extra) => {
    let at = up.place(b) + 4;
    const left = across.place(a) + 10;
    const right = left + 7 * Math.min(text.length, 34);
    while (taken.some(([l, r, t]) => Math.abs(t - at) < 14 && l < right && left < r)) at += 14;
    taken.push([left, right, at]);
    add("text", { x: left, y: at, ...extra }, text.length > 34 ? text.slice(0, 33) + "…" : text);
  };
  groups.forEach(([a, b, g]) => {
    const point = add("circle", { cx: across.place(a), cy: up.place(b), r: 6, style: `fill:${fill(g)}` });
    const title = document.createElementNS(NS, "title");
    title.textContent = `${data.groups[g].name}: ${short(a)}, ${short(b)}`;
    point.append(title);
    name(a, b, data.groups[g].name, {});
  });
  shown.forEach(([a, b, i]) => { add("circle", { class: "baseline", cx: across.place(a), cy: up.place(b), r: 5 }); name(a, b, data.baselines[i].name, { class: "tick" }); });
  trade("plot").replaceChildren(svg);
}
