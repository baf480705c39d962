// The page as a whole: which run is shown, what is chosen, and what keys and the mouse do.

class App {
  constructor(data) {
    this.runs = data.runs;
    this.timeline = new Timeline(byID("timeline"), this);
    this.curves = new Curves(byID("curves"), this);
    this.details = new Details(byID("details"), this);
    this.tables = new Tables(this);
    this.showPath = true;
    this.tables.runs(this.runs);
    this.listen();
    this.open(0);
  }
  open(i) {
    this.run = this.runs[i];
    this.schedules = [...this.run.schedules].reverse(); // predicted above measured
    this.lit = null;
    this.chosen = { schedule: null, chain: [] };
    this.view = new TimeView(this.run.slots.end, () => this.redraw());
    for (const of of [this.timeline, this.curves]) of.picture.margin = this.run.schedules[0].power ? 62 : 12;
    this.head();
    this.begin();
    this.legend();
    this.tables.draw();
    this.details.draw();
    this.redraw();
  }
  // head says in a few lines what the run is and how it went.
  head() {
    const { run } = this, alone = this.runs.length === 1;
    byID(alone ? "title" : "run-name").textContent = alone ? run.head.title : `${run.name}: ${run.head.title}`;
    byID("run-name").hidden = alone;
    if (alone) byID("figures").after(byID("runs"));
    byID("numbers").replaceChildren(...run.head.numbers.map(([value, of]) => element("div", {}, element("b", {}, value), of)));
    byID("says").replaceChildren(...run.head.says.map(([what, text]) => element("p", {}, element("b", {}, what), " ", text)));
    byID("headline").replaceChildren(...(run.row || []).map((c) => element("span", {}, element("b", {}, c.name), " ", c.text)));
    byID("summary").textContent = run.schedules.map((s) => (run.schedules.length > 1 ? `${s.world}: ` : "") + s.summary).join(" · ");
  }
  // begin shows two steady steps of several: all of them would be a row of bars.
  begin() {
    const s = this.run.schedules[0], [first, last] = s.steady.map((k) => k - s.firstStep);
    if (s.steps.length > 2) this.view.show(first > 0 ? s.edges[first - 1] : 0, s.edges[last]);
  }
  // range says what the pictures show.
  range() {
    const { view, run } = this, s = run.schedules[0], { slots } = run;
    if (!slots.steps) return `${timeText(view.from)} to ${timeText(view.to)} of ${timeText(view.end)}`;
    const [first, last] = [view.from, view.to * (1 - 1e-9)].map((x) => s.firstStep + slots.at(x)), end = s.firstStep + s.steps.length - 1;
    const shown = first === last ? `step ${first}` : `steps ${first} to ${last}`;
    return `${shown}${first === s.firstStep && last === end ? "" : ` of ${s.firstStep} to ${end}`}, each below its prediction`;
  }
  // redraw paints once before the next frame.
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }
  paint() {
    this.theme = new Theme();
    this.timeline.draw(this.view, this.theme);
    this.curves.draw(this.view, this.theme);
    byID("range").textContent = this.range();
    if (!this.fronts) this.fronts = new Fronts(byID("front"), this.runs);
    this.fronts.draw(this.theme);
  }
  // sentence says what the timeline shows, for those who do not see it.
  sentence() {
    const { schedule, chain } = this.chosen;
    const what = chain.length ? `; chosen: ${schedule.name(chain[chain.length - 1])} on ${schedule.place(chain[chain.length - 1])}` : "";
    return `timeline: ${this.range()}${what}`;
  }
  legend() {
    const theme = new Theme(), used = new Set(this.schedules.flatMap((s) => Array.from(s.category)));
    const entries = this.run.categories.map((c, i) => [c, i]).filter(([, i]) => used.has(i));
    const by = { task: this.run.colourBy, transfer: "", idle: "idle, waiting for", state: "state" };
    const swatch = (colour, name) => {
      const box = element("i", {});
      box.style.background = colour;
      return element("span", {}, box, name);
    };
    const groups = ["task", "idle", "transfer", "state"].map((kind) => {
      const of = entries.filter(([c]) => c.kind === kind);
      return of.length ? element("p", {}, element("b", {}, by[kind]), " ", ...of.map(([c]) => swatch(theme.fill(c), c.name))) : "";
    });
    const power = this.run.schedules[0].power;
    const watts = power ? [element("p", {}, element("b", {}, "power of"), " ", ...power.names.map((name, i) => swatch(this.curves.layerColour(i), name)))] : [];
    const clocks = this.schedules.some((s) => s.spans.clock.some((k) => k > 0)) ? [element("p", {}, element("b", {}, "upper edge"), " ", swatch(theme.ink, "at another clock than the first"))] : [];
    const lines = [], [s] = this.run.schedules;
    const line = (style, colour, name) => {
      const box = element("i", { class: style });
      box.style.borderColor = colour;
      lines.push(element("span", {}, box, name));
    };
    if (this.showPath) line("solid thick", theme.path, "critical path");
    if (s.steps.length > 1) line("dotted", theme.faint, "end of a step");
    if (this.run.schedules.length > 1) line("dashed", theme.ink, "as predicted");
    if (power) line("solid", theme.danger, "energy so far, on the right axis");
    if (s.memories.some((m) => m.reserved)) line("dashed", theme.danger, "reserved memory");
    const key = lines.length ? [element("p", {}, element("b", {}, "lines"), " ", ...lines)] : [];
    byID("legend").replaceChildren(...groups, ...clocks, ...watts, ...key);
  }
  // dimmed says that only the tasks of another kernel are shown in colour.
  dimmed(s, item) {
    if (!this.lit || !s.isSpan(item)) return false;
    const task = s.spans.task[item];
    return this.run.word("op", task) !== this.lit.op || this.run.word("shape", task) !== this.lit.shape;
  }
  light(op, shape) {
    this.lit = this.lit && this.lit.op === op && this.lit.shape === shape ? null : { op, shape };
    this.redraw();
  }
  choose(schedule, item) {
    this.chosen = { schedule, chain: [item] };
    this.changed();
  }
  // chooseWait chooses what ended a wait and shows the wait.
  chooseWait(schedule, wait) {
    this.choose(schedule, wait.span);
    this.view.reveal(schedule.at(wait.from), Math.max(schedule.at(wait.to, true), schedule.right[wait.span]));
    byID("work").scrollIntoView({ block: "start" });
  }
  go(item) {
    this.chosen.chain.push(item);
    this.changed();
  }
  follow() {
    const { schedule, chain } = this.chosen, item = chain[chain.length - 1];
    if (item === undefined || item >= schedule.firstRest) return;
    const cause = schedule.freed(item).find((f) => f.last && f.by >= 0);
    if (cause) this.go(cause.by);
  }
  back(n = this.chosen.chain.length - 1) {
    this.chosen.chain.length = Math.max(0, n);
    this.changed();
  }
  // along chooses the next or the earlier thing in the lane.
  along(by) {
    const { schedule, chain } = this.chosen;
    if (!chain.length) return;
    const item = chain[chain.length - 1], items = schedule.rows[schedule.row[item]].items[schedule.lane[item]];
    let at = items.indexOf(item) + by;
    while (items[at] >= schedule.firstRest) at += by;
    if (items[at] !== undefined) this.choose(schedule, items[at]);
  }
  find(text) {
    const s = this.run.schedules[0];
    if (!text) return;
    const part = text.toLowerCase();
    let found = -1;
    for (let i = 0; i < s.firstTransfer; i++) {
      const name = s.name(i);
      if (name === text) { found = i; break; }
      if (found < 0 && name.toLowerCase().includes(part)) found = i;
    }
    if (found >= 0) this.choose(s, found);
  }
  // changed shows what is chosen now.
  changed() {
    const { schedule, chain } = this.chosen;
    if (chain.length) {
      const item = chain[chain.length - 1];
      this.view.reveal(schedule.left[item], schedule.right[item]);
    }
    this.details.draw();
    this.redraw();
  }
  listen() {
    const click = { "zoom-in": () => this.view.zoom(0.5), "zoom-out": () => this.view.zoom(2), fit: () => this.view.all(), "to-left": () => this.view.move(-0.25), "to-right": () => this.view.move(0.25) };
    for (const [id, act] of Object.entries(click)) byID(id).addEventListener("click", act);
    byID("show-path").addEventListener("change", (e) => { this.showPath = e.target.checked; this.legend(); this.redraw(); });
    byID("find").addEventListener("change", (e) => this.find(e.target.value.trim()));
    byID("timeline").addEventListener("keydown", (e) => this.key(e));
    for (const picture of [this.timeline, this.curves]) new Pointer(picture, this);
    addEventListener("resize", () => this.redraw());
    const restyle = () => { this.legend(); this.paint(); };
    for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", restyle);
    addEventListener("beforeprint", restyle);
    addEventListener("afterprint", restyle);
  }
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const act = {
      "+": () => this.view.zoom(0.5), "=": () => this.view.zoom(0.5), "-": () => this.view.zoom(2), 0: () => this.view.all(),
      ArrowLeft: () => this.view.move(-0.2), ArrowRight: () => this.view.move(0.2), Home: () => this.view.move(-1e9), End: () => this.view.move(1e9),
      Enter: () => this.follow(), Backspace: () => this.back(), "[": () => this.along(-1), "]": () => this.along(1),
      c: () => byID("show-path").click(), Escape: () => this.back(0),
    }[e.key];
    if (!act) return;
    act();
    e.preventDefault();
  }
}

// Pointer moves, zooms and chooses on a picture.
class Pointer {
  constructor(of, app) {
    Object.assign(this, { of, app, picture: of.picture });
    const canvas = this.picture.canvas;
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.up(e));
    canvas.addEventListener("dblclick", (e) => this.app.view.zoom(0.25, this.picture.time(e.offsetX)));
  }
  wheel(e) {
    e.preventDefault();
    if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.app.view.move(e.deltaX / this.picture.canvas.clientWidth);
    else this.app.view.zoom(2 ** (Math.max(-200, Math.min(200, e.deltaY)) / 200), this.picture.time(Math.max(e.offsetX, this.picture.left)));
  }
  down(e) {
    const { from, to } = this.app.view;
    this.pressed = { x: e.offsetX, y: e.offsetY, from, to, stretch: e.shiftKey, moved: false };
    if (e.isTrusted) this.picture.canvas.setPointerCapture(e.pointerId);
  }
  move(e) {
    const p = this.pressed;
    if (!p) {
      this.hover(e);
      return;
    }
    const by = e.offsetX - p.x;
    p.moved ||= Math.abs(by) > 3;
    if (!p.moved || p.stretch) return;
    const span = p.to - p.from, from = Math.min(Math.max(p.from - by / this.picture.scale, 0), this.app.view.end - span);
    this.app.view.show(from, from + span);
  }
  up(e) {
    const p = this.pressed;
    this.pressed = null;
    if (!p) return;
    if (p.stretch && p.moved) {
      const [a, b] = [this.picture.time(p.x), this.picture.time(e.offsetX)];
      this.app.view.show(Math.min(a, b), Math.max(a, b));
    } else if (!p.moved && this.of.at) {
      const hit = this.of.at(p.x, p.y);
      if (hit) this.app.choose(hit.schedule, hit.item);
    }
  }
  hover(e) {
    const hit = this.of.at && this.of.at(e.offsetX, e.offsetY);
    const time = Math.min(Math.max(this.picture.time(e.offsetX), 0), this.app.view.end);
    byID("hover").textContent = hit
      ? `${hit.schedule.name(hit.item)} · ${hit.schedule.place(hit.item)} · ${timeText(hit.schedule.to[hit.item] - hit.schedule.from[hit.item])} from ${timeText(hit.schedule.from[hit.item])}`
      : this.app.curves.sentence(time);
    this.picture.canvas.style.cursor = hit ? "pointer" : "";
  }
}

// Fronts are the plans of several searches by time and energy, over each other.
class Fronts {
  constructor(canvas, runs) {
    this.canvas = canvas;
    this.runs = runs.filter((r) => r.front.length);
    byID("fronts").hidden = !this.runs.length;
    if (this.runs.length) byID("runs").hidden = false;
    byID("front-text").textContent = this.runs.map((r, i) => `${"●■▲◆"[i % 4]} ${r.name}: ` + (r.front.length > 1 ? `${r.front.length} plans, ${r.front.filter((p) => p[3]).length} on the front` : "the run")).join(" · ") + ": time and joules of a step";
  }
  draw(theme) {
    if (!this.runs.length) return;
    const p = new Picture(this.canvas), height = 320, near = this.runs.flatMap((r) => r.front.filter((x) => x[3] || x[4]));
    const [slow, joules] = [0, 1].map((k) => ({ least: Math.min(...near.map((x) => x[k])) * 0.7, most: Math.max(...near.map((x) => x[k])) * 1.5 }));
    const wide = joules.least > 0 && joules.most > 8 * joules.least; // then the axis of joules is logarithmic
    const view = new TimeView(slow.most * 1e9, () => {});
    view.show(slow.least * 1e9, slow.most * 1e9);
    p.begin(height, view, theme);
    const scale = wide ? Math.log : (j) => j;
    const base = height - 8, y = (j) => base - (scale(j) - scale(joules.least)) / (scale(joules.most) - scale(joules.least)) * (base - 24);
    p.axis(0, base);
    for (const j of wide ? decadeSteps(joules.least, joules.most) : roundSteps(joules.least, joules.most, 8).list) {
      p.line(p.left, y(j), p.right, y(j), theme.grid);
      p.text(joulesText(j), p.left - 6, y(j), "right", theme.faint);
    }
    p.c.save();
    p.c.beginPath();
    p.c.rect(p.left - 10, 0, p.right - p.left + 20, base);
    p.c.clip();
    this.runs.forEach((r, i) => this.drawRun(p, r, i, y));
    p.c.restore();
  }
  drawRun(p, run, i, y) {
    const colour = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"][i % 4];
    const on = run.front.filter((x) => x[3]).sort((a, b) => a[0] - b[0]);
    on.forEach((x, k) => { if (k) p.line(p.x(on[k - 1][0] * 1e9), y(on[k - 1][1]), p.x(x[0] * 1e9), y(x[1]), colour, 1.4); });
    p.font(18 - 3 * (i % 4)); // so that equal plans of several runs are all seen
    for (const x of run.front) {
      p.c.globalAlpha = x[3] || x[4] ? 1 : 0.35;
      p.text("●■▲◆"[i % 4], p.x(x[0] * 1e9), y(x[1]), "center", colour);
      p.c.globalAlpha = 1;
    }
    p.font(11);
    for (const x of run.front.filter((x) => x[4])) p.halo(x[2], p.x(x[0] * 1e9) + 12, y(x[1]) - 12 + 12 * (i % 3), "left", p.theme.ink);
  }
}

async function start() {
  const status = byID("status");
  if (!("DecompressionStream" in window)) {
    status.textContent = "This browser cannot unpack the data: want Chromium 80, Firefox 113, Safari 16.4 or newer.";
    return;
  }
  try {
    const data = await readData();
    document.querySelector("main").hidden = false;
    new App(data).paint();
    const tasks = data.runs.reduce((n, r) => n + r.schedules.reduce((m, s) => m + s.firstTransfer, 0), 0);
    const [run] = data.runs;
    status.textContent = (data.runs.length > 1 ? "" : `${run.name} · `) + `${tasks.toLocaleString("en")} tasks in the timelines`;
    document.documentElement.dataset.ready = "yes";
  } catch (e) {
    status.textContent = `The report cannot be shown: ${e.message}`;
    throw e;
  }
}
start();
