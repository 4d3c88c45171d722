// The page is built from text nodes: no string is ever parsed as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;
const count = texts.text.length;
// The review page adds its own parts to panels, lists and the map; the report adds nothing.
const added = { panel: () => null, list: () => null, tick: () => null, paint: () => {} };
const byId = (id) => document.getElementById(id);

// make("p", {class: "hint", onclick: f}, "text", child, [children])
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.flat(Infinity));
  return element;
}

function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

// Make `list` the children of an element; those that are in their place already stay untouched.
function arrange(parent, list) {
  const wanted = new Set(list);
  [...parent.childNodes].forEach((child) => wanted.has(child) || child.remove());
  let next = parent.firstChild;
  for (const child of list) {
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
}

// Return a function that makes what is shown of each item anew only if `content` has changed.
function reusing(content, create, usable = () => true) {
  let made = new Map();
  return (items) => {
    const kept = made;
    made = new Map();
    return items.map((item, at) => {
      const key = JSON.stringify(content(item, at));
      const old = kept.get(key);
      const one = old && usable(old) ? old : create(item, at);
      one.dataset.at = String(at);
      made.set(key, one);
      return one;
    });
  };
}

// A string of the user, isolated so that its text direction does not affect the rest.
const said = (text) => make("bdi", {}, text);

const whole = new Intl.NumberFormat("en");
const number = (value) => whole.format(value);
const plural = (value, one, many) => `${number(value)} ${value === 1 ? one : many || one + "s"}`;
function percent(share) {
  if (share === null) return "–";
  if (share > 0 && share < 0.005) return "<1%";
  if (share >= 0.995 && share < 1) return ">99%";
  return `${Math.round(share * 100)}%`;
}
const distance = (value) => (value === null ? "–" : value.toFixed(2));

const kindWord = (kind) => (kind === "known" ? "Known" : "Novel");
const badge = (kind) =>
  make("span", { class: `badge ${kind}` }, make("span", { class: `mark ${kind}` }), kindWord(kind));

// What a person decided on a category.
const decided = (category) => (category.status === "accepted"
  ? make("span", { class: "decided" }, "Accepted") : null);

const cut = (text, length) =>
  text.length > length ? Array.from(text).slice(0, length - 1).join("") + "…" : text;

// A text that was cut comes as [the part that is shown, the length of the whole text].
function quote(text) {
  const [words, length] = Array.isArray(text) ? text : [text, null];
  return make("li", { dir: "auto" }, make("span", { class: "text" }, words),
    length ? make("span", { class: "hint" }, ` (${number(length)} characters)`) : null);
}

// Draw again when the size of an element, as `of` reads it, changes.
const widthOf = (element) => String(element.clientWidth);
const sizeOf = (element) => `${element.clientWidth} ${element.clientHeight}`;
function onSize(element, of, draw) {
  let last = null;
  new ResizeObserver(() => {
    const now = of(element);
    if (now === last) return;
    last = now;
    draw();
  }).observe(element);
}
