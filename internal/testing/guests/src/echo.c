// Returns its input, which the host writes into the mailbox.
#include "jobhost1.h"

static u8 box[64 * 1024];

EXPORT(jh_buf) void *buf(u32 min) { return min <= sizeof box ? box : 0; }

EXPORT(jh_run) i64 run(u32 len) { return result(box, len); }
