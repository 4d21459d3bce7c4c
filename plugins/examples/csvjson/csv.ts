// A reader of CSV as of RFC 4180: fields may be quoted, and have separators, quotes and
// line breaks in them then.

const LF = 10, CR = 13, QUOTE = 34;

export class Reader {
  /** The line that the record begins in which was read last, from 1. */
  line: i32 = 0;
  /** Why there is no further record, if that is not the end. */
  fault: string = "";

  private at: i32 = 0;
  private next: i32 = 1; // the line that the next record begins in

  constructor(private text: string, private comma: i32) {
    if (text.length > 0 && text.charCodeAt(0) == 0xfeff) this.at = 1; // some programs mark UTF-8 so
  }

  /** Returns the fields of the next record; null at the end. Empty lines are passed over. */
  record(): string[] | null {
    while (this.at < this.text.length && this.isBreak(this.at)) this.pass();
    if (this.at >= this.text.length) return null;
    this.line = this.next;
    const fields: string[] = [];
    while (true) {
      fields.push(this.text.charCodeAt(this.at) == QUOTE ? this.quoted() : this.plain());
      if (this.fault.length > 0) return null;
      if (this.at >= this.text.length || this.isBreak(this.at)) return fields;
      this.at++; // the separator
      if (this.at >= this.text.length) {
        fields.push("");
        return fields;
      }
    }
  }

  private isBreak(at: i32): bool {
    const c = this.text.charCodeAt(at);
    return c == LF || (c == CR && at + 1 < this.text.length && this.text.charCodeAt(at + 1) == LF);
  }

  /** Passes over a line break. */
  private pass(): void {
    this.at += this.text.charCodeAt(this.at) == CR ? 2 : 1;
    this.next++;
  }

  private plain(): string {
    const start = this.at;
    while (this.at < this.text.length && this.text.charCodeAt(this.at) != this.comma && !this.isBreak(this.at)) this.at++;
    return this.text.substring(start, this.at);
  }

  private quoted(): string {
    let field = "";
    let start = ++this.at;
    for (; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c == LF) this.next++;
      if (c != QUOTE) continue;
      field += this.text.substring(start, this.at++);
      if (this.at < this.text.length && this.text.charCodeAt(this.at) == QUOTE) {
        start = this.at; // of two quotes one stays
        continue;
      }
      if (this.at < this.text.length && this.text.charCodeAt(this.at) != this.comma && !this.isBreak(this.at)) {
        this.fault = "there is something behind the quotes of a field";
      }
      return field;
    }
    this.fault = "the quotes of a field don't end";
    return "";
  }
}
