// Looks for text that overflows or overlaps, and tells the page around this one.
(() => {
  const failures = [], near = 1.5;
  const shown = element => {
    const style = getComputedStyle(element), { width, height } = element.getBoundingClientRect();
    return style.visibility !== "hidden" && style.display !== "none" && style.opacity !== "0" && width > 1 && height > 1;
  };
  const name = element => `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> “${element.textContent.trim().slice(0, 40)}”`;
  // Boxes that scroll hide what is beside them, and say so.
  const scrolls = element => element.closest(".scroll, .list, pre, .map, .sr, option");
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth + near) failures.push(`the page is ${root.scrollWidth} wide in a window of ${innerWidth}`);
  // On paper nothing scrolls: what is wider than the page is lost.
  document.querySelectorAll(".print table, .print svg, .map svg, .gantt, canvas").forEach(element => {
    const { right } = element.getBoundingClientRect();
    if (shown(element) && !(element.closest(".map") && getComputedStyle(element.closest(".map")).overflowX === "auto") && right > innerWidth + near)
      failures.push(`${element.tagName} ends at ${right.toFixed(0)} of ${innerWidth}`);
  });
  const own = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  const all = [...document.querySelectorAll("main *")].filter(element => own(element) && shown(element) && !scrolls(element));
  for (const element of all) {
    const { left, right } = element.getBoundingClientRect();
    if (left < -near || right > innerWidth + near) failures.push(`${name(element)} is outside of the window: ${left.toFixed(0)} to ${right.toFixed(0)}`);
    if (getComputedStyle(element).overflowX === "hidden" && element.scrollWidth > element.clientWidth + near) failures.push(`${name(element)} is cut`);
  }
  // A table that scrolls says that it does.
  document.querySelectorAll(".table").forEach(box => {
    const scroll = box.querySelector(".scroll"), hint = box.querySelector(".wide");
    if (shown(scroll) && scroll.scrollWidth > scroll.clientWidth + near && !shown(hint)) failures.push(`the table ${box.dataset.name} scrolls and does not say so`);
  });
  const overlap = (texts, where) => {
    const boxes = texts.map(element => [element, element.getBoundingClientRect()]);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left), tall = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > near && tall > 3 && !a.contains(b) && !b.contains(a)) failures.push(`${where}: ${name(a)} lies on ${name(b)}`);
    }));
  };
  // Names and ticks of drawings; numbers within marks move with them.
  document.querySelectorAll("svg").forEach(svg => {
    const texts = [...svg.querySelectorAll("text")].filter(text => shown(text) && text.textContent.trim() && !text.closest(".user, .held, .crew"));
    overlap(texts, svg.getAttribute("aria-label") ?? "a drawing");
  });
  document.querySelectorAll("figure").forEach(figure => overlap([...figure.querySelectorAll("figcaption > *, ul.legend > li, .plot, .says, .body, .table")].filter(shown), "a figure"));
  // Every chart and table can be saved, and every chart is described.
  for (const { name, svg, csv } of saved) {
    if (!(svg && svg().includes("<svg"))) failures.push(`${name} has no SVG`);
    if (csv && csv().split("\r\n").length < 3) failures.push(`${name} has an empty CSV`);
  }
  if (document.querySelectorAll("figure").length > saved.length) failures.push("a chart cannot be saved");
  document.querySelectorAll(".plot").forEach(plot => {
    if (!document.getElementById(plot.getAttribute("aria-describedby"))?.textContent.includes(":")) failures.push("a chart has no summary");
  });
  parent.postMessage({ width: innerWidth, failures, isDark: matchMedia("(prefers-color-scheme: dark)").matches, saved: saved.length }, "*");
})();
