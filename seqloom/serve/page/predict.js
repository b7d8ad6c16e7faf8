// Predict: rows that are pasted or a file that is dropped, for every task; results as table, chart or file.
import { post, upload } from "./api.js";
import { announce, button, download, el, fault, field, fill, put } from "./dom.js";
import { drop } from "./drop.js";
import { about, modelSelect, none, ready } from "./models.js";
import { outputs, table } from "./outputs.js";
import { csv, read } from "./rows.js";
import { t } from "./words.js";

const MOST = 200; // rows of one request
const SHOWN = 100;
// What a row of each task has, if the server does not say.
const COLUMNS = { classification: ["text"], tagging: ["text"], translation: ["source"], question_answering: ["question", "passage"], masked_lm: ["text"], forecasting: [] };
const EXAMPLES = {
  classification: "Warszawa\nReykjavík", tagging: "She moved from Paris to Tokyo", translation: "hello\nworld",
  question_answering: "question,passage\n\"Which currency has France?\",\"France has used the euro since 1999.\"",
  masked_lm: "The <mask> of a function", forecasting: "year,sunspots\n1998,64.3\n1999,93.3\n2000,119.6\n2001,111\n2002,104\n2003,63.7\n2004,40.4\n2005,29.8\n2006,15.2\n2007,7.5\n2008,2.9",
};

const MEASURED = "id,x,y\n1,0.12,0.51\n1,0.30,0.44\n2,-0.08,0.23\n2,0.11,0.20"; // lines of one sequence follow each other

const measured = (model) => model?.task === "classification" && model.tokenizer === null;
const example = (model) => (measured(model) ? MEASURED : EXAMPLES[model?.task] || "");

export function create(section, page) {
  const state = { model: null, file: null, rows: [], given: [], from: 0, control: null };
  const text = el("textarea", { rows: 7, spellcheck: "false", oninput: () => seen() });
  const [models, told, read_, message, results] = [el("div"), el("div"), el("p", { class: "muted", "aria-live": "polite" }), el("div"), el("div")];
  const start = button(t("predict.go"), () => run(), { class: "main" });
  const stop = button(t("stop"), () => state.control?.abort(), { class: "quiet", disabled: true });
  const box = drop(t("drop.rows"), (file) => { state.file = file; seen(); });
  const form = el("div", { class: "panel" }, models, told, field(t("rows"), text, { wide: true, note: t("rows.note") }), box, read_,
    el("div", { class: "row acts" }, start, stop, button(t("example"), () => { text.value = example(state.model); seen(); }, { class: "quiet" })));
  put(section, form, message, results);

  const columns = () => (state.model?.columns?.length ? names(state.model.columns) : COLUMNS[state.model?.task] || ["text"]);
  const names = (found) => (Array.isArray(found) ? found.map((one) => one.name || one) : Object.keys(found)).filter((name) => !["label", "target", "tags", "answer"].includes(name));

  function enter(rest) {
    const found = ready(page.server, (model) => model.verb === "predict");
    if (!found.length) { fill(section, section.firstChild, none(t("predict.empty"))); return; }
    if (!form.isConnected) fill(section, section.firstChild, form, message, results);
    const name = rest[0] || state.model?.name;
    state.model = found.find((model) => model.name === name) || found[0];
    fill(models, field(t("model"), modelSelect(found, state.model.name, (chosen) => { state.model = found.find((model) => model.name === chosen); fresh(); })));
    fresh(false);
  }

  function fresh(changed = true) {
    fill(told, about(state.model));
    text.placeholder = example(state.model);
    if (changed) { state.rows = []; results.replaceChildren(); message.replaceChildren(); }
    seen();
  }

  function seen() {
    if (state.file) { fill(read_, t("file chosen", { name: state.file.name })); return null; }
    const found = read(text.value, columns());
    fill(read_, found.rows.length ? t("rows read", { count: found.rows.length, kind: found.kind === "lines" ? t("kind.lines") : found.kind,
      columns: [...new Set(found.rows.slice(0, 50).flatMap((row) => Object.keys(row)))].join(", ") }) : t("rows.columns", { columns: wanted() }));
    return found.rows;
  }

  // The columns of rows that this model can read.
  function wanted() {
    const names = columns().join(", ");
    return measured(state.model) ? t("measurements", { columns: names }) : names || t("time and values");
  }

  async function run() {
    const rows = seen();
    if (!state.model || state.control || (!state.file && !rows.length)) return;
    state.control = new AbortController();
    busy(true);
    message.replaceChildren();
    try { state.rows = await ask(rows); state.given = rows || []; state.from = 0; draw(); announce(t("predicted", { count: state.rows.length })); }
    catch (error) { if (error.name !== "AbortError") fill(message, fault(error, run)); }
    state.control = null;
    busy(false);
  }

  async function ask(rows) {
    const path = `/api/models/${encodeURIComponent(state.model.name)}/predict`;
    const { signal } = state.control;
    if (state.file) return (await post(path, { upload: (await upload(state.file, signal)).id }, { signal })).rows;
    const whole = state.model.task === "forecasting" || measured(state.model); // the rows of a series belong together
    const found = [];
    for (let n = 0; n < rows.length; n += whole ? rows.length : MOST) found.push(...(await post(path, { rows: whole ? rows : rows.slice(n, n + MOST) }, { signal })).rows);
    return found;
  }

  const busy = (on) => { start.disabled = on; stop.disabled = !on; results.setAttribute("aria-busy", String(on)); };

  function draw() {
    const { rows, from } = state;
    const step = (by) => () => { state.from = from + by; draw(); };
    fill(results, el("h2", {}, t("results")), el("div", { class: "row acts" },
      button(t("as csv"), () => download("predictions.csv", csv(rows), "text/csv"), { class: "quiet" }),
      button(t("as json"), () => download("predictions.json", JSON.stringify(rows, null, 1), "application/json"), { class: "quiet" })),
    from ? table(rows, from, SHOWN) : outputs(rows, state.given),
    rows.length > SHOWN ? el("div", { class: "row acts" }, button(t("previous"), step(-SHOWN), { class: "quiet", disabled: from === 0 }),
      el("span", { class: "muted" }, t("lines", { from: from + 1, to: Math.min(rows.length, from + SHOWN), total: rows.length })),
      button(t("next"), step(SHOWN), { class: "quiet", disabled: from + SHOWN >= rows.length })) : null);
  }

  document.addEventListener("language", () => { if (state.model) seen(); });
  return { enter, go: run, stop: () => state.control?.abort() };
}
