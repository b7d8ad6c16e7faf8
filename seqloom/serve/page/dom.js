// Elements, numbers, tips and downloads. Texts are never read as HTML.
import { isTerm, t } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const VISIBLE = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };

export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => build(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (live(value)) { (element.terms ||= {})[name] = value; element.setAttribute(name, String(value)); }
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  return put(element, ...children);
}

const live = (value) => isTerm(value) || Boolean(value && value.isPair);

export function put(element, ...children) {
  for (const child of children.flat(4)) {
    if (child === null || child === undefined || child === false) continue;
    if (!live(child)) { element.append(child); continue; }
    const text = document.createTextNode(String(child));
    text.term = child;
    element.append(text);
  }
  return element;
}

export function fill(element, ...children) { element.replaceChildren(); return put(element, ...children); }

export const button = (label, onclick, attributes = {}) => el("button", { type: "button", ...attributes, onclick }, label);

let labels = 0;
// A labelled input: the element, with the input as its property.
export function field(label, input, { note, wide } = {}) {
  input.id ||= `f${(labels += 1)}`;
  const box = el("div", { class: wide ? "field wide" : "field" }, el("label", { for: input.id }, label), input,
    note ? el("p", { class: "muted" }, note) : null);
  box.input = input;
  return box;
}

export function select(choices, chosen, onchange) {
  const box = el("select", { onchange: () => onchange?.(box.value) });
  for (const [value, label] of choices) box.append(el("option", { value, selected: value === chosen }, label));
  return box;
}

export function choice(label, names, chosen, picked) {
  const buttons = names.map(([value, name]) => button(name, () => {
    buttons.forEach((one, n) => one.setAttribute("aria-pressed", String(names[n][0] === value)));
    picked(value);
  }, { "aria-pressed": String(value === chosen) }));
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

// --- Numbers
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "–";
  if (Number(value) === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? Number(value).toExponential(digits - 1)
    : size >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(Number(value).toPrecision(digits)));
  return text.replace("e+", "e").replace(/-/g, "−");
}
export const percent = (share) => (share === null || share === undefined || !Number.isFinite(share) ? "–"
  : share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`);
const scaled = (value, base, units) => {
  let n = 0;
  while (value >= base && n < units.length - 1) { value /= base; n += 1; }
  return `${n === 0 ? Math.round(value) : Number(value.toPrecision(3))}${units[n]}`;
};
export const count = (value) => (Number.isFinite(value) ? scaled(value, 1000, ["", " k", " M", " G"]) : "–");
export const bytes = (value) => (Number.isFinite(value) ? scaled(value, 1024, [" B", " KB", " MB", " GB"]) : "–");
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${number(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// White space at the ends of a token, and what cannot be printed, is shown.
export const visible = (token) => (token === "" ? "∅" : [...token.replace(/^ +| +$/g, (found) => "␣".repeat(found.length))]
  .map((c) => (c !== " " && VISIBLE[c]) || (/\p{C}/u.test(c) ? `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}` : c)).join(""));

// --- The tip beside what the pointer or the focus is on
const tip = () => byId("tip");
export function showTip(anchor, ...content) {
  fill(tip(), ...content);
  tip().hidden = false;
  const [at, box] = [anchor.getBoundingClientRect(), tip().getBoundingClientRect()];
  const left = Math.min(Math.max(6, at.left + at.width / 2 - box.width / 2), document.documentElement.clientWidth - box.width - 6);
  const above = at.top - box.height - 8;
  tip().style.left = `${Math.max(6, left)}px`;
  tip().style.top = `${above > 56 ? above : at.bottom + 8}px`;
}
export const hideTip = () => { if (tip()) tip().hidden = true; };

// Bars with a name and a share each: [[name, share, pressed when clicked], ...]
export const bars = (rows, chosen) => el("div", { class: "bars" }, rows.map(([name, share, act]) => {
  const track = el("i");
  track.style.width = `${Math.max(0.5, 100 * Math.min(1, share))}%`;
  const row = [el("span", { class: "name" }, name), el("span", { class: "track" }, track), el("span", { class: "share" }, percent(share))];
  const kind = name === chosen ? "bar-row chosen" : "bar-row";
  return act ? button(row, act, { class: kind }) : el("div", { class: kind }, row);
}));

export const announce = (text) => { byId("said").textContent = String(text); };

// --- Files and the clipboard
export function download(name, text, type = "text/plain") {
  const address = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

export function command(line) {
  const copy = button(t("copy"), async () => {
    try { await navigator.clipboard.writeText(line); announce(t("copied")); fill(copy, t("copied")); } catch { select(); }
    setTimeout(() => fill(copy, t("copy")), 2000);
  }, { class: "quiet" });
  const code = el("code", {}, line);
  const select = () => getSelection().selectAllChildren(code);
  return el("div", { class: "command" }, code, copy);
}

// What a view shows before there is anything: what it is for, and the command that fills it.
export const empty = (title, text, ...lines) => el("div", { class: "empty" }, el("h2", {}, title), el("p", {}, text), lines.map(command));

// One line for what went wrong, with a way to try again.
export const fault = (error, again) => el("div", { class: "fault", role: "alert" },
  el("span", {}, error.term || String(error.message || error)), again ? button(t("retry"), again, { class: "quiet" }) : null);
