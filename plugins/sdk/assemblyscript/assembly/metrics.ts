import * as host from "./host";
import { toBytes } from "./bytes";

/** Counts something that only gets more. */
export class Counter {
  constructor(private id: i32) {}
  add(n: f64): void { host.observe(this.id, n); }
}

/** A value that goes up and down. */
export class Gauge {
  constructor(private id: i32) {}
  set(value: f64): void { host.observe(this.id, value); }
}

/** Shows how values are spread. */
export class Histogram {
  constructor(private id: i32) {}
  observe(value: f64): void { host.observe(this.id, value); }
}

/** Writes a metric as Prometheus does, such as requests{class="5xx"}, and asks for its id. */
export function metric(kind: i32, name: string, labels: string[]): i32 {
  assert(labels.length % 2 == 0, "a label has no value");
  for (let i = 0; i < labels.length; i += 2) {
    const value = labels[i + 1].replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
    name += (i == 0 ? "{" : ",") + labels[i] + '="' + value + '"';
  }
  if (labels.length > 0) name += "}";
  const bytes = toBytes(name);
  return host.metric(kind, bytes.dataStart, bytes.length);
}
