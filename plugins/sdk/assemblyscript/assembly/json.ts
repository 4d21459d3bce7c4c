// As much of JSON as the host speaks: what fields an object has.

/** Returns the value of a field of an object, as it is written; "" if there is none. */
export function field(json: string, name: string): string {
  let at = skip(json, 0) + 1; // after the brace
  while (at < json.length) {
    at = skip(json, at);
    const afterName = end(json, at);
    const found = unquote(json.substring(at, afterName)) == name;
    at = skip(json, skip(json, afterName) + 1); // after the colon
    const after = end(json, at);
    if (found) return json.substring(at, after);
    at = skip(json, after) + 1; // after the comma
  }
  return "";
}

/** Returns the text that a field holds; "" if there is none. */
export function text(json: string, name: string): string { return unquote(field(json, name)); }

/** Returns the whole number that a field holds; 0 if there is none. */
export function number(json: string, name: string): i64 {
  const digits = field(json, name);
  return digits.length > 0 ? I64.parseInt(digits) : 0;
}

/** Returns where something begins that is no space. */
function skip(json: string, at: i32): i32 {
  while (at < json.length && json.charCodeAt(at) <= 32) at++;
  return at;
}

/** Returns where the value ends that begins at a place. */
function end(json: string, at: i32): i32 {
  let depth = 0, quoted = false;
  for (; at < json.length; at++) {
    const c = json.charCodeAt(at);
    if (quoted) {
      if (c == 92) at++; // a backslash, and what it escapes
      quoted = c != 34;
    } else if (c == 34) {
      quoted = true;
    } else if (c == 123 || c == 91) {
      depth++;
    } else if ((c == 125 || c == 93) && depth > 0) {
      depth--;
    } else if (depth == 0 && (c == 125 || c == 93 || c == 44 || c == 58 || c <= 32)) {
      return at;
    } else {
      continue;
    }
    if (depth == 0 && !quoted) return at + 1;
  }
  return at;
}

/** Returns what a JSON string stands for. */
export function unquote(json: string): string {
  let out = "";
  let plain = 1;
  for (let i = 1; i + 1 < json.length; i++) {
    if (json.charCodeAt(i) != 92) continue;
    out += json.substring(plain, i++);
    const c = json.charAt(i);
    if (c == "u") {
      out += String.fromCharCode(<i32>I32.parseInt(json.substring(i + 1, i + 5), 16));
      i += 4;
    } else {
      const at = "bfnrt".indexOf(c);
      out += at < 0 ? c : "\b\f\n\r\t".charAt(at);
    }
    plain = i + 1;
  }
  return out + json.substring(plain, json.length - 1);
}
