// Power, energy, clocks and memory below the timeline, on its axis.

const panelHeight = 96, clockHeight = 46, captionHeight = 20;

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
    for (const m of shown.memories) y = this.drawMemory(shown, m, predicted, y);
    p.canvas.setAttribute("aria-label", `power, clocks and memory from ${timeText(view.from)} to ${timeText(view.to)}`);
  }
  // panel draws a frame with its caption and the lines of an axis, and returns the y of a value.
  panel(top, tall, caption, most, write, right = 0) {
    const p = this.picture, base = top + captionHeight + tall;
    const y = (v) => base - v / most * tall;
    p.font(11, "600");
    p.text(p.clipped(caption, p.right - p.left - right), p.left, top + captionHeight / 2, "left", p.theme.ink);
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
    const sums = this.sums(w), most = sums[n - 1].reduce((a, b) => Math.max(a, b), 0), all = w.joules[w.joules.length - 1] || 1;
    const panel = this.panel(top, panelHeight, `power (${w.grounds}${w.mean ? ", means of " + timeText(w.times[1] - w.times[0]) : ""})`, most * 1.08 || 1, wattsText, 24);
    const joules = (j) => panel.base - j / all * panel.tall * 0.95;
    p.text("energy so far", p.canvas.clientWidth, top + captionHeight / 2, "right", p.theme.danger);
    for (const j of roundSteps(0, all, 3).list) p.text(joulesText(j), p.right + 5, joules(j), "left", p.theme.danger);
    p.inTime(panel.top, panel.tall + 1, () => {
      for (let i = n - 1; i >= 0; i--) this.area(w.places, (k) => sums[i][k], panel, this.layerColour(i));
    }, s);
    if (predicted && predicted.power) {
      const all = this.sums(predicted.power)[predicted.power.watts.length - 1];
      p.inTime(panel.top, panel.tall + 1, () => this.stroke(predicted.power.places, (k) => all[k], panel, p.theme.ink, { width: 1, dashes: [4, 3] }), predicted);
    }
    p.inTime(panel.top, panel.tall + 1, () => {
      p.c.beginPath();
      let before = -Infinity;
      for (let k = Math.max(0, place(w.places, p.view.from)); k < w.places.length; k++) {
        if ((w.places[k] - before) * p.scale < 1 && k < w.places.length - 1) continue;
        before = w.places[k];
        p.c.lineTo(p.x(w.places[k]), joules(w.joules[k]));
      }
      for (const [colour, width] of [[p.theme.paper, 3.5], [p.theme.danger, 1.6]]) { // readable over any area
        p.c.strokeStyle = colour;
        p.c.lineWidth = width;
        p.c.stroke();
      }
    }, s);
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
      const places = [...clock.places, s.slots.end];
      this.stroke(places, (k) => clock.scales[k], panel, this.layerColour(i), { width: 2 });
    }), s);
    return top + captionHeight + clockHeight;
  }
  drawMemory(s, m, predicted, top) {
    const p = this.picture, tall = panelHeight * 0.7;
    let caption = `${m.name}: live peak ${bytesText(m.peak)}`;
    if (m.reserved) caption += `, reserved ${bytesText(m.reserved)}`;
    if (m.capacity) caption += `, capacity ${bytesText(m.capacity)}`;
    if (m.highest) caption += `; highest of each ${timeText(m.times[1] - m.times[0])}`;
    const panel = this.panel(top, tall, caption, Math.max(m.peak, m.reserved) * 1.1 || 1, bytesText);
    p.inTime(panel.top, panel.tall + 1, () => {
      this.area(m.places, (k) => m.bytes[k], panel, "rgba(0,114,178,0.3)", true);
      this.stroke(m.places, (k) => m.bytes[k], panel, "rgb(0,114,178)", { highest: true });
    }, s);
    const before = predicted && predicted.memories.find((x) => x.name === m.name);
    if (before) p.inTime(panel.top, panel.tall + 1, () => this.stroke(before.places, (k) => before.bytes[k], panel, p.theme.ink, { width: 1, dashes: [4, 3], highest: true }), predicted);
    if (m.reserved) p.line(p.left, panel.y(m.reserved), p.right, panel.y(m.reserved), p.theme.danger, 1.2, [5, 3]);
    return top + captionHeight + tall;
  }
  // sentence says what the curves are at a moment.
  sentence(time) {
    const s = this.app.run.schedules[0], parts = [timeText(s.time(time))];
    if (s.power) {
      const k = Math.min(place(s.power.places, time), s.power.places.length - 2);
      if (k >= 0) parts.push(s.power.names.map((name, i) => `${name} ${wattsText(s.power.watts[i][k])}`).join(", "), `${joulesText(s.power.joules[k])} so far`);
    }
    for (const m of s.memories) {
      const k = Math.min(place(m.places, time), m.bytes.length - 1);
      if (k >= 0) parts.push(`${m.name} ${bytesText(m.bytes[k])}`);
    }
    return parts.join(" · ");
  }
}
