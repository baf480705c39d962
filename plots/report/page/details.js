// What is chosen, what it waited for, and the way back along the causes.

class Details {
  constructor(panel, app) {
    this.panel = panel;
    this.app = app;
  }
  draw() {
    const { schedule, chain } = this.app.chosen;
    if (!chain.length) {
      this.panel.replaceChildren(element("p", { class: "faint" }, "Nothing is chosen. Click a task, or a row of the longest waits."));
      return;
    }
    const item = chain[chain.length - 1];
    const parts = [element("h3", {}, schedule.name(item)), this.facts(schedule, item)];
    if (item < schedule.firstRest) parts.push(...this.causes(schedule, item));
    else parts.push(...this.restCause(schedule, item));
    if (chain.length > 1) parts.push(this.followed(schedule, chain));
    this.panel.replaceChildren(...parts);
  }
  facts(s, item) {
    const rows = [["where", s.place(item)]], i = item - s.firstTransfer;
    const took = s.to[item] - s.from[item];
    if (s.isSpan(item)) {
      const task = s.spans.task[item], run = s.run;
      rows.push(["step", String(s.firstStep + s.spans.step[item])]);
      for (const label of ["layer", "phase", "op", "shape"]) {
        if (run.word(label, task)) rows.push([label, run.word(label, task)]);
      }
      const kernel = run.kernels.find((k) => k.op === run.word("op", task) && k.shape === run.word("shape", task));
      if (kernel && kernel.variant) rows.push(["variant", `${kernel.variant} (${kernel.source})`]);
      if (s.spans.clock[item]) rows.push(["clock", s.spans.clockNames[s.spans.clock[item]]]);
    } else if (s.isTransfer(item)) {
      const t = s.transfers;
      rows.push(["bytes", `${t.bytes[i]} (${bytesText(t.bytes[i])}; ${digits(t.bytes[i] / Math.max(1, took))} GB/s)`],
        ["for", s.run.tasks.names.at(t.task[i])], ["step", String(s.firstStep + t.step[i])]);
      if (t.reasons[t.reason[i]]) rows.push(["reason", t.reasons[t.reason[i]]]);
    } else {
      rows.push([s.run.categories[s.category[item]].kind, s.run.categories[s.category[item]].name]);
    }
    rows.push(["from", `${s.from[item]} ns (${timeText(s.from[item])})`], ["to", `${s.to[item]} ns (${timeText(s.to[item])})`], ["took", timeText(took)]);
    if (s.onPath[item]) rows.push(["path", "on the critical path"]);
    return element("table", { class: "facts" }, ...rows.map(([k, v]) => element("tr", {}, element("th", {}, k), element("td", {}, v))));
  }
  // causes lists when everything was free that the start needed; the last of it is the cause.
  causes(s, item) {
    // An engine may be free after the copy that the route was free after: once is enough.
    const freed = s.freed(item).filter((f, i, all) => s.isSpan(item) || f.by < 0 || f.last || !all.some((g, k) => g.by === f.by && (g.last || k < i)));
    if (!freed.length) return [element("p", {}, "It waited for nothing: it could start with the run.")];
    const cause = freed.find((f) => f.last);
    const rows = freed.map((f) => element("tr", { class: f.last ? "cause" : undefined },
      element("td", {}, f.what, " ", f.by < 0 ? f.text : this.link(s, f.by)), element("td", {}, timeText(f.at)),
      element("td", {}, f.last ? "the cause" : `${timeText(cause.at - f.at)} before`)));
    for (const f of freed) { // a copy that a task waited for had its engine from then on
      if (!s.isSpan(item) || !s.isTransfer(f.by)) continue;
      const engine = s.freed(f.by).filter((g) => s.isTransfer(g.by)).sort((a, b) => b.at - a.at)[0];
      if (engine) rows.push(element("tr", {}, element("td", {}, "its ", engine.what, " ", this.link(s, engine.by)), element("td", {}, timeText(engine.at)), element("td", {}, "")));
    }
    const wait = s.from[item] - cause.at;
    return [
      element("h4", {}, "It needed"),
      element("table", { class: "freed" }, element("tr", {}, element("th", {}, "what"), element("th", {}, "free at"), element("th", {}, "")), ...rows),
      element("p", {}, wait > 0 ? `It started ${timeText(wait)} after that.` : "It started at that moment.", " ",
        cause.by >= 0 ? element("button", { id: "follow", onclick: () => this.app.follow() }, "follow the cause (Enter)") : ""),
    ];
  }
  // restCause leads from idle time to the task that ended it.
  restCause(s, item) {
    const items = s.rows[s.row[item]].items[s.lane[item]];
    const next = items.find((k) => k < s.firstRest && s.from[k] >= s.to[item]);
    if (next === undefined) return [];
    return [element("p", {}, "It ended when ", this.link(s, next), ` started, ${timeText(s.from[next] - s.to[item])} later.`)];
  }
  followed(s, chain) {
    const list = chain.slice(0, -1).map((k, i) => element("li", {}, element("button", { class: "link", onclick: () => this.app.back(i + 1) }, s.name(k))));
    return element("div", {}, element("h4", {}, "Followed from"), element("ol", {}, ...list));
  }
  link(s, item) {
    return element("button", { class: "link", onclick: () => this.app.go(item) }, s.name(item));
  }
}
