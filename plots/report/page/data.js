// What the columns of the report become: arrays of numbers, and lists per lane.

// readData unpacks the data of the page. doc.go says what they look like.
async function readData() {
  const text = atob(document.getElementById("data").textContent.trim());
  const packed = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  const varint = () => { // beyond 32 bits, so by products
    let value = 0, scale = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
  const signed = () => {
    const v = varint();
    return v % 2 ? -(v + 1) / 2 : v / 2;
  };
  const length = varint();
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(at, at + length)));
  at += length;
  const columns = data.columns.map(({ kind, n }) => {
    const list = new Float64Array(n);
    if (kind === "f") {
      const raw = new DataView(new ArrayBuffer(4));
      for (let i = 0; i < n; i++) {
        for (let b = 0; b < 4; b++) raw.setUint8(b, bytes[at + b * n + i]);
        list[i] = raw.getFloat32(0, true);
      }
      at += 4 * n;
      return list;
    }
    for (let i = 0, before = 0; i < n; i++) {
      list[i] = kind === "d" ? (before += signed()) : signed();
    }
    return list;
  });
  data.runs = data.runs.map((run) => new Run(run, columns));
  return data;
}

// taken replaces numbers of columns by the columns, but for the named values.
function taken(object, columns, ...except) {
  const out = {};
  for (const [name, v] of Object.entries(object)) {
    out[name] = except.includes(name) ? v : Array.isArray(v) ? v.map((k) => columns[k]) : columns[v];
  }
  return out;
}

// startsOf adds up gaps and lengths.
function startsOf({ gap, length }) {
  let ended = 0;
  return gap.map((g, i) => {
    const start = ended + g;
    ended = start + length[i];
    return start;
  });
}

// Names makes names of patterns and their numbers.
class Names {
  constructor(patterns, columns) {
    this.list = patterns.list.map((p) => p.split("\0"));
    this.of = columns[patterns.of];
    this.numbers = patterns.numbers.map((k) => columns[k]);
  }
  get length() { return this.of.length; }
  at(i) {
    const parts = this.list[this.of[i]];
    let name = parts[0];
    for (let k = 1; k < parts.length; k++) name += this.numbers[k - 1][i] + parts[k];
    return name;
  }
}

class Run {
  constructor(run, columns) {
    Object.assign(this, run);
    this.buffers = new Names(run.buffers, columns);
    this.tasks = { ...taken(run.tasks, columns, "names", "words"), names: new Names(run.tasks.names, columns), words: run.tasks.words };
    this.schedules = run.schedules.map((s) => new Schedule(s, this, columns));
    this.slots = new Slots(this.schedules);
    for (const s of this.schedules) s.lay(this.slots);
  }
  word(label, task) { return this.tasks.words[this.tasks[label][task]]; }
}

// Slots are the time of the pictures. Two schedules of as many steps have a slot for each step, in which it begins in both at
// the same place, and which is as long as the longer one. All else has one slot, in which times are themselves.
class Slots {
  constructor(schedules) {
    const n = schedules[0].steps.length;
    this.steps = schedules.length > 1 && n > 1 && schedules.every((s) => s.steps.length === n);
    const bounds = schedules.map((s) => {
      const ends = this.steps ? Array.from(s.steps) : [s.end];
      ends.forEach((end, k) => { ends[k] = Math.max(end, ends[k - 1] || 0); });
      ends[ends.length - 1] = Math.max(ends[ends.length - 1], s.end);
      return [0, ...ends];
    });
    this.starts = [0];
    for (let k = 1; k < bounds[0].length; k++) this.starts.push(this.starts[k - 1] + Math.max(...bounds.map((b) => b[k] - b[k - 1])));
    schedules.forEach((s, i) => { s.bounds = bounds[i]; });
    this.end = this.starts[this.starts.length - 1];
  }
  // at is the number of the slot of a place.
  at(x) { return Math.max(0, Math.min(place(this.starts, x), this.starts.length - 2)); }
}

// place is the number of the last of some times that is not after a moment.
function place(times, at) {
  let low = 0, high = times.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (times[mid] > at) high = mid; else low = mid + 1;
  }
  return low - 1;
}

// Items of a schedule have one numbering: spans, then transfers, then rests.
class Schedule {
  constructor(s, run, columns) {
    Object.assign(this, s);
    this.run = run;
    this.steps = columns[s.steps];
    this.spans = taken(s.spans, columns, "clockNames");
    this.spans.clockNames = s.spans.clockNames;
    this.transfers = taken(s.transfers, columns, "reasons");
    this.transfers.reasons = s.transfers.reasons;
    this.changes = taken(s.changes, columns, "words");
    this.changes.words = s.changes.words;
    this.rests = taken(s.rests, columns, "words");
    this.rests.words = s.rests.words;
    this.path = taken(s.path, columns);
    this.power = s.power && { ...s.power, times: columns[s.power.times], watts: s.power.watts.map((k) => columns[k]), joules: columns[s.power.joules] };
    this.memories = s.memories.map((m) => ({ ...m, times: columns[m.times], bytes: columns[m.bytes] }));
    this.clocks = s.clocks.map((c) => ({ ...c, times: columns[c.times], scales: columns[c.scales] }));
    this.rows = s.rows.map((r) => ({ ...r, coarse: r.coarse.map((c) => taken(c, columns, "n")), coarseN: r.coarse.map((c) => c.n) }));
    this.spans.start = startsOf(this.spans);
    this.transfers.start = startsOf(this.transfers);
    this.spanOf = new Int32Array(this.steps.length * run.tasks.op.length).fill(-1);
    for (let i = 0; i < this.spans.task.length; i++) this.spanOf[this.instance(this.spans.step[i], this.spans.task[i])] = i;
    this.gather();
  }
  instance(step, task) { return step * this.run.tasks.op.length + task; }
  // gather numbers the items and lists those of each lane in the order of time.
  gather() {
    const kinds = [this.spans, this.transfers, this.rests];
    this.firstTransfer = this.spans.start.length;
    this.firstRest = this.firstTransfer + this.transfers.start.length;
    const n = this.firstRest + this.rests.start.length;
    this.from = new Float64Array(n);
    this.to = new Float64Array(n);
    this.category = new Uint16Array(n);
    this.row = new Uint16Array(n);
    this.lane = new Uint16Array(n);
    let at = 0;
    for (const kind of kinds) {
      for (let i = 0; i < kind.start.length; i++, at++) {
        this.from[at] = kind.start[i];
        this.to[at] = kind.start[i] + kind.length[i];
        this.category[at] = kind.category[i];
        this.row[at] = kind.row[i];
        this.lane[at] = kind.lane[i];
      }
    }
    for (const row of this.rows) row.items = Array.from({ length: row.lanes }, () => []);
    for (let i = 0; i < n; i++) this.rows[this.row[i]].items[this.lane[i]].push(i);
    for (const row of this.rows) {
      row.items = row.items.map((list) => Uint32Array.from(list.sort((a, b) => this.from[a] - this.from[b] || this.to[a] - this.to[b])));
    }
    this.onPath = new Uint8Array(n);
    this.pathItems = [];
    for (let k = 0; k < this.path.kind.length; k++) {
      if (this.path.kind[k] > 1) continue; // a change of state is drawn where it is
      const item = this.path.kind[k] * this.firstTransfer + this.path.number[k];
      this.onPath[item] = 1;
      this.pathItems.push(item);
    }
  }
  // lay finds the places of everything in the pictures.
  lay(slots) {
    this.slots = slots;
    this.left = this.from.map((t) => this.at(t));
    this.right = this.to.map((t, i) => Math.max(this.left[i], this.at(t, true)));
    this.edges = slots.steps ? slots.starts.slice(1) : this.steps;
    for (const curve of [this.power, ...this.memories, ...this.clocks]) {
      if (curve) curve.places = curve.times.map((t) => this.at(t));
    }
  }
  // at is the place of a time: of one between two slots in the latter, or where something ends in the former.
  at(time, ends = false) {
    let k = Math.max(0, Math.min(place(this.bounds, time), this.bounds.length - 2));
    while (ends && k > 0 && time <= this.bounds[k]) k--;
    return this.slots.starts[k] + time - this.bounds[k];
  }
  // time is the time at a place; in what is free behind a shorter step it is the step's end.
  time(x) {
    const k = this.slots.at(x);
    return Math.min(this.bounds[k] + x - this.slots.starts[k], this.bounds[k + 1]);
  }
  // taken lists the places between two that the steps take, as pairs.
  taken(from, to) {
    const list = [];
    for (let k = this.slots.at(from); k < this.bounds.length - 1 && this.slots.starts[k] <= to; k++) {
      list.push([this.slots.starts[k], this.slots.starts[k] + this.bounds[k + 1] - this.bounds[k], k]);
    }
    return list;
  }
  isSpan(item) { return item < this.firstTransfer; }
  isTransfer(item) { return item >= this.firstTransfer && item < this.firstRest; }
  // name of an item, as short as it can be told.
  name(item) {
    if (this.isSpan(item)) return this.run.tasks.names.at(this.spans.task[item]);
    if (this.isTransfer(item)) {
      const t = this.transfers, i = item - this.firstTransfer;
      return `${this.run.buffers.at(t.buffer[i])} (${bytesText(t.bytes[i])})`;
    }
    const rest = this.rests, i = item - this.firstRest;
    return this.rests.words[rest.text[i]] || this.run.categories[this.category[item]].name;
  }
  place(item) {
    if (this.isSpan(item)) return this.run.workers[this.spans.worker[item]];
    if (this.isTransfer(item)) {
      const t = this.transfers, i = item - this.firstTransfer;
      return `${this.run.memories[t.from[i]]} to ${this.run.memories[t.to[i]]}`;
    }
    const row = this.rows[this.row[item]];
    return row.node ? `${row.node}.${row.label}` : row.label;
  }
  // firstAfter is the number of the first of some items that ends after a place.
  firstAfter(items, x) {
    let low = 0, high = items.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.right[items[mid]] > x) high = mid; else low = mid + 1;
    }
    return low;
  }
  // freed lists what a span or transfer waited for, and the cause among it.
  freed(item) {
    const span = this.isSpan(item);
    const of = span ? this.spans : this.transfers, i = span ? item : item - this.firstTransfer;
    const list = [];
    const add = (place, what, by, at) => list.push({ what, by, at, last: of.last[i] === place });
    if (of.stepsBack[i]) {
      const by = this.spanOf[this.instance(of.step[i] - of.stepsBack[i] + 1, of.task[i] - of.tasksBack[i])];
      add(1, span ? "operands written by" : "contents written by", by, this.to[by]);
    }
    if (of.arrival[i]) {
      const by = this.firstTransfer + of.arrival[i] - 1;
      add(2, "operands here with", by, this.to[by]);
    }
    if (of.change[i]) {
      const k = of.change[i] - 1;
      list.push({ what: "state changed:", text: this.changes.words[this.changes.text[k]], by: -1, at: this.changes.end[k], last: of.last[i] === 3 });
    }
    for (let k = 0; k < 3; k++) {
      if (!of.busy[k][i]) continue;
      const by = item - of.busy[k][i];
      add(4 + k, span ? `worker ${this.place(item)} free after` : this.engine(item, by) + " free after", by, this.to[by]);
    }
    return list;
  }
  // engine says what two transfers had to share.
  engine(item, other) {
    const t = this.transfers, a = item - this.firstTransfer, b = other - this.firstTransfer;
    const names = this.run.memories;
    if (t.from[a] === t.from[b] && t.to[a] === t.to[b]) return `engine from ${names[t.from[a]]} to ${names[t.to[a]]}`;
    if (t.to[a] === t.to[b]) return `engine into ${names[t.to[a]]}`;
    return `engine out of ${names[t.from[a]]}`;
  }
}
