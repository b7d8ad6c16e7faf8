// Line charts as SVG, with a legend and the values under the pointer.
"use strict";
(() => {
  const { el, svg, number } = Loom;
  const [TALL, LEFT, RIGHT, TOP, BOTTOM] = [260, 62, 12, 10, 38];
  const LABEL = 64; // room of a label below the axis

  // Drawn about as wide as it is shown, so that its letters keep their size: on a phone, or beside another run.
  const size = (options) => (window.innerWidth < 700 ? 400 : Loom.data.runs.length === 2 && !Loom.data.worst && !options.whole ? 560 : 900);

  // `series`: [{ name, y, x, dots, quiet }]; `options`: titles x and y, `log`, `labels` of the places, `low`, `high`, `whole`: as
  // wide as the page, also of two runs.
  Loom.chart = (series, options = {}) => {
    const wide = size(options);
    const log = options.log && series.some((one) => one.y.some((value) => value > 0));
    const usable = (value) => value !== null && Number.isFinite(value) && (!log || value > 0);
    const scale = (value) => (log ? Math.log10(value) : value);
    const values = series.flatMap((one) => one.y.filter(usable).map(scale));
    const places = series.flatMap((one) => one.y.map((_, n) => (one.x ? one.x[n] : n)));
    if (!values.length) return el("p", { class: "muted" }, "–");
    let [low, high] = [options.low ?? Math.min(...values), options.high ?? Math.max(...values)];
    const short = (low === high ? 1 : 0.1 * Math.abs(high) * !log) - (high - low);  // values that hardly differ look it
    if (short > 0) [low, high] = [low - short / 2, high + short / 2];
    const [first, last] = [Math.min(...places), Math.max(...places)];
    const x = (place) => LEFT + ((wide - LEFT - RIGHT) * (place - first)) / Math.max(1e-9, last - first);
    const y = (value) => TOP + ((TALL - TOP - BOTTOM) * (high - scale(value))) / (high - low);
    const picture = svg("svg", { class: "chart", viewBox: `0 0 ${wide} ${TALL}`, role: "img", "aria-label": options.title || options.y || "" });
    for (const tick of ticks(low, high, log)) {
      const at = TOP + ((TALL - TOP - BOTTOM) * (high - tick)) / (high - low);
      picture.append(svg("path", { class: "grid", d: `M${LEFT} ${at.toFixed(1)}H${wide - RIGHT}` }));
      picture.append(svg("text", { class: "end", x: LEFT - 7, y: (at + 4).toFixed(1) }, log ? power(tick) : number(tick)));
    }
    horizontal(picture, options, first, last, x, wide);
    if (options.diagonal) picture.append(svg("path", { class: "grid strong", d: `M${x(first)} ${y(first)}L${x(last)} ${y(last)}` }));
    series.forEach((one, n) => {
      let [path, pen] = ["", "M"];
      one.y.forEach((value, k) => {
        if (!usable(value)) { pen = "M"; return; }
        path += `${pen}${x(one.x ? one.x[k] : k).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
        if (one.dots) picture.append(svg("circle", { class: `dot hue-${n % 7}`, cx: x(one.x ? one.x[k] : k), cy: y(value), r: 4 }));
      });
      picture.append(svg("path", { class: `line hue-${n % 7}`, d: path }));
    });
    const rule = svg("path", { class: "rule", visibility: "hidden" });
    picture.append(rule);
    follow(picture, rule, series, options, first, last, x, wide);
    const legend = (series.length > 1 || options.legend) && !options.single ? el("div", { class: "legend" }, series.map((one, n) => el("span", { class: `hue-${n % 7}` }, one.name))) : null;
    return el("div", { class: "plot" }, legend, picture);
  };

  function horizontal(picture, options, first, last, x, wide) {
    const labels = options.labels;
    if (labels) {
      const step = Math.max(1, Math.ceil((last - first + 1) / Math.floor(wide / LABEL)));
      for (let n = Math.ceil(first); n <= last; n += step) {
        picture.append(svg("text", { class: "middle", x: x(n).toFixed(1), y: TALL - 20 }, Loom.short(labels[n] ?? "", 8)));
      }
    } else {
      for (const tick of ticks(first, last, false)) picture.append(svg("text", { class: "middle", x: x(tick).toFixed(1), y: TALL - 20 }, number(tick)));
    }
    if (options.x) picture.append(svg("text", { class: "end soft", x: wide - RIGHT, y: TALL - 4 }, options.x));
    if (options.y) picture.append(svg("text", { class: "soft", x: LEFT, y: TALL - 4 }, `↑ ${options.y}`));
  }

  function follow(picture, rule, series, options, first, last, x, wide) {
    const at = (event) => {
      const box = picture.getBoundingClientRect();
      const share = ((event.clientX - box.left) / box.width) * wide;
      return Math.round(first + ((share - LEFT) / (wide - LEFT - RIGHT)) * (last - first));
    };
    const look = (event) => {
      if (options.diagonal) return;
      const place = at(event);
      if (place < first || place > last) { leave(); return; }
      rule.setAttribute("visibility", "visible");
      rule.setAttribute("d", `M${x(place)} ${TOP}V${TALL - BOTTOM}`);
      const box = picture.getBoundingClientRect();
      const label = options.labels ? Loom.visible(options.labels[place] ?? "") : `${options.x || ""} ${place}`;
      const rows = series.map((one) => {
        const n = one.x ? nearest(one.x, place) : place;
        return n >= 0 && one.y[n] !== undefined ? Loom.line(`${one.name}: ${number(one.y[n])}`) : null;
      });
      Loom.show([Loom.strong(label), ...rows.filter(Boolean).slice(0, 12)], event.clientX, box.top + 20);
    };
    const leave = () => { rule.setAttribute("visibility", "hidden"); Loom.hide(); };
    picture.addEventListener("mousemove", look);
    picture.addEventListener("click", look);
    picture.addEventListener("mouseleave", leave);
  }

  const nearest = (places, wanted) => places.reduce((best, place, n) => (Math.abs(place - wanted) < Math.abs(places[best] - wanted) ? n : best), 0);
  const power = (tick) => (Number.isInteger(tick) && Math.abs(tick) > 2 ? `1e${tick}`.replace("-", "−") : number(10 ** tick, 2));

  // Powers of ten; where there are few, also two and five times those.
  function decades(low, high) {
    const many = high - low > 2;
    const every = Math.max(1, Math.ceil((high - low) / 7));
    const found = [];
    for (let n = Math.floor(low); n <= Math.ceil(high); n += 1) {
      if (n % every === 0) found.push(...(many ? [n] : [1, 2, 5].map((k) => n + Math.log10(k))));
    }
    return found.filter((tick) => tick >= low && tick <= high);
  }

  function ticks(low, high, log) {
    if (log) return decades(low, high);
    const rough = (high - low) / 5;
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * base).find((size) => size >= rough);
    const found = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) found.push(Math.abs(tick) < 1e-12 * step ? 0 : tick);
    return found;
  }
})();
