// The frame of the page: views by hash, language and colours, keys, the session, and a server that is away.
import { Fault, away, enter, get } from "./api.js";
import { announce, button, byId, el, fault, fill, hideTip, put } from "./dom.js";
import { savePage } from "./save.js";
import { keep, kept, language, setLanguage, t } from "./words.js";

const VIEWS = ["runs", "playground", "predict", "explain", "compare", "ask", "studies"];
const opened = new Map(); // view -> { section, enter, leave }
let shown = null;
let server = null;

// What every view may ask of the page.
const page = {
  server: () => server,
  refresh: async () => { server = await get("/api/server"); return server; },
  go: (view, ...rest) => { location.hash = `#/${[view, ...rest.map(encodeURIComponent)].join("/")}`; },
};

async function start() {
  tools();
  keys();
  const token = location.hash.match(/^#token=(.+)$/)?.[1];
  if (token) history.replaceState(null, "", `${location.pathname}#/runs`);
  try {
    if (token) await enter(decodeURIComponent(token));
    await page.refresh();
  } catch (error) {
    if (error.status === 401 || error.status === 403) { login(token ? error : null); return; }
    if (error.status) { fill(byId("main"), fault(error, () => location.reload())); return; }
    lost();
    return;
  }
  await route();
  for (const view of VIEWS) import(`./${view}.js`).catch(() => {}); // the others, so that they are there when asked for
}

async function route() {
  if (!server) return;
  const [, name = "runs", ...rest] = location.hash.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const view = VIEWS.includes(name) ? name : "runs";
  for (const link of byId("views").children) {
    if (link.dataset.view === view) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ block: "nearest", inline: "center" }); } else link.removeAttribute("aria-current");
  }
  hideTip();
  if (shown && shown !== view && opened.has(shown)) { opened.get(shown).leave?.(); opened.get(shown).section.hidden = true; }
  const moved = shown !== null && shown !== view;
  shown = view;
  if (!opened.has(view)) await create(view);
  const one = opened.get(view);
  if (shown !== view || !one) return;
  for (const other of byId("main").children) other.hidden = other !== one.section;
  title();
  if (moved) { byId("main").focus({ preventScroll: true }); scrollTo(0, 0); announce(t(view)); }
  one.enter?.(rest);
}

async function create(view) {
  let module;
  try { module = await import(`./${view}.js`); } catch { away(); return; }
  const section = el("section", { class: `view ${view}`, "aria-labelledby": `title-${view}` });
  const heading = put(el("header", { class: "head" }), el("h1", { id: `title-${view}` }, t(view)), el("p", { class: "muted" }, t(`${view}.what`)));
  try {
    opened.set(view, { section, ...module.create(section, page) });
  } catch (error) {
    console.error(error);
    opened.set(view, { section });
    section.append(fault(error instanceof Fault ? error : new Fault("", 0, t("failed")), () => location.reload()));
  }
  section.prepend(heading);
  if (byId("main").querySelector(".login, noscript, .loading")) byId("main").replaceChildren();
  byId("main").append(section);
}

const title = () => { document.title = `${t(shown || "runs")} · seqloom`; };

// --- The session
function login(error) {
  const input = el("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const wrong = el("div");
  const form = el("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await enter(input.value.trim().replace(/^.*#token=/, ""));
      opened.clear();
      shown = null;
      byId("main").replaceChildren();
      await page.refresh();
      await route();
    } catch (found) {
      fill(wrong, fault(found.status === 401 ? new Fault("", 401, t("wrong token")) : found));
      input.select();
    }
  } }, el("h1", {}, t("login")), el("p", {}, t("login.what")), el("label", {}, t("token"), input), wrong,
  el("button", { class: "main" }, t("enter")));
  if (error) fill(wrong, fault(error.status === 401 ? new Fault("", 401, t("wrong token")) : error));
  if (shown) opened.get(shown)?.leave?.();
  fill(byId("main"), form);
  input.focus();
}

document.addEventListener("login", () => { if (server && !document.querySelector(".login")) { server = null; login(null); } });
const lost = () => { fill(byId("banner"), t("lost.waiting")); byId("banner").hidden = false; };
document.addEventListener("lost", lost);
document.addEventListener("back", async () => {
  byId("banner").hidden = true;
  announce(t("back"));
  if (!server) { await start(); return; }
  try { await page.refresh(); } catch { return; }
  route();
});
document.addEventListener("language", title);
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) { location.reload(); return; }
  route();
});

// --- The bar
function tools() {
  if (byId("views").children.length) return;
  byId("views").setAttribute("aria-label", String(t("views")));
  byId("views").terms = { "aria-label": t("views") };
  for (const view of VIEWS) put(byId("views"), el("a", { href: `#/${view}`, "data-view": view }, t(view)));
  put(byId("tools"),
    button(t("save"), () => savePage(shown), { class: "quiet", title: t("save.what") }),
    button(t("language"), () => setLanguage(language() === "zh" ? "en" : "zh"), { class: "quiet", lang: "mul" }),
    button(el("span", { "aria-hidden": "true" }, "◐"), theme, { class: "quiet", "aria-label": t("theme"), title: t("theme") }),
    button("?", help, { class: "quiet", "aria-label": t("help"), title: t("help") }));
  setLanguage(language());
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  keep("theme", root.dataset.theme);
}

// --- Keys
const KEYS = [...VIEWS.map((view, n) => [String(n + 1), t(view)]), ["/", t("key.filter")], ["s", t("save.what")], ["t", t("theme")],
  ["l", t("key.language")], ["Ctrl+Enter", t("key.start")], ["Esc", t("key.stop")], ["?", t("help")]];

function help() {
  const box = byId("help");
  const on = el("input", { type: "checkbox", checked: kept("keys") !== "off", onchange: (event) => keep("keys", event.target.checked ? "on" : "off") });
  fill(box, el("h2", { id: "help-title" }, t("help")),
    el("dl", { class: "keys" }, KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)))),
    el("label", { class: "check" }, on, t("keys.on")), el("p", {}, button(t("close"), () => box.close(), { class: "main" })));
  box.setAttribute("aria-labelledby", "help-title");
  box.showModal();
}

function keys() {
  if (keys.done) return;
  keys.done = true;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hideTip(); opened.get(shown)?.stop?.(); return; }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); opened.get(shown)?.go?.(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || kept("keys") === "off" || byId("help").open) return;
    if (event.target.closest("input, textarea, select, [contenteditable]") || !server) return;
    press(event);
  });
  document.addEventListener("scroll", hideTip, { passive: true });
}

function press(event) {
  const acts = { "?": help, s: () => savePage(shown), t: theme, l: () => setLanguage(language() === "zh" ? "en" : "zh"),
    "/": () => opened.get(shown)?.section.querySelector("input[type=search], textarea")?.focus() };
  const act = acts[event.key] || (VIEWS[Number(event.key) - 1] && (() => page.go(VIEWS[Number(event.key) - 1])));
  if (act) { event.preventDefault(); act(); }
}

window.addEventListener("unhandledrejection", (event) => { if (event.reason instanceof Fault) event.preventDefault(); });
start();

