// Heat maps on a canvas. A value is two hexadecimal digits: 0 to 254 from the lowest to the highest, 255 for none.
const decoded = text => Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.substr(2 * i, 2), 16));
// Zero is transparent, more is more opaque; the sign chooses the color. Orange and blue differ for the color-blind too.
const channels = name => color(name)().match(/[0-9a-f]{2}/gi).map(pair => parseInt(pair, 16));
const WAITS = [134, 142, 150];

// `at(row, column)` is the index of a cell in `codes`; `say(row, column)` describes its time, `none` a cell without a value, `rowName` and
// `columnName` the cells of a file.
function heat(parent, { title, codes, rows, columns, at, low, high, unit, say, side, foot, height, present, none, rowName, columnName }) {
  const figure = make("figure", "", parent, "heat"), head = make("figcaption", "", figure);
  make("strong", title, head);
  const line = make("div", "", figure, "says"), key = make("span", "", line), output = make("output", "", line);
  const short = x => significant(x, 3), value = code => low + (high - low) * code / 254;
  const known = [...codes].filter(code => code < 255).map(value);
  const isSigned = known.some(x => x < -0.01 * high);
  const bar = make("span", "", null, "key");
  const body = make("div", "", figure, "body"), sides = make("div", "", body, "side");
  side.forEach(text => make("span", text, sides));
  const canvas = make("canvas", "", body), feet = make("div", "", body, "foot");
  foot.forEach(text => make("span", text, feet));
  const mean = known.reduce((sum, x) => sum + x, 0) / Math.max(known.length, 1);
  const summary = `${title}: ${foot[0]} to ${foot[foot.length - 1]}. Between ${short(Math.min(...known, Infinity))} and ${short(Math.max(...known, -Infinity))} ${unit}, mean ${short(mean)} ${unit}.`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", summary);
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.height = height + "px";

  function paint() {
    const positive = channels("c0"), negative = channels("c1");
    const rgb = ([r, g, b], alpha) => `rgba(${r},${g},${b},${alpha})`;
    bar.style.background = isSigned
      ? `linear-gradient(90deg, ${rgb(negative, 1)}, ${rgb(negative, 0)} 50%, ${rgb(positive, 0)} 50%, ${rgb(positive, 1)})`
      : `linear-gradient(90deg, ${rgb(positive, 0)}, ${rgb(positive, 1)})`;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const code = codes[at(row, column)], cell = 4 * (row * columns + column);
      if (code === undefined || code === 255) continue;
      const x = value(code), strength = high > 0 ? Math.min(1, Math.abs(x) / high) : 0;
      // A vehicle that waits is not an empty place.
      const alpha = present ? 0.18 + 0.82 * strength : strength;
      image.data.set([...(x < 0 ? negative : positive), 255 * alpha], cell);
      if (present && strength < 0.02) image.data.set([...WAITS, 110], cell);
    }
    context.putImageData(image, 0, 0);
  }
  key.append(`${isSigned ? short(low) : 0} `, bar, ` ${short(high)} ${unit}`);
  paint();

  const tell = (row, column) => {
    const code = codes[at(row, column)];
    output.textContent = say(row, column) + ": " + (code === undefined || code === 255 ? none : `${short(value(code))} ${unit}`);
  };
  canvas.onmousemove = event => tell(Math.floor(event.offsetY / canvas.clientHeight * rows), Math.floor(event.offsetX / canvas.clientWidth * columns));
  canvas.onmouseleave = () => output.textContent = "";
  // Arrow keys go from cell to cell.
  let [row, column] = [-1, -1];
  body.tabIndex = 0;
  body.setAttribute("role", "group");
  body.setAttribute("aria-label", `${title}. The arrow keys read values.`);
  body.onkeydown = event => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key], far = event.shiftKey ? 10 : 1;
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    row = Math.max(0, Math.min(rows - 1, row < 0 ? 0 : row + far * step[0]));
    column = Math.max(0, Math.min(columns - 1, column < 0 ? 0 : column + far * step[1]));
    tell(row, column);
  };

  // On paper: the cells as a picture, with their scale.
  function svg() {
    const LEFT = 70, TOP = 26, wide = PAPER_PT - LEFT, tall = Math.max(60, Math.min(300, height * wide / Math.max(canvas.clientWidth, 1)));
    const picture = paper(TOP + tall + 14), big = document.createElement("canvas");
    [big.width, big.height] = [columns, rows];
    big.getContext("2d").drawImage(canvas, 0, 0);
    const text = (x, y, content, anchor) => draw("text", { x, y, "text-anchor": anchor, fill: "#22252b" }, picture, content);
    text(0, 9, `${title}, ${isSigned ? short(low) : 0} to ${short(high)} ${unit}`, "start");
    draw("rect", { x: LEFT, y: TOP, width: wide, height: tall, fill: "#f6f7f9" }, picture);
    draw("image", { href: big.toDataURL(), x: LEFT, y: TOP, width: wide, height: tall, preserveAspectRatio: "none", style: "image-rendering:pixelated" }, picture);
    side.forEach((label, i) => text(LEFT - 4, TOP + 7 + (tall - 8) * i / Math.max(side.length - 1, 1), label, "end"));
    foot.forEach((label, i) => text(LEFT + wide * i / Math.max(foot.length - 1, 1), TOP + tall + 10, label, i ? i < foot.length - 1 ? "middle" : "end" : "start"));
    return picture;
  }
  const lines = () => [["", ...Array.from({ length: columns }, (_, column) => columnName(column))], ...Array.from({ length: rows }, (_, r) =>
    [rowName(r), ...Array.from({ length: columns }, (_, c) => { const code = codes[at(r, c)]; return code === undefined || code === 255 ? "" : significant(value(code), 6).replaceAll(",", ""); })])];
  const buttons = tools(head, title, { svg, rows: lines });
  const redraw = () => paint();
  darkness.addEventListener("change", redraw);
  return { destroy() { darkness.removeEventListener("change", redraw); saved.splice(saved.findIndex(one => one.box === buttons), 1); } };
}
