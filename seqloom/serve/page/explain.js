// Explain: what a model does on one input, as the page that `seqloom explain` writes.
import { post } from "./api.js";
import { announce, button, el, fault, field, fill, put } from "./dom.js";
import { framed, own } from "./frame.js";
import { about, modelSelect, none, ready } from "./models.js";
import { t } from "./words.js";

// Besides the text: what a model of each task can read.
const MORE = { classification: ["second", "target", "against"], question_answering: ["passage", "target"], translation: ["target"],
  tagging: ["target", "against"], language_model: ["target", "against", "patch_with"], masked_lm: ["target", "against"], forecasting: [] };

export function create(section, page) {
  const state = { model: null, control: null, inputs: {} };
  const text = el("textarea", { rows: 3, spellcheck: "false", placeholder: t("explain.example") });
  const [models, told, more, message, result] = [el("div"), el("div"), el("div", { class: "row fields" }), el("div"), el("div")];
  const start = button(t("explain"), () => run(), { class: "main" });
  const stop = button(t("stop"), () => state.control?.abort(), { class: "quiet", disabled: true });
  const form = el("div", { class: "panel" }, models, told, field(t("text"), text, { wide: true }), more, el("div", { class: "row acts" }, start, stop));
  put(section, form, message, result);

  function enter(rest) {
    const found = ready(page.server, (model) => model.task !== "forecasting");
    if (!found.length) { fill(section, section.firstChild, none(t("explain.empty"))); return; }
    if (!form.isConnected) fill(section, section.firstChild, form, message, result);
    state.model = found.find((model) => model.name === (rest[0] || state.model?.name)) || found[0];
    fill(models, field(t("model"), modelSelect(found, state.model.name, (name) => { state.model = found.find((model) => model.name === name); fields(); })));
    fields();
  }

  function fields() {
    fill(told, about(state.model));
    const before = Object.fromEntries(Object.entries(state.inputs).map(([name, input]) => [name, input.value]));
    state.inputs = {};
    fill(more, (MORE[state.model.task] || []).map((name) => {
      state.inputs[name] = name === "passage" ? el("textarea", { rows: 3, spellcheck: "false" }) : el("input", { type: "text", spellcheck: "false" });
      state.inputs[name].value = before[name] || "";
      return field(t(`explain.${name}`), state.inputs[name], { note: t(`explain.${name}.note`), wide: name === "passage" });
    }));
  }

  async function run() {
    if (!state.model || state.control || !text.value) { text.focus(); return; }
    const control = state.control = new AbortController();
    start.disabled = true;
    stop.disabled = false;
    fill(message, el("p", { class: "working", role: "status" }, t("working")));
    const input = { text: text.value };
    for (const [name, one] of Object.entries(state.inputs)) if (one.value) input[name] = one.value;
    try {
      const found = await post(`/api/models/${encodeURIComponent(state.model.name)}/explain`, input, { signal: control.signal });
      const address = own(found.page);
      message.replaceChildren();
      fill(result, el("h2", {}, t("explained", { name: state.model.name })), address ? framed(address, "explanation", t("explain"))
        : el("pre", {}, JSON.stringify(found.explanation, null, 1).slice(0, 20000)));
      announce(t("explained", { name: state.model.name }));
    } catch (error) {
      fill(message, error.name === "AbortError" ? null : fault(error, run));
    }
    state.control = null;
    start.disabled = false;
    stop.disabled = true;
  }

  return { enter, go: run, stop: () => state.control?.abort() };
}
