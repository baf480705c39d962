// The rows of workers, copies and links over time.

const axisHeight = 18, stepHeight = 14, headHeight = 20, nodeHeight = 15, pathShare = 0.16, fewHops = 120, mostNames = 400, leastApart = 5;
const leastTall = 9, leastAlone = 18, mostTall = 30;

class Timeline {
  constructor(canvas, app) {
    this.picture = new Picture(canvas);
    this.app = app;
  }
  // layOut finds where the rows of all schedules are. A GPU is not as thin as one of many cores.
  layOut() {
    const several = this.app.schedules.length > 1;
    const rows = this.app.schedules.reduce((n, s) => n + s.rows.length, 0);
    const tall = Math.min(mostTall, Math.max(leastTall, 560 / rows));
    this.parts = [];
    let y = axisHeight;
    for (const schedule of this.app.schedules) {
      const head = y;
      y += stepHeight + (several ? headHeight : 0);
      const top = y;
      for (const row of schedule.rows) {
        if (row.head) y += nodeHeight;
        row.tall = row.alone ? Math.max(tall, leastAlone) : tall;
        row.top = y;
        y += row.tall;
      }
      this.parts.push({ schedule, head, top, bottom: y });
      y += 6;
    }
    return y;
  }
  draw(view, theme) {
    const height = this.layOut(), p = this.picture;
    p.begin(height, view, theme);
    this.fills = this.app.run.categories.map((c) => theme.fill(c));
    if (this.app.run.slots.steps) p.stepAxis(0, height, this.app.run.slots);
    else p.axis(0, height);
    for (const part of this.parts) this.drawPart(part);
    this.drawChain();
    this.picture.canvas.setAttribute("aria-label", this.app.sentence());
  }
  drawPart({ schedule, head, top, bottom }) {
    const p = this.picture;
    if (this.parts.length > 1) {
      p.font(12, "600");
      p.text(`${schedule.world}, ${timeText(schedule.makespan)}`, 0, head + headHeight / 2, "left", p.theme.ink);
      p.font(11);
    }
    this.names = 0;
    p.inTime(top, bottom - top, () => schedule.rows.forEach((row) => this.drawRow(schedule, row)), schedule);
    for (const row of schedule.rows) {
      if (row.head) this.drawHead(row);
      p.font(Math.min(11, row.tall));
      p.text(p.clipped(row.label, p.left - 10) || row.label.slice(0, 12), p.left - 6, row.top + row.tall / 2, "right", p.theme.ink);
    }
    p.font(11);
    this.drawSteps(schedule, top, bottom);
    if (this.app.showPath) p.inTime(top, bottom - top, () => this.drawPath(schedule), schedule);
  }
  // drawHead writes the node that begins with a row above it, across the page.
  drawHead(row) {
    const p = this.picture, top = row.top - nodeHeight;
    p.line(0, top, p.right, top, p.theme.faint, 0.5);
    p.font(11, "600");
    p.text(p.clipped(row.head, p.right), 0, top + nodeHeight / 2 + 1, "left", p.theme.ink);
  }
  drawRow(schedule, row) {
    const { view, theme } = this.picture, width = this.picture.right - this.picture.left;
    const tall = row.tall * 0.86 / row.lanes, top = row.top + row.tall * 0.07;
    const ranges = row.items.map((items) => [schedule.firstAfter(items, view.from), this.firstFrom(schedule, items, view.to)]);
    const seen = ranges.reduce((n, [a, b]) => n + b - a, 0);
    const level = seen > 2 * width && !this.app.lit ? row.coarseN.findIndex((n) => n * (view.to - view.from) / this.app.view.end >= width) : -1;
    if (level >= 0) {
      this.drawCoarse(schedule, row, level, top, row.tall * 0.86);
      return;
    }
    row.items.forEach((items, lane) => {
      let until = -Infinity; // what would lie in a pixel that is painted is left out
      for (let k = ranges[lane][0]; k < ranges[lane][1]; k++) {
        const right = this.picture.x(schedule.right[items[k]]);
        if (right < until) continue;
        until = Math.floor(right) + 0.5;
        this.drawItem(schedule, items[k], top + lane * tall, tall, theme);
      }
    });
  }
  // firstFrom is the number of the first item that starts after a place.
  firstFrom(schedule, items, x) {
    let low = 0, high = items.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (schedule.left[items[mid]] > x) high = mid; else low = mid + 1;
    }
    return low;
  }
  drawItem(schedule, item, top, tall, theme) {
    const p = this.picture, c = p.c, work = item < schedule.firstRest;
    const x = p.x(schedule.left[item]);
    let wide = p.x(schedule.right[item]) - x;
    if (work) wide = Math.max(wide > 5 ? wide - 0.7 : wide, 0.8);
    c.fillStyle = this.fills[schedule.category[item]];
    c.globalAlpha = this.app.dimmed(schedule, item) ? 0.25 : 1;
    c.fillRect(x, top, wide, tall);
    c.globalAlpha = 1;
    if (work && schedule.isSpan(item) && schedule.spans.clock[item]) {
      c.fillStyle = theme.ink;
      c.fillRect(x, top, wide, 2);
    }
    if (wide < 34 || tall < 12 || this.names++ > mostNames) return;
    const left = Math.max(x, p.left), right = Math.min(x + wide, p.right);
    const rest = !work && this.app.run.categories[schedule.category[item]].kind === "idle";
    const name = rest ? "" : p.shortened(schedule.name(item), right - left - 6);
    if (name) p.text(name, (left + right) / 2, top + tall * (1 - pathShare) / 2, "center", theme.onColour(this.app.run.categories[schedule.category[item]]));
  }
  // drawCoarse stretches a picture of the row that is one pixel high, slot by slot.
  drawCoarse(schedule, row, level, top, tall) {
    const p = this.picture, columns = row.coarseN[level] / schedule.end;
    p.c.imageSmoothingEnabled = false;
    for (const [left, right, k] of schedule.taken(p.view.from, p.view.to)) {
      const a = Math.max(left, p.view.from), b = Math.min(right, p.view.to), first = schedule.bounds[k] + a - left;
      if (b > a) p.c.drawImage(this.strip(row, level), first * columns, 0, (b - a) * columns, 1, p.x(a), top, p.x(b) - p.x(a), tall);
    }
  }
  // strip is the picture of a row in so many columns, which is kept until the colours change.
  strip(row, level) {
    row.strips ||= [];
    const dark = this.picture.theme.dark, kept = row.strips[level];
    if (kept && kept.dark === dark) return kept.canvas;
    const canvas = element("canvas", { width: row.coarseN[level], height: 1 }), c = canvas.getContext("2d"), columns = row.coarse[level];
    for (let k = 0; k < columns.first.length; k++) {
      c.fillStyle = this.fills[columns.category[k]];
      c.fillRect(columns.first[k], 0, columns.columns[k], 1);
    }
    row.strips[level] = { dark, canvas };
    return canvas;
  }
  drawSteps(schedule, top, bottom) {
    const p = this.picture;
    let before = 0, written = -Infinity;
    schedule.edges.forEach((end, i) => {
      const x = p.x(end);
      if (x > p.left && x < p.right && x - p.x(before) >= leastApart) p.line(x, top, x, bottom, p.theme.faint, 0.7, [2, 3]);
      const left = Math.max(p.left, p.x(before)), right = Math.min(p.right, x), mid = (left + right) / 2;
      before = end;
      if (schedule.steps.length < 2 || right - left < 14) return;
      const name = `step ${schedule.firstStep + i}`, half = p.c.measureText(name).width / 2;
      if (mid - half > written && mid + half < p.right) {
        p.halo(name, mid, top - stepHeight / 2, "center", p.theme.faint);
        written = mid + half + 10;
      }
    });
  }
  // box is where an item is drawn.
  box(schedule, item) {
    const p = this.picture, row = schedule.rows[schedule.row[item]], tall = row.tall * 0.86 / row.lanes;
    const y = row.top + row.tall * 0.07 + schedule.lane[item] * tall;
    const x = p.x(schedule.left[item]);
    return { x, y, wide: Math.max(p.x(schedule.right[item]) - x, 1), tall };
  }
  drawPath(schedule) {
    const p = this.picture;
    const seen = schedule.pathItems.filter((i) => schedule.right[i] >= p.view.from && schedule.left[i] <= p.view.to);
    p.c.fillStyle = p.theme.path;
    let before = null;
    const until = new Map(); // by row: where something is drawn already
    for (const item of seen) {
      if (p.x(schedule.right[item]) < until.get(schedule.row[item])) continue;
      const b = this.box(schedule, item), row = schedule.rows[schedule.row[item]], bottom = row.top + 0.93 * row.tall;
      const strip = Math.max(1.6, row.tall * pathShare);
      p.c.fillStyle = p.theme.path;
      p.c.fillRect(b.x, bottom - strip, b.wide, strip);
      until.set(schedule.row[item], b.x + b.wide);
      const y = bottom - strip / 2;
      if (before && seen.length <= fewHops && before.y !== y) p.line(before.x, before.y, b.x, y, p.theme.path, 1);
      before = { x: b.x + b.wide, y };
    }
  }
  // drawChain frames what is chosen, and joins it with the causes that were followed.
  drawChain() {
    const { schedule, chain } = this.app.chosen, p = this.picture;
    const part = this.parts.find((x) => x.schedule === schedule);
    if (!part) return;
    const c = p.c;
    p.inTime(part.top, part.bottom - part.top, () => {
      chain.forEach((item, k) => {
        const b = this.box(schedule, item), last = k === chain.length - 1;
        c.strokeStyle = p.theme.accent;
        c.lineWidth = last ? 2.5 : 1.2;
        c.strokeRect(b.x - 1, b.y - 1, Math.max(b.wide + 2, 3), b.tall + 2);
        if (k > 0) {
          const a = this.box(schedule, chain[k - 1]);
          p.line(a.x, a.y + a.tall / 2, Math.min(b.x + b.wide, a.x), b.y + b.tall / 2, p.theme.accent, 1.4);
        }
      });
    });
  }
  // at finds what is drawn at a point.
  at(x, y) {
    const p = this.picture;
    const part = this.parts.find((q) => y >= q.top && y < q.bottom);
    if (!part || x < p.left || x > p.right) return null;
    const s = part.schedule, row = s.rows.find((r) => y < r.top + r.tall);
    if (y < row.top) return null; // on the name of a node
    const inRow = (y - row.top) / row.tall;
    const lane = Math.min(row.lanes - 1, Math.max(0, Math.floor((inRow - 0.07) / 0.86 * row.lanes)));
    const items = row.items[lane], time = p.time(x), near = 3 / p.scale;
    let best = -1, least = Infinity;
    for (let k = Math.max(0, s.firstAfter(items, time) - 1); k < items.length && s.left[items[k]] <= time + near; k++) {
      const item = items[k];
      const off = Math.max(s.left[item] - time, time - s.right[item], 0) + (item >= s.firstRest ? near / 2 : 0);
      if (off <= near && off < least) [best, least] = [item, off];
    }
    return best < 0 ? null : { schedule: s, item: best };
  }
}
