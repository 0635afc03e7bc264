// Elements without markup: every text becomes a text node, so that no name or value is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties (`onclick`, `class`, attributes) and children (elements, texts, or null). */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}
