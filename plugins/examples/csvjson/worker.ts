// A worker that makes JSON lines of a CSV file: an object of each record, with the names of the first.

import { Failure, Job, quote, run } from "jobhost";
import { Reader } from "./csv";
export { jh_buf } from "jobhost";

export function jh_run(len: i32): i64 { return run(len, csvjson); }

function csvjson(job: Job): string {
  const separator = job.config("separator");
  const types = job.config("types");
  const comma = separator && separator.length > 0 ? (separator == "tab" ? 9 : separator.charCodeAt(0)) : 44;
  const numbers = types != "text";

  const reader = new Reader(job.text, comma);
  const names = reader.record();
  let records = 0;
  let lines = "";
  for (let record = reader.record(); names && record; record = reader.record()) {
    if (record.length != names.length) {
      reader.fault = `there are ${record.length} fields for ${names.length} names`;
      break;
    }
    let out = "{";
    for (let i = 0; i < names.length; i++) {
      out += (i > 0 ? "," : "") + quote(names[i]) + ":" + (numbers ? value(record[i]) : quote(record[i]));
    }
    lines += out + "}\n";
    records++;
    if (lines.length > 4096) { // the result is the host's: it need not be in memory here as well
      job.write(lines);
      lines = "";
    }
  }
  if (reader.fault.length > 0) {
    const failure = new Failure(`line ${reader.line}: ${reader.fault}`).code("bad_csv").category("validation");
    job.fail(failure.context("line", reader.line).permanent());
    return "";
  }
  job.log(`${records} records`);
  return lines;
}

/** Returns a field as JSON: a number if it is written as JSON has them, null if it is empty. */
function value(field: string): string {
  if (field.length == 0) return "null";
  let at = field.charCodeAt(0) == 45 ? 1 : 0; // minus
  const whole = digits(field, at);
  // A number doesn't begin with 0, unless that is all: what does is an id.
  if (whole == 0 || (whole > 1 && field.charCodeAt(at) == 48)) return quote(field);
  at += whole;
  if (at < field.length && field.charCodeAt(at) == 46) {
    const fraction = digits(field, at + 1);
    if (fraction == 0) return quote(field);
    at += 1 + fraction;
  }
  return at == field.length ? field : quote(field);
}

/** Returns how many digits there are from a place on. */
function digits(text: string, at: i32): i32 {
  const start = at;
  while (at < text.length && text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57) at++;
  return at - start;
}
