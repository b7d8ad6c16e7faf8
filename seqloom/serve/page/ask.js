// Ask: a question to indexed documents. The answer page quotes them; its citations open the source at the place.
import { post } from "./api.js";
import { announce, button, el, empty, fault, field, fill, put, select } from "./dom.js";
import { framed, own } from "./frame.js";
import { t } from "./words.js";

export function create(section, page) {
  const state = { index: null, control: null };
  const question = el("textarea", { rows: 2, maxlength: 4000, placeholder: t("ask.example") });
  const [indexes, message, result] = [el("div"), el("div"), el("div")];
  const start = button(t("ask"), () => run(), { class: "main" });
  const stop = button(t("stop"), () => state.control?.abort(), { class: "quiet", disabled: true });
  const form = el("div", { class: "panel" }, indexes, field(t("question"), question, { wide: true }), el("div", { class: "row acts" }, start, stop));
  put(section, form, message, result);

  function enter() {
    const found = page.server().indexes || [];
    if (!found.length) {
      fill(section, section.firstChild, empty(t("no indexes"), t("ask.empty"), "seqloom index notes/ --out indexes/notes", "seqloom serve runs/gpt --index indexes/notes"));
      return;
    }
    if (!form.isConnected) fill(section, section.firstChild, form, message, result);
    state.index = found.some((one) => one.name === state.index) ? state.index : found[0].name;
    fill(indexes, field(t("index"), select(found.map((one) => [one.name, one.name]), state.index, (name) => { state.index = name; })));
  }

  async function run() {
    if (!state.index || state.control || !question.value.trim()) { question.focus(); return; }
    const control = state.control = new AbortController();
    start.disabled = true;
    stop.disabled = false;
    fill(message, el("p", { class: "working", role: "status" }, t("working")));
    try {
      const found = await post(`/api/indexes/${encodeURIComponent(state.index)}/ask`, { question: question.value }, { signal: control.signal });
      const address = own(found.page);
      message.replaceChildren();
      fill(result, el("h2", {}, question.value), address ? framed(address, "answer", t("answer")) : el("pre", {}, JSON.stringify(found.reply, null, 1).slice(0, 20000)));
      announce(t("answered"));
    } catch (error) {
      fill(message, error.name === "AbortError" ? null : fault(error, run));
    }
    state.control = null;
    start.disabled = false;
    stop.disabled = true;
  }

  return { enter, go: run, stop: () => state.control?.abort() };
}
