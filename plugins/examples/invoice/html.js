// Templates of HTML, in which every value is escaped that is not HTML itself.

class HTML {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escape = (value) => {
  if (value instanceof HTML) return value.text;
  if (Array.isArray(value)) return value.map(escape).join("");
  return String(value ?? "").replace(/[&<>"']/g, (c) => entities[c]);
};

export const raw = (text) => new HTML(text);
export const html = (strings, ...values) => new HTML(String.raw({ raw: strings }, ...values.map(escape)));
