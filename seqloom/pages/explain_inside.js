// Inside the layers: attention, memory, gradients.
"use strict";
(() => {
  const { el, svg, say, number, signed, visible, views } = Loom;

  views.other = (side, name) => Loom.facts(side.views[name].facts);

  const title = (name, about) => {
    const sides = (about.sides || []).filter(Boolean);
    const told = Loom.tell(name);
    return about.kind === "source" && sides.length === 2 && !/source/.test(name) ? `${told}: ${say(sides[0])} → ${say(sides[1])}` : told;
  };

  views.attention = (side) => {
    const { tensors, rows, facts } = side.views.attention;
    const names = Object.keys(tensors);
    const rolled = names.filter((name) => tensors[name].shape.length === 2);
    const large = el("div", { class: "large" });
    const buttons = [];
    function enlarge(name, head, button) {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      const about = facts.layers[name];
      const map = head === null ? Loom.array(tensors[name]) : Loom.array(tensors[name]).slice(head);
      const row = head === null ? null : rows.find((one) => one.layer === name && one.head === head + 1);
      const numbers = row ? [`${say("entropy")} ${number(row.entropy)}`, row.distance === null ? null : `${say("distance")} ${number(row.distance)}`, row.correlation === undefined || row.correlation === null ? null : `${say("correlation.short")} ${number(row.correlation)}`].filter(Boolean).join(" · ") : say("rollout");
      large.replaceChildren(el("h3", {}, head === null ? title(name, about) : `${title(name, about)}, ${say("head")} ${head + 1}`), el("p", { class: "muted" }, numbers), Loom.map(map, about.rows, about.columns, { title: name, largest: map.largest }));
    }
    const grids = names.filter((name) => !rolled.includes(name)).map((name) => {
      const map = Loom.array(tensors[name]);
      const cells = Array.from({ length: map.shape[0] }, (_, head) => {
        const button = el("button", { type: "button", "aria-pressed": "false", "aria-label": `${name}, ${say("head")} ${head + 1}` }, Loom.thumbnail(map.slice(head)), `${say("head")} ${head + 1}`);
        button.addEventListener("click", () => enlarge(name, head, button));
        buttons.push(button);
        return [name, head, button];
      });
      return [title(name, facts.layers[name]), cells];
    });
    const rolls = rolled.map((name) => {
      const button = el("button", { type: "button", "aria-pressed": "false", "aria-label": name }, Loom.thumbnail(Loom.array(tensors[name])), Loom.tell(name));
      button.addEventListener("click", () => enlarge(name, null, button));
      buttons.push(button);
      return button;
    });
    const parts = grids.map(([name, cells]) => el("div", {}, el("h4", {}, name), el("div", { class: "heads" }, cells.map((cell) => cell[2]))));
    if (rolls.length) parts.push(el("div", {}, el("h4", {}, say("rollout")), el("div", { class: "heads" }, rolls)));
    const first = grids.length ? grids[grids.length - 1][1][0] : null;
    if (first) enlarge(...first);
    const told = typeof facts.rollout === "string" ? [el("p", { class: "muted" }, Loom.tell(facts.rollout))] : [];
    return [el("p", {}, say("attention.about")), ...correlations(facts), ...told, el("div", { class: "layers" }, parts), large, headTable(rows)];
  };

  function correlations(facts) {
    const found = Object.entries(facts.correlation || {}).filter(([, value]) => value !== null);
    if (!found.length) return [];
    const said = found.map(([name, value]) => `${Loom.tell(name)} ${number(value, 2)}`).join(", ");
    return [el("p", {}, say("correlation", { value: said }))];
  }

  function headTable(rows) {
    const head = [say("layer"), say("head"), say("entropy"), say("distance"), say("largest"), say("where"), say("correlation.short")];
    return Loom.folded(say("heads.table"), () => Loom.table(head, rows.map((row) => [Loom.tell(row.layer), String(row.head), number(row.entropy), number(row.distance), number(row.largest), `${visible(String(row.from))} → ${visible(String(row.to))}`, number(row.correlation)]), [1, 2, 3, 4, 6]));
  }

  // The time line: the text coloured by one curve, the curves themselves, and the units that vary most.
  views.memory = (side) => {
    const { facts } = side.views.memory;
    const layers = Object.keys(facts.layers);
    const box = el("div", {});
    const choose = layers.length > 1 ? Loom.choice(say("layer"), layers.map(Loom.tell), layers.length - 1, (n) => draw(layers[n])) : null;
    function draw(layer) { box.replaceChildren(...memoryOf(side, layer)); }
    draw(layers[layers.length - 1]);
    return [el("p", {}, say("memory.about")), choose ? el("div", { class: "controls" }, choose) : null, box];
  };

  const gate = (name) => /gate$/.test(name) || name === "write" || name === "keep";

  function memoryOf(side, layer) {
    const { rows, tensors, facts } = side.views.memory;
    const { curves, units } = facts.layers[layer];
    const own = rows.filter((row) => row.layer === layer);
    const names = own.map((row) => row.token);
    let curve = curves.find((name) => name === "write") || curves.find((name) => /change/.test(name)) || curves[0];
    const values = () => own.map((row) => row[curve]);
    let range = [0, 1];
    const measure = () => { const all = values().filter((value) => value !== null); range = [Math.min(...all), Math.max(...all)]; };
    measure();
    const text = Loom.tokens(names, {
      title: say("memory"),
      colour: (n) => ["sure", (own[n][curve] - range[0]) / Math.max(1e-9, range[1] - range[0])],
      about: (n) => [Loom.strong(visible(names[n])), ...curves.filter((name) => !/open|closed/.test(name)).map((name) => Loom.line(`${Loom.tell(name)}${say("colon")}${number(own[n][name])}`)), ...(own[n].nearest ? [Loom.line(`${say("nearest")}${say("colon")}${visible(own[n].nearest)}`)] : [])],
    });
    const list = el("select", { "aria-label": say("memory"), onchange: (event) => { curve = event.target.value; measure(); text.paint(); } }, curves.map((name) => el("option", { value: name, selected: name === curve }, Loom.tell(name))));
    const parts = [el("label", { class: "on" }, `${say("coloured by")} `, list), text.element];
    if (own.some((row) => row.nearest)) parts.push(el("p", { class: "muted" }, say("nearest.about")), Loom.tokens(own.map((row) => row.nearest ?? ""), { lines: false, colour: () => null, about: (n) => [`${visible(names[n])} → ${visible(own[n].nearest ?? "")}`] }).element);
    const line = (name) => ({ name: Loom.tell(name), y: own.map((row) => row[name]) });
    const groups = [curves.filter(gate), curves.filter((name) => /^loss/.test(name)), curves.filter((name) => /norm$|change$/.test(name)), curves.filter((name) => /rate$/.test(name))];
    const known = groups.flat();
    groups.push(curves.filter((name) => !known.includes(name) && !/open$|closed$/.test(name)));
    groups.forEach((group, n) => { if (group.length) parts.push(Loom.chart(group.map(line), { legend: true, labels: names, x: say("position"), ...(n === 0 ? { low: 0, high: 1 } : {}) })); });
    const shares = curves.filter((name) => /open$|closed$/.test(name));
    if (shares.length) parts.push(Loom.folded(say("shares", { open: facts.open, closed: facts.closed }), () => Loom.chart(shares.map(line), { labels: names, low: 0, high: 1 })));
    for (const [tap, numbers] of Object.entries(units)) {
      const map = Loom.array(tensors[`${layer}, ${tap} units`]);
      parts.push(Loom.folded(`${say("units")}${say("colon")}${Loom.tell(tap)}`, () => Loom.map(map, numbers.map((unit) => `${say("unit")}\u00a0${unit}`), names, { signed: true, title: tap }), tap === "state" || tap === "carry"));
    }
    return parts;
  }

  // Norms against the lag; several runs on one chart.
  views.gradients = (side) => Loom.gradients([side]);
  Loom.gradients = (sides) => {
    const many = sides.length > 1;
    const name = (side, layer) => (many ? `${side.name}, ${Loom.tell(layer)}` : Loom.tell(layer));
    const chosen = (side) => {
      const layers = Object.keys(side.views.gradients.facts.slopes);
      return many ? layers.slice(0, 1) : layers; // the embedding, which all models have
    };
    const lines = sides.flatMap((side) => chosen(side).map((layer) => {
      const { tensors, facts } = side.views.gradients;
      const y = Array.from(Loom.array(tensors[layer]).values);
      return { name: name(side, layer), y, x: y.map((_, n) => n + (facts.first_lags[layer] || 0)) };
    }));
    const parts = [el("p", {}, say("gradients.about")), Loom.chart(lines, { log: true, whole: true, x: say("lag"), y: say("norm") }), slopes(sides, name)];
    const products = sides.flatMap((side) => Object.keys(side.views.gradients.facts.jacobians).map((layer) => {
      const numbers = (kind) => Array.from(Loom.array(side.views.gradients.tensors[`${layer}, ${kind}`]).values);
      return { name: name(side, layer), x: numbers("Jacobian lags"), y: numbers("Jacobian") };
    }));
    if (products.length) parts.push(el("h3", {}, say("jacobians")), el("p", { class: "muted" }, say("jacobians.about")), Loom.chart(products, { log: true, whole: true, x: say("lag"), y: say("spectral norm") }));
    for (const side of sides) parts.push(...trained(side, many));
    return parts;
  };

  function slopes(sides, name) {
    const rows = sides.flatMap((side) => Object.entries(side.views.gradients.facts.slopes).map(([layer, slope]) => [name(side, layer), slope === null ? "–" : signed(slope), slope === null ? "–" : number(Math.exp(slope))]));
    return Loom.folded(say("slopes"), () => Loom.table([say("layer"), say("slope"), say("factor")], rows, [1, 2]), rows.length < 9);
  }

  function trained(side, many) {
    const { tensors, facts } = side.views.gradients;
    const head = many ? [el("h3", {}, side.name)] : [];
    const parts = [];
    const spectra = Object.keys(tensors).filter((key) => key.endsWith(", eigenvalues"));
    if (spectra.length) parts.push(el("h3", {}, say("eigenvalues")), el("p", { class: "muted" }, say("eigenvalues.about")), el("div", { class: "circles" }, spectra.flatMap((key) => circles(Loom.array(tensors[key]), key.replace(", eigenvalues", ""), facts))));
    for (const key of Object.keys(tensors).filter((one) => one.endsWith(", radius"))) {
      const map = Loom.array(tensors[key]);
      const steps = Array.from(Loom.array(tensors[`${key}, step`]).values);
      const blocks = Object.keys(facts.radii[key.replace(", radius", "")] || {});
      if (steps.length > 1) parts.push(Loom.chart(blocks.map((block, n) => ({ name: Loom.tell(block), x: steps, y: steps.map((_, k) => map.values[k * map.shape[1] + n]), dots: true })), { whole: true, x: say("step"), y: `${say("radius")}, ${Loom.tell(key.replace(", radius", ""))}` }));
    }
    if (tensors["training, norm"]) {
      const x = Array.from(Loom.array(tensors["training, step"]).values);
      const lines = ["norm", "clipped norm"].filter((key) => tensors[`training, ${key}`]).map((key) => ({ name: say(`training.${key}`), x, y: Array.from(Loom.array(tensors[`training, ${key}`]).values) }));
      parts.push(el("h3", {}, say("training")), Loom.chart(lines, { log: true, whole: true, x: say("step"), y: say("norm") }));
    }
    for (const note of [facts.left_out, facts.damaged].filter(Boolean)) parts.push(el("p", { class: "muted" }, Loom.tell(note)));
    return parts.length ? [...head, ...parts] : [];
  }

  // Eigenvalues (blocks, units, 2) in the complex plane, with the unit circle.
  function circles(map, layer, facts) {
    const blocks = Object.entries((facts.radii || {})[layer] || {});
    const half = 90;
    return blocks.map(([block, radius], n) => {
      const scale = 70 / Math.max(1, radius);
      const picture = svg("svg", { class: "plane", width: 2 * half, height: 2 * half, viewBox: `${-half} ${-half} ${2 * half} ${2 * half}`, role: "img", "aria-label": `${layer}, ${block}` },
        svg("path", { class: "grid", d: `M${-half} 0H${half}M0 ${-half}V${half}` }), svg("circle", { class: "unit", r: scale }));
      const values = map.slice(n).values;
      for (let k = 0; k + 1 < values.length; k += 2) picture.append(svg("circle", { class: "dot hue-0", cx: (scale * values[k]).toFixed(1), cy: (-scale * values[k + 1]).toFixed(1), r: 2.2 }));
      return el("figure", {}, picture, el("figcaption", {}, `${Loom.tell(layer)}, ${Loom.tell(block)}`, el("br"), `${say("radius")} ${number(radius)}`));
    });
  }
})();
