// Runs of one model on one data set, with their seeds, as one line; filtered and in order.
import { number } from "./dom.js";

// An id is the names of folders, each escaped as in an address, joined by ~.
export const label = (run) => run.id.split("~").map((part) => { try { return decodeURIComponent(part); } catch { return part; } }).join("/");

export function grouped(runs, { filter, task, status }) {
  const groups = new Map();
  for (const run of runs) {
    if (task && run.task !== task) continue;
    if (status && run.status !== status) continue;
    if (filter && !`${run.model} ${run.task} ${run.data} ${run.status} ${label(run)}`.toLowerCase().includes(filter)) continue;
    const key = [run.task, run.data, run.model, run.inside || "", run.score?.name].join("\u0001");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(run);
  }
  return [...groups].map(([key, found]) => line(key, found));
}

function line(key, runs, inner = false) {
  const scores = runs.map((run) => run.score?.value).filter((value) => Number.isFinite(value));
  const first = runs[0];
  const statuses = {};
  for (const run of runs) statuses[run.status] = (statuses[run.status] || 0) + 1;
  return {
    key, runs, inner, statuses, model: first.model, task: first.task, data: first.data, measure: first.score?.name,
    name: inner ? `${first.model} ${first.seed ?? label(first)}` : first.model || label(first),
    better: first.score?.better,
    score: scores.length ? scores.reduce((a, b) => a + b, 0) / scores.length : null,
    low: scores.length ? Math.min(...scores) : null, high: scores.length ? Math.max(...scores) : null,
    progress: runs.length === 1 ? first.progress : null, parameters: first.parameters, status: Object.keys(statuses)[0],
    seconds: total(runs.map((run) => run.seconds)),
    started: runs.reduce((latest, run) => (time(run.started) > time(latest) ? run.started : latest), first.started),
  };
}

const total = (values) => (values.some(Number.isFinite) ? values.filter(Number.isFinite).reduce((a, b) => a + b, 0) : NaN);
const time = (value) => (typeof value === "number" ? value : Date.parse(value) / 1000 || 0);

// The groups in order, each followed by its runs if it is unfolded.
export function arrange(groups, { sort, down, open }) {
  const value = (one) => (sort === "range" ? one.high - one.low : sort === "started" ? time(one.started) : one[sort]);
  const missing = (found) => found === null || found === undefined || Number.isNaN(found);
  groups.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    return (down ? -1 : 1) * (typeof x === "string" ? x.localeCompare(y) : x - y);
  });
  return groups.flatMap((one) => (open.has(one.key) && one.runs.length > 1
    ? [one, ...[...one.runs].sort((a, b) => (a.seed ?? 0) - (b.seed ?? 0)).map((run) => line(`${one.key}\u0001${run.id}`, [run], true))] : [one]));
}

export const scored = (one) => number(one.score, 4);
