// Maps of numbers: small ones as SVG with labels, large ones on a canvas; both with tooltips and arrow keys.
"use strict";
(() => {
  const { el, svg, say, short, visible, number, signed } = Loom;
  const CELL = 20;
  const LETTER = 7.3;
  const LABELLED = 60;
  const FAINT = 0.004;
  const drawn = new Set(); // canvases, to draw again when the colours of the page change

  const width = (text) => Loom.sum([...text].map((c) => (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(c) ? 2 : 1)));

  // `map`: { values, shape: [rows, columns], step, largest }; `signed`: blue and orange, else one colour.
  Loom.map = (map, rows, columns, options = {}) => {
    const [down, across] = map.shape;
    if (!down || !across) return el("p", { class: "muted" }, "–");
    const largest = options.largest || map.largest || 1;
    const labels = [blocks(rows, down, map.step), blocks(columns, across, map.step)];
    const settings = { ...options, largest, value: options.value || (options.signed ? signed : number) };
    const small = down <= LABELLED && across <= LABELLED;
    const picture = small ? drawing(map, ...labels, settings) : canvas(map, ...labels, settings);
    const note = map.step > 1 ? el("p", { class: "muted" }, say("blocks", { step: map.step })) : null;
    return el("div", {}, picture, note);
  };

  // Names of the tokens, or of the first and last of each block of them.
  function blocks(labels, count, step) {
    if (step <= 1) return labels;
    return Array.from({ length: count }, (_, n) => {
      const last = Math.min(labels.length, (n + 1) * step) - 1;
      return `${n * step + 1}–${last + 1} ${short(labels[n * step] || "", 10)} … ${short(labels[last] || "", 10)}`;
    });
  }

  function content(map, rows, columns, settings, r, c) {
    const value = map.values[r * map.shape[1] + c];
    const said = settings.about ? settings.about(r, c, value) : null;
    return said || [Loom.strong(settings.value(value)), Loom.line(`${visible(rows[r] || "")} ← ${visible(columns[c] || "")}`)];
  }

  function drawing(map, rows, columns, settings) {
    const [down, across] = map.shape;
    const beside = rows.map((label) => short(label));
    const above = columns.map((label) => short(label));
    const left = 14 + LETTER * Math.max(...beside.map(width));
    const top = 12 + 0.87 * LETTER * Math.max(...above.map(width));
    const right = 14 + 0.5 * LETTER * Math.max(...above.map(width));
    const size = [left + CELL * across + right, top + CELL * down + 6];
    const picture = svg("svg", { width: size[0].toFixed(0), height: size[1].toFixed(0), viewBox: `0 0 ${size[0].toFixed(0)} ${size[1].toFixed(0)}`, role: "img", "aria-label": settings.title || "" });
    picture.append(svg("rect", { class: "field", x: left, y: top, width: CELL * across, height: CELL * down }));
    above.forEach((label, n) => picture.append(svg("text", { transform: `translate(${(left + CELL * (n + 0.65)).toFixed(1)} ${(top - 6).toFixed(1)}) rotate(-60)` }, label, svg("title", {}, columns[n]))));
    beside.forEach((label, n) => picture.append(svg("text", { class: settings.pick ? "row link" : "row", x: (left - 7).toFixed(1), y: top + CELL * (n + 0.7), onclick: settings.pick ? () => settings.pick(n) : () => {} }, label, svg("title", {}, rows[n]))));
    for (let r = 0; r < down; r += 1) {
      for (let c = 0; c < across; c += 1) {
        const value = map.values[r * across + c];
        const strength = Math.min(1, Math.abs(value) / settings.largest);
        if (strength >= FAINT) picture.append(svg("rect", { class: settings.signed ? (value > 0 ? "cell for" : "cell against") : "cell", x: left + CELL * c, y: top + CELL * r, width: CELL, height: CELL, "fill-opacity": (strength ** 0.7).toFixed(3) }));
      }
    }
    const frame = svg("rect", { class: "cursor", width: CELL, height: CELL, visibility: "hidden" });
    picture.append(frame);
    const box = el("div", { class: "scroll map", tabindex: "0" }, picture);
    reveal(box, left + CELL * (strongest(map) % across));
    const place = (event) => {
      const seen = picture.getBoundingClientRect();
      return [Math.floor((event.clientY - seen.top - top) / CELL), Math.floor((event.clientX - seen.left - left) / CELL)];
    };
    watch(box, map.shape, place, (r, c) => {
      frame.setAttribute("visibility", r === null ? "hidden" : "visible");
      if (r === null) return loomHide();
      frame.setAttribute("x", left + CELL * c);
      frame.setAttribute("y", top + CELL * r);
      const seen = picture.getBoundingClientRect();
      Loom.show(content(map, rows, columns, settings, r, c), seen.left + left + CELL * (c + 0.5), seen.top + top + CELL * r);
    }, settings.pick);
    return box;
  }

  function canvas(map, rows, columns, settings) {
    const [down, across] = map.shape;
    const cell = Math.max(down * across <= 400000 ? 2 : 1, Math.min(14, Math.floor(1080 / across), Math.floor(760 / down)));
    const tall = down < 12 ? CELL : cell;
    const shape = { width: across, height: down };
    const surface = el("canvas", { ...shape, role: "img", "aria-label": settings.title || "", style: `width:${across * cell}px;height:${down * tall}px` });
    const cursor = el("div", { class: "cursor", hidden: true, style: `width:${Math.max(cell, 3)}px;height:${Math.max(tall, 3)}px` });
    const box = el("div", { class: "scroll map canvas", tabindex: "0" }, el("div", { class: "surface", style: `width:${across * cell}px` }, surface, cursor));
    const paint = () => fill(surface, map, settings);
    drawn.add(paint);
    paint();
    const place = (event) => {
      const seen = surface.getBoundingClientRect();
      return [Math.floor((event.clientY - seen.top) / tall), Math.floor((event.clientX - seen.left) / cell)];
    };
    watch(box, map.shape, place, (r, c) => {
      cursor.hidden = r === null;
      if (r === null) return loomHide();
      cursor.style.left = `${c * cell}px`;
      cursor.style.top = `${r * tall}px`;
      const seen = surface.getBoundingClientRect();
      Loom.show(content(map, rows, columns, settings, r, c), seen.left + (c + 0.5) * cell, seen.top + r * tall);
    }, settings.pick);
    return box;
  }

  const strongest = (map) => map.values.reduce((best, value, n) => (Math.abs(value) > Math.abs(map.values[best]) ? n : best), 0);

  // Of a map wider than its box, the part with the strongest cell is shown first.
  const reveal = (box, x) => requestAnimationFrame(() => { if (x + CELL > box.clientWidth) box.scrollLeft = x + 2 * CELL - box.clientWidth; });

  const loomHide = () => Loom.hide();

  function fill(surface, map, settings) {
    const [down, across] = map.shape;
    const style = getComputedStyle(document.documentElement);
    const parts = (name) => rgb(style.getPropertyValue(name).trim());
    const base = parts("--card");
    const up = parts(settings.signed ? "--hue-0" : "--heat");
    const low = parts("--hue-1");
    const context = surface.getContext("2d");
    const image = context.createImageData(across, down);
    for (let n = 0; n < map.values.length; n += 1) {
      const strength = Math.min(1, Math.abs(map.values[n]) / settings.largest) ** (settings.gamma || 0.6);
      const hue = settings.signed && map.values[n] < 0 ? low : up;
      for (let k = 0; k < 3; k += 1) image.data[4 * n + k] = base[k] + (hue[k] - base[k]) * strength;
      image.data[4 * n + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

  // Calls `look(row, column)` for the cell under the pointer or the arrow keys; `look(null)` when it is left.
  function watch(box, [down, across], place, look, pick) {
    let at = [0, 0];
    const go = ([r, c]) => {
      if (r < 0 || c < 0 || r >= down || c >= across) return look(null);
      at = [r, c];
      return look(r, c);
    };
    box.addEventListener("mousemove", (event) => go(place(event)));
    box.addEventListener("mouseleave", () => look(null));
    box.addEventListener("blur", () => look(null));
    box.addEventListener("click", (event) => {
      const found = place(event);
      go(found);
      if (pick && found[0] >= 0 && found[0] < down) pick(found[0]);
    });
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (pick && event.key === "Enter") pick(at[0]);
      if (!step) return;
      event.preventDefault();
      go([Math.min(down - 1, Math.max(0, at[0] + step[0])), Math.min(across - 1, Math.max(0, at[1] + step[1]))]);
    });
  }

  // A small picture of a map without labels.
  Loom.thumbnail = (map, options = {}) => {
    const surface = el("canvas", { width: map.shape[1], height: map.shape[0] });
    const settings = { ...options, largest: map.largest || 1 };
    const paint = () => fill(surface, map, settings);
    drawn.add(paint);
    paint();
    return surface;
  };

  Loom.repaint = () => { for (const paint of drawn) paint(); };
  Loom.forget = () => drawn.clear();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", Loom.repaint);
})();
