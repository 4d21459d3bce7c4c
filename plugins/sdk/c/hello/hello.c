// hello is the smallest useful worker: it greets whoever the payload names.

#include "jobhost.h"

JH_ENTRY(jh_run, name) {
  while (name.len > 0 && name.data[name.len - 1] <= ' ') name.len--; // a line's end
  if (name.len == 0) return jh_permanent(JH("nobody to greet: the payload is empty"));
  jh_buffer out = {0};
  jh_put(&out, JH("hello, "));
  jh_put(&out, name);
  return jh_bytes_of(&out);
}
