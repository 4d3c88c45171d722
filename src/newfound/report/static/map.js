// The map: one mark per text on a canvas; discs are known, diamonds are novel.
const PALETTES = {
  light: ["#33669c", "#d9566a", "#22803a", "#a8861a", "#1f93b8", "#99306c", "#d96a24", "#6b5bb0"],
  dark: ["#77aadd", "#ee8866", "#44bb99", "#eedd88", "#99ddff", "#ffaabb", "#bbcc33", "#c7a5e0"],
};
// For periods, from the earliest to the latest.
const RAMPS = {
  light: ["#3b2f80", "#33569c", "#257a9c", "#1f9a86", "#5fae4f", "#a9b32e", "#d9a31c", "#d9662b"],
  dark: ["#7a6fd0", "#6a93e0", "#55b4d8", "#4fcbb0", "#8fd67a", "#cdd85a", "#f2c94c", "#f59a62"],
};
const PAD = 26;
let novelText = [];
const usedColours = new Map(); // by id of the category, so that a category keeps its colour
const view = { zoom: 1, x: 0, y: 0, width: 0, height: 0, base: 1 };
const shownKinds = { known: true, novel: true };
let chosen = -1; // category
let lit = -1; // category that the legend points at
let pointed = -1; // text under the pointer or the keyboard
let canvas, pen, sprites, spriteKey, centres, colours, box;

function prepareMap() {
  novelText = texts.category.map((at) => data.categories[at].kind === "novel");
  box = [Infinity, Infinity, -Infinity, -Infinity];
  const members = data.categories.map(() => []);
  for (let i = 0; i < count; i++) {
    members[texts.category[i]].push(i);
    box[0] = Math.min(box[0], texts.x[i]);
    box[1] = Math.min(box[1], texts.y[i]);
    box[2] = Math.max(box[2], texts.x[i]);
    box[3] = Math.max(box[3], texts.y[i]);
  }
  const median = (list, of) => list.map((i) => of[i]).sort((a, b) => a - b)[list.length >> 1];
  centres = members.map((list) =>
    list.length ? { x: median(list, texts.x), y: median(list, texts.y), size: list.length } : null);
  colours = spreadColours();
  orderLegend();
}

// With many categories colours repeat; categories of the same colour are far apart.
function spreadColours() {
  const given = data.categories.map(() => 0);
  const order = [...centres.keys()].filter((at) => centres[at])
    .sort((a, b) => centres[b].size - centres[a].size);
  order.forEach((at, rank) => {
    const room = PALETTES.light.map(() => Infinity);
    for (const other of order.slice(0, rank)) {
      const away = Math.hypot(centres[at].x - centres[other].x, centres[at].y - centres[other].y);
      room[given[other]] = Math.min(room[given[other]], away);
    }
    const id = data.categories[at].id;
    if (!usedColours.has(id)) usedColours.set(id, room.indexOf(Math.max(...room)));
    given[at] = usedColours.get(id);
  });
  return given;
}

const shade = (palettes) => palettes[dark() ? "dark" : "light"];
const colourOf = (at) => shade(PALETTES)[colours[at]];

// What gives the marks their colours: the category, or a column of the user.
const byCategory = { name: "category", palette: () => shade(PALETTES), of: (i) => colours[texts.category[i]],
  legend: () => null };
let colouring = byCategory;

function colourBy(name) {
  if (name === "category") colouring = byCategory;
  else if (name === "time") colouring = byPeriod(texts.time);
  else colouring = byValue(texts.columns[Number(name)], name);
  drawMap();
  showLegend();
}

function byValue(column, name) {
  const most = PALETTES.light.length; // rarer values share a colour
  const palette = () => [...shade(PALETTES), ink("given")];
  return { name, palette, of: (i) => (column.of[i] < 0 ? most : Math.min(column.of[i], most)),
    legend: () => [...column.values.slice(0, most).map((value) => value || "(empty)"), ...(column.values.length > most ? ["other"] : [])]
      .map((value, at) => [value, palette()[at]]) };
}

function byPeriod(time) {
  const steps = RAMPS.light.length;
  const step = (period) => Math.min(Math.floor((period * steps) / time.values.length), steps - 1);
  const palette = () => [...shade(RAMPS), ink("given")];
  const first = [...Array(steps).keys()].map((at) => time.values.findIndex((_, period) => step(period) === at));
  return { name: "time", palette, of: (i) => (time.of[i] < 0 ? steps : step(time.of[i])),
    legend: () => [...first.flatMap((period, at) => (period < 0 ? [] : [[`from ${time.values[period]}`, palette()[at]]])),
      ...(time.of.includes(-1) ? [["no date", palette()[steps]]] : [])] };
}
const screenX = (x) => (x - view.x) * view.base * view.zoom + view.width / 2;
const screenY = (y) => (y - view.y) * view.base * view.zoom + view.height / 2;
const visible = (i) => shownKinds[novelText[i] ? "novel" : "known"];
const active = (i) => (chosen < 0 || texts.category[i] === chosen) && (!hits || hits[i] === 1)
  && (lit < 0 || texts.category[i] === lit);

function radius() {
  const size = count < 1500 ? 4 : count < 6000 ? 3.2 : count < 25000 ? 2.5 : 1.9;
  const narrow = Math.min(1, 0.5 + view.width / 1200);
  return Math.min(narrow * size * (1 + 0.25 * Math.log2(view.zoom)), 7);
}

function fitMap() {
  const frame = byId("map-frame").getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  view.width = Math.max(frame.width, 1);
  view.height = Math.max(frame.height, 1);
  canvas.width = Math.round(view.width * ratio);
  canvas.height = Math.round(view.height * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (!count) return;
  view.base = Math.min((view.width - 2 * PAD) / Math.max(box[2] - box[0], 1),
    (view.height - 2 * PAD) / Math.max(box[3] - box[1], 1));
  if (view.zoom === 1) {
    view.x = (box[0] + box[2]) / 2;
    view.y = (box[1] + box[3]) / 2;
  }
  paintMap(); // at once: a new size has cleared the canvas
}

function makeSprites() {
  const r = radius();
  const ratio = window.devicePixelRatio || 1;
  const key = `${r} ${ratio} ${dark()} ${colouring.name}`;
  if (key === spriteKey) return r;
  spriteKey = key;
  const side = Math.ceil((2 * r + 4) * ratio);
  sprites = ["known", "novel"].map((kind) => colouring.palette().map((colour) => {
    const sprite = new OffscreenCanvas(side, side);
    const brush = sprite.getContext("2d");
    brush.scale(ratio, ratio);
    brush.translate(side / ratio / 2, side / ratio / 2);
    trace(brush, kind, 0, 0, r);
    brush.fillStyle = colour;
    brush.fill();
    brush.strokeStyle = ink("surface");
    brush.lineWidth = 0.7;
    brush.stroke();
    return sprite.transferToImageBitmap(); // drawn faster than a canvas is
  }));
  return r;
}

function trace(brush, kind, x, y, r) {
  brush.beginPath();
  if (kind === "known") {
    brush.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  const d = r * 1.35;
  brush.moveTo(x, y - d);
  brush.lineTo(x + d, y);
  brush.lineTo(x, y + d);
  brush.lineTo(x - d, y);
  brush.closePath();
}

let drawn = 0;
function drawMap() {
  if (drawn) return;
  drawn = requestAnimationFrame(() => {
    drawn = 0;
    paintMap();
  });
}

function paintMap() {
  const ratio = window.devicePixelRatio || 1;
  const r = makeSprites();
  const side = sprites[0][0].width / ratio;
  pen.clearRect(0, 0, view.width, view.height);
  const narrowed = chosen >= 0 || lit >= 0 || hits !== null;
  for (const front of narrowed ? [false, true] : [true]) {
    pen.globalAlpha = front ? 0.9 : 0.13;
    for (let i = 0; i < count; i++) {
      if (!visible(i) || (narrowed && active(i) !== front)) continue;
      const x = screenX(texts.x[i]);
      const y = screenY(texts.y[i]);
      if (x < -r || y < -r || x > view.width + r || y > view.height + r) continue;
      const sprite = sprites[novelText[i] ? 1 : 0][colouring.of(i)];
      pen.drawImage(sprite, Math.round((x - side / 2) * ratio) / ratio, Math.round((y - side / 2) * ratio) / ratio, side, side);
    }
  }
  pen.globalAlpha = 1;
  if (byId("map-names").checked) paintNames();
  added.paint();
  if (pointed >= 0 && visible(pointed)) {
    const kind = novelText[pointed] ? "novel" : "known";
    trace(pen, kind, screenX(texts.x[pointed]), screenY(texts.y[pointed]), r + 4);
    pen.strokeStyle = ink("text");
    pen.lineWidth = 2;
    pen.stroke();
  }
}

function textAt(x, y, reach) {
  let best = -1;
  let least = reach * reach;
  for (let pass = 0; pass < 2 && best < 0; pass++) { // marks in front come first
    for (let i = 0; i < count; i++) {
      if (!visible(i) || (pass === 0 && !active(i))) continue;
      const away = (screenX(texts.x[i]) - x) ** 2 + (screenY(texts.y[i]) - y) ** 2;
      if (away < least) [least, best] = [away, i];
    }
  }
  return best;
}

function point(i, spoken) {
  pointed = i;
  const tip = byId("map-tip");
  tip.hidden = i < 0;
  drawMap();
  if (i < 0) return;
  const category = data.categories[texts.category[i]];
  const other = texts.predicted[i];
  const share = texts.probability[i];
  const sure = share < 0 ? "" : `probability ${share}%`;
  const origin = texts.given[i] === "1" ? "labelled by you" : sure;
  tip.replaceChildren(make("p", { class: "text", dir: "auto" }, texts.text[i]),
    make("p", { class: "of" }, badge(category.kind), make("b", {}, said(cut(category.name, 60))),
      make("span", { class: "hint" }, origin)),
    ...(other === undefined ? [] : [make("p", { class: "hint" }, "predicted: ",
      said(cut(data.categories[other].name, 60)), sure ? `, ${sure}` : "")]));
  const x = screenX(texts.x[i]);
  const y = screenY(texts.y[i]);
  const left = Math.min(Math.max(x - tip.offsetWidth / 2, 6), view.width - tip.offsetWidth - 6);
  const above = y - tip.offsetHeight - 12;
  tip.style.setProperty("left", `${Math.max(left, 6)}px`);
  tip.style.setProperty("top", `${above > 4 ? above : y + 14}px`);
  if (spoken) byId("map-live").textContent = `${cut(texts.text[i], 200)}. ${category.name}`;
}

function zoomBy(factor, x = view.width / 2, y = view.height / 2) {
  const zoom = Math.min(Math.max(view.zoom * factor, 1), 60);
  if (zoom === 1) return resetMap();
  const shift = (1 / view.zoom - 1 / zoom) / view.base;
  view.x += (x - view.width / 2) * shift;
  view.y += (y - view.height / 2) * shift;
  view.zoom = zoom;
  movedMap();
}

function moveBy(x, y) {
  view.x -= x / (view.base * view.zoom);
  view.y -= y / (view.base * view.zoom);
  movedMap();
}

function resetMap() {
  view.zoom = 1;
  fitMap();
  movedMap();
}

function movedMap() {
  // With the whole map in view a finger scrolls the page; zoomed in, it moves the map.
  canvas.classList.toggle("zoomed", view.zoom > 1);
  point(pointed, false);
}
