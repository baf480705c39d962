// The rows of workers, copies and links over time.

const axisHeight = 18, stepHeight = 14, headHeight = 20, pathShare = 0.16, fewHops = 120, mostNames = 400;

class Timeline {
  constructor(canvas, app) {
    this.picture = new Picture(canvas);
    this.app = app;
  }
  // layOut finds where the rows of all schedules are.
  layOut() {
    const several = this.app.schedules.length > 1;
    const rows = this.app.schedules.reduce((n, s) => n + s.rows.length, 0);
    this.tall = Math.min(30, Math.max(9, 560 / rows));
    this.parts = [];
    let y = axisHeight;
    for (const schedule of this.app.schedules) {
      const head = y;
      y += stepHeight + (several ? headHeight : 0);
      this.parts.push({ schedule, head, top: y, bottom: y + this.tall * schedule.rows.length });
      y += this.tall * schedule.rows.length + 6;
    }
    return y;
  }
  draw(view, theme) {
    const height = this.layOut(), p = this.picture;
    p.begin(height, view, theme);
    this.fills = this.app.run.categories.map((c) => theme.fill(c));
    p.axis(0, height);
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
    p.inTime(top, bottom - top, () => schedule.rows.forEach((row, i) => this.drawRow(schedule, row, top + i * this.tall)));
    schedule.rows.forEach((row, i) => {
      if (this.tall >= 9) p.text(p.clipped(row.label, p.left - 10) || row.label.slice(0, 12), p.left - 6, top + (i + 0.5) * this.tall, "right", p.theme.ink);
    });
    this.drawSteps(schedule, top, bottom);
    if (this.app.showPath) p.inTime(top, bottom - top, () => this.drawPath(schedule, top));
  }
  drawRow(schedule, row, top) {
    const { view, theme } = this.picture, width = this.picture.right - this.picture.left;
    const tall = this.tall * 0.86 / row.lanes;
    const ranges = row.items.map((items) => [schedule.firstAfter(items, view.from), this.firstFrom(schedule, items, view.to)]);
    const seen = ranges.reduce((n, [a, b]) => n + b - a, 0);
    const level = seen > 2 * width ? row.coarseN.findIndex((n) => n * (view.to - view.from) / schedule.end >= width) : -1;
    if (level >= 0) {
      this.drawCoarse(schedule, row.coarse[level], row.coarseN[level], top + this.tall * 0.07, this.tall * 0.86);
      return;
    }
    row.items.forEach((items, lane) => {
      for (let k = ranges[lane][0]; k < ranges[lane][1]; k++) {
        this.drawItem(schedule, items[k], top + this.tall * 0.07 + lane * tall, tall, theme);
      }
    });
  }
  // firstFrom is the place of the first item that starts after a time.
  firstFrom(schedule, items, time) {
    let low = 0, high = items.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (schedule.from[items[mid]] > time) high = mid; else low = mid + 1;
    }
    return low;
  }
  drawItem(schedule, item, top, tall, theme) {
    const p = this.picture, c = p.c, work = item < schedule.firstRest;
    const x = p.x(schedule.from[item]);
    let wide = p.x(schedule.to[item]) - x;
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
    const name = rest ? "" : p.clipped(schedule.name(item), right - left - 6);
    if (name) p.text(name, (left + right) / 2, top + tall * (1 - pathShare) / 2, "center", theme.onColour(this.app.run.categories[schedule.category[item]]));
  }
  drawCoarse(schedule, columns, n, top, tall) {
    const p = this.picture, wide = schedule.end / n;
    for (let k = 0; k < columns.first.length; k++) {
      const from = columns.first[k] * wide, to = (columns.first[k] + columns.columns[k]) * wide;
      if (to < p.view.from || from > p.view.to) continue;
      p.c.fillStyle = this.fills[columns.category[k]];
      p.c.fillRect(p.x(from), top, (to - from) * p.scale, tall);
    }
  }
  drawSteps(schedule, top, bottom) {
    const p = this.picture;
    let before = 0, written = -Infinity;
    schedule.steps.forEach((end, i) => {
      const x = p.x(end);
      if (x > p.left && x < p.right) {
        p.line(x, top - 4, x, bottom, p.theme.faint, 0.7, [2, 3]);
      }
      const left = Math.max(p.left, p.x(before)), right = Math.min(p.right, x), mid = (left + right) / 2;
      if (schedule.steps.length > 1 && right - left > 14 && mid - written > 46) {
        p.text(`step ${schedule.firstStep + i}`, mid, top - stepHeight / 2, "center", p.theme.faint);
        written = mid;
      }
      before = end;
    });
  }
  // box is where an item is drawn.
  box(schedule, top, item) {
    const p = this.picture, lanes = schedule.rows[schedule.row[item]].lanes, tall = this.tall * 0.86 / lanes;
    const y = top + schedule.row[item] * this.tall + this.tall * 0.07 + schedule.lane[item] * tall;
    const x = p.x(schedule.from[item]);
    return { x, y, wide: Math.max(p.x(schedule.to[item]) - x, 1), tall };
  }
  drawPath(schedule, top) {
    const p = this.picture, strip = Math.max(1.6, this.tall * pathShare);
    const seen = schedule.pathItems.filter((i) => schedule.to[i] >= p.view.from && schedule.from[i] <= p.view.to);
    p.c.fillStyle = p.theme.path;
    let before = null;
    for (const item of seen) {
      const b = this.box(schedule, top, item), bottom = top + (schedule.row[item] + 0.93) * this.tall;
      p.c.fillStyle = p.theme.path;
      p.c.fillRect(b.x, bottom - strip, b.wide, strip);
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
        const b = this.box(schedule, part.top, item), last = k === chain.length - 1;
        c.strokeStyle = p.theme.accent;
        c.lineWidth = last ? 2.5 : 1.2;
        c.strokeRect(b.x - 1, b.y - 1, Math.max(b.wide + 2, 3), b.tall + 2);
        if (k > 0) {
          const a = this.box(schedule, part.top, chain[k - 1]);
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
    const s = part.schedule, row = s.rows[Math.floor((y - part.top) / this.tall)];
    const inRow = ((y - part.top) % this.tall) / this.tall;
    const lane = Math.min(row.lanes - 1, Math.max(0, Math.floor((inRow - 0.07) / 0.86 * row.lanes)));
    const items = row.items[lane], time = p.time(x), near = 3 / p.scale;
    let best = -1, least = Infinity;
    for (let k = Math.max(0, s.firstAfter(items, time) - 1); k < items.length && s.from[items[k]] <= time + near; k++) {
      const item = items[k];
      const off = Math.max(s.from[item] - time, time - s.to[item], 0) + (item >= s.firstRest ? near / 2 : 0);
      if (off <= near && off < least) [best, least] = [item, off];
    }
    return best < 0 ? null : { schedule: s, item: best };
  }
}
