package examples_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/plugins/internal/guesttest"
	"github.com/jobhost/jobhost/plugins/sdk/sdktest"
)

func TestImagesize(t *testing.T) {
	t.Parallel()
	t.Run("prebuilt", func(t *testing.T) { t.Parallel(); testImagesize(t, guesttest.Read(t, "imagesize/imagesize.wasm")) })
	t.Run("rebuilt", func(t *testing.T) {
		t.Parallel()
		testImagesize(t, rebuilt(t, "imagesize", "../sdk/c", "clang", "wasm-ld"))
	})
}

// encoded returns a picture by one of the encoders of Go.
func encoded(t *testing.T, width, height int, encode func(b *bytes.Buffer, m image.Image) error) string {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, width, height), []color.Color{color.Black, color.White})
	var b bytes.Buffer
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func testImagesize(t *testing.T, module []byte) {
	worker := sdktest.Open(t, module)
	asPNG := encoded(t, 640, 480, func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) })
	asJPEG := encoded(t, 300, 1, func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) })
	asGIF := encoded(t, 1, 1000, func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) })
	webp := "RIFF\x00\x00\x00\x00WEBP"
	for _, c := range []struct{ name, input, want string }{
		{"PNG", asPNG, "png 640 480"},
		{"JPEG", asJPEG, "jpeg 300 1"},
		{"JPEG with filling", strings.Replace(asJPEG, "\xff\xdb", "\xff\xff\xff\xdb", 1), "jpeg 300 1"},
		{"GIF", asGIF, "gif 1 1000"},
		{"WebP with losses", webp + "VP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x80\x02\xe0\x01", "webp 640 480"},
		{"WebP without losses", webp + "VP8L\x00\x00\x00\x00\x2f\x7f\xc2\x77\x00\x00\x00\x00\x00\x00", "webp 640 480"},
		{"WebP with more", webp + "VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x7f\x02\x00\xdf\x01\x00", "webp 640 480"},
		{"BMP from above", "BM" + strings.Repeat("\x00", 16) + "\x80\x02\x00\x00\x20\xfe\xff\xff", "bmp 640 480"},
	} {
		var format string
		var width, height int
		if _, err := fmt.Sscan(c.want, &format, &width, &height); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"format":"%s","width":%d,"height":%d}`, format, width, height)
		if got := worker.Call(t, "", c.input); got != want {
			t.Errorf("%s: %s, not %s", c.name, got, want)
		}
	}
	// However much of it there is, it is not read beyond its end.
	for _, whole := range []string{asPNG[:24], asJPEG, webp + "VP8X", "BM" + asPNG[:20]} {
		for n := 3; n < min(len(whole), 40); n++ {
			if f := worker.Fail(t, "", whole[:n]); f.Retryable || f.Category != jobhost.CategoryValidation || (f.Code != "cut_off" && f.Code != "no_picture") {
				t.Errorf("%d bytes: %+v", n, f)
			}
		}
	}
	for _, input := range []string{"", "text", "\x89PNH\r\n\x1a\n"} {
		if f := worker.Fail(t, "", input); f.Code != "no_picture" {
			t.Errorf("%q: %+v", input, f)
		}
	}
}
