// Two metrics of every group and baseline. The front joins the groups that no other group beats in both.
const trade = id => document.getElementById("trade-" + id);
const figures = data.figures;
let tradeRows = () => [];
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
  tools(document.querySelector("#trade-off .row"), "two metrics", { svg: () => paperCopy(trade("plot").firstChild), rows: () => tradeRows() });
  new ResizeObserver(drawTradeOff).observe(trade("plot"));
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
  const WIDE = Math.max(300, trade("plot").clientWidth), HIGH = 420, LEFT = WIDE < 600 ? 76 : 108, BOTTOM = 48, RIGHT = WIDE < 600 ? 14 : 150, TOP = 14;
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
  const short = value => significant(value || 0), better = figure => figure.more ? "more is better" : "less is better";
  const says = points => points.map(([a, b, name]) => `${name}: ${short(a)}, ${short(b)}`).join("; ");
  const label = `${x.label} (${better(x)}) and ${y.label} (${better(y)}). ${says(groups.map(([a, b, g]) => [a, b, data.groups[g].name]))}`;
  const svg = draw("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": label });
  const add = (tag, attributes, text) => draw(tag, attributes, svg, text);
  for (const tick of across.ticks) {
    add("line", { class: "rule", x1: across.place(tick), x2: across.place(tick), y1: TOP, y2: HIGH - BOTTOM });
    add("text", { class: "tick", x: across.place(tick), y: HIGH - BOTTOM + 18, "text-anchor": "middle" }, short(tick));
  }
  for (const tick of up.ticks) {
    add("line", { class: "rule", x1: LEFT, x2: WIDE - RIGHT, y1: up.place(tick), y2: up.place(tick) });
    add("text", { class: "tick", x: LEFT - 8, y: up.place(tick) + 4, "text-anchor": "end" }, short(tick));
  }
  add("text", { x: (LEFT + WIDE - RIGHT) / 2, y: HIGH - 8, "text-anchor": "middle" }, `${x.label} (${better(x)})`);
  add("text", { transform: `translate(14 ${(TOP + HIGH - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${y.label} (${better(y)})`);
  add("polyline", { class: "front", points: frontOf(x, y).map(p => `${across.place(p[0])},${up.place(p[1])}`).join(" ") });
  const fill = group => `var(--c${group % COLORS})`;
  seeds.forEach(([a, b, g]) => add("circle", { cx: across.place(a), cy: up.place(b), r: 2.5, style: `fill:${fill(g)};opacity:.55` }));
  // Names stand apart where points are close, and to the left of a point where the right has no room.
  const taken = [];
  ruler.font = '12.5px system-ui, "DejaVu Sans", sans-serif';
  const name = (a, b, text, extra) => {
    let at = up.place(b) + 4;
    const wide = ruler.measureText(text).width, x = across.place(a), isLeft = x + 10 + wide > WIDE;
    const [left, right] = isLeft ? [x - 10 - wide, x - 10] : [x + 10, x + 10 + wide];
    while (taken.some(([l, r, t]) => Math.abs(t - at) < 14 && l < right && left < r)) at += 14;
    taken.push([left, right, at]);
    add("text", { x: isLeft ? right : left, y: at, "text-anchor": isLeft ? "end" : "start", ...extra }, text);
  };
  groups.forEach(([a, b, g]) => {
    const point = add("path", { d: shapePath(g, across.place(a), up.place(b), 6), style: `fill:${fill(g)}` });
    draw("title", {}, point, `${data.groups[g].name}: ${short(a)}, ${short(b)}`);
    name(a, b, data.groups[g].name, {});
  });
  shown.forEach(([a, b, i]) => { add("circle", { class: "baseline", cx: across.place(a), cy: up.place(b), r: 5 }); name(a, b, data.baselines[i].name, { class: "tick" }); });
  trade("plot").replaceChildren(svg);
  tradeRows = () => [["name", x.label, y.label], ...groups.map(([a, b, g]) => [data.groups[g].name, a, b]), ...baselines.map(([a, b, i]) => [data.baselines[i].name, a, b])];
}
