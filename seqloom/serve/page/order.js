// The form that starts a comparison or one training: data, what it looks like, models, budget.
import { Fault, get, post, upload } from "./api.js";
import { button, bytes, el, fault, field, fill, put, select } from "./dom.js";
import { drop } from "./drop.js";
import { named, t } from "./words.js";

const budgetName = (budget) => (/^minutes=\d+$/.test(budget) ? t("minutes", { count: budget.slice(8) }) : budget);

export function order(page, hint) {
  const state = { kind: "compare", data: null, choices: null, models: new Set(hint.models || []), task: hint.task || "", able: [], sent: "", key: "" };
  const box = el("div", { class: "order" });
  const [source, looked, rest, message] = [el("div"), el("div"), el("div"), el("div")];
  put(box, source, looked, message, rest);
  begin();

  async function begin() {
    try { state.choices = await get("/api/jobs/choices"); } catch (error) { if (error.status !== 401) fill(message, fault(error, begin)); return; }
    message.replaceChildren();
    const samples = state.choices.samples;
    const list = select([["", t("choose sample")], ...samples.map((one) => [one.data, `${one.data.replace("sample:", "")}: ${one.what.slice(0, 60)}`])], "", (name) => { if (name) look(name); });
    fill(source, drop(t("drop.data"), take), field(t("or sample"), list));
    const asked = String(hint.data || "");
    if (samples.some((one) => asked === one.data)) { list.value = asked; look(asked); }
    else if (hint.models) fill(looked, el("p", { class: "muted" }, t("drop same", { models: hint.models.join(", ") })));
  }

  async function take(file) {
    if (!file) { state.data = null; looked.replaceChildren(); rest.replaceChildren(); return; }
    fill(looked, el("p", { class: "working", role: "status" }, t("uploading", { name: file.name, size: bytes(file.size) })));
    try { await look(`upload:${(await upload(file)).id}`); } catch (error) { fill(looked, fault(error, () => take(file))); }
  }

  async function look(data, task) {
    state.data = data;
    message.replaceChildren();
    fill(looked, el("p", { class: "working", role: "status" }, t("working")));
    try {
      const found = await post("/api/jobs/look", { data, ...(task ? { task } : {}) });
      state.task = task || hint.task || found.task || "";
      fill(looked, el("p", {}, found.task ? t("looks like", { task: named("task", found.task) }) : t("looks like nothing")), roles(found.roles || {}),
        el("ul", { class: "findings" }, (found.findings || []).slice(0, 12).map((one) => el("li", { class: one.level === "error" || one.level === "warning" ? one.level : null }, one.message, one.advice ? `; ${one.advice}` : ""))));
      suit();
      form();
    } catch (error) { fill(looked, fault(error, () => look(data))); rest.replaceChildren(); }
  }

  const roles = (found) => (Object.keys(found).length ? el("p", { class: "muted" }, t("columns found"), Object.entries(found).map(([role, name]) => `${role} = ${name}`).join(", ")) : null);
  const offer = () => state.choices.tasks.find((one) => one.task === state.task);

  // The models that the task accepts; at first those that are usual for it, or those that were asked for.
  function suit() {
    const able = offer()?.models || state.choices.models.map((one) => one.model);
    const wanted = (hint.models || []).filter((name) => able.includes(name));
    state.models = new Set(wanted.length ? wanted : offer()?.usual || []);
    state.able = able;
  }

  function form() {
    const one = state.kind === "fit";
    const every = state.able;
    const budget = select(state.choices.budgets[state.kind].map((value) => [value, budgetName(value)]));
    const task = select([["", t("guess task")], ...state.choices.tasks.map(({ task: name }) => [name, named("task", name)])], state.task, (name) => { hint = { ...hint, task: name }; look(state.data, name); });
    const model = select(every.map((name) => [name, name]), [...state.models][0]);
    const seeds = el("input", { type: "number", min: 1, max: 50, placeholder: "3" });
    const trials = el("input", { type: "number", min: 0, max: 50, placeholder: t("chosen for you") });
    const params = el("input", { type: "text", placeholder: "800k", pattern: "[1-9][0-9]*(\\.[0-9]+)?[kM]?" });
    const ticks = el("div", { class: "row ticks", role: "group", "aria-label": t("models") }, every.map((name) => el("label", { class: "check" }, el("input", { type: "checkbox", checked: state.models.has(name),
      onchange: (event) => { if (event.target.checked) state.models.add(name); else state.models.delete(name); } }), name)));
    const start = button(t(one ? "start fit" : "start compare"), () => {
      const bad = [seeds, trials, params].find((input) => !input.checkValidity());
      if (bad) { bad.closest("details").open = true; bad.reportValidity(); return; }
      send(start, { budget: budget.value, ...(one ? { model: model.value } : given({ models: [...state.models], seeds: seeds.value && Number(seeds.value), trials: trials.value && Number(trials.value), params: params.value })) });
    }, { class: "main" });
    fill(rest, choiceOfKind(), el("div", { class: "row fields" }, field(t("task"), task), field(t("budget"), budget), one ? field(t("model"), model) : null),
      one ? null : el("div", { class: "field wide" }, el("span", { class: "label" }, t("models")), ticks, el("p", { class: "muted" }, t("models.default"))),
      one ? null : el("details", {}, el("summary", {}, t("more")), el("div", { class: "row fields" }, field(t("seeds each"), seeds), field(t("trials"), trials), field(t("params"), params))),
      el("div", { class: "row acts" }, start));
  }

  const choiceOfKind = () => el("div", { class: "choice", role: "group", "aria-label": t("what to start") }, ["compare", "fit"].map((kind) =>
    button(named("kind", kind), () => { state.kind = kind; form(); rest.querySelector("[aria-pressed=true]").focus(); }, { "aria-pressed": String(state.kind === kind) })));

  const given = (found) => Object.fromEntries(Object.entries(found).filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length)));

  async function send(start, asked) {
    start.disabled = true;
    try {
      const body = { kind: state.kind, data: state.data, ...given({ task: state.task }), ...asked };
      // The same order sent again, as after an answer that was lost, is the same job.
      if (JSON.stringify(body) !== state.sent) Object.assign(state, { sent: JSON.stringify(body), key: crypto.randomUUID?.() || String(Math.random()) });
      const job = await post("/api/jobs", { ...body, key: state.key });
      if (!job.id) throw new Fault("", 0, t("failed"));
      page.go("compare", "job", job.id);
    } catch (error) { fill(message, fault(error, () => send(start, asked))); }
    start.disabled = false;
  }

  return box;
}
