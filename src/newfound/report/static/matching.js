// The heat map: labelled prototypes (rows) against all prototypes (columns), matched ones first.
const heat = { cell: 6, names: false, row: -1, column: -1 };
const NAMES_ROOM = 150;
const LEAST_CELL = 3;

function startMatching() {
  const table = data.matching;
  if (!table) {
    fill("matching-body", make("p", {}, "There is no matching, because no text was labelled."));
    return;
  }
  const [rows, columns] = [table.rows.length, table.columns.length];
  const left = table.left[0] + table.left[1] > 0
    ? ` Only ${number(rows)} rows and ${number(columns)} columns are shown.` : "";
  const body = make("canvas", { id: "heat", tabindex: "0", role: "application",
    "aria-label": "Distances between labelled and discovered categories; arrows go from cell to cell" });
  fill("matching-body",
    make("p", {}, "Each row is a category that you labelled, each column a category that was found; the "
      + "stronger the colour, the closer they are. In a clear match, each row has one strong cell, on the diagonal. "
      + `Columns to the right of the line are novel; a strong cell there is a novel category close to one of yours.${left}`),
    make("div", { class: "controls" },
      make("div", { class: "segments", role: "group", "aria-label": "Size", id: "heat-size" },
        make("button", { type: "button", onclick: () => sizeHeat(false) }, "Fit to page"),
        make("button", { type: "button", onclick: () => sizeHeat(true) }, "With names")),
      make("div", { class: "scale", "aria-hidden": "true" }, `close ${distance(table.low)}`,
        make("canvas", { id: "heat-scale", width: 120, height: 12 }), `far ${distance(table.high)}`)),
    make("div", { class: "heat card", id: "heat-frame" },
      make("canvas", { id: "heat-corner", "aria-hidden": "true" }),
      make("canvas", { id: "heat-top", "aria-hidden": "true" }),
      make("canvas", { id: "heat-left", "aria-hidden": "true" }), body),
    make("p", { class: "readout", id: "heat-readout", role: "status" }, "Point at a cell to read its distance."),
    weakest(table));
  heat.names = fitting() >= 12;
  startHeatPointer(body);
  painters.push(paintHeat);
  onSize(byId("matching-body"), widthOf, paintHeat);
  paintHeat();
}

const PAPER = 640; // width of a printed page
const heatRoom = () => (printing ? PAPER : byId("matching-body").clientWidth - 30);
const fitting = () => Math.floor((heatRoom() - NAMES_ROOM) / data.matching.columns.length);

function sizeHeat(names) {
  heat.names = names;
  paintHeat();
}

// From a strong colour for small distances to the colour of the page for large ones.
function heatColour(share) {
  const stops = dark()
    ? [[255, 237, 160], [241, 150, 90], [176, 70, 105], [92, 45, 102], [38, 34, 58]]
    : [[20, 42, 92], [38, 98, 152], [95, 160, 196], [176, 211, 229], [240, 246, 250]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * (at - low)));
}

function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const brush = canvas.getContext("2d");
  brush.scale(ratio, ratio);
  return brush;
}

function paintHeat() {
  const table = data.matching;
  const [rows, columns] = [table.rows.length, table.columns.length];
  const room = heatRoom();
  const names = printing ? fitting() >= 12 : heat.names;
  const whole = Math.floor(Math.min((room - 24) / columns, (window.innerHeight * 0.8 - 60) / rows));
  heat.cell = names ? Math.min(Math.max(fitting(), printing ? 12 : 15), 24)
    : Math.min(Math.max(whole, LEAST_CELL), 24);
  const pressed = [!heat.names, heat.names];
  [...byId("heat-size").children].forEach((button, i) =>
    button.setAttribute("aria-pressed", String(pressed[i])));
  const side = names ? Math.min(NAMES_ROOM, room * 0.4) : 24;
  const [width, height] = [columns * heat.cell, rows * heat.cell];
  const span = table.high - table.low || 1;
  const small = document.createElement("canvas");
  small.width = columns;
  small.height = rows;
  const image = new ImageData(columns, rows);
  table.distances.forEach((row, r) => row.forEach((value, c) => {
    const colour = value === null ? [128, 128, 128] : heatColour((value - table.low) / span);
    image.data.set([...colour, 255], 4 * (r * columns + c));
  }));
  small.getContext("2d").putImageData(image, 0, 0);
  const brush = sized(byId("heat"), width, height);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(small, 0, 0, width, height);
  brush.strokeStyle = ink("text");
  brush.lineWidth = 1.5;
  const matched = rows + table.left[0];
  if (matched < columns) {
    brush.beginPath();
    brush.moveTo(matched * heat.cell, 0);
    brush.lineTo(matched * heat.cell, height);
    brush.stroke();
  }
  if (heat.row >= 0) {
    brush.strokeStyle = ink("novel");
    brush.lineWidth = 2;
    brush.strokeRect(heat.column * heat.cell - 1, heat.row * heat.cell - 1, heat.cell + 2, heat.cell + 2);
  }
  paintHeatNames(names, side, width, height, matched);
  paintScale();
}

function paintHeatNames(names, side, width, height, matched) {
  const table = data.matching;
  sized(byId("heat-corner"), side, side);
  const rowsPen = sized(byId("heat-left"), side, height);
  const columnsPen = sized(byId("heat-top"), width, side);
  const font = "12px system-ui, sans-serif";
  for (const brush of [rowsPen, columnsPen]) {
    brush.font = font;
    brush.fillStyle = ink("text");
    brush.textBaseline = "middle";
  }
  const fits = (brush, name, before = "") => {
    let length = name.length;
    while (length > 1 && brush.measureText(before + cut(name, length)).width > side - 10) length--;
    return before + cut(name, length);
  };
  if (!names) {
    rowsPen.rotate(-Math.PI / 2);
    rowsPen.textAlign = "right";
    rowsPen.fillText("your labels", 0, 12);
    columnsPen.fillText(matched < table.columns.length ? "found: known" : "found", 0, 12);
    if (matched < table.columns.length && (table.columns.length - matched) * heat.cell > 40) {
      columnsPen.fillText("novel", matched * heat.cell + 3, 12);
    }
    return;
  }
  rowsPen.textAlign = "right";
  table.rows.forEach((name, r) => {
    rowsPen.fillText(fits(rowsPen, name.slice(0, 40)), side - 6, (r + 0.5) * heat.cell);
  });
  table.columns.forEach((name, c) => {
    columnsPen.save();
    columnsPen.translate((c + 0.5) * heat.cell, side - 5);
    columnsPen.rotate(-Math.PI / 2);
    columnsPen.fillText(fits(columnsPen, name.slice(0, 40), c >= matched ? "◆ " : ""), 0, 0);
    columnsPen.restore();
  });
}

function paintScale() {
  const canvas = byId("heat-scale");
  const brush = canvas.getContext("2d");
  for (let x = 0; x < canvas.width; x++) {
    brush.fillStyle = `rgb(${heatColour(x / (canvas.width - 1)).join(",")})`;
    brush.fillRect(x, 0, 1, canvas.height);
  }
}

function startHeatPointer(body) {
  const read = (row, column) => {
    const table = data.matching;
    if (row < 0 || column < 0 || row >= table.rows.length || column >= table.columns.length) return;
    if (row === heat.row && column === heat.column) return;
    [heat.row, heat.column] = [row, column];
    const found = column === row ? "its match" : column >= table.rows.length + table.left[0]
      ? "the novel category" : "the known category";
    fill("heat-readout", "Label “", said(cut(table.rows[row], 80)), `” and ${found} “`,
      said(cut(table.columns[column], 80)), `”: distance ${distance(table.distances[row][column])}`);
    paintHeat();
  };
  const at = (event) => {
    const frame = body.getBoundingClientRect();
    return [Math.floor((event.clientY - frame.top) / heat.cell), Math.floor((event.clientX - frame.left) / heat.cell)];
  };
  body.addEventListener("pointermove", (event) => read(...at(event)));
  body.addEventListener("click", (event) => {
    const category = data.matching.categories[at(event)[1]];
    read(...at(event));
    if (category >= 0) choose(category, "");
  });
  body.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (!arrow) return;
    event.preventDefault();
    if (heat.row < 0) read(0, 0);
    else read(heat.row + arrow[1], heat.column + arrow[0]);
  });
}

// The rows whose match is least clear, as a table.
function weakest(table) {
  const rows = table.distances.map((row, r) => {
    const others = row.map((value, c) => [value, c]).filter(([value, c]) => c !== r && value !== null);
    const [value, column] = others.reduce((best, one) => (one[0] < best[0] ? one : best), [Infinity, -1]);
    return { r, own: row[r], value, column, clear: value - row[r] };
  }).filter(({ own, column }) => own !== null && own !== undefined && column >= 0)
    .sort((a, b) => a.clear - b.clear).slice(0, 8);
  if (rows.length === 0) return null;
  return make("div", {}, make("h3", {}, "Least clear matches"),
    make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Least clear matches" },
      make("table", { class: "plain" },
        make("thead", {}, make("tr", {}, ["Label", "Distance to its match", "Next closest", "Distance"]
          .map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, rows.map(({ r, own, value, column }) => make("tr", {},
          make("td", {}, said(cut(table.rows[r], 60))), make("td", {}, distance(own)),
          make("td", {}, table.categories[column] >= 0 ? pick(table.categories[column]) : said(table.columns[column])),
          make("td", {}, distance(value))))))));
}
