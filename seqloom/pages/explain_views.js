// What the model predicts and why: predictions, influence, lens, patching, alignment.
"use strict";
(() => {
  const { el, say, number, percent, signed, visible, short } = Loom;
  const views = Loom.views;

  const labels = (side) => side.outputs.map((output) => output.label);
  const running = (side) => side.outputs.length > 1 && side.outputs.every((output) => output.at !== null);
  const strength = (loss) => Math.min(1, loss / 7); // a probability of one in a thousand is as dark as it gets

  function choices(row) {
    const found = [];
    for (let n = 1; row[`choice_${n}`] !== undefined; n += 1) found.push([row[`choice_${n}`], row[`probability_${n}`]]);
    return found;
  }

  const bar = (name, share, chosen) => el("div", { class: chosen ? "bar-row chosen" : "bar-row" },
    el("span", { class: "name" }, visible(name)), el("span", { class: "track" }, el("i", { style: `width:${(100 * share).toFixed(1)}%` })), el("span", { class: "share" }, percent(share)));

  // The tooltip of an output.
  function told(side, n) {
    const row = side.views.predictions.rows[n];
    const output = side.outputs[n];
    const head = [Loom.strong(visible(output.label)), Loom.line(el("span", { class: "soft" }, say(output.given ? "given" : "predicted")))];
    if (row.value !== undefined) return [...head, Loom.line(`${say("value")} ${number(row.value)}`)];
    const numbers = `${say("probability")} ${percent(row.probability)} · ${say("rank")} ${row.rank} · ${say("loss")} ${number(row.loss)}`;
    const chosen = output.label;
    return [...head, Loom.line(numbers), el("div", { class: "bars" }, choices(row).map(([name, share]) => bar(name, share, name === chosen)))];
  }
  Loom.told = told;

  views.predictions = (side) => {
    const { rows } = side.views.predictions;
    if (rows[0] && rows[0].value !== undefined) {
      return [el("p", {}, say("predictions.value")), Loom.chart([{ name: say("value"), y: rows.map((row) => row.value) }], { labels: labels(side).map((name) => name.split(", ").pop()), y: say("value") })];
    }
    if (!running(side)) return [el("p", {}, say("predictions.label")), ...rows.slice(0, 40).map((row, n) => apart(side, row, n))];
    const losses = rows.filter((_, n) => side.outputs[n].given).map((row) => row.loss);
    const mean = Loom.sum(losses) / losses.length;
    const said = losses.length ? el("p", { class: "muted" }, say("mean loss", { loss: number(mean), perplexity: number(Math.exp(mean)) })) : null;
    const lead = side.task === "language_model" ? side.inputs.slice(0, 1) : [];
    const text = Loom.tokens([...lead, ...labels(side)], {
      title: say("predictions"),
      colour: (n) => (n < lead.length ? null : [side.outputs[n - lead.length].given ? "doubt" : "doubt own", strength(rows[n - lead.length].loss)]),
      about: (n) => (n < lead.length ? [say("not predicted")] : told(side, n - lead.length)),
    });
    return [el("p", {}, say("predictions.about")), text.element, said];
  };

  function apart(side, row, n) {
    const title = `${visible(side.outputs[n].label)} — ${say("probability")} ${percent(row.probability)}, ${say("rank")} ${row.rank}, ${say("loss")} ${number(row.loss)}`;
    return el("div", { class: "one" }, el("p", {}, title), el("div", { class: "bars wide" }, choices(row).map(([name, share]) => bar(name, share, side.outputs[n].label.endsWith(name)))));
  }

  views.influence = (side) => {
    const { tensors, facts } = side.views.influence;
    const methods = ["occlusion", "gradients"].filter((name) => tensors[name]);
    const all = side.outputs.map((_, n) => n);
    const rows = (method) => (method === "gradients" ? facts.explained : all); // outputs that a method has explained
    let method = methods[0];
    let output = rows(method)[rows(method).length - 1];
    const box = el("div", {});
    function draw() {
      const map = Loom.array(tensors[method]);
      const own = rows(method);
      const across = map.shape[1];
      const at = Math.floor(own.indexOf(output) / map.step);
      const values = Array.from(map.values.slice(at * across, (at + 1) * across));
      const named = own.map((n) => side.outputs[n].label);
      const pick = (n) => { output = own[Math.min(own.length - 1, n * map.step)]; draw(); };
      const whole = own.length > 1 || side.inputs.length <= 60 ? [el("p", { class: "muted" }, say("rows and columns")), Loom.map(map, named, side.inputs, { signed: true, title: say("map"), pick })] : [];
      const controls = methods.length > 1 ? [Loom.choice(say("method"), methods.map((name) => say(name === "gradients" ? "gradients.method" : name)), methods.indexOf(method), (n) => {
        method = methods[n];
        if (!rows(method).includes(output)) output = rows(method)[rows(method).length - 1];
        draw();
      })] : [];
      controls.push(own.length > 1 ? chooser(side, own, output, (n) => { output = n; draw(); }) : el("p", { class: "on" }, `${say("influence of")} `, Loom.strong(visible(named[0]))));
      box.replaceChildren(...[el("div", { class: "controls" }, controls), contrast(side, facts, output), coloured(side, values, map.step, output), strongest(side, values, map.step), ...whole, ...remarks(side, facts, method, output)].filter(Boolean));
    }
    draw();
    return [el("p", {}, say("influence.about")), box];
  };

  const contrast = (side, facts, output) => (facts.against ? el("p", {}, say("against.about", { label: visible(side.outputs[output].label), against: visible(facts.against[output]) })) : null);

  // The inputs by their influence on one output: a text in colours, numbers as a curve.
  function coloured(side, values, step, output) {
    const numbers = side.inputs.every((name) => !Number.isNaN(Number(name)) || !Number.isNaN(Date.parse(name)));
    if (numbers && step === 1) return Loom.chart([{ name: say("influence"), y: values }], { labels: side.inputs, y: say("influence") });
    const largest = Math.max(...values.map(Math.abs), 1e-9);
    const of = (n) => values[Math.floor(n / step)];
    const text = Loom.tokens(side.inputs, {
      title: say("influence"),
      colour: (n) => [of(n) > 0 ? "for" : "against", Math.abs(of(n)) / largest],
      about: (n) => [Loom.strong(signed(of(n))), Loom.line(`${visible(side.outputs[output].label)} ← ${visible(side.inputs[n])}`)],
    });
    text.reveal(step * values.findIndex((value) => Math.abs(value) === largest));
    return text.element;
  }

  function chooser(side, own, output, pick) {
    const list = el("select", { "aria-label": say("output"), onchange: (event) => pick(Number(event.target.value)) },
      own.map((n) => el("option", { value: n, selected: n === output }, `${n + 1}: ${short(side.outputs[n].label, 40)}`)));
    return el("label", { class: "on" }, `${say("influence of")} `, list);
  }

  function strongest(side, values, step) {
    if (step > 1) return null;
    const order = [...values.keys()].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a])).slice(0, 5).filter((n) => values[n]);
    if (!order.length) return null;
    return el("p", { class: "muted" }, `${say("strongest")}${say("colon")}`, order.map((n, k) => `${k ? ", " : ""}${visible(side.inputs[n])} ${signed(values[n])}`).join(""));
  }

  function remarks(side, facts, method, output) {
    const found = [];
    if (method === "gradients" && facts.accounted) {
      const share = facts.accounted[facts.explained.indexOf(output)];
      if (share !== undefined) found.push(el("p", { class: "muted" }, say("accounted", { share: share === null ? "–" : `${(100 * share).toFixed(1)} %`, baseline: Loom.tell(String(facts.baseline)) })));
      if (facts.explained.length < side.outputs.length) found.push(el("p", { class: "muted" }, say("not integrated", { count: facts.explained.length, all: side.outputs.length })));
    }
    if (facts.left_out) found.push(el("p", { class: "muted" }, Loom.tell(facts.left_out)));
    return found;
  }

  views.lens = (side) => {
    const { rows, tensors, facts } = side.views.lens;
    const about = [el("p", {}, say("lens.about")), facts.remark ? el("p", { class: "muted" }, Loom.tell(facts.remark)) : null];
    const layers = facts.layers;
    const count = side.outputs.length;
    if (rows[0] && rows[0].value !== undefined) {
      const lines = layers.map((name, l) => ({ name: Loom.tell(name), y: rows.slice(l * count, (l + 1) * count).map((row) => row.value) }));
      return [...about, Loom.chart(lines, { labels: labels(side).map((name) => name.split(", ").pop()), y: say("value") })];
    }
    const cell = (l, n) => rows[l * count + n];
    const few = count <= 200 && rows.length === layers.length * count;
    if (!few) return [...about, Loom.map(Loom.array(tensors.probability), layers, labels(side), { title: say("lens"), largest: 1 })];
    const head = el("tr", {}, el("th", {}, say("layer")), side.outputs.map((one) => el("th", {}, short(one.label, 14))));
    const body = layers.map((name, l) => el("tr", {}, el("th", {}, Loom.tell(name)), side.outputs.map((_, n) => lensCell(cell(l, n)))));
    return [...about, el("div", { class: "scroll lens", tabindex: "0" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body.reverse())))];
  };

  function lensCell(row) {
    const said = () => [Loom.strong(visible(row.label)), Loom.line(`${say("probability")} ${percent(row.probability)} · ${say("rank")} ${row.rank}`), Loom.line(`${say("best")}${say("colon")}${visible(row.best)} ${percent(row.best_probability)}`)];
    const made = el("td", { class: row.rank === 1 ? "token right" : "token", "data-kind": "sure", tabindex: "-1", style: `--strength:${Math.round(100 * row.probability)}%` }, short(row.best, 14));
    made.addEventListener("mouseenter", () => Loom.point(made, said));
    made.addEventListener("click", () => Loom.point(made, said));
    made.addEventListener("mouseleave", Loom.hide);
    return made;
  }

  views.patching = (side) => {
    const { tensors, facts } = side.views.patching;
    const map = Loom.array(tensors.effect);
    const names = { first: visible(facts.class_a), second: visible(facts.class_b), here: number(facts.score_a), there: number(facts.score_b), output: facts.output + 1 };
    const told = [say("patching.about"), say(facts.class_a === facts.class_b ? "patching.same" : "patching.scores", names)];
    const remarks = (facts.remarks || []).map((text) => el("p", { class: "muted" }, Loom.tell(text)));
    const about = (r, c, value) => [Loom.strong(percent(value)), Loom.line(`${Loom.tell(facts.places[r])}, ${visible(side.inputs[c])}`)];
    return [...told.map((text) => el("p", {}, text)), ...remarks, Loom.map(map, facts.places.map(Loom.tell), side.inputs, { signed: true, about: facts.share ? about : null, largest: facts.share ? Math.max(1, Math.min(map.largest, 2)) : map.largest, title: say("patching") })];
  };

  views.alignment = (side) => {
    const { tensors, facts, rows } = side.views.alignment;
    const map = Loom.array(tensors.mean);
    const rates = rows.some((row) => row.error_rate !== null && row.error_rate !== undefined);
    const head = [say("alignment"), say("forward"), ...(rates ? [say("error rate")] : [])];
    const body = rows.map((row) => [Loom.tell(row.name), row.forward === null ? "–" : percent(row.forward), ...(rates ? [number(row.error_rate)] : [])]);
    const table = Loom.folded(say("alignment.maps"), () => Loom.table(head, body, [1, 2]), rates);
    return [el("p", {}, say("alignment.about")), Loom.map(map, facts.target_tokens, facts.source_tokens, { title: say("alignment") }), table];
  };

  // Facts of a view as a short list; those that are drawn elsewhere are left out.
  Loom.facts = (facts, drawn = []) => {
    const shown = Object.entries(facts).filter(([name, value]) => !drawn.includes(name) && (typeof value === "string" || typeof value === "number"));
    if (!shown.length) return [];
    return [el("dl", {}, shown.map(([name, value]) => el("div", {}, el("dt", {}, say(name.replaceAll("_", " "))), el("dd", {}, typeof value === "number" ? number(value) : Loom.tell(value)))))];
  };
})();
