// The smallest useful worker: it greets whoever the payload names.

import { Failure, Job, run } from "jobhost";
export { jh_buf } from "jobhost";

export function jh_run(len: i32): i64 { return run(len, hello); }

// Greets. An empty payload can't be cured by another attempt.
function hello(job: Job): string {
  const name = job.text.trim();
  if (name.length == 0) {
    job.fail(new Failure("nobody to greet: the payload is empty").permanent());
    return "";
  }
  return "hello, " + name;
}
