// Playground: one prompt, one to four models, every token with its alternatives.
import { announce, button, el, field, fill, put } from "./dom.js";
import { generates, none, ready } from "./models.js";
import { column } from "./column.js";
import { kept, keep, t } from "./words.js";

const MOST = 4;
const OPTIONS = [["temperature", 0.8, 0, 5, 0.05], ["top_k", 40, 0, 100000, 1], ["top_p", 1, 0.01, 1, 0.01], ["max_new", 60, 1, 100000, 1], ["seed", "", 0, 4294967295, 1]];

export function create(section, page) {
  const state = { chosen: [], chat: false };
  const columns = new Map();
  const prompt = el("textarea", { rows: 4, maxlength: 200000, placeholder: t("prompt.example"), spellcheck: "false" });
  const inputs = Object.fromEntries(OPTIONS.map(([name, value, min, max, step]) =>
    [name, el("input", { type: "number", value, min, max, step, inputmode: "decimal" })]));
  const stops = el("input", { type: "text", maxlength: 260, spellcheck: "false" });
  const [boxes, picked, modes, message] = [el("div", { class: "columns" }), el("div", { class: "row ticks" }), el("div"), el("div")];
  const start = button(t("generate"), () => run(), { class: "main" });
  const stop = button(t("stop"), () => halt(), { class: "quiet", disabled: true });
  const form = el("div", { class: "panel" }, field(t("models"), picked, { note: t("models.note") }), modes, field(t("prompt"), prompt, { wide: true }),
    el("details", {}, el("summary", {}, t("options")), el("div", { class: "row fields" },
      OPTIONS.map(([name]) => field(t(`option.${name}`), inputs[name])), field(t("option.stop"), stops, { note: t("option.stop.note") }))),
    el("div", { class: "row acts" }, start, stop, el("span", { class: "muted" }, t("keys.start"))));
  picked.setAttribute("role", "group");
  prompt.value = kept("prompt") || "";
  prompt.addEventListener("change", () => keep("prompt", prompt.value.slice(0, 4000)));

  function enter(rest) {
    const models = ready(page.server, generates);
    if (!models.length) { fill(section, section.firstChild, none(t("playground.empty"))); return; }
    if (!form.isConnected) fill(section, section.firstChild, form, message, boxes);
    if (rest[0]) state.chosen = [rest[0]];
    state.chosen = state.chosen.filter((name) => models.some((model) => model.name === name));
    if (!state.chosen.length) state.chosen = [models[0].name];
    ticks(models);
    arrange(models);
  }

  function ticks(models) {
    fill(picked, models.map((model) => el("label", { class: "check" }, el("input", { type: "checkbox", checked: state.chosen.includes(model.name), onchange: (event) => {
      if (event.target.checked && state.chosen.length >= MOST) { event.target.checked = false; announce(t("models.note")); return; }
      state.chosen = event.target.checked ? [...state.chosen, model.name] : state.chosen.filter((name) => name !== model.name);
      arrange(models);
    } }), model.name)));
    picked.setAttribute("aria-label", String(t("models")));
  }

  function arrange(models) {
    for (const [name, one] of columns) if (!state.chosen.includes(name)) { one.stop(); columns.delete(name); }
    for (const name of state.chosen) if (!columns.has(name)) columns.set(name, column(models.find((model) => model.name === name), settings, changed));
    fill(boxes, state.chosen.map((name) => columns.get(name).element));
    boxes.dataset.count = state.chosen.length;
    start.disabled = !state.chosen.length;
    const able = models.some((model) => state.chosen.includes(model.name) && model.chat);
    if (!able) state.chat = false;
    fill(modes, able ? el("label", { class: "check" }, el("input", { type: "checkbox", checked: state.chat, onchange: (event) => {
      state.chat = event.target.checked;
      for (const one of columns.values()) one.clear();
    } }), t("chat mode")) : null);
  }

  const changed = () => { const busy = [...columns.values()].some((one) => one.busy()); stop.disabled = !busy; start.disabled = busy; };

  function settings() {
    const value = (name) => (inputs[name].value === "" ? null : Number(inputs[name].value));
    const found = { temperature: value("temperature") ?? 1, max_new: value("max_new") ?? 60, seed: value("seed"), logprobs: 8, n: 1 };
    if (value("top_k")) found.top_k = value("top_k");
    if (value("top_p") !== null && value("top_p") < 1) found.top_p = value("top_p");
    const ends = stops.value.split("|").map((text) => text.replaceAll("\\n", "\n")).filter(Boolean).slice(0, 4);
    if (ends.length) found.stop = ends;
    return found;
  }

  function run() {
    if (start.disabled) return;
    message.replaceChildren();
    const bad = Object.values(inputs).find((input) => !input.checkValidity());
    if (bad) { bad.closest("details").open = true; bad.reportValidity(); return; }
    for (const one of columns.values()) one.start(prompt.value, state.chat);
    if (state.chat) prompt.value = "";
  }

  function halt() { for (const one of columns.values()) one.stop(); }

  put(section, form, message, boxes);
  return { enter, go: run, stop: halt };
}
