const width = () => document.body.clientWidth - 48;
const plots = [];
// A canvas knows no variables of the style.
const color = name => () => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const axis = { labelSize: 22, stroke: color("soft"), grid: { stroke: color("grid") }, ticks: { stroke: color("line") } };
const axes = (x, y) => [{ ...axis, label: x }, { ...axis, label: y, size: 64 }];
const line = (label, color, extra) => Object.assign(
  { label, stroke: color, width: 1.5, points: { show: false }, value: (u, v) => v == null ? "–" : v.toPrecision(4) }, extra);
function plot(id, options, columns) {
  const target = document.getElementById(id);
  plots.push(new uPlot(Object.assign({ width: target.clientWidth || width(), scales: { x: { time: false } } }, options), columns, target));
}
addEventListener("resize", () => plots.forEach(p => p.setSize({ width: p.root.parentElement.clientWidth || width(), height: p.height })));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(p => p.redraw()));
