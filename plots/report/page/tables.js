// Tables that sort by a click on a heading.

// sortKey is what a value is sorted by: of one with a text of its own the number.
const sortKey = (v) => (v !== null && typeof v === "object" ? v.number : v);

// fillTable writes rows of values. A column has a heading, how a value is shown, and whether it is a
// number, or so long that it may be broken anywhere; without a heading it is not shown.
function fillTable(table, columns, rows, { clicked, sorted } = {}) {
  const body = element("tbody", {});
  let order = sorted || null;
  const fill = () => {
    const list = [...rows];
    if (order) {
      const { at, down } = order;
      list.sort((x, y) => {
        const a = sortKey(x[at]), b = sortKey(y[at]);
        return (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))) * (down ? -1 : 1);
      });
    }
    body.replaceChildren(...list.map((row) => {
      const cells = columns.map((c, i) => element("td", { class: c.number ? "number" : c.long ? "long" : undefined, title: c.title && c.title(row[i]) }, c.show ? c.show(row[i]) : String(row[i])));
      const line = element("tr", clicked ? { class: "click", tabindex: "0" } : {}, ...cells);
      if (clicked) {
        line.addEventListener("click", () => clicked(row));
        line.addEventListener("keydown", (e) => { if (e.key === "Enter") clicked(row); });
      }
      return line;
    }));
    heads.forEach((h, i) => h.setAttribute("aria-sort", !order || order.at !== i ? "none" : order.down ? "descending" : "ascending"));
  };
  const heads = columns.map((c, i) => element("th", { class: c.number ? "number" : undefined, scope: "col" },
    element("button", { onclick: () => { order = { at: i, down: order && order.at === i ? !order.down : !!c.number }; fill(); } }, c.name)));
  table.replaceChildren(element("thead", {}, element("tr", {}, ...heads)), body);
  fill();
}

const number = (name, show) => ({ name, show, number: true });
// exact shows a number in a unit, and all of its digits where the mouse rests.
const exact = (name, show, unit) => ({ ...number(name, (v) => (v === undefined || v === null ? "" : show(v))), title: (v) => (v === undefined || v === null ? undefined : `${v} ${unit}`) });

class Tables {
  constructor(app) { this.app = app; }
  draw() {
    const { run } = this.app;
    this.waits(run);
    this.energy(run);
    this.memory(run);
    this.kernels(run);
    const pairs = run.provenance;
    byID("provenance").replaceChildren(...pairs.map(([k, v]) => element("tr", {}, element("th", { scope: "row" }, k), element("td", {}, v))));
  }
  waits(run) {
    const sums = run.schedules.map((s) => `${s.world}, per step of all workers: ` +
      Object.entries(s.waits.per_step_s).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]).map(([k, v]) => `${k} ${secondsText(v)}`).join(", "));
    byID("wait-sums").textContent = sums.join(". ");
    const rows = run.schedules.flatMap((s) => s.longest.map((w) => [w.to - w.from, w.cause, run.workers[w.worker], w.from, s.name(w.span), s.world, s, w]));
    const columns = [number("waited", timeText), { name: "for" }, { name: "worker" }, number("from", timeText), { name: "until" }];
    if (run.schedules.length > 1) columns.push({ name: "world" });
    fillTable(byID("waits"), columns, rows, { sorted: { at: 0, down: true }, clicked: (row) => this.app.chooseWait(row[6], row[7]) });
  }
  // energy has the numbers of energy.json, which are of the steps that are shown.
  energy(run) {
    const e = run.energy, causes = e.causes;
    const known = e.basis !== "unavailable", joules = (x) => (x.basis === "unavailable" ? undefined : x.joules);
    byID("energy-text").textContent = `of the ${e.steps === 1 ? "step" : `${e.steps} steps`} that the timeline shows` + (e.epoch ? ` (from step ${e.first_step}, in epoch ${e.epoch})` : "") +
      `: ${secondsText(e.makespan_s)}` + (known ? `, ${wattsText(e.mean_watts)} on average` : "") + `; ${run.grounds}`;
    const rows = [["total", "", known ? e.total_joules : undefined, e.basis]];
    const watts = Object.fromEntries((e.sources || []).filter((s) => !s.calls).map((s) => [s.name, s.source]));
    for (const [kind, list] of [["node", e.by_node], ["device", e.by_device], ["link", e.by_link]]) {
      for (const x of list || []) rows.push([x.name, kind, joules(x), watts[x.name] ? `watts: ${watts[x.name]}` : x.basis]);
    }
    rows.push(["host", "host", watts.host ? causes.host_joules : undefined, watts.host ? `watts: ${watts.host}` : "no watts"]);
    for (const [name, key] of [["idle", "idle_joules"], ["busy", "busy_joules"], ["transfer", "transfer_joules"], ["sleep", "sleep_joules"], ["switching", "switching_joules"]]) {
      if (known && causes[key] !== undefined) rows.push([name, "cause", causes[key], ""]);
    }
    for (const [kind, list] of [["phase", e.by_phase], ["layer", e.by_layer]]) {
      for (const x of known ? list || [] : []) rows.push([x.name, kind, joules(x), ""]);
    }
    fillTable(byID("energy"), [{ name: "of" }, { name: "what" }, exact("energy", joulesText, "J"), { name: "source" }], rows);
    const readings = (e.readings || []).map((r) => [r.of, r.meter, r.joules, r.seconds, r.error_joules]);
    byID("readings").hidden = !readings.length;
    if (readings.length) fillTable(byID("readings"), [{ name: "metered" }, { name: "meter" }, exact("energy", joulesText, "J"), exact("over", secondsText, "s"), exact("±", joulesText, "J")], readings);
  }
  memory(run) {
    const rows = run.schedules.flatMap((s) => s.memories.map((m) => [m.name, s.world, m.peak, m.reserved, m.capacity]));
    const size = (name) => ({ ...number(name, (b) => (b ? bytesText(b) : "–")), title: (b) => `${b} bytes` });
    fillTable(byID("memory"), [{ name: "memory" }, { name: "world" }, size("live peak"), size("reserved"), size("capacity")], rows);
  }
  kernels(run) {
    const both = run.schedules.length > 1, world = run.schedules[0].world;
    const columns = [{ name: "kernel" }, { name: "shape", long: true }, { name: "device" }, { name: "variant" }, { name: "model" }, number("calls", (n) => String(Number(n.toPrecision(4))))];
    if (both) columns.push(number("predicted in a step", secondsText), number("measured in a step", secondsText), number("error", (v) => `${v > 0 ? "+" : ""}${v.toFixed(1)} %`));
    else columns.push(number(`${world} in a step`, secondsText));
    columns.push(number("share", (v) => `${(100 * v).toFixed(1)} %`), number("median call", secondsText), number("95 % of calls", secondsText));
    const all = (run.kernels || []).map((k) => [k.op, k.shape, k.device, k.variant, k.source, k.count_per_step,
      ...(both ? [k.sum_s_per_step.predicted, k.sum_s_per_step.measured, k.sum_s_per_step.error_percent] : [k.sum_s_per_step.measured]),
      k.share, k.median_s.measured, k.measured_p95_s]);
    const filter = byID("kernel-filter");
    const fill = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = all.filter((r) => words.every((w) => r.slice(0, 5).join(" ").toLowerCase().includes(w)));
      byID("kernel-count").textContent = `${rows.length} of ${all.length}; a click shows only its tasks in colour`;
      fillTable(byID("kernels"), columns, rows, { sorted: { at: columns.findIndex((c) => c.name === "share"), down: true }, clicked: (row) => this.app.light(row[0], row[1]) });
    };
    filter.oninput = fill;
    fill();
  }
  runs(all) {
    byID("runs").hidden = all.length < 2;
    if (all.length < 2) byID("runs-head").textContent = "Plans of the search, by time and energy";
    if (all.length < 2) return;
    const names = [...new Set(all.flatMap((r) => r.row.map((c) => c.name)))];
    const none = { text: "", number: -Infinity };
    const rows = all.map((r, i) => [r.name, ...names.map((n) => r.row.find((c) => c.name === n) || none), i]);
    const columns = names.map((name) => ({ name, show: (v) => v.text, number: all.some((r) => r.row.some((c) => c.name === name && typeof c.number === "number")) }));
    fillTable(byID("run-table"), [{ name: "run" }, ...columns], rows, { clicked: (row) => this.app.open(row[row.length - 1]) });
  }
}
