// The lasso: draw around texts on the map to choose them.
let lassoing = false;
let loop = null; // points [x, y] in pixels of the map

function startLasso() {
  const button = make("button", { type: "button", id: "map-lasso", "aria-pressed": "false", onclick: () => setLasso(!lassoing) }, "Lasso");
  document.querySelector("#map-frame .buttons").prepend(button);
  const place = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const caught = (event) => {
    event.stopImmediatePropagation();
    event.preventDefault();
  };
  const frame = byId("map-frame"); // its listeners run before those of the map
  frame.addEventListener("pointerdown", (event) => {
    if (!lassoing || event.target !== canvas) return;
    caught(event);
    canvas.setPointerCapture(event.pointerId);
    loop = [place(event)];
  }, true);
  frame.addEventListener("pointermove", (event) => {
    if (!loop) return;
    caught(event);
    loop.push(place(event));
    drawMap();
  }, true);
  frame.addEventListener("pointerup", (event) => {
    if (!loop) return;
    caught(event);
    const around = loop;
    loop = null;
    setLasso(false);
    if (around.length > 2) showBulk(textsInside(around), "in the lasso");
  }, true);
  added.paint = () => {
    if (!loop) return;
    pen.beginPath();
    loop.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.strokeStyle = ink("text");
    pen.lineWidth = 2;
    pen.setLineDash([6, 4]);
    pen.stroke();
    pen.setLineDash([]);
  };
}

function setLasso(on) {
  lassoing = on;
  byId("map-lasso").setAttribute("aria-pressed", String(on));
  canvas.classList.toggle("lassoing", on);
  if (on) {
    point(-1);
    byId("map").scrollIntoView();
    say("Draw around the texts on the map.");
  }
}

// Texts inside a polygon: a ray to the right crosses its edges an odd number of times.
function textsInside(polygon) {
  const found = [];
  for (let i = 0; i < count; i++) {
    if (!visible(i) || !active(i)) continue;
    const [x, y] = [screenX(texts.x[i]), screenY(texts.y[i])];
    let inside = false;
    for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
      const [[ax, ay], [bx, by]] = [polygon[a], polygon[b]];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
    }
    if (inside) found.push(i);
  }
  return found;
}
