// Heat maps on a canvas. A value is two hexadecimal digits: 0 to 254 from the lowest to the highest, 255 for none.
const decoded = text => Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.substr(2 * i, 2), 16));
const make = (tag, text, parent, className) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  parent?.append(element);
  return element;
};
// Zero is transparent, more is more opaque; the sign chooses the color.
const POSITIVE = [217, 72, 15], NEGATIVE = [28, 126, 214];
const heats = [];

// `at(row, column)` is the index of a cell in `codes`; `say(row, column, value)` describes it.
function heat(parent, { title, codes, rows, columns, at, low, high, unit, say, side, foot, height, present }) {
  const box = make("div", "", parent, "heat"), head = make("div", "", box, "row");
  make("strong", title, head);
  const key = make("span", "", head), output = make("output", "", head);
  const short = x => x.toLocaleString("en", { maximumSignificantDigits: 3 });
  const value = code => low + (high - low) * code / 254;
  const isSigned = codes.some(code => code < 255 && value(code) < -0.01 * high);
  const bar = make("span", "", null, "key");
  const rgb = ([r, g, b], alpha) => `rgba(${r},${g},${b},${alpha})`;
  bar.style.background = isSigned
    ? `linear-gradient(90deg, ${rgb(NEGATIVE, 1)}, ${rgb(NEGATIVE, 0)} 50%, ${rgb(POSITIVE, 0)} 50%, ${rgb(POSITIVE, 1)})`
    : `linear-gradient(90deg, ${rgb(POSITIVE, 0)}, ${rgb(POSITIVE, 1)})`;
  key.append(`${isSigned ? short(low) : 0} `, bar, ` ${short(high)} ${unit}`);
  const body = make("div", "", box, "body"), sides = make("div", "", body, "side");
  side.forEach(text => make("span", text, sides));
  const canvas = make("canvas", "", body);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", title);
  const feet = make("div", "", body, "foot");
  foot.forEach(text => make("span", text, feet));
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const code = codes[at(row, column)], cell = 4 * (row * columns + column);
    if (code === undefined || code === 255) continue;
    const x = value(code), [r, g, b] = x < 0 ? NEGATIVE : POSITIVE;
    const strength = high > 0 ? Math.min(1, Math.abs(x) / high) : 0;
    // A vehicle that waits is not an empty place.
    const alpha = present ? 0.18 + 0.82 * strength : strength;
    image.data.set([r, g, b, 255 * alpha], cell);
    if (present && strength < 0.02) image.data.set([134, 142, 150, 90], cell);
  }
  context.putImageData(image, 0, 0);
  canvas.onmousemove = event => {
    const row = Math.floor(event.offsetY / canvas.clientHeight * rows), column = Math.floor(event.offsetX / canvas.clientWidth * columns);
    const code = codes[at(row, column)];
    output.textContent = code === undefined ? "" : say(row, column) + ": " + (code === 255 ? "no vehicle" : `${short(value(code))} ${unit}`);
  };
  canvas.onmouseleave = () => output.textContent = "";
}
