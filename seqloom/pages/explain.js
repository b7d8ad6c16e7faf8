// Parts of the explanation page: texts in two languages, elements, numbers, tooltips and coloured tokens.
"use strict";
const Loom = (() => {
  const data = JSON.parse(document.getElementById("explained").textContent);
  const tip = document.getElementById("tip");
  const loom = { data, language: data.language, views: {} };
  const VISIBLE = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };
  const MOST_TOKENS = 6000;

  loom.say = (key, values = {}) => {
    const pair = data.words[key];
    const text = pair ? pair[loom.language === "zh" ? 1 : 0] : key;
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
  };

  // A remark, or the name of a layer or curve, that a view gave in English.
  const sentences = Object.entries(data.sentences).map(([pattern, text]) => [new RegExp(`^${pattern}$`), text]);
  const words = new RegExp(`\\b(${Object.keys(data.names).sort((a, b) => b.length - a.length).join("|")})\\b`, "g");
  loom.tell = (text) => {
    if (loom.language !== "zh") return text;
    const found = sentences.find(([pattern]) => pattern.test(text));
    if (found) return text.replace(...found);
    return text.length > 50 ? text : text.replace(words, (name) => data.names[name]).replace(/, /g, "，");
  };

  // Children are elements or texts; texts are never read as HTML.
  loom.el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
  loom.svg = (tag, attributes = {}, ...children) =>
    build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  function build(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  loom.number = (value, digits = 3) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
    return text.replace(/^-/, "−");
  };
  loom.signed = (value) => (value > 0 ? "+" : "") + loom.number(value);
  loom.percent = (value) => (value === null || value === undefined ? "–"
    : value > 0 && value < 0.001 ? "< 0.1 %" : `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)} %`.replace(/^-/, "−"));

  // White space at the ends of a token and in a row, and what cannot be printed, is shown.
  loom.visible = (token) => (token === "" ? "∅" : [...token.replace(/^ +| +$| {2,}/g, (found) => "␣".repeat(found.length))].map(
    (c) => (c !== " " && VISIBLE[c]) || (/\p{C}/u.test(c) ? `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}` : c)).join(""));
  loom.short = (token, most = 22) => {
    const characters = [...loom.visible(token)];
    return characters.length <= most ? characters.join("") : characters.slice(0, most - 1).join("") + "…";
  };
  loom.sum = (values) => values.reduce((total, value) => total + value, 0);

  // An array as it was packed: { shape, step, at(...places), row(n), largest, least }.
  loom.array = (packed) => {
    if (packed.flat) return packed.flat;
    let values = packed.values;
    if (!values) {
      const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
      values = Float32Array.from(new Int16Array(bytes.buffer), (step) => step * packed.scale);
    }
    let largest = 0;
    for (const value of values) if (Math.abs(value) > largest) largest = Math.abs(value);
    const shape = packed.shape;
    packed.flat = { values, shape, step: packed.step, largest, slice: (n) => slice(values, shape, n, packed.step) };
    return packed.flat;
  };

  // One part along the first axis.
  function slice(values, shape, n, step) {
    const rest = shape.slice(1);
    const size = rest.reduce((total, length) => total * length, 1);
    const part = values.slice(n * size, (n + 1) * size);
    let largest = 0;
    for (const value of part) if (Math.abs(value) > largest) largest = Math.abs(value);
    return { values: part, shape: rest, step, largest, slice: (k) => slice(part, rest, k, step) };
  }

  // The tooltip, at a place in the window; `content`: elements or texts.
  loom.show = (content, x, y) => {
    tip.replaceChildren(...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(6, x - box.width / 2), document.documentElement.clientWidth - box.width - 6);
    const above = y - box.height - 12;
    tip.style.left = `${Math.max(6, left)}px`;
    tip.style.top = `${above > 50 ? above : y + 22}px`;
  };
  loom.hide = () => { tip.hidden = true; };
  loom.point = (element, content) => {
    const box = element.getBoundingClientRect();
    loom.show(content(), box.left + box.width / 2, box.top);
  };
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") loom.hide(); });
  document.addEventListener("scroll", loom.hide, { passive: true, capture: true });

  // Tokens in a row: `colour(n)` gives [class, strength from 0 to 1], `about(n)` the content of the tooltip.
  loom.tokens = (labels, { colour, about, pick, picked, title, lines = true }) => {
    const shown = labels.slice(0, MOST_TOKENS);
    const box = loom.el("div", { class: pick ? "tokens pickable" : "tokens", role: "group", "aria-label": title || "" });
    const chips = shown.map((label, n) => {
      const chip = loom.el("span", { class: "token", tabindex: n === (picked || 0) ? "0" : "-1" }, loom.visible(label));
      if (pick) chip.setAttribute("role", "button");
      box.append(chip);
      if (lines && label.includes("\n")) box.append(loom.el("br"));
      return chip;
    });
    const index = (event) => chips.indexOf(event.target.closest(".token"));
    const over = (event) => { const n = index(event); if (n >= 0) loom.point(chips[n], () => about(n)); };
    box.addEventListener("mouseover", over);
    box.addEventListener("focusin", over);
    box.addEventListener("mouseout", loom.hide);
    box.addEventListener("focusout", loom.hide);
    box.addEventListener("click", (event) => { const n = index(event); if (n < 0) return; move(n); if (pick) pick(n); over(event); });
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
      const n = index(event);
      if (n >= 0 && pick && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); pick(n); }
      if (n < 0 || step === undefined) return;
      event.preventDefault();
      move(Math.min(chips.length - 1, Math.max(0, n + step)));
    });
    function move(n) {
      for (const chip of chips) if (chip.tabIndex === 0) chip.tabIndex = -1;
      chips[n].tabIndex = 0;
      chips[n].focus({ preventScroll: true });
    }
    const paint = () => chips.forEach((chip, n) => {
      const [kind, strength] = colour(n) || ["", 0];
      chip.dataset.kind = kind;
      chip.style.setProperty("--strength", `${Math.round(100 * Math.min(1, strength || 0) ** 0.7)}%`);
    });
    paint();
    const reveal = (n) => requestAnimationFrame(() => {
      if (chips[n]) box.scrollTop += chips[n].getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
    });
    const mark = (n) => chips.forEach((chip, k) => chip.classList.toggle("picked", k === n));
    if (pick) mark(picked);
    const more = labels.length > shown.length
      ? loom.el("p", { class: "muted" }, loom.say("many tokens", { shown: shown.length, count: labels.length })) : null;
    return { element: loom.el("div", {}, box, more), paint, mark, reveal };
  };

  loom.line = (...children) => loom.el("div", {}, ...children);
  loom.strong = (text) => loom.el("strong", {}, text);

  loom.table = (head, rows, numeric = []) => loom.el("div", { class: "scroll", tabindex: "0" }, loom.el("table", {},
    loom.el("thead", {}, loom.el("tr", {}, head.map((text, n) => loom.el("th", { class: numeric.includes(n) ? "number" : null }, text)))),
    loom.el("tbody", {}, rows.map((row) => loom.el("tr", {}, row.map((cell, n) =>
      loom.el("td", { class: numeric.includes(n) ? "number" : null }, cell)))))));

  loom.folded = (title, fill, open = false) => {
    const box = loom.el("details", { open }, loom.el("summary", {}, title));
    const once = () => { if (box.open && !box.dataset.filled) { box.dataset.filled = "1"; box.append(fill()); } };
    box.addEventListener("toggle", once);
    once();
    return box;
  };

  // Buttons of which one is pressed.
  loom.choice = (title, names, chosen, pick) => {
    const buttons = names.map((name, n) => loom.el("button", { type: "button", "aria-pressed": String(n === chosen), onclick: () => {
      buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === n)));
      pick(n);
    } }, name));
    return loom.el("div", { class: "choice", role: "group", "aria-label": title }, buttons);
  };
  return loom;
})();
