// Runs: one line for each model with its seeds, the curves of those that are ticked, and a comparison of them.
import { get } from "./api.js";
import { chart } from "./chart.js";
import { announce, button, count, duration, el, empty, fault, field, fill, number, percent, put, select } from "./dom.js";
import { arrange, grouped, label, scored } from "./grouping.js";
import { named, t } from "./words.js";

const ROWS = 60; // lines of one page of the table
const CURVES = 12;
const WHEN = { year: "2-digit", month: "numeric", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false };
const COLUMNS = [["model", ""], ["task", "less whole"], ["data", "less"], ["score", "number"], ["range", "number less"], ["status", ""],
  ["parameters", "number less"], ["seconds", "number less"], ["started", "less whole"]];

export function create(section, page) {
  const state = { runs: [], sort: "started", down: true, filter: "", task: "", status: "", from: 0, open: new Set(), chosen: new Set(), curves: new Map() };
  const [message, table, drawn] = [el("div"), el("div"), el("div", { class: "curves" })];
  const search = el("input", { type: "search", oninput: () => change({ filter: search.value.toLowerCase() }), placeholder: t("runs.filter") });
  const tasks = el("span");
  const states = select([["", t("any status")], ...["running", "finished", "unfinished", "damaged"].map((name) => [name, named("status", name)])], "",
    (status) => change({ status }));
  const controls = el("div", { class: "row acts" }, field(t("filter"), search), tasks, field(t("status"), states));
  put(section, message, controls, table, drawn);
  let timer = null;

  function change(next) { Object.assign(state, { from: 0 }, next); draw(); }

  async function load() {
    clearTimeout(timer);
    try {
      state.runs = (await get("/api/runs")).runs;
      message.replaceChildren();
    } catch (error) {
      if (error.status !== 401) fill(message, fault(error, load));
      again(5000);
      return;
    }
    choices();
    draw();
    const running = state.runs.some((run) => run.status === "running");
    await curves(running);
    again(running ? 3000 : 15000);
  }

  const again = (wait) => { clearTimeout(timer); if (!section.hidden && !document.hidden) timer = setTimeout(load, wait); };
  document.addEventListener("visibilitychange", () => { if (!section.hidden && !document.hidden && section.isConnected) load(); });

  function choices() {
    const found = [...new Set(state.runs.map((run) => run.task).filter(Boolean))].sort();
    if (tasks.dataset.of === found.join()) return;
    tasks.dataset.of = found.join();
    fill(tasks, field(t("task"), select([["", t("any task")], ...found.map((name) => [name, named("task", name)])], state.task, (task) => change({ task }))));
  }

  function draw() {
    controls.hidden = !state.runs.length;
    if (!state.runs.length) {
      fill(table, empty(t("runs.empty"), t("runs.empty.what"), "seqloom fit --data sample:python-docs --model lstm",
        "seqloom compare --data sample:languages --budget minutes=5"));
      return;
    }
    const lines = arrange(grouped(state.runs, state), state);
    const shown = lines.slice(state.from, state.from + ROWS);
    const active = document.activeElement?.dataset?.key;
    fill(table, acts(), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("runs") }, el("table", {}, head(), el("tbody", {}, shown.map(line)))),
      pager(lines.length));
    if (active) table.querySelector(`[data-key="${CSS.escape(active)}"]`)?.focus({ preventScroll: true });
  }

  const acts = () => el("div", { class: "row acts" },
    el("span", { class: "muted" }, t("runs.chosen", { count: state.chosen.size })),
    button(t("compare these"), () => compare(), { class: "main", disabled: !state.chosen.size }),
    button(t("clear"), () => { state.chosen.clear(); draw(); curves(); }, { class: "quiet", disabled: !state.chosen.size }));

  const head = () => el("thead", {}, el("tr", {}, el("th", {}, el("span", { class: "unseen" }, t("chosen"))), COLUMNS.map(([name, kind]) =>
    el("th", { class: kind, "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : null },
      button([t(`column.${name}`), el("span", { "aria-hidden": "true" }, state.sort === name ? (state.down ? " ↓" : " ↑") : "")],
        () => change({ sort: name, down: state.sort === name ? !state.down : name === "started" }), { class: "sort", "data-key": `sort-${name}` })))));

  function line(one) {
    const ids = one.runs.map((run) => run.id);
    const tick = el("input", { type: "checkbox", checked: ids.every((id) => state.chosen.has(id)), "data-key": `tick-${one.key}`,
      "aria-label": t("choose", { name: one.name }), onchange: (event) => { ids.forEach((id) => (event.target.checked ? state.chosen.add(id) : state.chosen.delete(id))); draw(); curves(); } });
    return el("tr", { class: one.inner ? "inner" : null }, el("td", {}, tick), COLUMNS.map(([name, kind]) => el(name === "model" ? "th" : "td",
      { class: kind || null, scope: name === "model" ? "row" : null }, cell(one, name))));
  }

  function cell(one, name) {
    if (name === "model") return one.runs.length > 1 && !one.inner ? [folder(one), where(one)] : [one.name, one.inner ? null : [el("span", { class: "small" }, label(one.runs[0])), where(one)]];
    if (name === "task") return named("task", one.task);
    if (name === "score") return [scored(one), el("span", { class: "small" }, one.measure || "")];
    if (name === "range") return one.low === null || one.low === one.high ? "" : `${number(one.low)} … ${number(one.high)}`;
    if (name === "status") return statuses(one);
    if (name === "parameters") return count(one.parameters);
    if (name === "seconds") return duration(one.seconds);
    if (name === "started") return one.started ? new Date(one.started * 1000 || one.started).toLocaleString([], WHEN) : "–";
    return String(one[name] ?? "–");
  }

  // On a phone the columns of task and data are left out, and stand below the name.
  const where = (one) => el("span", { class: "small phone" }, named("task", one.task), " · ", one.data || "");

  const folder = (one) => button([el("span", { "aria-hidden": "true" }, state.open.has(one.key) ? "▾ " : "▸ "), one.name,
    el("span", { class: "small" }, t("seeds", { count: one.runs.length }))], () => {
    if (!state.open.delete(one.key)) state.open.add(one.key);
    draw();
  }, { class: "fold", "aria-expanded": String(state.open.has(one.key)), "data-key": `open-${one.key}` });

  const statuses = (one) => Object.entries(one.statuses).map(([name, many]) =>
    el("span", { class: `status ${/^\w+$/.test(name) ? name : ""}` }, named("status", name), one.runs.length > 1 ? ` ${many}` : name === "running" && Number.isFinite(one.progress) ? ` ${percent(one.progress)}` : ""));

  function pager(total) {
    if (total <= ROWS) return el("p", { class: "muted" }, t("lines", { from: total ? 1 : 0, to: total, total }));
    const step = (by) => () => { state.from = Math.max(0, Math.min(total - 1, state.from + by)); draw(); };
    return el("div", { class: "row acts" }, button(t("previous"), step(-ROWS), { class: "quiet", disabled: state.from === 0, "data-key": "previous" }),
      el("span", { class: "muted" }, t("lines", { from: state.from + 1, to: Math.min(total, state.from + ROWS), total })),
      button(t("next"), step(ROWS), { class: "quiet", disabled: state.from + ROWS >= total, "data-key": "next" }));
  }

  // Curves of the runs that are ticked; while some are running, they are asked for again.
  async function curves(fresh = false) {
    const chosen = state.runs.filter((run) => state.chosen.has(run.id)).slice(0, CURVES);
    const wanted = chosen.filter((run) => !state.curves.has(run.id) || (fresh && run.status === "running"));
    await Promise.all(wanted.map(async (run) => {
      try { state.curves.set(run.id, await get(`/api/runs/${encodeURIComponent(run.id)}/curve`)); } catch { state.curves.set(run.id, null); }
    }));
    if (!chosen.length) { drawn.replaceChildren(); return; }
    const series = chosen.flatMap((run, n) => both(run, state.curves.get(run.id), n)).filter((one) => one.y.length);
    const measures = [...new Set(series.map((one) => one.measure))];
    fill(drawn, el("h2", {}, t("curves")), series.length ? null : el("p", { class: "muted" }, t("no curves")),
      measures.map((name) => chart(series.filter((one) => one.measure === name), { x: t("step"), y: named("measure", name), title: t("curves") })),
      state.chosen.size > CURVES ? el("p", { class: "muted" }, t("first curves", { count: CURVES })) : null);
  }

  const both = (run, curve, hue) => (curve ? [
    { ...points(curve.steps, curve.train || []), name: `${run.model} ${run.seed ?? ""}, ${t("train")}`, measure: "loss", hue, thin: true },
    { ...points(curve.steps, curve.valid || []), name: `${run.model} ${run.seed ?? ""}, ${t("valid")}`, measure: curve.metric || "loss", hue, dots: true }] : []);

  // Of the steps only those at which there is a value.
  const points = (steps, values) => {
    const there = steps.map((_, n) => n).filter((n) => Number.isFinite(values[n]));
    return { x: there.map((n) => steps[n]), y: there.map((n) => values[n]) };
  };

  function compare() {
    const chosen = state.runs.filter((run) => state.chosen.has(run.id));
    const only = (name) => { const found = [...new Set(chosen.map((run) => run[name]).filter(Boolean))]; return found.length === 1 ? found[0] : ""; };
    page.go("compare", "new", JSON.stringify({ models: [...new Set(chosen.map((run) => run.model))], task: only("task"), data: only("data") }));
    announce(t("compare"));
  }

  return { enter: load, leave: () => clearTimeout(timer) };
}
