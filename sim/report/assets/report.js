"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];

  // colour reads a colour of the current scheme from the style sheet.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // clock writes seconds since the start as the axis has room for.
  const clock = (s, length) => {
    const two = (n) => String(Math.floor(n)).padStart(2, "0");
    if (length >= 2 * 86400) return "day " + Math.floor(s / 86400) + (s % 86400 ? " " + two((s % 86400) / 3600) + ":" + two((s % 3600) / 60) : "");
    if (length >= 7200) return two(s / 3600) + ":" + two((s % 3600) / 60) + " h";
    const rest = s % 60;
    return Math.floor(s / 60) + ":" + two(rest) + (rest % 1 ? (rest % 1).toFixed(1).slice(1) : "");
  };

  // steps are distances of the axis that people count in.
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];

  const short = (v) => {
    if (v === null || v === undefined) return "–";
    const a = Math.abs(v);
    if (a >= 1e9) return +(v / 1e9).toFixed(2) + " G";
    if (a >= 1e6) return +(v / 1e6).toFixed(2) + " M";
    if (a >= 1e4) return +(v / 1e3).toFixed(1) + " k";
    return String(+v.toFixed(a < 10 ? 2 : 0));
  };

  // per turns tokens of each point into tokens a second.
  const per = (list, every) => list.map((n) => n / every);

  // shade draws faults behind the lines, and leases as bands below them.
  const shade = (scenario, bands) => ({
    hooks: {
      drawClear: (u) => {
        const { left, top, width, height } = u.bbox;
        const c = u.ctx;
        c.save();
        c.beginPath();
        c.rect(left, top, width, height);
        c.clip();
        for (const m of scenario.marks) {
          const from = u.valToPos(m.at, "x", true), to = u.valToPos(Math.max(m.until, m.at), "x", true);
          c.fillStyle = colour("fault");
          c.fillRect(from, top, Math.max(to - from, 0), height);
          c.strokeStyle = colour("fault-line");
          c.lineWidth = devicePixelRatio;
          c.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
          c.beginPath();
          c.moveTo(from, top);
          c.lineTo(from, top + height);
          c.stroke();
        }
        c.restore();
      },
      draw: (u) => {
        if (!bands) return;
        const { left, top, width, height } = u.bbox;
        const c = u.ctx, row = 7 * devicePixelRatio, gap = 2 * devicePixelRatio;
        c.save();
        c.beginPath();
        c.rect(left, top, width, height);
        c.clip();
        bands.forEach((band, k) => {
          const y = top + height - (bands.length - k) * (row + gap);
          c.fillStyle = colour(band.kind);
          for (const [from, to, full] of band.spans) {
            const a = u.valToPos(from, "x", true), b = u.valToPos(to, "x", true);
            c.globalAlpha = 0.25 + 0.75 * full;
            c.fillRect(a, y, Math.max(b - a, devicePixelRatio), row);
          }
        });
        c.restore();
      },
    },
  });

  // bandsOf turns, per kind of lease, what is held into spans with a strength.
  const bandsOf = (region, every) => {
    const out = [];
    region.leases.forEach((kind) => {
      const most = Math.max(1, ...kind.held), spans = [];
      kind.held.forEach((held, i) => {
        if (held === null) return;
        const full = Math.round((4 * held) / most) / 4, last = spans[spans.length - 1];
        if (last && last[1] === i * every && last[2] === full) last[1] = (i + 1) * every;
        else spans.push([i * every, (i + 1) * every, full]);
      });
      if (spans.length) out.push({ kind: kind.kind, spans });
    });
    return out;
  };

  // lines are the series of a chart, in the order in which they are drawn.
  const lines = (view, region) => {
    const every = view.every, part = region === null ? view : view.regions[region];
    const all = [
      { label: "demand", colour: "demand", width: 1, values: per(part.offered, every) },
      { label: "ideal", colour: "ideal", width: 2, dash: [2, 4], values: per(part.ideal, every) },
      { label: "admitted", colour: "admitted", width: 1.75, values: per(part.admitted, every) },
    ];
    if (region === null) {
      if (view.allowed.some((n) => n > 0)) all.push({ label: "limit", colour: "limit", width: 1.25, dash: [8, 4], values: per(view.allowed, every) });
      if (view.most.length) all.push({ label: "bound", colour: "most", width: 1.25, dash: [10, 3, 2, 3], loose: true, values: per(view.most, every) });
    }
    return all;
  };

  const build = (figure) => {
    const scenario = data.scenarios[figure.dataset.scenario];
    const chosen = document.querySelector(`input[name="strategy-${figure.dataset.scenario}"]:checked`);
    const view = scenario.budgets[figure.dataset.budget].views[chosen ? chosen.value : 0];
    const region = figure.dataset.region === "" ? null : +figure.dataset.region;
    const box = figure.querySelector(".plot");
    const every = view.every, length = scenario.length;
    const all = lines(view, region);
    const n = Math.min(view.offered.length, Math.ceil(length / every));
    const x = Array.from({ length: n }, (_, i) => (i + 0.5) * every);
    // The bound may be far above everything: it is shown where there is room.
    let top = Math.max(1e-9, ...all.filter((l) => !l.loose).flatMap((l) => l.values.slice(0, n)));
    const loose = all.filter((l) => l.loose).flatMap((l) => l.values.slice(0, n)).filter((v) => v > 0);
    const low = loose.length ? Math.min(...loose) : Infinity;
    if (low < 3 * top) top = Math.max(top, Math.min(Math.max(...loose), 3 * top));
    const bands = region === null ? null : bandsOf(view.regions[region], every);
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    const options = {
      width: Math.max(280, box.clientWidth), height: region === null ? 290 : 230,
      scales: { x: { time: false, range: [0, length] }, y: { range: [bands && bands.length ? -0.13 * top : 0, top * 1.08] } },
      axes: [
        { ...axis, values: (_, v) => v.map((s) => clock(s, length)), incrs: steps, space: 70 },
        { ...axis, values: (_, v) => v.map((y) => (y < 0 ? "" : short(y))), size: 58, label: "tokens a second", labelSize: 18, labelFont: "12px system-ui, sans-serif" },
      ],
      series: [
        { label: "at", value: (_, v) => (v === null ? "–" : clock(v, length)) },
        ...all.map((l) => ({ label: l.label, stroke: colour(l.colour), width: l.width, dash: l.dash, points: { show: false }, value: (_, v) => short(v) })),
      ],
      cursor: { drag: { x: true, y: false }, sync: { key: "s" + figure.dataset.scenario } },
      plugins: [shade(scenario, bands)],
    };
    box.replaceChildren();
    const plot = new uPlot(options, [x, ...all.map((l) => l.values.slice(0, n))], box);
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent + ". " + says(view, region, scenario));
    figure.querySelector(".says").textContent = says(view, region, scenario);
    return plot;
  };

  // says is a chart in words.
  const says = (view, region, scenario) => {
    const part = region === null ? view : view.regions[region];
    const sum = (list) => list.reduce((a, b) => a + b, 0);
    const offered = sum(part.offered), admitted = sum(part.admitted), ideal = sum(part.ideal);
    const peak = Math.max(0, ...part.offered) / view.every;
    let text = `${view.name}: ${short(admitted)} of ${short(offered)} tokens admitted; one ideal bucket would have admitted ${short(ideal)}. Peak demand ${short(peak)} a second.`;
    if (region === null && scenario.marks.length) text += ` ${scenario.marks.length} fault${scenario.marks.length > 1 ? "s and changes are" : " or change is"} marked.`;
    return text;
  };

  // scatter puts a sweep's points side by side: what it costs, what it gives.
  const scatter = (figure) => {
    const sweep = data.sweeps[figure.dataset.sweep];
    const box = figure.querySelector(".plot");
    const points = [...sweep].sort((a, b) => a.x - b.x);
    const axis = { stroke: colour("muted"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 }, font: "12px system-ui, sans-serif" };
    const dots = (name, keep) => ({ label: name, stroke: colour(keep ? "admitted" : "demand"), fill: colour(keep ? "admitted" : "panel"), paths: () => null, points: { show: true, size: keep ? 11 : 8, width: 2, fill: colour(keep ? "admitted" : "panel") }, value: (_, v) => (v === null ? "–" : v.toFixed(3) + " %") });
    const label = {
      hooks: {
        draw: (u) => {
          const c = u.ctx;
          c.save();
          c.fillStyle = colour("text");
          c.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
          for (const p of points) c.fillText(p.name, u.valToPos(p.x, "x", true) + 9 * devicePixelRatio, u.valToPos(p.y, "y", true) - 6 * devicePixelRatio);
          c.restore();
        },
      },
    };
    const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const room = (low, high) => [Math.max(0, low - 0.1 * (high - low || 1)), high + 0.15 * (high - low || 1)];
    box.replaceChildren();
    const plot = new uPlot({
      width: Math.max(280, box.clientWidth), height: 320, plugins: [label], cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: room(Math.min(...xs), Math.max(...xs)) }, y: { range: room(Math.min(...ys), Math.max(...ys)) } },
      axes: [{ ...axis, label: "lease RPCs per 1000 decisions", labelSize: 18, labelFont: "12px system-ui, sans-serif" }, { ...axis, label: "false denials, %", labelSize: 18, size: 62, labelFont: "12px system-ui, sans-serif" }],
      series: [{ label: "RPCs" }, dots("nothing beats", true), dots("others", false)],
    }, [xs, points.map((p) => (p.pareto ? p.y : null)), points.map((p) => (p.pareto ? null : p.y))], box);
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent + ". The table below has the same numbers.");
    return plot;
  };

  const drawAll = (only) => {
    for (const entry of charts) {
      if (only !== undefined && entry.figure.dataset.scenario !== only) continue;
      if (entry.plot) entry.plot.destroy();
      entry.plot = entry.figure.dataset.sweep !== undefined ? scatter(entry.figure) : build(entry.figure);
    }
  };

  for (const figure of document.querySelectorAll("figure.chart")) charts.push({ figure, plot: null });
  drawAll();
  for (const input of document.querySelectorAll("fieldset.strategies input")) {
    input.addEventListener("change", () => drawAll(input.name.slice("strategy-".length)));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  let wait = 0;
  addEventListener("resize", () => {
    clearTimeout(wait);
    wait = setTimeout(() => drawAll(), 150);
  });
  document.documentElement.dataset.drawn = String(charts.length);
})();
