// The served models of a view: which there are, and what is said when there is none.
import { count, el, empty, select } from "./dom.js";
import { named, t } from "./words.js";

export const ready = (server, wanted) => server().models.filter(wanted);
export const generates = (model) => model.verb === "generate";

export const about = (model) => el("p", { class: "muted" }, [model.architecture, named("task", model.task),
  model.parameters ? t("parameters of", { count: count(model.parameters) }) : null,
  model.limit ? t("limit of", { count: model.limit }) : null, model.status && model.status !== "ready" ? named("status", model.status) : null]
  .filter(Boolean).flatMap((part, n) => (n ? [" · ", part] : [part])));

export const none = (what) => empty(t("no models"), what, "seqloom fit --data sample:python-docs --model gpt --out runs/gpt", "seqloom serve runs/gpt");

export const modelSelect = (models, chosen, changed) => select(models.map((model) => [model.name, model.name]), chosen, changed);
