"use strict";
// Everything is drawn from the data in the page. A box that holds others is laid out by itself, its inside first, so
// that only what is unfolded costs time.
const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const READABLE = 60; // boxes that are seen at first, at most
const FEW = 10; // boxes; where fewer are seen, gaps become narrower
const LEAST_SCALE = 0.6; // of labels that can be read
const MOST_FOUND = 200;

let stage = null; // what is shown: {boxes, parent, arrows, uses, open}
let chosen = null;
let view = { x: 0, y: 0, scale: 1 };
const seen = { types: false, times: true, compare: false };

// ------------------------------------------------------------------------------------------------------------- stages

function prepare(data) {
  if (data.ready) return data.ready;
  const boxes = new Map(), parent = new Map(), depth = new Map(), byLine = new Map(), order = [];
  const walk = (box, above, level) => {
    boxes.set(box.i, box); parent.set(box.i, above); depth.set(box.i, level); order.push(box);
    if (box.s) {
      const key = box.s.join(":");
      if (!byLine.has(key)) byLine.set(key, []);
      byLine.get(key).push(box);
    }
    for (const child of box.c || []) walk(child, box, level + 1);
  };
  walk(data.root, null, 0);
  const uses = new Map(), made = new Map();
  for (const arrow of data.arrows) {
    if (!uses.has(arrow[0])) uses.set(arrow[0], []);
    if (!made.has(arrow[1])) made.set(arrow[1], []);
    uses.get(arrow[0]).push(arrow); made.get(arrow[1]).push(arrow);
  }
  const open = new Set([data.root.i]), times = new Map(), alike = new Map();
  const total = (box) => {
    const found = (box.u || 0) + (box.c || []).reduce((sum, child) => sum + total(child), 0);
    times.set(box.i, found);
    return found;
  };
  total(data.root);
  for (const box of order) if (isNode(box)) alike.set(signature(box), (alike.get(signature(box)) || 0) + 1);
  const ready = { data, boxes, parent, depth, byLine, order, uses, made, open, times, alike, compact: false };
  data.ready = ready;
  unfold(ready);
  return ready;
}

const isNode = (box) => ["operator", "value", "control", "kernel"].includes(box.k) && Boolean(box.d);
const signature = (box) => box.t + " " + (box.s ? box.s.join(":") : "");

function unlike(of, other) { // the nodes of a stage that another has not, and the boxes that hold such
  const left = new Map(other.alike), found = new Set(), around = new Set();
  for (const box of of.order) {
    if (!isNode(box)) continue;
    const count = left.get(signature(box)) || 0;
    left.set(signature(box), count - 1);
    if (count > 0) continue;
    found.add(box.i);
    for (let at = of.parent.get(box.i); at; at = of.parent.get(at.i)) around.add(at.i);
  }
  return { found, around };
}

function unfold(of) { // as far as the whole graph can be seen with labels that can be read
  const now = stage;
  stage = of;
  const seen = unfolded(of, false);
  if (seen < FEW && unfolded(of, true) < FEW && seen > 0) unfolded(of, false);
  stage = now;
}

function unfolded(of, compact) { // opens boxes, the outermost first; returns how many are seen, 0 where they cannot be read
  const readable = () => scaleFor(layout(of.data.root, joints(), { boxes: new Map(), lines: new Map() })) >= LEAST_SCALE;
  of.open = new Set([of.data.root.i]);
  of.compact = compact;
  if (!readable()) return 0;
  const waiting = [...(of.data.root.c || [])];
  let seen = waiting.length;
  while (waiting.length) {
    const box = waiting.shift();
    if (!box.c || box.k === "kernel" || box.k === "repeat" || seen + box.c.length > READABLE) continue;
    of.open.add(box.i);
    if (!readable()) { of.open.delete(box.i); continue; }
    seen += box.c.length;
    waiting.push(...box.c);
  }
  return seen;
}

function scaleFor(size) { // at which all of it is seen
  const room = $("graph").getBoundingClientRect();
  return Math.min(1.2, room.width / size.w, room.height / size.h);
}

function show(index, keep) {
  stage = prepare(DATA.stages[index]);
  stage.index = index;
  $("times").hidden = !stage.times.get(stage.data.root.i);
  $("stage").value = index;
  chosen = null;
  draw();
  if (!keep) fit();
  showSource();
  showDetails();
}

// ------------------------------------------------------------------------------------------------------------- layout

const width = (text) => 7 * Math.min(text.length, 42) + 22;
const short = (text) => (text.length > 42 ? text.slice(0, 40) + "…" : text);

function seenAs(id) { // the box by which a box is seen: itself, or the outermost folded one around it
  let found = stage.boxes.get(id), at = found;
  while ((at = stage.parent.get(at.i))) if (!stage.open.has(at.i)) found = at;
  return found;
}

function joints() { // the arrows that are drawn, by the box within which they are
  const within = new Map(), seen = new Set();
  for (const arrow of stage.data.arrows) {
    let a = seenAs(arrow[0]), b = seenAs(arrow[1]);
    while (a !== b && stage.parent.get(a.i) !== stage.parent.get(b.i)) {
      if (stage.depth.get(a.i) >= stage.depth.get(b.i)) a = stage.parent.get(a.i);
      else b = stage.parent.get(b.i);
    }
    const key = a.i + ":" + b.i;
    if (a === b || seen.has(key)) continue;
    seen.add(key);
    const home = stage.parent.get(a.i).i;
    if (!within.has(home)) within.set(home, []);
    within.get(home).push([a.i, b.i, arrow[3]]);
  }
  return within;
}

function layout(box, within, places) { // the size of a box; places of what is in it, relative to it
  if (!box.c || !stage.open.has(box.i)) {
    return { w: Math.max(width(short(box.t)) + (box.c ? 34 : 0) + (timeOf(box) ? 62 : 0), 60), h: stage.compact ? 20 : 28 };
  }
  const graph = new dagre.graphlib.Graph(), gaps = stage.compact ? { nodesep: 8, ranksep: 12 } : { nodesep: 14, ranksep: 26 };
  graph.setGraph({ rankdir: "TB", ...gaps, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const child of box.c) {
    const size = layout(child, within, places);
    graph.setNode(child.i, { width: size.w, height: size.h });
  }
  for (const [a, b, type] of within.get(box.i) || []) {
    graph.setEdge(a, b, seen.types ? { type, width: 6 * short(type).length, height: 14, labelpos: "c" } : {});
  }
  dagre.layout(graph);
  const title = 24, at = graph.graph();
  for (const child of box.c) {
    const node = graph.node(child.i);
    places.boxes.set(child.i, { x: node.x - node.width / 2, y: node.y - node.height / 2 + title, w: node.width, h: node.height });
  }
  const lines = graph.edges().map((edge) => {
    const told = graph.edge(edge);
    return { ends: edge, points: told.points.map((p) => [p.x, p.y + title]), type: told.type, at: [told.x, told.y + title] };
  });
  places.lines.set(box.i, lines);
  return { w: Math.max(at.width || 0, width(short(box.t)) + 40), h: (at.height || 0) + title };
}

// ------------------------------------------------------------------------------------------------------------ drawing

function element(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const KINDS = { operator: "operator", value: "value", control: "control flow", kernel: "machine code", call: "call",
  edge: "what goes in or out", repeat: "repeated parts", piece: "part of a long program" };

const timeOf = (box) => (seen.times && stage.times.get(box.i)) || 0; // in microseconds
const spelled = (time) => (time < 1000 ? `${time.toFixed(1)} µs` : `${(time / 1000).toFixed(2)} ms`);

function draw() {
  const before = seen.compare && stage.index > 0 ? prepare(DATA.stages[stage.index - 1]) : null;
  $("before").toggleAttribute("hidden", before === null); // SVG has no property of that name
  const now = stage;
  if (before) {
    stage = before;
    $("before").replaceChildren(pictured("was", unlike(before, now), "removed", "− "));
    stage = now;
  }
  $("graph").replaceChildren(pictured("box", before && unlike(now, before), "added", "+ "));
  place();
  mark();
}

function pictured(prefix, changed, word, sign) { // the stage as SVG; what has changed is marked with a word and a sign
  const places = { boxes: new Map(), lines: new Map() };
  stage.size = layout(stage.data.root, joints(), places);
  stage.at = new Map();
  const all = element("g", { class: "all" }), whole = stage.times.get(stage.data.root.i);
  all.append(element("defs", {}, element("marker", { id: prefix + "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7,
    markerHeight: 7, orient: "auto" }, element("path", { class: "tip", d: "M0 0L8 4L0 8z" }))));
  const inside = (box, group, left, top) => {
    for (const line of places.lines.get(box.i) || []) {
      const path = element("path", { class: "arrow", "marker-end": `url(#${prefix}head)`,
        d: "M" + line.points.map((p) => p.join(" ")).join("L") });
      path.dataset.from = line.ends.v; path.dataset.to = line.ends.w;
      group.append(path);
      if (line.type) group.append(element("text", { class: "type", x: line.at[0], y: line.at[1] + 4, "text-anchor": "middle" }, short(line.type)));
    }
    for (const child of box.c) {
      const place = places.boxes.get(child.i), isOpen = child.c && stage.open.has(child.i), time = timeOf(child);
      const x = left + place.x, y = top + place.y;
      stage.at.set(child.i, { x, y, w: place.w, h: place.h });
      const isChanged = changed && (changed.found.has(child.i) || (!isOpen && changed.around.has(child.i)));
      const label = `${child.t}, ${KINDS[child.k]}` + (child.c ? `, ${child.c.length} within` : "") +
        (isChanged ? `, ${word}` : "") + (time ? `, ${spelled(time)}` : "");
      const made = element("g", { class: "box" + (isOpen ? " open" : "") + (isChanged ? " " + word : ""), id: prefix + child.i,
        tabindex: -1, transform: `translate(${place.x} ${place.y})`, role: "treeitem", "aria-label": label });
      if (child.c) made.setAttribute("aria-expanded", String(isOpen));
      const back = element("rect", { width: place.w, height: place.h, rx: child.k === "operator" ? 3 : 9 });
      if (time && !isOpen) back.setAttribute("style", `fill: color-mix(in srgb, var(--heat) ${Math.round(100 * time / whole)}%, var(--back))`);
      made.append(back);
      made.append(element("rect", { class: "stripe", width: 5, height: isOpen ? 24 : place.h, rx: 2, style: `fill: var(--${child.k})` }));
      const text = element("text", { x: 12, y: isOpen ? 17 : place.h / 2 + 4 });
      text.textContent = (isChanged ? sign : "") + (child.c ? (isOpen ? "▾ " : "▸ ") : child.k === "kernel" ? "⚙ " : "") + short(child.t);
      made.append(text, element("title", {}, child.d || child.t));
      const count = child.c && !isOpen ? String(child.c.length) : "";
      if (count || time) {
        const told = element("text", { class: time ? "time" : "count", x: place.w - 6, y: isOpen ? 17 : place.h / 2 + 4, "text-anchor": "end" });
        told.textContent = time ? spelled(time) + (count ? ` · ${count}` : "") : count;
        made.append(told);
      }
      group.append(made);
      if (isOpen) inside(child, made, x, y);
    }
  };
  if (stage.data.root.c) inside(stage.data.root, all, 0, 0);
  return all;
}

function place() {
  for (const all of document.querySelectorAll("svg > .all")) {
    all.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  }
}

function fit() { // all of the graph in view
  const room = $("graph").getBoundingClientRect();
  view.scale = Math.max(0.02, scaleFor(stage.size));
  view.x = (room.width - stage.size.w * view.scale) / 2;
  view.y = (room.height - stage.size.h * view.scale) / 2;
  place();
}

function zoom(by, x, y) {
  const room = $("graph").getBoundingClientRect();
  if (x === undefined) { x = room.width / 2; y = room.height / 2; }
  const scale = Math.min(4, Math.max(0.03, view.scale * by));
  view.x = x - (x - view.x) * (scale / view.scale);
  view.y = y - (y - view.y) * (scale / view.scale);
  view.scale = scale;
  place();
}

function mark() {
  for (const each of document.querySelectorAll("#graph .chosen, #graph .near")) each.classList.remove("chosen", "near");
  if (chosen === null) return;
  const own = $("box" + chosen);
  if (own) { own.classList.add("chosen"); own.setAttribute("tabindex", 0); }
  const box = stage.boxes.get(chosen);
  for (const same of (box.s && stage.byLine.get(box.s.join(":"))) || []) {
    const near = $("box" + seenAs(same.i).i);
    if (near && near !== own) near.classList.add("near");
  }
  for (const path of document.querySelectorAll("#graph path.arrow")) {
    if (path.dataset.from === String(chosen) || path.dataset.to === String(chosen)) path.classList.add("near");
  }
}

// ----------------------------------------------------------------------------------------------------------- choosing

function choose(id, centre) {
  chosen = id;
  mark();
  showSource();
  showDetails();
  const at = stage.at.get(id);
  if (!at) return;
  const room = $("graph").getBoundingClientRect();
  const x = view.x + (at.x + at.w / 2) * view.scale, y = view.y + (at.y + Math.min(at.h, 40) / 2) * view.scale;
  if (centre || x < 0 || y < 0 || x > room.width || y > room.height) {
    view.x += room.width / 2 - x; view.y += room.height / 2 - y;
    place();
  }
  $("box" + id).focus({ preventScroll: true });
}

function reveal(id) {
  let changed = false;
  for (let at = stage.parent.get(id); at; at = stage.parent.get(at.i)) {
    if (!stage.open.has(at.i)) { stage.open.add(at.i); changed = true; }
  }
  if (view.scale < 0.5) view.scale = 0.9;
  if (changed) draw(); else place();
  choose(id, true);
}

function toggle(id) {
  const box = stage.boxes.get(id);
  if (!box.c) return;
  if (stage.open.has(id)) stage.open.delete(id); else stage.open.add(id);
  const before = stage.at.get(id);
  draw();
  const after = stage.at.get(id); // what was pressed stays where it is
  if (before && after) {
    view.x += (before.x - after.x) * view.scale; view.y += (before.y - after.y) * view.scale;
    place();
  }
  choose(id);
}

// ------------------------------------------------------------------------------------------------------------- panels

function button(text, act, kind) {
  const made = document.createElement("button");
  made.className = kind; made.textContent = text; made.title = text;
  made.addEventListener("click", act);
  return made;
}

function showFound() {
  const words = $("search").value.trim().toLowerCase(), list = $("found");
  if (!words) { list.replaceChildren(); return; }
  const found = stage.order.filter((box) => (box.t + " " + (box.d || "")).toLowerCase().includes(words) && box !== stage.data.root);
  const shown = found.slice(0, MOST_FOUND).map((box) => {
    const made = button(box.d || box.t, () => reveal(box.i), "");
    made.setAttribute("role", "option");
    return made;
  });
  const told = document.createElement("p");
  told.textContent = found.length + " found" + (found.length > MOST_FOUND ? `, ${MOST_FOUND} shown` : "");
  list.replaceChildren(told, ...shown);
}

function showSource() {
  const here = chosen === null ? null : stage.boxes.get(chosen).s, pane = $("source");
  if (pane.dataset.stage !== $("stage").value) {
    pane.dataset.stage = $("stage").value;
    pane.replaceChildren();
    DATA.files.forEach((file, number) => {
      const lines = file.text.split("\n");
      if (!lines.some((_, index) => stage.byLine.has(number + ":" + index))) return;
      const head = document.createElement("h2");
      head.textContent = file.name || "source";
      pane.append(head);
      lines.forEach((text, index) => {
        const key = number + ":" + index, boxes = stage.byLine.get(key);
        const line = boxes ? button("", () => reveal(boxes[0].i), "line") : document.createElement("span");
        line.className = "line"; line.id = "line" + key; line.title = boxes ? boxes.length + " nodes" : "";
        const counter = document.createElement("span");
        counter.className = "number"; counter.textContent = file.first + index;
        line.replaceChildren(counter, text);
        pane.append(line);
      });
    });
  }
  for (const each of pane.querySelectorAll(".here")) each.classList.remove("here");
  const line = here && $("line" + here.join(":"));
  if (line) { line.classList.add("here"); line.scrollIntoView({ block: "nearest" }); }
}

function showDetails() {
  const pane = $("right");
  pane.replaceChildren();
  const add = (name, text) => { const made = document.createElement(name); made.textContent = text; pane.append(made); return made; };
  if (chosen === null) {
    const stageData = stage.data;
    add("h2", stageData.name);
    const count = stage.order.filter((box) => !["edge", "piece", "repeat", "call"].includes(box.k)).length;
    const whole = stage.times.get(stage.data.root.i);
    add("p", `${count} nodes` + (whole ? `, ${spelled(whole)}` : ""));
    const kernels = new Set(stage.order.flatMap((box) => box.n || []));
    if (kernels.size) add("h2", "Kernels");
    for (const number of kernels) {
      const boxes = stage.order.filter((box) => (box.n || []).includes(number));
      const text = `Kernel ${number + 1}: ${boxes.length} node${boxes.length === 1 ? "" : "s"}`;
      pane.append(button(text, () => reveal(boxes[0].i), "link"));
    }
    if (stageData.diff) {
      add("h2", "What changed");
      const pre = add("pre", "");
      for (const line of stageData.diff.split("\n")) {
        const span = document.createElement("span");
        span.textContent = line + "\n";
        span.className = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
        pre.append(span);
      }
    }
    add("p", "Press a box, or / to search. Arrow keys move, Enter folds.");
    return;
  }
  const box = stage.boxes.get(chosen);
  add("h2", box.t);
  add("p", KINDS[box.k] + (box.c ? `, ${box.c.length} within` : ""));
  if (box.d) add("pre", box.d);
  const time = stage.times.get(box.i), whole = stage.times.get(stage.data.root.i);
  if (time) add("p", `${spelled(time)} of ${spelled(whole)}, ${Math.round(100 * time / whole)} %`);
  if (box.s) {
    const file = DATA.files[box.s[0]];
    add("p", `${file.name || "line"}:${file.first + box.s[1]}`);
  }
  for (const [title, arrows, end] of [["Takes", stage.made.get(box.i), 0], ["Is used by", stage.uses.get(box.i), 1]]) {
    if (!arrows) continue;
    add("h2", title);
    for (const arrow of arrows.slice(0, MOST_FOUND)) {
      const other = stage.boxes.get(arrow[end]);
      pane.append(button(`%${arrow[2]} : ${arrow[3]} — ${other.t}`, () => reveal(other.i), "link"));
    }
  }
  const meets = (places, others) => places && others && places.some((place) => others.includes(place));
  const share = (title, test) => {
    const found = stage.order.filter((other) => other !== box && test(other));
    if (found.length) add("h2", title);
    for (const other of found.slice(0, MOST_FOUND)) pane.append(button(other.d || other.t, () => reveal(other.i), "link"));
  };
  share("May share memory with", (other) => meets(box.m, other.m));
  share("Is written to by", (other) => meets(box.m, other.w));
  share("May write to", (other) => meets(box.w, other.m));
  for (const number of box.n || []) {
    add("h2", `Kernel ${number + 1}`);
    add("pre", DATA.kernels[number]);
    share("Runs this kernel too", (other) => (other.n || []).includes(number));
  }
}

// ------------------------------------------------------------------------------------------------------------- events

function move(key) {
  const seen = stage.order.filter((box) => stage.at.has(box.i));
  if (chosen === null || !stage.at.has(chosen)) { if (seen.length) choose(seen[0].i); return; }
  const box = stage.boxes.get(chosen), at = seen.indexOf(box);
  if (key === "ArrowDown" && at + 1 < seen.length) choose(seen[at + 1].i);
  if (key === "ArrowUp" && at > 0) choose(seen[at - 1].i);
  if (key === "ArrowRight" && box.c) { if (stage.open.has(box.i)) choose(box.c[0].i); else toggle(box.i); }
  if (key === "ArrowLeft") {
    const above = stage.parent.get(box.i);
    if (box.c && stage.open.has(box.i)) toggle(box.i);
    else if (above && above !== stage.data.root) choose(above.i);
  }
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select")) {
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && event.target === $("search")) { const first = $("found").querySelector("button"); if (first) first.click(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = { "/": () => $("search").focus(), "+": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(),
    t: () => toggleSeen("types"), m: () => toggleSeen("times"), c: () => toggleSeen("compare"),
    Escape: () => { chosen = null; mark(); showSource(); showDetails(); } };
  if (event.key.startsWith("Arrow")) { move(event.key); event.preventDefault(); }
  else if (acts[event.key]) { acts[event.key](); event.preventDefault(); }
  else if ((event.key === "Enter" || event.key === " ") && chosen !== null && event.target.closest("#graph")) { toggle(chosen); event.preventDefault(); }
});

function toggleSeen(what) {
  seen[what] = !seen[what];
  $(what).setAttribute("aria-pressed", String(seen[what]));
  draw();
  fit();
}
for (const what of Object.keys(seen)) $(what).addEventListener("click", () => toggleSeen(what));

let held = null;
const hold = (event) => { held = { x: event.clientX, y: event.clientY, moved: false }; };
$("graph").addEventListener("pointerdown", hold);
$("before").addEventListener("pointerdown", hold);
$("before").addEventListener("click", (event) => { // folds, or leads to what comes of the same line
  const made = event.target.closest(".box"), moved = held && held.moved;
  held = null;
  if (moved || !made) return;
  const before = prepare(DATA.stages[stage.index - 1]), box = before.boxes.get(Number(made.id.slice(3)));
  if (box.c) {
    if (before.open.has(box.i)) before.open.delete(box.i); else before.open.add(box.i);
    draw();
  } else if (box.s && stage.byLine.has(box.s.join(":"))) reveal(stage.byLine.get(box.s.join(":"))[0].i);
});
window.addEventListener("pointermove", (event) => {
  if (!held || !event.buttons) return;
  const dx = event.clientX - held.x, dy = event.clientY - held.y;
  if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  held.moved = true; held.x = event.clientX; held.y = event.clientY;
  view.x += dx; view.y += dy;
  place();
});
$("graph").addEventListener("click", (event) => {
  const moved = held && held.moved;
  held = null;
  if (moved) return;
  const made = event.target.closest(".box");
  if (!made) { chosen = null; mark(); showSource(); showDetails(); return; }
  const id = Number(made.id.slice(3)), box = stage.boxes.get(id);
  if (box.c) toggle(id); else choose(id);
});
const turn = (event) => {
  event.preventDefault();
  const room = event.currentTarget.getBoundingClientRect();
  if (event.ctrlKey || event.deltaMode === 0 && Math.abs(event.deltaY) >= 50) {
    zoom(Math.exp(-event.deltaY / 500), event.clientX - room.left, event.clientY - room.top);
  } else { view.x -= event.deltaX; view.y -= event.deltaY; place(); }
};
$("graph").addEventListener("wheel", turn, { passive: false });
$("before").addEventListener("wheel", turn, { passive: false });
$("search").addEventListener("input", showFound);
$("stage").addEventListener("change", () => show(Number($("stage").value)));
const step = (by) => { const to = Number($("stage").value) + by; if (to >= 0 && to < DATA.stages.length) show(to); };
$("back").addEventListener("click", () => step(-1));
$("on").addEventListener("click", () => step(1));
$("larger").addEventListener("click", () => zoom(1.25));
$("smaller").addEventListener("click", () => zoom(0.8));
$("fit").addEventListener("click", () => fit());
$("fold").addEventListener("click", () => { stage.open = new Set([stage.data.root.i]); chosen = null; draw(); fit(); showDetails(); });
$("unfold").addEventListener("click", () => { unfold(stage); draw(); fit(); });
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.classList.contains("dark") || (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.remove("light", "dark");
  root.classList.add(dark ? "light" : "dark");
});
$("svg").addEventListener("click", () => {
  const copy = $("graph").cloneNode(true), styles = getComputedStyle(document.documentElement);
  copy.setAttribute("viewBox", `0 0 ${stage.size.w} ${stage.size.h}`);
  copy.setAttribute("xmlns", SVG);
  copy.querySelector(".all").removeAttribute("transform");
  let rules = document.querySelector("style").textContent.replace(/light-dark\(([^,]+),[^)]*\)/g, "$1");
  rules = rules.replace(/body \{[^}]*\}/, "");
  copy.prepend(element("style", {}, rules));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([copy.outerHTML], { type: "image/svg+xml" }));
  link.download = DATA.title.replace(/\W+/g, "_") + ".svg";
  link.click();
  URL.revokeObjectURL(link.href);
});

DATA.stages.forEach((each, index) => {
  const option = document.createElement("option");
  option.value = index; option.textContent = each.name;
  $("stage").append(option);
});
const measured = (box) => box.u !== undefined || (box.c || []).some(measured);
const timed = DATA.stages.map((each) => measured(each.root)).lastIndexOf(true);
show(timed >= 0 ? timed : DATA.stages.length - 1);
document.documentElement.dataset.ready = "yes";
