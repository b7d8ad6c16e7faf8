// Line charts as SVG: curves, bands of intervals, a legend, and the values at the pointer.
import { el, hideTip, number, showTip, svg } from "./dom.js";

const [TALL, LEFT, RIGHT, TOP, BOTTOM] = [280, 58, 14, 12, 40];

const wide = () => (window.innerWidth < 700 ? 420 : 900);
const usable = (value) => value !== null && value !== undefined && Number.isFinite(value);

// `series`: [{ name, hue, x, y, low, high, thin, dots }]; `options`: titles x and y, `labels` of places, `title`.
export function chart(series, options = {}) {
  const width = wide();
  const shown = series.filter((one) => one.y.some(usable));
  if (!shown.length) return el("p", { class: "muted" }, "–");
  const frame = scale(shown, width);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${TALL}`, role: "img", "aria-label": options.title || options.y || "chart" });
  axes(picture, frame, options, width);
  for (const one of shown) if (one.low) picture.append(band(one, frame));
  for (const one of shown) if (!one.low) picture.append(line(one, frame), ...dots(one, frame));
  follow(picture, shown, frame, options, width);
  const legend = el("div", { class: "legend" }, shown.filter((one) => one.name).map((one) =>
    el("span", { class: `hue-${one.hue % 7}${one.low ? " band" : one.thin ? " thin" : ""}` }, one.name)));
  return el("div", { class: "plot" }, shown.length > 1 ? legend : null, picture);
}

function scale(series, width) {
  const [xs, ys] = [[], []];
  for (const one of series) {
    one.y.forEach((value, n) => {
      if (!usable(value)) return;
      xs.push(one.x ? one.x[n] : n);
      ys.push(value);
      for (const end of [one.low?.[n], one.high?.[n]]) if (usable(end)) ys.push(end);
    });
  }
  const [first, last] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
  let [low, high] = [ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  [low, high] = [low - room, high + room];
  return {
    first, last, low, high,
    x: (place) => LEFT + ((width - LEFT - RIGHT) * (place - first)) / (last - first || 1),
    y: (value) => TOP + ((TALL - TOP - BOTTOM) * (high - value)) / (high - low),
  };
}

function axes(picture, frame, options, width) {
  for (const tick of ticks(frame.low, frame.high)) {
    const at = frame.y(tick).toFixed(1);
    picture.append(svg("path", { class: "grid", d: `M${LEFT} ${at}H${width - RIGHT}` }),
      svg("text", { class: "end", x: LEFT - 7, y: Number(at) + 4 }, number(tick)));
  }
  for (const tick of ticks(frame.first, frame.last, options.labels)) {
    const label = options.labels ? options.labels[tick] : number(tick);
    if (label !== undefined) picture.append(svg("text", { class: "middle", x: frame.x(tick).toFixed(1), y: TALL - 22 }, String(label).slice(0, 10)));
  }
  if (options.x) picture.append(svg("text", { class: "end soft", x: width - RIGHT, y: TALL - 5 }, options.x));
  if (options.y) picture.append(svg("text", { class: "soft", x: LEFT, y: TALL - 5 }, "↑ ", options.y));
}

const path = (one, values, frame) => {
  let [found, pen] = ["", "M"];
  values.forEach((value, n) => {
    if (!usable(value)) { pen = "M"; return; }
    found += `${pen}${frame.x(one.x ? one.x[n] : n).toFixed(1)} ${frame.y(value).toFixed(1)}`;
    pen = "L";
  });
  return found;
};

const line = (one, frame) => svg("path", { class: `line hue-${one.hue % 7}${one.thin ? " thin" : ""}`, d: path(one, one.y, frame) });

const dots = (one, frame) => (one.dots && one.y.length <= 60 ? one.y : []).map((value, n) => (usable(value)
  ? svg("circle", { class: `dot hue-${one.hue % 7}`, cx: frame.x(one.x ? one.x[n] : n).toFixed(1), cy: frame.y(value).toFixed(1), r: 3 }) : null)).filter(Boolean);

function band(one, frame) {
  const there = path(one, one.low, frame);
  const order = one.high.map((value, n) => [one.x ? one.x[n] : n, value]).filter(([, value]) => usable(value)).reverse();
  const back = order.map(([place, value]) => `L${frame.x(place).toFixed(1)} ${frame.y(value).toFixed(1)}`).join("");
  return svg("path", { class: `band hue-${one.hue % 7}`, d: `${there}${back}Z` });
}

function follow(picture, series, frame, options, width) {
  const rule = svg("path", { class: "rule", visibility: "hidden" });
  picture.append(rule);
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * width - LEFT) / (width - LEFT - RIGHT);
    if (share < 0 || share > 1) { hideTip(); return; }
    const place = frame.first + share * (frame.last - frame.first);
    const rows = series.slice(0, 14).map((one) => [one, nearest(one, place)]);
    const at = rows[0][1].place;
    rule.setAttribute("visibility", "visible");
    rule.setAttribute("d", `M${frame.x(at).toFixed(1)} ${TOP}V${TALL - BOTTOM}`);
    showTip(rule, el("strong", {}, options.labels?.[at] ?? [options.x || "", " ", number(at)]),
      rows.map(([one, found]) => el("div", {}, one.name || "", " ", number(found.value, 4))));
  });
  picture.addEventListener("pointerleave", () => { rule.setAttribute("visibility", "hidden"); hideTip(); });
}

function nearest(one, place) {
  let best = { place: NaN, value: NaN };
  one.y.forEach((value, n) => {
    const here = one.x ? one.x[n] : n;
    if (usable(value) && !(Math.abs(here - place) >= Math.abs(best.place - place))) best = { place: here, value };
  });
  return best;
}

function ticks(low, high, labels) {
  if (low === high) return [low];
  const rough = (high - low) / (window.innerWidth < 700 ? 4 : 6);
  const base = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((k) => k * base).find((size) => size >= rough);
  if (labels) step = Math.max(1, Math.round(step));
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step) found.push(Math.abs(tick) < 1e-9 * step ? 0 : tick);
  return found;
}
