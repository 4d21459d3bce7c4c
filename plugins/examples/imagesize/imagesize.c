// imagesize tells what kind of picture its payload is and how large, from the first
// bytes of PNG, JPEG, GIF, WebP and BMP. Nothing is decoded.

#include "jobhost.h"

// Numbers at a place of the picture, the high byte first or the low one.
static uint32_t high(const unsigned char *p, uint32_t n) {
  uint32_t u = 0;
  for (uint32_t i = 0; i < n; i++) u = u << 8 | p[i];
  return u;
}

static uint32_t low(const unsigned char *p, uint32_t n) {
  uint32_t u = 0;
  while (n > 0) u = u << 8 | p[--n];
  return u;
}

// has reports whether a text stands at a place of the picture.
static bool has(jh_bytes data, uint32_t at, jh_bytes text) {
  return at <= data.len && text.len <= data.len - at && jh_equal((jh_bytes){data.data + at, text.len}, text);
}

// size is what a picture says of itself.
typedef struct {
  jh_bytes format;
  uint32_t width, height;
  bool cut_off; // before it came to that
} size;

static size cut_off(jh_bytes format) { return (size){.format = format, .cut_off = true}; }

// jpeg goes from segment to segment until one begins a frame.
static size jpeg(jh_bytes data) {
  const jh_bytes format = JH("jpeg");
  const unsigned char *p = (const unsigned char *)data.data;
  for (uint64_t at = 2; at + 9 <= data.len;) {
    unsigned char marker = p[at + 1];
    if (p[at] != 0xff) return cut_off(format);
    if (marker == 0xff) { // they may be filled up
      at++;
      continue;
    }
    // C4, C8 and CC are in between, but tables and reserved.
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
      return (size){format, high(p + at + 7, 2), high(p + at + 5, 2), false};
    at += 2 + high(p + at + 2, 2);
  }
  return cut_off(format);
}

// webp knows three kinds of them.
static size webp(jh_bytes data) {
  const jh_bytes format = JH("webp");
  const unsigned char *p = (const unsigned char *)data.data;
  if (data.len < 30) return cut_off(format);
  if (has(data, 12, JH("VP8X"))) return (size){format, low(p + 24, 3) + 1, low(p + 27, 3) + 1, false};
  if (has(data, 12, JH("VP8L"))) {
    uint32_t bits = low(p + 21, 4);
    return (size){format, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1, false};
  }
  return (size){format, low(p + 26, 2) & 0x3fff, low(p + 28, 2) & 0x3fff, false};
}

// measure returns an empty format for what is none of these pictures.
static size measure(jh_bytes data) {
  const unsigned char *p = (const unsigned char *)data.data;
  if (has(data, 0, JH("\x89PNG\r\n\x1a\n")))
    return data.len < 24 ? cut_off(JH("png")) : (size){JH("png"), high(p + 16, 4), high(p + 20, 4), false};
  if (has(data, 0, JH("\xff\xd8\xff"))) return jpeg(data);
  if (has(data, 0, JH("GIF87a")) || has(data, 0, JH("GIF89a")))
    return data.len < 10 ? cut_off(JH("gif")) : (size){JH("gif"), low(p + 6, 2), low(p + 8, 2), false};
  if (has(data, 0, JH("RIFF")) && has(data, 8, JH("WEBP"))) return webp(data);
  if (has(data, 0, JH("BM"))) {
    if (data.len < 26) return cut_off(JH("bmp"));
    int32_t height = low(p + 22, 4); // below 0: the rows come from top to bottom
    return (size){JH("bmp"), low(p + 18, 4), height < 0 ? -(uint32_t)height : (uint32_t)height, false};
  }
  return (size){0};
}

JH_ENTRY(jh_run, picture) {
  size s = measure(picture);
  if (s.format.len == 0)
    return jh_fail((jh_failure){
        .message = JH("neither PNG nor JPEG, GIF, WebP or BMP"), .code = "no_picture", .category = "validation", .permanent = true});
  if (s.cut_off)
    return jh_fail((jh_failure){
        .message = JH("the picture ends before it tells its size"), .code = "cut_off", .category = "validation", .permanent = true});
  jh_buffer out = {0};
  jh_put(&out, JH("{\"format\":\""));
  jh_put(&out, s.format);
  jh_put(&out, JH("\",\"width\":"));
  jh_put_int(&out, s.width);
  jh_put(&out, JH(",\"height\":"));
  jh_put_int(&out, s.height);
  jh_put(&out, JH("}"));
  return jh_bytes_of(&out);
}
