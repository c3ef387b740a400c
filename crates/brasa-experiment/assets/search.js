// The trials of a search: their history, their settings as parallel coordinates, and the importance of each setting.
const { trials, space } = data, COLORS = 8;
const complete = trials.filter(trial => trial.state === "complete" && trial.value != null);
const isBetter = (a, b) => data.more ? a > b : a < b;
document.querySelectorAll(".swatch").forEach(swatch => swatch.style.background = `var(--c${swatch.dataset.group % COLORS})`);

const wholeAxes = (...labels) => axes(...labels).map((axis, i) => i ? axis : { ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] });

// ---- history -----------------------------------------------------------------------------------------------------------

if (trials.some(trial => trial.value != null)) {
  let best = null;
  const soFar = trials.map(trial => {
    if (trial.state === "complete" && trial.value != null && (best == null || isBetter(trial.value, best))) best = trial.value;
    return best;
  });
  const of = state => trials.map(trial => trial.state === state ? trial.value : null);
  const dots = (label, name, shape) => line(label, color(name), { width: 0, shape, paths: () => null });
  plot("history", { title: "History", height: 340, axes: wholeAxes("trial", data.metric), series: [{}, dots("complete", "c1", 0), dots("pruned", "soft", 2),
    line("best so far", color("c0"), { width: 2, shape: null, spanGaps: true })] }, [trials.map(trial => trial.number), of("complete"), of("pruned"), soFar]);
} else {
  document.getElementById("history").textContent = "No trial has a value.";
}

// ---- settings ----------------------------------------------------------------------------------------------------------

const placed = trials.filter(trial => trial.point.length && trial.value != null);
const settingText = (dimension, value) => dimension.choices.length ? dimension.choices[value] : significant(value);
const trialRows = () => [["trial", "state", ...space.map(dimension => dimension.key), data.metric],
  ...placed.map(trial => [trial.number, trial.state, ...trial.point.map((value, i) => settingText(space[i], value)), trial.value])];

function drawParallel() {
  const box = document.getElementById("parallel"), n = space.length + 1, TOP = 56, BOTTOM = 24, HIGH = 380, SIDE = 60;
  const wide = Math.max(box.clientWidth, 2 * SIDE + 84 * (n - 1)), across = i => SIDE + (wide - 2 * SIDE) * i / (n - 1);
  const up = share => HIGH - BOTTOM - (HIGH - BOTTOM - TOP) * share;
  const values = placed.map(trial => trial.value), least = Math.min(...values), most = Math.max(...values);
  const axesOf = [...space, { key: data.metric, low: least, high: most, choices: [] }];
  const share = (axis, value) => {
    const [low, high, at] = axis.log ? [axis.low, axis.high, value].map(Math.log) : [axis.low, axis.high, value];
    return high > low ? (at - low) / (high - low) : 0.5;
  };
  const ranked = [...complete].filter(trial => trial.point.length).sort((a, b) => isBetter(a.value, b.value) ? -1 : 1);
  const good = new Set(ranked.slice(0, Math.ceil(ranked.length / 10)).map(trial => trial.number));
  const label = `Settings of ${placed.length} trials. Best: ${bestText()}`;
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${HIGH}`, width: wide, role: "img", "aria-label": label });
  // The best trials are drawn last.
  const level = trial => trial.number === data.best ? 3 : good.has(trial.number) ? 2 : trial.state === "complete" ? 1 : 0;
  for (const trial of [...placed].sort((a, b) => level(a) - level(b))) {
    const points = [...trial.point, trial.value].map((value, i) => `${across(i).toFixed(1)},${up(share(axesOf[i], value)).toFixed(1)}`);
    const path = draw("polyline", { class: `trial ${["pruned", "", "good", "best"][level(trial)]}`, points: points.join(" ") }, svg);
    draw("title", {}, path, `Trial ${trial.number}: ${data.metric} ${significant(trial.value)}`);
  }
  axesOf.forEach((axis, i) => {
    const x = across(i), add = (attributes, text) => draw("text", { "text-anchor": "middle", x, ...attributes }, svg, text);
    draw("path", { class: "rule", d: `M${x} ${TOP}V${HIGH - BOTTOM}` }, svg);
    // Long names stand at two heights.
    add({ y: i % 2 ? 34 : 16 }, axis.key);
    if (axis.choices.length) axis.choices.forEach((choice, k) => add({ y: up(share(axis, k)) + 4, class: "tick" }, choice));
    else [[axis.low, HIGH - BOTTOM + 16], [axis.high, TOP - 6]].forEach(([value, y]) => add({ y, class: "tick" }, significant(value, 3)));
  });
  box.replaceChildren(svg);
  // Only what scrolls takes the focus.
  if (wide > box.clientWidth + 1) { box.tabIndex = 0; box.setAttribute("role", "region"); box.setAttribute("aria-label", "Settings of the trials"); }
  else ["tabindex", "role", "aria-label"].forEach(name => box.removeAttribute(name));
}
function bestText() {
  const best = trials.find(trial => trial.number === data.best);
  if (!best) return "none";
  return `trial ${best.number} with ${data.metric} ${significant(best.value)}, ${best.point.map((value, i) => `${space[i].key} ${settingText(space[i], value)}`).join(", ")}`;
}
if (placed.length) {
  drawParallel();
  tools(document.querySelector("#settings .row"), "settings", { svg: () => paperCopy(document.querySelector("#parallel svg")), rows: trialRows });
  new ResizeObserver(drawParallel).observe(document.getElementById("parallel"));
} else document.getElementById("settings").hidden = true;

// ---- importance --------------------------------------------------------------------------------------------------------

const known = space.filter(dimension => dimension.importance != null).sort((a, b) => b.importance - a.importance);
function drawImportance() {
  const box = document.getElementById("shares"), ROW = 26, wide = Math.max(280, box.clientWidth);
  ruler.font = '12.5px system-ui, "DejaVu Sans", sans-serif';
  const left = 12 + Math.max(...known.map(dimension => ruler.measureText(dimension.key).width)), most = Math.max(...known.map(dimension => dimension.importance), 1e-9);
  const percent = dimension => `${(100 * dimension.importance).toFixed(0)} %`;
  const label = `Importance. ${known.map(dimension => `${dimension.key}: ${percent(dimension)}`).join("; ")}`;
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${ROW * known.length + 8}`, width: wide, role: "img", "aria-label": label });
  known.forEach((dimension, i) => {
    const y = ROW * i + 4, length = (wide - left - 56) * dimension.importance / Math.max(most, 0.01);
    draw("text", { x: left - 8, y: y + 16, "text-anchor": "end" }, svg, dimension.key);
    draw("rect", { class: "bar", x: left, y: y + 3, width: Math.max(1, length).toFixed(1), height: ROW - 8, rx: 2 }, svg);
    draw("text", { class: "tick", x: left + length + 8, y: y + 16 }, svg, percent(dimension));
  });
  box.replaceChildren(svg);
}
if (known.length) {
  drawImportance();
  tools(document.querySelector("#importance .row"), "importance", { svg: () => paperCopy(document.querySelector("#shares svg")),
    rows: () => [["setting", "share"], ...known.map(dimension => [dimension.key, dimension.importance])] });
  new ResizeObserver(drawImportance).observe(document.getElementById("shares"));
} else document.getElementById("importance").hidden = true;
