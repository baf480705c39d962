// What every part of the page shares: the stretch of time that is shown, colours, and how
// quantities are written.

const byID = (id) => document.getElementById(id);

// element makes one with text or children.
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children);
  return e;
}

// digits writes three significant digits without an exponent.
function digits(v) {
  if (v === 0) return "0";
  const a = Math.abs(v);
  if (a >= 999.5) return v.toFixed(0);
  const places = Math.max(0, 2 - Math.floor(Math.log10(a)));
  const s = v.toFixed(Math.min(places, 12));
  return s.includes(".") ? s.replace(/0+$/, "").replace(/\.$/, "") : s;
}

const unitText = (v, units) => {
  const [name, size] = v === 0 ? units.find(([, size]) => size === 1) : units.find(([, size]) => Math.abs(v) >= size) || units[units.length - 1];
  return `${digits(v / size)} ${name}`;
};
const timeUnits = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
const timeText = (ns) => unitText(ns, timeUnits);
const secondsText = (s) => timeText(s * 1e9);
const byteUnits = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]];
const bytesText = (b) => unitText(b, byteUnits);
const wattsText = (w) => unitText(w, [["kW", 1e3], ["W", 1], ["mW", 1e-3], ["uW", 1e-6]]);
const joulesText = (j) => unitText(j, [["kJ", 1e3], ["J", 1], ["mJ", 1e-3], ["uJ", 1e-6]]);

// steps lists round values between two, about so many.
function roundSteps(from, to, about) {
  const raw = (to - from) / Math.max(1, about), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const list = [];
  for (let v = Math.ceil(from / step) * step; v <= to * (1 + 1e-12); v += step) list.push(v);
  return { list, step };
}

// decadeSteps lists 1, 2 and 5 times the powers of ten between two values.
function decadeSteps(from, to) {
  const list = [];
  for (let power = 10 ** Math.floor(Math.log10(from)); power <= to; power *= 10) {
    list.push(...[power, 2 * power, 5 * power].filter((v) => v >= from && v <= to));
  }
  return list;
}

// tickText writes a tick so that neighbours differ.
function tickText(v, step, size) {
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (v / size).toFixed(places);
}

// luminance is the brightness of a colour, from 0 of black to 1 of white, as the accessibility guidelines (WCAG 2) compute it.
function luminance(r, g, b) {
  const linear = (v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

// Theme is the colours of the page, which follow its style: dark, light or print.
class Theme {
  constructor() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "faint", "grid", "accent", "path", "danger"]) this[name] = style.getPropertyValue("--" + name).trim();
    this.dark = style.getPropertyValue("--dark").trim() === "1";
  }
  // colour is that of a category on the paper.
  colour(category) { return this.dark ? category.dark : category.colour; }
  fill(category) { return `rgb(${this.colour(category).join(",")})`; }
  onColour(category) {
    if (category.kind === "idle" || category.kind === "state") return this.ink;
    const [r, g, b] = this.colour(category);
    return luminance(r, g, b) > 0.179 ? "#000" : "#fff"; // either has a contrast of at least 4.5 there
  }
}

// TimeView is the stretch of time that all pictures show, in nanoseconds.
class TimeView {
  constructor(end, changed) {
    Object.assign(this, { end: Math.max(end, 1), from: 0, to: Math.max(end, 1), changed });
  }
  show(from, to) {
    const least = Math.min(this.end, 10);
    let span = Math.min(Math.max(to - from, least), this.end);
    from = Math.min(Math.max(from - Math.max(0, span - (to - from)) / 2, 0), this.end - span);
    [this.from, this.to] = [from, from + span];
    this.changed();
  }
  zoom(factor, at = (this.from + this.to) / 2) {
    const from = at - (at - this.from) * factor;
    this.show(from, from + (this.to - this.from) * factor);
  }
  move(share) {
    const by = (this.to - this.from) * share;
    const from = Math.min(Math.max(this.from + by, 0), this.end - (this.to - this.from));
    this.show(from, from + (this.to - this.from));
  }
  all() { this.show(0, this.end); }
  // reveal shows a stretch with what is around it.
  reveal(from, to) {
    const span = this.to - this.from;
    if (from >= this.from && to <= this.to && to - from > span / 200) return;
    const wanted = Math.max((to - from) * 12, Math.min(span, this.end / 40));
    const mid = (from + to) / 2;
    this.show(mid - wanted / 2, mid + wanted / 2);
  }
}

// Picture is a canvas whose left part has names and whose rest has time.
class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.c = canvas.getContext("2d");
  }
  // begin clears the canvas at a height and the resolution of the screen.
  begin(height, view, theme) {
    const ratio = window.devicePixelRatio || 1, width = this.canvas.clientWidth;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.style.height = height + "px";
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.c.clearRect(0, 0, width, height);
    this.left = Math.min(120, width / 4);
    this.right = width - (this.margin || 12);
    Object.assign(this, { view, theme, scale: (this.right - this.left) / (view.to - view.from) });
    this.font(11);
  }
  font(size, weight = "") { this.c.font = `${weight} ${size}px system-ui, sans-serif`; }
  x(time) { return this.left + (time - this.view.from) * this.scale; }
  time(x) { return this.view.from + (x - this.left) / this.scale; }
  text(s, x, y, align, colour) {
    this.c.textAlign = align;
    this.c.textBaseline = "middle";
    this.c.fillStyle = colour;
    this.c.fillText(s, x, y);
  }
  // halo is a text that covers the lines behind it with the paper.
  halo(s, x, y, align, colour) {
    this.c.textAlign = align;
    this.c.textBaseline = "middle";
    this.c.lineWidth = 4;
    this.c.lineJoin = "round";
    this.c.strokeStyle = this.theme.paper;
    this.c.strokeText(s, x, y);
    this.text(s, x, y, align, colour);
  }
  // clipped is a text that is no wider than so many pixels; empty where hardly anything is left.
  clipped(s, width) {
    if (this.c.measureText(s).width <= width) return s;
    let n = Math.floor(s.length * width / this.c.measureText(s).width) - 1;
    return n < 4 ? "" : s.slice(0, n) + "…";
  }
  // shortened is a name that is no wider: without its tile, or without its phase too, or nothing.
  shortened(s, width) {
    return [s, s.split("[")[0], s.split(/[[.]/)[0]].find((name) => this.c.measureText(name).width <= width) || "";
  }
  line(x0, y0, x1, y1, colour, width = 1, dashes = []) {
    const c = this.c;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash(dashes);
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
    c.stroke();
    c.setLineDash([]);
  }
  // inTime calls draw with everything outside the time axis cut off, and outside the steps of a schedule if one is given.
  inTime(top, height, draw, schedule = null) {
    this.c.save();
    this.c.beginPath();
    for (const [from, to] of schedule ? schedule.taken(this.view.from, this.view.to) : [[this.view.from, this.view.to]]) {
      const left = Math.max(this.left, this.x(from)), right = Math.min(this.right, this.x(to));
      if (right > left) this.c.rect(left, top, right - left, height);
    }
    this.c.clip();
    draw();
    this.c.restore();
  }
  // axis draws the time axis above a height, with lines down to another.
  axis(top, bottom) {
    const { from, to } = this.view, { list, step } = roundSteps(from, to, (this.right - this.left) / 90);
    const [unit, size] = timeUnits.find(([, size]) => to >= size) || timeUnits[3];
    for (const t of list) {
      this.line(this.x(t), top + 16, this.x(t), bottom, this.theme.grid);
      this.text(tickText(t, step, size), this.x(t), top + 8, "center", this.theme.faint);
    }
    this.text(unit, this.left - 24, top + 8, "right", this.theme.faint);
  }
  // stepAxis counts the time of each step from its beginning, where there is room.
  stepAxis(top, bottom, slots) {
    const { from, to } = this.view, longest = Math.min(to - from, this.longest(slots));
    const [unit, size] = timeUnits.find(([, size]) => longest >= size) || timeUnits[3];
    let free = this.left - 12;
    for (let k = slots.at(from); k < slots.starts.length - 1 && slots.starts[k] <= to; k++) {
      const start = slots.starts[k], length = slots.starts[k + 1] - start, wide = length * this.scale;
      if (wide < leastApart) continue;
      const { list, step } = roundSteps(0, length, Math.max(1, wide / 90));
      for (const t of list) {
        const x = this.x(start + t), text = tickText(t, step, size), half = this.c.measureText(text).width / 2;
        if (x < this.left - 1 || x > this.right || x - half < free) continue;
        this.line(x, top + 16, x, bottom, this.theme.grid);
        if (wide < 40) continue;
        this.text(text, x, top + 8, "center", this.theme.faint);
        free = x + half + 6;
      }
    }
    const says = `${unit} of the step`;
    this.text(says, Math.max(this.left - 14, this.c.measureText(says).width), top + 8, "right", this.theme.faint);
  }
  longest(slots) { return slots.starts.reduce((most, start, k) => Math.max(most, k ? start - slots.starts[k - 1] : 0), 0); }
}
