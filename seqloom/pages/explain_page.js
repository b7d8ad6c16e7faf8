// Puts the page together, in the language that is chosen; two runs stand side by side.
"use strict";
(() => {
  const { el, say, data, number, signed, visible } = Loom;
  const main = document.getElementById("main");
  const buttons = [...document.querySelectorAll("button[data-language]")];
  const ORDER = ["predictions", "influence", "attention", "alignment", "memory", "lens", "patching", "gradients", "walk"];

  function about(side) {
    const texts = typeof side.text === "object" ? side.text : {};
    const rows = [[say("model"), side.model], [say("task"), (side.title || [side.task, side.task])[Loom.language === "zh" ? 1 : 0]], [say("run"), side.run],
      ...Object.entries(texts).map(([name, text]) => [say(name), text]), ...(side.line ? [[say("row"), String(side.line)]] : [])];
    return el("dl", {}, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }

  function panel(side, name) {
    const drawn = Loom.views[name] ? Loom.views[name](side) : Loom.views.other(side, name);
    return drawn.filter(Boolean);
  }

  function section(name, content) {
    return el("section", { id: name }, el("h2", {}, say(name)), ...content);
  }

  function sections(sides) {
    const named = ORDER.filter((name) => sides.some((side) => side.views[name]));
    return named.map((name) => {
      if (sides.length === 1) return section(name, panel(sides[0], name));
      if (name === "gradients") return section(name, Loom.gradients(sides.filter((side) => side.views.gradients)).filter(Boolean));
      return section(name, [el("div", { class: "sides" }, sides.map((side, n) => el("div", { class: "side" }, el("h3", { class: `hue-${n}` }, side.name),
        ...(side.views[name] ? panel(side, name) : [el("p", { class: "muted" }, Loom.tell(side.missing[name] || "–"))]))))]);
    });
  }

  function difference() {
    const [first, second] = data.runs;
    const view = data.difference;
    if (!view) return section("difference", [el("p", {}, say("difference.none"))]);
    const { facts, tensors } = view;
    const names = { first: first.name, second: second.name };
    const unit = tensors.loss ? "loss" : "value"; // a lower loss is better; of two numbers neither is
    const change = Loom.array(tensors[unit]).values;
    const largest = Math.max(...Array.from(change, Math.abs), 1e-9);
    const share = tensors.probability ? Loom.array(tensors.probability).values : null;
    const text = Loom.tokens(facts.outputs, {
      title: say("difference"),
      colour: (n) => [(change[n] < 0) === (unit === "loss") ? "for" : "against", Math.abs(change[n]) / largest],
      about: (n) => [Loom.strong(visible(facts.outputs[n])), Loom.line(`${say(unit)} ${signed(change[n])}`), ...(share ? [Loom.line(`${say("probability")} ${signed(share[n])}`)] : [])],
    });
    const told = facts.aligned === "stretch" ? [el("p", {}, say("difference.stretch"))] : [];
    told.push(el("p", {}, say(unit === "loss" ? "difference.about" : "difference.value", names)));
    if (facts.bits_per_byte) told.push(el("p", { class: "muted" }, say("difference.bits", { first: number(facts.bits_per_byte[0]), second: number(facts.bits_per_byte[1]) })));
    if (facts.mean_loss !== undefined) told.push(el("p", { class: "muted" }, say("difference.mean", { loss: signed(facts.mean_loss) })));
    const map = tensors.influence ? [el("h3", {}, say("difference.map")), Loom.map(Loom.array(tensors.influence), facts.outputs, facts.inputs, { signed: true, title: say("difference.map") })] : [];
    return section("difference", [...told, text.element, ...map]);
  }

  function rest(sides) {
    const notes = [...new Set(sides.flatMap((side) => side.notes))];
    const missing = sides.flatMap((side) => Object.entries(side.missing).map(([name, reason]) => [sides.length > 1 ? `${side.name}: ${say(name)}` : say(name), reason]));
    const found = [];
    if (notes.length) found.push(el("section", {}, el("h2", {}, say("notes")), notes.map((note) => el("p", {}, Loom.tell(note)))));
    if (missing.length) found.push(el("section", { id: "missing" }, el("h2", {}, say("missing")), el("ul", {}, missing.map(([name, reason]) => el("li", {}, `${name}${say("colon")}${Loom.tell(reason)}`)))));
    return found;
  }

  function reliability() {
    const { rows, facts } = data.calibration;
    const points = { name: say("accuracy"), x: rows.map((row) => row.confidence), y: rows.map((row) => row.accuracy), dots: true };
    const ends = { name: "", x: [0, 1], y: [null, null] };
    const told = say("calibration.about", { error: number(facts.error), accuracy: `${(100 * facts.accuracy).toFixed(1)} %`, count: facts.predictions });
    const body = rows.map((row) => [`${number(row.from)}–${number(row.to)}`, number(row.confidence), number(row.accuracy), String(row.count)]);
    return section("calibration", [el("p", {}, told), Loom.chart([points, ends], { x: say("confidence"), y: say("accuracy"), low: 0, high: 1, diagonal: true, single: true }),
      Loom.folded(say("data table"), () => Loom.table([say("confidence"), say("mean"), say("accuracy"), say("count")], body, [1, 2, 3]))]);
  }

  function mistakes() {
    const items = data.worst.map((one, n) => {
      const side = data.runs[n];
      const texts = Object.values(side.text || {});
      const parts = [`${say("loss")} ${number(one.loss)}`, ...(one.truth ? [`${say("truth")}${say("colon")}${one.truth.slice(0, 60)}`, `${say("prediction")}${say("colon")}${one.predicted.slice(0, 60)}`] : []), (texts[0] || `${say("row")} ${one.line}`).slice(0, 80)];
      return Loom.folded(`${n + 1}. ${parts.join(" · ")}`, () => el("div", {}, ...["influence", "predictions"].filter((name) => side.views[name]).flatMap((name) => [el("h3", {}, say(name)), ...panel(side, name)])), n === 0);
    });
    const notes = data.about.notes.map((note) => el("p", { class: "muted" }, Loom.tell(note)));
    return section("worst", [el("p", {}, say("worst.about", { count: data.about.rows })), ...notes, ...items]);
  }

  Loom.worst = () => [about({ ...data.runs[0], text: {}, line: null, run: data.about.run }), mistakes(), reliability(), ...rest(data.runs.slice(0, 1))];

  function title() {
    const names = [...new Set(data.runs.map((side) => side.name))].join(" / ");
    return say("title", { name: names });
  }

  function draw() {
    Loom.forget();
    Loom.hide();
    document.documentElement.lang = Loom.language === "zh" ? "zh-CN" : "en";
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.language === Loom.language));
    const head = [el("h1", {}, title())];
    document.title = title();
    let body = [];
    if (data.worst) body = Loom.worst();
    else if (data.runs.length > 1) body = [el("div", { class: "sides" }, data.runs.map((side, n) => el("div", { class: "side" }, el("h3", { class: `hue-${n}` }, side.name), about(side)))), ...(data.difference === undefined ? [] : [difference()]), ...sections(data.runs), ...rest(data.runs)];
    else body = [about(data.runs[0]), ...sections(data.runs), ...rest(data.runs)];
    const contents = [...body].filter((part) => part.id && part.tagName === "SECTION");
    const nav = contents.length > 2 ? el("nav", { class: "contents" }, contents.map((part) => el("a", { href: `#${part.id}` }, say(part.id)))) : null;
    main.replaceChildren(...head, ...(nav ? [nav] : []), ...body, el("footer", { class: "muted" }, say("made by", { version: data.version })));
    document.body.dataset.drawn = String(Math.round(performance.now())); // milliseconds since the page was opened
  }

  for (const button of buttons) button.addEventListener("click", () => { Loom.language = button.dataset.language; draw(); });
  draw();
})();
