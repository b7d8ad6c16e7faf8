// Predictions, drawn by what a row holds: bars, coloured spans, gaps, answers, forecasts; anything else as text.
import { chart } from "./chart.js";
import { bars, el, number, visible } from "./dom.js";
import { t } from "./words.js";

const BARS = 5;

// `given`: the rows that were pasted, of which forecasts show the past.
export function outputs(rows, given = []) {
  if (rows.length && "step" in rows[0]) return [forecasts(rows, given), table(rows)];
  return [table(rows)];
}

export function table(rows, from = 0, most = 100) {
  const columns = shownColumns(rows);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("results") }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", { class: numeric(rows, name) ? "number" : null }, name)))),
    el("tbody", {}, rows.slice(from, from + most).map((row) => el("tr", {}, columns.map((name) =>
      el("td", { class: numeric(rows, name) ? "number" : typeof row[name] === "object" || String(row[name] ?? "").length > 18 ? "long" : null }, cell(row, name))))))));
}

const numeric = (rows, name) => rows.some((row) => typeof row[name] === "number") && rows.every((row) => typeof row[name] === "number" || row[name] === null || row[name] === undefined);

// Words, tags and entities of a sentence are one cell; start and end of an answer are marked in its passage.
function shownColumns(rows) {
  const found = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const tagged = found.includes("entities") || found.includes("spans") || found.includes("tags");
  const hidden = new Set(tagged ? ["words", "tags", "spans"] : []);
  if (tagged && !found.includes("entities")) found.push("entities");
  if (found.includes("answer") && (found.includes("context") || found.includes("passage"))) for (const name of ["start", "end"]) hidden.add(name);
  return found.filter((name) => !hidden.has(name) && !(tagged && name === "text"));
}

function cell(row, name) {
  const value = row[name];
  if (name === "probabilities" && value && typeof value === "object") return likely(value, row.label);
  if (name === "entities" || (name === "tags" && Array.isArray(value))) return spans(row);
  if (name === "gaps" && Array.isArray(value)) return value.map((gap) => bars(gap.slice(0, BARS).map((one) => [visible(String(one.token)), one.probability])));
  if (name === "n_best" && Array.isArray(value)) return el("ol", { class: "best" }, value.slice(0, BARS).map((one) => el("li", {}, one.text ?? one.answer, " ", el("span", { class: "muted" }, number(one.score)))));
  if ((name === "context" || name === "passage") && row.answer) return marked(String(value), row.start, row.end);
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : number(value, 4);
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(", ");
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

const likely = (found, label) => bars(Object.entries(found).sort((a, b) => b[1] - a[1]).slice(0, BARS), label);

function marked(text, start, end) {
  const [letters, from] = [[...text], Number(start)];
  if (!Number.isInteger(from) || !(end > from)) return text;
  return [letters.slice(0, from).join(""), el("mark", {}, letters.slice(from, end).join("")), letters.slice(end).join("")];
}

// A sentence with its entities in colour; the same label has the same hue in every row.
const hues = new Map();
const hue = (label) => { if (!hues.has(label)) hues.set(label, hues.size % 7); return hues.get(label); };

function spans(row) {
  const text = typeof row.text === "string" ? row.text : null;
  const pieces = text !== null && row.entities?.every((one) => Number.isInteger(one.start)) ? byPlace([...text], row.entities) : byWords(row);
  return el("div", { class: "spans" }, pieces.map(([piece, label]) => (label
    ? el("span", { class: `span hue-${hue(label)}` }, piece, el("small", {}, label)) : piece)));
}

function byPlace(letters, entities) {
  const found = [];
  let at = 0;
  for (const one of [...entities].sort((a, b) => a.start - b.start)) {
    if (one.start < at) continue;
    found.push([letters.slice(at, one.start).join(""), ""], [letters.slice(one.start, one.end).join(""), one.label]);
    at = one.end;
  }
  return [...found, [letters.slice(at).join(""), ""]];
}

function byWords({ words = [], tags = [] }) {
  const found = [];
  words.forEach((word, n) => {
    const [kind, label = ""] = /^([BIES])-(.+)$/.exec(tags[n] || "")?.slice(1) || ["", tags[n] === "O" ? "" : tags[n] || ""];
    const last = found[found.length - 1];
    if (last && (label ? "IE".includes(kind) && kind && last[1] === label : last[1] === "")) last[0] += ` ${word}`;
    else found.push([word, label]);
  });
  return found.flatMap((piece, n) => (n ? [[" ", ""], piece] : [piece]));
}

// Forecasts: for each target its middle, with bands of 50, 80 and 90 % where the model gives quantiles.
function forecasts(rows, given) {
  const series = [...new Set(rows.map((row) => row.series ?? ""))];
  const targets = Object.keys(rows[0]).filter((name) => typeof rows[0][name] === "number" && name !== "step" && name !== "window" && !/_0\.\d+$/.test(name) && !/_actual$/.test(name));
  return el("div", {}, series.slice(0, 12).flatMap((one) => {
    const mine = rows.filter((row) => (row.series ?? "") === one);
    return targets.map((target) => el("figure", {}, el("figcaption", {}, [one, target].filter(Boolean).join(": ")), forecast(mine, target, past(given, target, mine))));
  }));
}

// At most three times as much of the past as is forecast.
const past = (given, target, rows) => given.filter((row) => typeof row[target] === "number" && (row.series ?? "") === (rows[0].series ?? "")).slice(-3 * rows.length);

function forecast(rows, target, before) {
  const at = (share) => rows.map((row) => row[`${target}_${share}`] ?? null);
  const x = rows.map((_, n) => before.length + n);
  const time = (row) => row[Object.keys(row).find((name) => name !== target)] ?? "";
  const bands = [["0.05", "0.95", "90 %"], ["0.1", "0.9", "80 %"], ["0.25", "0.75", "50 %"]].filter(([low]) => at(low).some((value) => value !== null));
  const middle = rows.map((row) => row[target]);
  const series = bands.map(([low, high, name]) => ({ name, hue: 0, x, y: middle, low: at(low), high: at(high), thin: true }));
  if (before.length) series.push({ name: t("past"), hue: 6, x: before.map((_, n) => n), y: before.map((row) => row[target]) });
  if (rows.some((row) => `${target}_actual` in row)) series.push({ name: t("actual"), hue: 6, x, y: rows.map((row) => row[`${target}_actual`] ?? null) });
  return chart([...series, { name: t("forecast"), hue: 0, x, y: middle, dots: true }], { labels: [...before.map(time), ...rows.map((row) => row.time ?? row.step)], y: target, title: target });
}
