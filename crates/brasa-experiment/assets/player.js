// The player of an episode. Each picture is the area in which it differs from the one before; `video/clip.rs` describes the bytes.
if (data.episode_player) (async () => {
  const box = document.getElementById("episode-player"), { width, height, scale, seconds, colors, steps, returns, pictures } = data.episode_player;
  let stream;
  try {
    const packed = new Blob([Uint8Array.from(atob(pictures), letter => letter.charCodeAt(0))]);
    stream = new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  } catch {
    make("p", "This browser cannot decompress the pictures.", box);
    return;
  }
  const canvas = make("canvas", "", box), context = canvas.getContext("2d");
  Object.assign(canvas, { width, height, tabIndex: 0 });
  canvas.style.width = `${width * scale}px`;
  canvas.setAttribute("role", "img");

  // ---- pictures ----
  const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer), bytes = new DataView(stream.buffer);
  const table = new Uint8Array(4 * colors).fill(255), first = stream.length - 3 * colors;
  for (let i = 0; i < 3 * colors; i++) table[4 * Math.floor(i / 3) + i % 3] = stream[first + i];
  const colorOf = new Uint32Array(table.buffer);
  // Copies of some pictures, from which the ones after them are made.
  const EVERY = 50, copies = [];
  let made = -1, offset = 0;
  function makeNext() {
    const [left, top, wide, high] = [0, 2, 4, 6].map(i => bytes.getUint16(offset + i, true));
    offset += 8;
    for (let y = top; y < top + high; y++)
      for (let i = y * width + left, end = i + wide; i < end; i++) {
        const byte = stream[offset++];
        pixels[i] = colorOf[byte < 192 ? byte : 192 + 256 * (byte - 192) + stream[offset++]];
      }
    made++;
    if (made % EVERY === 0) copies[made / EVERY] ??= { offset, pixels: pixels.slice() };
  }
  function makePicture(i) {
    const at = Math.min(Math.floor(i / EVERY), copies.length - 1);
    if (i < made || at * EVERY > made) {
      made = at * EVERY;
      offset = copies[at].offset;
      pixels.set(copies[at].pixels);
    }
    while (made < i) makeNext();
    context.putImageData(image, 0, 0);
  }

  // ---- controls ----
  const row = make("div", "", box, "row"), last = steps.length - 1;
  const play = make("button", "Play", row);
  play.type = "button";
  const slider = make("input", "", row);
  Object.assign(slider, { type: "range", min: 0, max: last, value: 0 });
  slider.setAttribute("aria-label", "step");
  const label = make("label", "speed ", row), speed = make("select", "", label);
  for (const factor of [0.25, 0.5, 1, 2, 4, 8]) speed.add(new Option(`${factor}×`, factor, factor === 1, factor === 1));
  const where = make("span", "", row, "where");
  make("p", "Space plays and pauses. The arrow keys move by a picture, Home and End to the first and the last one.", box, "hint");
  const status = make("p", "", box, "sr");
  status.setAttribute("role", "status");

  let shown = 0, clock = 0, before = null;
  const text = () => `step ${steps[shown].toLocaleString("en")} of ${steps[last].toLocaleString("en")}, return ${significant(returns[shown], 5)}`;
  function show(i) {
    shown = Math.max(0, Math.min(last, i));
    makePicture(shown);
    slider.value = shown;
    slider.setAttribute("aria-valuetext", text());
    canvas.setAttribute("aria-label", `Picture of the episode: ${text()}`);
    where.textContent = text();
  }
  const isPlaying = () => before !== null;
  function pause() {
    before = null;
    play.textContent = "Play";
    status.textContent = `Paused at ${text()}`;
  }
  function frame(now) {
    if (!isPlaying()) return;
    // A hidden page does not catch up.
    clock += Math.min((now - before) / 1000, 0.25) * speed.value;
    before = now;
    let i = shown;
    while (i < last && steps[i + 1] * seconds <= clock) i++;
    if (i !== shown) show(i);
    if (shown === last) pause(); else requestAnimationFrame(frame);
  }
  function toggle() {
    if (isPlaying()) return pause();
    if (shown === last) show(0);
    clock = steps[shown] * seconds;
    before = performance.now();
    play.textContent = "Pause";
    status.textContent = "Playing";
    requestAnimationFrame(frame);
  }
  function seek(i) {
    if (isPlaying()) pause();
    show(i);
  }
  play.onclick = toggle;
  slider.oninput = () => seek(Number(slider.value));
  box.addEventListener("keydown", event => {
    const isOurs = event.target === canvas || event.target === slider;
    if (!isOurs || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = { ArrowLeft: shown - 1, ArrowDown: shown - 1, ArrowRight: shown + 1, ArrowUp: shown + 1, PageDown: shown - 10, PageUp: shown + 10, Home: 0, End: last };
    if (event.key === " ") toggle();
    else if (event.key in to) seek(to[event.key]);
    else return;
    event.preventDefault();
  });
  show(0);
  // A link such as `report.html#step=120` shows the picture of this step.
  const linked = location.hash.match(/^#step=(\d+)$/);
  if (linked) show(steps.findLastIndex(step => step <= Number(linked[1])));
})();
