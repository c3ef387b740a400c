// ---- colors ----------------------------------------------------------------------------------------------------------

// A canvas and a saved picture know no variables of the style. `light-dark(a, b)` is the color by day and by night.
const darkness = matchMedia("(prefers-color-scheme: dark)");
function shade(name, isDark) {
  const value = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const both = value.match(/^light-dark\(([^,]+),\s*([^)]+)\)$/);
  return both ? both[isDark ? 2 : 1].trim() : value;
}
// Charts call the result for the color of now; pictures for papers pass `false`.
const color = name => Object.assign((...given) => shade(name, typeof given[0] === "boolean" ? given[0] : darkness.matches), { variable: `var(--${name})` });
// A color for the picture of a paper: from the style, a plain one, or a function of both.
const onPaper = value => typeof value === "function" ? value(false) : value;

// ---- elements and files ------------------------------------------------------------------------------------------------

const NS = "http://www.w3.org/2000/svg";
function make(tag, text, parent, className) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  parent?.append(element);
  return element;
}
function draw(tag, attributes, parent, text) {
  const element = document.createElementNS(NS, tag);
  for (const key in attributes) if (attributes[key] != null) element.setAttribute(key, attributes[key]);
  if (text != null) element.textContent = text;
  parent?.append(element);
  return element;
}
const significant = (x, digits = 4) => x == null || Number.isNaN(x) ? "" : x.toLocaleString("en", { maximumSignificantDigits: digits });
const fileName = text => (document.title.split(" · ")[0] + "-" + text).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
function save(name, text, type) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
const csv = rows => rows.map(row => row.map(cell => {
  const text = cell == null ? "" : String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(",")).join("\r\n") + "\r\n";

// Buttons that save a chart, a table or a plan: `svg()` gives an element, `rows()` the lines of a CSV file. Self-tests read `saved`.
const saved = [];
// With `label`, they say what they save where several stand together.
function tools(parent, name, { svg, rows }, label) {
  const box = make("span", label ? `${label} ` : "", parent, "tools");
  const button = (format, save) => {
    const one = make("button", format, box);
    one.type = "button";
    one.title = `Save as ${format}`;
    one.setAttribute("aria-label", `${format}: save ${name}`);
    one.onclick = save;
  };
  const text = () => new XMLSerializer().serializeToString(svg());
  if (svg) button("SVG", () => save(fileName(name) + ".svg", text(), "image/svg+xml"));
  if (rows) button("CSV", () => save(fileName(name) + ".csv", csv(rows()), "text/csv"));
  saved.push({ name, svg: svg && text, csv: rows && (() => csv(rows())), box });
  return box;
}

// ---- pictures for papers -----------------------------------------------------------------------------------------------

// Two columns of a paper are 170 mm wide; text is 8 pt.
const PAPER_MM = 170, PAPER_PT = 482, FONT = "Helvetica, Arial, sans-serif";
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size = 8) {
  ruler.font = `${size}px ${FONT}`;
  return ruler.measureText(text).width;
}
const paper = height => draw("svg", { xmlns: NS, width: `${PAPER_MM}mm`, height: `${(height * PAPER_MM / PAPER_PT).toFixed(1)}mm`,
  viewBox: `0 0 ${PAPER_PT} ${height.toFixed(1)}`, "font-family": FONT, "font-size": 8 });

// A drawing of the page as it is, by day, with its style written into it.
const STYLE = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity",
  "visibility", "font-size", "font-weight", "text-anchor", "paint-order"];
function paperCopy(picture) {
  const root = document.documentElement;
  root.style.colorScheme = "light";
  const copy = picture.cloneNode(true), all = [...picture.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(all[i]);
    for (const name of STYLE) element.setAttribute(name, style.getPropertyValue(name));
    ["style", "class"].forEach(name => element.removeAttribute(name));
  });
  root.style.colorScheme = "";
  const { width, height } = picture.viewBox.baseVal?.width ? picture.viewBox.baseVal : picture.getBoundingClientRect();
  for (const name of ["style", "class", "role", "tabindex"]) copy.removeAttribute(name);
  Object.entries({ xmlns: NS, width: `${PAPER_MM}mm`, height: `${(height * PAPER_MM / width).toFixed(1)}mm`, viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT }).forEach(([name, value]) => copy.setAttribute(name, value));
  return copy;
}

// ---- tables ----------------------------------------------------------------------------------------------------------

const cellText = cell => [...cell.childNodes].filter(node => node.className !== "sr").map(node => node.textContent.trim()).filter(Boolean);
const tableRows = table => [...table.rows].map(row => [...row.cells].map(cell => cellText(cell).join(" ")));
function tableSvg(table) {
  const shown = cell => getComputedStyle(cell).display !== "none";
  const rows = [...table.rows].map(row => [...row.cells].filter(shown).map(cell => ({ text: cellText(cell).join(" "), best: cell.classList.contains("best") })));
  const n = Math.max(...rows.map(row => row.length)), HIGH = 13;
  const widths = Array.from({ length: n }, (_, i) => 10 + Math.max(...rows.map(row => textWidth(row[i]?.text ?? "") * (row[i]?.best ? 1.08 : 1))));
  const total = widths.reduce((sum, width) => sum + width, 0), wide = Math.max(PAPER_PT, total), extra = (wide - total) / n;
  const picture = paper(rows.length * HIGH + 6);
  picture.setAttribute("viewBox", `0 0 ${wide.toFixed(1)} ${rows.length * HIGH + 6}`);
  rows.forEach((row, r) => {
    let x = 0;
    row.forEach(({ text, best }, i) => {
      const right = x + widths[i] + extra;
      draw("text", { x: i ? right - 4 : x + 2, y: r * HIGH + 11, "text-anchor": i ? "end" : "start", "font-weight": best ? 700 : null }, picture, text);
      x = right;
    });
    if (r < 1 || r === rows.length - 1) draw("path", { d: `M0 ${(r + 1) * HIGH + 2}H${wide.toFixed(1)}`, stroke: "#000", "stroke-width": 0.6 }, picture);
  });
  return picture;
}

// A box that scrolls says so, and can be scrolled by keyboard.
function scrolls(box) {
  const scroll = box.querySelector(".scroll"), hint = make("span", "This table scrolls sideways.", null, "wide");
  box.prepend(hint);
  const update = () => {
    const left = scroll.scrollLeft, most = scroll.scrollWidth - scroll.clientWidth;
    box.classList.toggle("left", left > 1);
    box.classList.toggle("right", left < most - 1);
    // Only what scrolls takes the focus.
    if (most > 1) scroll.tabIndex = 0; else scroll.removeAttribute("tabindex");
  };
  scroll.addEventListener("scroll", update);
  new ResizeObserver(update).observe(scroll);
  update();
}
document.querySelectorAll(".table").forEach(box => {
  const table = box.querySelector("table"), name = box.dataset.name, bar = make("div", "", null, "tools");
  box.prepend(bar);
  const n = table.querySelectorAll("thead .more").length;
  if (n) {
    const fold = make("button", "", bar), rest = `${n} more controller${n > 1 ? "s" : ""}`;
    fold.type = "button";
    const set = isFolded => {
      table.classList.toggle("folded", isFolded);
      fold.textContent = isFolded ? `Show ${rest}` : `Hide ${rest}`;
      fold.setAttribute("aria-expanded", String(!isFolded));
    };
    fold.onclick = () => { set(!table.classList.contains("folded")); box.querySelector(".scroll").dispatchEvent(new Event("scroll")); };
    set(true);
  }
  tools(bar, name, { svg: () => tableSvg(table), rows: () => tableRows(table) });
  scrolls(box);
});
