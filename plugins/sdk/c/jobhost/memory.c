// The memory of a job: the payload, and what is allocated until the job ends. What
// is allocated while the worker is initialised stays.

#include "memory.h"

static const uint32_t least_room = 64 * 1024; // of the mailbox, as the host asks for it

#ifdef __wasi__ // there is a libc, to which all memory belongs

#include <stdlib.h>

static char *box;
static struct chunk {
  struct chunk *next;
  char data[];
} *chunks;
static bool working;

void *jh_alloc(uint32_t size) {
  struct chunk *c = malloc(sizeof *c + (size_t)size);
  if (!c) __builtin_trap(); // the host says that there was no memory
  if (working) {
    c->next = chunks;
    chunks = c;
  }
  return c->data;
}

void *jh_resize(void *old, uint32_t old_size, uint32_t size) {
  if (size <= old_size) return old;
  void *p = jh_alloc(size);
  jh_copy(p, old, old_size);
  return p;
}

JH_EXPORT(jh_buf) void *jh_buf(uint32_t least) {
  free(box);
  box = malloc(least < least_room ? least_room : least);
  if (!box) __builtin_trap();
  return box;
}

void *jh_mark(void) { return chunks; }

void jh_release(void *mark) {
  while (chunks && chunks != mark) {
    struct chunk *c = chunks;
    chunks = c->next;
    free(c);
  }
}

jh_bytes jh_payload(uint32_t len) {
  working = true;
  jh_release(0);
  return (jh_bytes){box, len};
}

#else // memory begins where the linker says, and all of it is ours

extern char __heap_base;

static char *next;     // what is free begins here
static char *box;      // of the payload, and after it what a job allocates
static uint32_t room;  // of the box

// reserve makes sure that there is memory at p, of n bytes.
static void reserve(char *p, uint32_t n) {
  const uint32_t page = 65536;
  uint64_t need = ((uint64_t)(uintptr_t)p + n + page - 1) / page, have = __builtin_wasm_memory_size(0);
  if (need <= have) return;
  // By a half more, since to grow is slow; or else by as little as it takes.
  uint64_t more = need - have > have / 2 ? need - have : have / 2;
  if (__builtin_wasm_memory_grow(0, more) != (uintptr_t)-1) return;
  if (need > 65536 || __builtin_wasm_memory_grow(0, need - have) == (uintptr_t)-1)
    __builtin_trap(); // the host says that there was no memory
}

static uint32_t aligned(uint32_t n) { return (n + 15) & ~15u; }

void *jh_alloc(uint32_t size) {
  if (!next) next = &__heap_base + (-(uintptr_t)&__heap_base & 15);
  if (size > UINT32_MAX - 15) __builtin_trap();
  char *p = next;
  reserve(p, aligned(size));
  next += aligned(size);
  return p;
}

void *jh_resize(void *old, uint32_t old_size, uint32_t size) {
  if (old && (char *)old + aligned(old_size) == next) {
    next = old;
    return jh_alloc(size);
  }
  if (size <= old_size) return old;
  void *p = jh_alloc(size);
  jh_copy(p, old, old_size);
  return p;
}

void *jh_mark(void) { return jh_alloc(0); }

void jh_release(void *mark) { next = mark; }

JH_EXPORT(jh_buf) void *jh_buf(uint32_t least) {
  if (!box) box = jh_alloc(0);
  room = least < least_room ? least_room : least;
  next = box; // no job runs now
  return jh_alloc(room);
}

jh_bytes jh_payload(uint32_t len) {
  next = box + aligned(room);
  return (jh_bytes){box, len};
}

#endif
