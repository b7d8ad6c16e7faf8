// Compare: the comparisons there are, the report of one, and starting one from a file.
import { get } from "./api.js";
import { el, empty, fault, fill, number, put } from "./dom.js";
import { framed } from "./frame.js";
import { jobView } from "./job.js";
import { order } from "./order.js";
import { named, t } from "./words.js";

export function create(section, page) {
  const place = el("div");
  let current = null;
  let job = null;
  put(section, place);

  async function enter(rest) {
    const wanted = rest.join("/");
    if (wanted === current && current !== "") return;
    job?.leave();
    [job, current] = [null, wanted];
    if (rest[0] === "job" && rest[1]) { job = jobView(rest[1], page); fill(place, back(), job.element); return; }
    if (rest[0] === "new") { fill(place, back(), order(page, hint(rest[1]))); return; }
    if (rest[0]) { await report(rest[0]); return; }
    await list();
  }

  const back = () => el("p", { class: "row acts" }, el("a", { href: "#/compare" }, t("all comparisons")));

  async function list() {
    const form = el("details", { class: "panel" }, el("summary", {}, t("start one")));
    const jobs = el("div");
    fill(place, form);
    if (page.server().jobs === false) fill(form, el("summary", {}, t("start one")), el("p", { class: "muted" }, t("no jobs")));
    else form.append(order(page, {}));
    try {
      const [found, running] = await Promise.all([get("/api/comparisons"), get("/api/jobs").catch(() => ({ jobs: [] }))]);
      if (current !== "") return;
      put(jobs, jobList(running.jobs || []));
      put(place, jobs, found.comparisons.length ? comparisons(found.comparisons)
        : empty(t("no comparisons"), t("compare.empty"), "seqloom compare --data sample:languages --budget minutes=5"));
      if (!found.comparisons.length) form.open = true;
    } catch (error) { if (error.status !== 401) put(place, fault(error, () => { current = null; enter([]); })); }
  }

  async function report(id) {
    fill(place, back());
    const address = `/api/comparisons/${encodeURIComponent(id)}`;
    try {
      const found = await get(address);
      const row = found.comparison || found;
      if (current !== id) return;
      const plain = decode(id);
      put(place, el("h2", {}, plain), el("p", { class: "muted" }, [named("task", row.task), row.data, named("status", row.status)].filter(Boolean).flatMap((part, n) => (n ? [" · ", part] : [part]))),
        row.report === false ? el("p", {}, found.message || t("no report")) : framed(`${address}/report`, "report", t("report of", { name: plain })));
    } catch (error) { put(place, fault(error, () => report(id))); }
  }

  return { enter, leave: () => { job?.leave(); if (job) { job = null; current = null; } } };
}

function hint(text) { try { return JSON.parse(text) || {}; } catch { return {}; } }
const decode = (id) => id.split("~").map((part) => { try { return decodeURIComponent(part); } catch { return part; } }).join("/");

const comparisons = (rows) => [el("h2", {}, t("comparisons")), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("comparisons") }, el("table", {},
  el("thead", {}, el("tr", {}, ["comparison", "task", "best", "score", "status", "started"].map((name) =>
    el("th", { class: name === "score" ? "number" : ["started", "task"].includes(name) ? "less" : null }, t(`column.${name}`))))),
  el("tbody", {}, rows.map((row) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: `#/compare/${encodeURIComponent(row.id)}` }, decode(row.id)),
    el("span", { class: "small" }, row.data || "", row.models?.length ? ` · ${row.models.join(", ")}` : "")),
  el("td", { class: "less" }, named("task", row.task)), el("td", {}, row.best || row.choice || "–"),
  el("td", { class: "number" }, number(row.score?.value, 4), el("span", { class: "small" }, row.score?.name || "")),
  el("td", {}, el("span", { class: `status ${/^\w+$/.test(row.status) ? row.status : ""}` }, named("status", row.status))),
  el("td", { class: "less" }, row.started ? new Date(row.started).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : "–"))))))];

const jobList = (jobs) => (jobs.length ? [el("h2", {}, t("jobs")), el("ul", { class: "jobs" }, jobs.slice(0, 20).map((one) => el("li", {},
  el("a", { href: `#/compare/job/${encodeURIComponent(one.id)}` }, named("kind", one.kind), " ", String(one.asked?.data ?? one.id)), " ",
  el("span", { class: `status ${/^\w+$/.test(one.state) ? one.state : ""}` }, named("status", one.state)))))] : null);
