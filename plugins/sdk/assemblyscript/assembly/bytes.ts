// Texts and bytes on their way to the host and back.

/** Returns a text as UTF-8, and bytes as they are; null is nothing. */
export function toBytes<T>(data: T): Uint8Array {
  if (isNullable<T>()) {
    if (changetype<usize>(data) == 0) return new Uint8Array(0);
    return toBytes(changetype<NonNullable<T>>(data));
  }
  if (isString<T>()) {
    return Uint8Array.wrap(String.UTF8.encode(<string>data, false, String.UTF8.ErrorMode.REPLACE));
  }
  if (data instanceof Uint8Array) return <Uint8Array>data;
  if (data instanceof ArrayBuffer) return Uint8Array.wrap(<ArrayBuffer>data);
  ERROR("data must be a string, a Uint8Array or an ArrayBuffer");
}

/** Returns the text that bytes in UTF-8 stand for. */
export function toText(bytes: Uint8Array): string {
  return String.UTF8.decodeUnsafe(bytes.dataStart, bytes.length);
}

/** Returns a text as a JSON string. */
export function quote(text: string): string {
  let out = '"';
  let plain = 0; // where the part begins that needs no escape
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 32 && c != 34 && c != 92 && c != 127) continue;
    out += text.substring(plain, i);
    out += c == 34 || c == 92 ? "\\" + String.fromCharCode(c) : "\\u00" + (c < 16 ? "0" : "") + c.toString(16);
    plain = i + 1;
  }
  return out + text.substring(plain) + '"';
}
