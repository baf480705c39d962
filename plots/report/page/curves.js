// Power, energy, clocks and memory below the timeline, on its axis.

const panelHeight = 96, clockHeight = 46, captionHeight = 20;

// place is the number of the last of some times that is not after a moment.
function place(times, at) {
  let low = 0, high = times.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (times[mid] > at) high = mid; else low = mid + 1;
  }
  return low - 1;
}

class Curves {
  constructor(canvas, app) {
    this.picture = new Picture(canvas);
    this.app = app;
  }
  draw(view, theme) {
    const [shown, predicted] = [this.app.run.schedules[0], this.app.run.schedules[1]];
    const height = (shown.power ? panelHeight + captionHeight : 0) + (shown.clocks.length ? clockHeight + captionHeight : 0) +
      shown.memories.length * (panelHeight * 0.7 + captionHeight) + 8;
    const p = this.picture;
    p.begin(height, view, theme);
    let y = 0;
    if (shown.power) y = this.drawPower(shown, predicted, y);
    if (shown.clocks.length) y = this.drawClocks(shown, y);
    for (const m of shown.memories) y = this.drawMemory(m, predicted && predicted.memories.find((x) => x.name === m.name), y);
    p.canvas.setAttribute("aria-label", `power, clocks and memory from ${timeText(view.from)} to ${timeText(view.to)}`);
  }
  // panel draws a frame with its caption and the lines of an axis, and returns the y of a value.
  panel(top, tall, caption, most, write) {
    const p = this.picture, base = top + captionHeight + tall;
    const y = (v) => base - v / most * tall;
    p.font(11, "600");
    p.text(p.clipped(caption, p.right - p.left), p.left, top + captionHeight / 2, "left", p.theme.ink);
    p.font(11);
    for (const v of roundSteps(0, most, tall / 22).list) {
      p.line(p.left, y(v), p.right, y(v), p.theme.grid);
      p.text(write(v), p.left - 6, y(v), "right", p.theme.faint);
    }
    return { y, base, top: top + captionHeight, tall };
  }
  // outline goes along a step function. Steps that share a pixel show their highest, or else mean, value.
  outline(times, value, y, highest) {
    const p = this.picture, first = Math.max(0, place(times, p.view.from)), last = times.length - 2;
    let from = times[first], most = 0, area = 0;
    for (let k = first; k <= last && times[k] <= p.view.to; k++) {
      most = Math.max(most, value(k));
      area += value(k) * (times[k + 1] - times[k]);
      if ((times[k + 1] - from) * p.scale < 1 && k < last) continue;
      const v = highest ? most : area / (times[k + 1] - from);
      p.c.lineTo(p.x(from), y(v));
      p.c.lineTo(p.x(times[k + 1]), y(v));
      [from, most, area] = [times[k + 1], 0, 0];
    }
  }
  // area fills between a step function and the bottom, or draws its outline.
  area(times, value, panel, fill, highest) {
    const p = this.picture, c = p.c;
    const first = Math.max(0, place(times, p.view.from)), end = Math.min(times.length - 1, place(times, p.view.to) + 1);
    c.beginPath();
    c.moveTo(p.x(times[first]), panel.base);
    this.outline(times, value, panel.y, highest);
    c.lineTo(p.x(times[end]), panel.base);
    c.closePath();
    c.fillStyle = fill;
    c.fill();
  }
  stroke(times, value, panel, colour, { width = 1.2, dashes = [], highest = false } = {}) {
    const c = this.picture.c;
    c.beginPath();
    this.outline(times, value, panel.y, highest);
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dashes);
    c.stroke();
    c.setLineDash([]);
  }
  drawPower(s, predicted, top) {
    const p = this.picture, w = s.power, n = w.watts.length;
    const sums = this.sums(w), most = sums[n - 1].reduce((a, b) => Math.max(a, b), 0);
    const all = w.joules[w.joules.length - 1];
    p.text(`energy up to here, of ${joulesText(all)}`, p.right, top + captionHeight / 2, "right", p.theme.danger);
    const panel = this.panel(top, panelHeight, `power and energy (${w.grounds}${w.mean ? ", means of " + timeText(w.times[1] - w.times[0]) : ""})`, most * 1.08 || 1, wattsText);
    p.inTime(panel.top, panel.tall + 1, () => {
      for (let i = n - 1; i >= 0; i--) this.area(w.times, (k) => sums[i][k], panel, this.layerColour(i));
      if (predicted && predicted.power) {
        const all = this.sums(predicted.power)[predicted.power.watts.length - 1];
        this.stroke(predicted.power.times, (k) => all[k], panel, p.theme.ink, { width: 1, dashes: [4, 3] });
      }
      p.c.beginPath();
      let before = -Infinity;
      for (let k = Math.max(0, place(w.times, p.view.from)); k < w.times.length; k++) {
        if ((w.times[k] - before) * p.scale < 1 && k < w.times.length - 1) continue;
        before = w.times[k];
        p.c.lineTo(p.x(w.times[k]), panel.base - w.joules[k] / (all || 1) * panel.tall * 0.95);
      }
      p.c.strokeStyle = p.theme.danger;
      p.c.lineWidth = 1.4;
      p.c.stroke();
    });
    return top + captionHeight + panelHeight;
  }
  // sums are the watts of every layer with those below.
  sums(power) {
    if (!power.sums) {
      power.sums = [];
      for (const watts of power.watts) {
        const below = power.sums[power.sums.length - 1];
        power.sums.push(below ? watts.map((v, k) => v + below[k]) : watts);
      }
    }
    return power.sums;
  }
  layerColour(i) {
    const hues = [[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [224, 214, 52], [92, 78, 172], [150, 48, 104]];
    return `rgb(${hues[i % hues.length].join(",")})`; // not transparent, since areas lie over each other
  }
  drawClocks(s, top) {
    const p = this.picture, most = Math.max(1, ...s.clocks.flatMap((c) => Array.from(c.scales)));
    const panel = this.panel(top, clockHeight, "clocks, relative to the first: " + s.clocks.map((c) => c.name).join(", "), most * 1.1, (v) => digits(v));
    p.inTime(panel.top, panel.tall + 1, () => s.clocks.forEach((clock, i) => {
      const times = [...clock.times, s.end];
      this.stroke(times, (k) => clock.scales[k], panel, this.layerColour(i), { width: 2 });
    }));
    return top + captionHeight + clockHeight;
  }
  drawMemory(m, predicted, top) {
    const p = this.picture, tall = panelHeight * 0.7;
    let caption = `${m.name}: live peak ${bytesText(m.peak)}`;
    if (m.reserved) caption += `, reserved ${bytesText(m.reserved)}`;
    if (m.capacity) caption += `, capacity ${bytesText(m.capacity)}`;
    if (m.highest) caption += `; highest of each ${timeText(m.times[1] - m.times[0])}`;
    const panel = this.panel(top, tall, caption, Math.max(m.peak, m.reserved, predicted ? predicted.peak : 0) * 1.1 || 1, bytesText);
    p.inTime(panel.top, panel.tall + 1, () => {
      this.area(m.times, (k) => m.bytes[k], panel, "rgba(0,114,178,0.3)", true);
      this.stroke(m.times, (k) => m.bytes[k], panel, "rgb(0,114,178)", { highest: true });
      if (predicted) this.stroke(predicted.times, (k) => predicted.bytes[k], panel, p.theme.ink, { width: 1, dashes: [4, 3], highest: true });
      if (m.reserved) p.line(p.left, panel.y(m.reserved), p.right, panel.y(m.reserved), p.theme.danger, 1.2, [5, 3]);
    });
    return top + captionHeight + tall;
  }
  // sentence says what the curves are at a moment.
  sentence(time) {
    const s = this.app.run.schedules[0], parts = [timeText(time)];
    if (s.power) {
      const k = Math.min(place(s.power.times, time), s.power.times.length - 2);
      if (k >= 0) parts.push(s.power.names.map((name, i) => `${name} ${wattsText(s.power.watts[i][k])}`).join(", "), `${joulesText(s.power.joules[k])} so far`);
    }
    for (const m of s.memories) {
      const k = Math.min(place(m.times, time), m.bytes.length - 1);
      if (k >= 0) parts.push(`${m.name} ${bytesText(m.bytes[k])}`);
    }
    return parts.join(" · ");
  }
}
