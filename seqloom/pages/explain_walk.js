// One attention head for one query, number by number.
"use strict";
(() => {
  const { el, say, number, visible, views } = Loom;
  const TERMS = 4; // of a sum that are written out
  const ROWS = 60; // of a table

  const show = (value) => number(value, 3);
  const term = (a, b) => `${show(a)} · ${b < 0 ? `(${show(b)})` : show(b)}`;

  // The first terms of a sum, and its value.
  function sum(left, right) {
    const terms = left.slice(0, TERMS).map((value, n) => term(value, right[n]));
    const total = Loom.sum(left.map((value, n) => value * right[n]));
    return [`${terms.join(" + ")}${left.length > TERMS ? " + …" : ""} = ${show(total)}`, total];
  }

  views.walk = (side) => {
    const { tensors, rows, facts } = side.views.walk;
    const part = (name) => Loom.array(tensors[name]);
    const query = Array.from(part("query").values);
    const vectors = (name) => rows.map((_, n) => Array.from(part(name).slice(n).values));
    const [keys, values] = [vectors("keys"), vectors("values")];
    const scores = Array.from(part("scores").values);
    const weights = Array.from(part("weights").values);
    const context = Array.from(part("context").values);
    const names = rows.map((row) => row.token);
    const shown = names.slice(0, ROWS);
    const place = `${Loom.tell(facts.layer)}, ${say("head")} ${facts.head}`;
    const dims = query.map((_, n) => String(n + 1));
    return [
      el("p", {}, say("walk.about")), names.length > ROWS ? el("p", { class: "muted" }, say("many tokens", { shown: ROWS, count: names.length })) : null, el("p", {}, say("walk.where", { place, query: visible(facts.query), score: Loom.tell(facts.score), align: Loom.tell(facts.align) })),
      el("h3", {}, `1. ${say("walk.query")}`), list(query),
      el("h3", {}, `2. ${say("walk.scores")}`), scoreTable(shown, query, keys, scores, facts),
      el("h3", {}, `3. ${say("walk.weights")}`), weightTable(shown, scores, weights, facts),
      el("h3", {}, `4. ${say("walk.context")}`), el("p", { class: "muted" }, say("walk.context.about")), contextTable(weights, values, context),
      Loom.folded(say("walk.keys"), () => Loom.map(part("keys"), names, dims, { signed: true, title: say("walk.keys") })),
      Loom.folded(say("walk.values"), () => Loom.map(part("values"), names, dims, { signed: true, title: say("walk.values") })),
    ];
  };

  const list = (values) => el("p", { class: "numbers" }, `[${values.map(show).join(", ")}]`);

  function scoreTable(names, query, keys, scores, facts) {
    const simple = /^q k/.test(facts.score) && keys[0] && keys[0].length === query.length;
    const scaled = /sqrt/.test(facts.score);
    const head = [say("walk.key"), ...(simple ? ["q · k"] : []), ...(simple && scaled ? [`/ √${query.length}`] : []), say("walk.score")];
    const body = names.map((name, n) => {
      const [text, total] = simple ? sum(query, keys[n]) : ["", 0];
      return [visible(name), ...(simple ? [text] : []), ...(simple && scaled ? [show(total / Math.sqrt(query.length))] : []), show(scores[n])];
    });
    return Loom.table(head, body, [head.length - 1]);
  }

  // The sums of the softmax, where it is one.
  function weightTable(names, scores, weights, facts) {
    const soft = facts.align === "softmax";
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const total = Loom.sum(powers);
    const body = names.map((name, n) => [visible(name), show(scores[n]), ...(soft ? [show(powers[n]), `${show(powers[n])} / ${show(total)}`] : []), el("span", { class: "weight" }, el("i", { style: `width:${(100 * weights[n]).toFixed(1)}px` }), show(weights[n]))]);
    return Loom.table([say("walk.key"), "e", ...(soft ? ["exp(e − max)", "/ Σ"] : []), say("weight")], body, soft ? [1, 2] : [1]);
  }

  function contextTable(weights, values, context) {
    const body = context.slice(0, 8).map((value, d) => {
      const [text] = sum(weights, values.map((vector) => vector[d]));
      return [String(d + 1), text, show(value)];
    });
    return el("div", {}, Loom.table(["", "Σ a · v", say("walk.model")], body, [2]), list(context));
  }
})();
