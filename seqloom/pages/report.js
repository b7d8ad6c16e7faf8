// Draws the charts, switches the language, follows the colour scheme, and prepares the page for printing.
"use strict";
(() => {
  const { styles, dashes, panels } = JSON.parse(document.getElementById("charts").textContent);
  const articles = [...document.querySelectorAll("article")];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const hidden = new Set();
  let language = "en";
  let paper = false;

  // Plotly interprets some HTML in texts, so names are escaped.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function colours() {
    const from = getComputedStyle(paper ? document.querySelector(".paper") : document.documentElement);
    const read = (name) => from.getPropertyValue(`--${name}`).trim();
    const hues = styles.map((style) => read(`hue-${style.hue}`));
    return { ink: read("ink"), soft: read("soft"), line: read("line"), strong: read("strong"), card: read("card"), hues };
  }

  function trace(series, panel, colour) {
    const style = styles[series.entry] || { symbol: "circle", dash: "2px,4px" };
    const hue = series.draw === "truth" ? colour.ink : series.entry === null ? colour.soft : colour.hues[series.entry];
    const quiet = ["thin", "faint", "front", "band"].includes(series.draw) && series.dash === null;
    const value = (axis, letter) => `${plain(axis.title)}: %{${letter}:${axis.format}}${plain(axis.unit)}`;
    const sides = panel.y.named ? [value(panel.x, "x")] : [value(panel.x, "x"), value(panel.y, "y")];
    const drawn = {
      type: "scatter", x: series.x, y: series.y, showlegend: false, cliponaxis: false, visible: !hidden.has(series.entry),
      mode: { line: "lines", thin: "lines", front: "lines", truth: "lines", bar: "lines", band: "lines", both: "lines+markers" }[series.draw] || "markers",
      line: { color: hue, width: series.draw === "thin" ? 1 : series.draw === "front" ? 1.5 : 2.5, dash: style.dash },
      opacity: series.draw === "thin" ? 0.4 : series.draw === "faint" ? 0.5 : 1,
      hoverinfo: quiet ? "skip" : undefined,
      hovertemplate: quiet ? undefined : `<b>${plain(series.name)}</b><br>${sides.join("<br>")}<extra></extra>`,
    };
    if (series.draw === "thin" || series.draw === "truth") drawn.line.dash = "solid";
    if (series.draw === "truth") drawn.line.width = 1.8;
    if (series.draw === "band") Object.assign(drawn, { fill: "toself", opacity: 0.18, line: { width: 0 }, fillcolor: hue });
    if (series.dash !== null) Object.assign(drawn, { opacity: 1, line: { color: hue, width: 1.2, dash: dashes[series.dash % dashes.length] } });
    if (series.draw === "front") drawn.line.shape = "hv";
    if (series.draw === "bar") drawn.line = { color: colour.ink, width: 6 };
    const wider = style.symbol.startsWith("triangle") ? 1.25 : 1; // a triangle of the same width looks smaller
    const size = series.draw === "faint" ? 5 : wider * (series.draw === "points" ? 11 : 9);
    const symbols = series.open.length ? series.open.map((open) => style.symbol + (open ? "-open" : "")) : style.symbol;
    drawn.marker = { color: hue, size, symbol: series.draw === "faint" ? "circle" : symbols };
    if (!series.open.length) drawn.marker.line = { width: series.draw === "faint" ? 0 : 1, color: colour.card };
    if (series.low.some((low) => low !== null)) {
      const middle = series.upright ? series.y : series.x;
      const reach = (end, i) => (end === null ? 0 : Math.abs(end - middle[i])); // a point may have no interval
      drawn[series.upright ? "error_y" : "error_x"] = {
        type: "data", symmetric: false, color: hue, thickness: 2, width: 5,
        array: series.high.map(reach), arrayminus: series.low.map(reach),
      };
    }
    return drawn;
  }

  // Where ticks do not fit, only every second or third is drawn.
  function axis(given, colour, room) {
    const made = {
      type: given.log ? "log" : "linear", gridcolor: colour.line, linecolor: colour.strong, zeroline: false, fixedrange: true,
      automargin: true, tickfont: { color: colour.soft }, exponentformat: "SI", nticks: 6,
    };
    if (given.ticks.length) {
      const step = given.named ? 1 : Math.ceil(given.ticks.length / room);
      const ticks = given.ticks.filter((_, place) => place % step === 0);
      Object.assign(made, { tickvals: ticks.map((tick) => tick[0]), ticktext: ticks.map((tick) => plain(tick[1])), tickangle: 0 });
    }
    if (given.range) made.range = given.log ? given.range.map(Math.log10) : given.range;
    if (given.format.endsWith("%")) Object.assign(made, { tickformat: ".3~%", rangemode: "tozero" }); // 0.5% and 1%, not 1% twice
    return made;
  }

  function layout(panel, element, colour) {
    const x = axis(panel.x, colour, element.clientWidth / 48);
    const y = axis(panel.y, colour, element.clientHeight / 24);
    x.title = { text: plain(panel.x.title), font: { size: 12, color: colour.soft }, standoff: 8 };
    if (panel.y.named) {
      const rows = panel.y.ticks.length;
      Object.assign(y, { range: [0.45 - rows, 0.5], showgrid: false, tickfont: { color: colour.ink, size: 13 } });
      element.style.height = `${40 * rows + 74}px`;
    }
    const shapes = panel.rules.map((rule) => ({
      type: "line", line: { color: colour.soft, width: 1.2, dash: "dot" }, layer: "below",
      ...(rule.x === null ? { xref: "paper", x0: 0, x1: 1, y0: rule.y, y1: rule.y }
        : { yref: "paper", y0: 0, y1: 1, x0: rule.x, x1: rule.x }),
    }));
    const place = (value, log) => (log ? Math.log10(value) : value);
    const annotations = panel.rules.map((rule) => ({
      text: plain(rule.label), showarrow: false, font: { size: 11, color: colour.soft }, bgcolor: colour.card,
      ...(rule.x === null
        ? { xref: "paper", x: 0, xanchor: "left", y: place(rule.y, panel.y.log), yanchor: "bottom" }
        : { yref: "paper", y: 1, yanchor: "bottom", x: place(rule.x, panel.x.log), xanchor: "center" }),
    }));
    return {
      xaxis: x, yaxis: y, shapes, annotations, autosize: true, dragmode: false, hovermode: "closest",
      margin: { l: 46, r: 20, t: panel.rules.some((rule) => rule.x !== null) ? 24 : 10, b: 40 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(element).fontFamily, size: 12, color: colour.ink },
      hoverlabel: { bgcolor: colour.card, bordercolor: colour.strong, font: { color: colour.ink } },
    };
  }

  function draw() {
    const colour = colours();
    for (const element of document.querySelectorAll(`article[data-language="${language}"] .plot`)) {
      const panel = panels[element.id];
      const traces = panel.series.map((series) => trace(series, panel, colour));
      Plotly.react(element, traces, layout(panel, element, colour), { displayModeBar: false, displaylogo: false, responsive: true });
      Plotly.Plots.resize(element);
    }
  }

  function show(chosen, scroll) {
    const before = articles.find((article) => !article.hidden);
    const sections = [...before.querySelectorAll("section")];
    const above = sections.findLast((section) => section.getBoundingClientRect().top < 80);
    language = chosen;
    for (const article of articles) {
      article.hidden = article.dataset.language !== language;
      if (!article.hidden) {
        document.documentElement.lang = article.lang;
        document.title = article.dataset.title;
      }
    }
    for (const button of document.querySelectorAll(".languages button")) {
      button.setAttribute("aria-pressed", button.dataset.language === language);
    }
    draw();
    if (scroll && above) document.getElementById(above.id.replace(/^(en|zh)/, language)).scrollIntoView();
  }

  const requested = () => (/^#(en|zh)(-|$)/.exec(location.hash) || [])[1];

  for (const button of document.querySelectorAll(".languages button")) {
    button.addEventListener("click", () => {
      history.replaceState(null, "", `#${button.dataset.language}`);
      show(button.dataset.language, true);
    });
  }
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const entry = Number(button.dataset.entry);
      if (!hidden.delete(entry)) hidden.add(entry);
      for (const twin of document.querySelectorAll(`.legend button[data-entry="${entry}"]`)) {
        twin.setAttribute("aria-pressed", !hidden.has(entry));
      }
      draw();
    });
  }

  function print(begins) {
    paper = begins;
    document.documentElement.classList.toggle("printing", begins);
    for (const fold of document.querySelectorAll("details")) {
      if (begins) fold.dataset.was = fold.open;
      fold.open = begins || fold.dataset.was === "true";
    }
    draw();
  }

  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  window.addEventListener("hashchange", () => requested() && requested() !== language && show(requested(), false));
  dark.addEventListener("change", draw);
  show(requested() || (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"), false);
})();
