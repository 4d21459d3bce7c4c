package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// setup returns an attempt with a folder of pictures: a small white one, one that is half
// black and half white, and a file that is not a picture.
func setup(t *testing.T) jobhost.Attempt {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, size image.Point, at func(x int) color.Gray) {
		picture := image.NewGray(image.Rectangle{Max: size})
		for y := range size.Y {
			for x := range size.X {
				picture.SetGray(x, y, at(x))
			}
		}
		var b bytes.Buffer
		err := png.Encode(&b, picture)
		if filepath.Ext(name) == ".jpg" {
			b.Reset()
			err = jpeg.Encode(&b, picture, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("small.jpg", image.Pt(8, 8), func(int) color.Gray { return color.Gray{Y: 255} })
	write("half.png", image.Pt(200, 100), func(x int) color.Gray { return color.Gray{Y: uint8(x / 100 * 255)} })
	for name, text := range map[string]string{"none.png": "no picture", "notes.txt": "not in the list"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return jobhost.Attempt{Config: map[string]string{"folder": folder}}
}

func TestThumbnails(t *testing.T) {
	t.Parallel()
	at := setup(t)
	names := jobhost.Run(list, at)
	if names.Err != nil || string(names.Output) != `["half.png","none.png","small.jpg"]` {
		t.Fatalf("%v: %s", names.Err, names.Output)
	}
	var all []json.RawMessage
	for _, file := range []string{"half.png", "none.png", "small.jpg"} {
		at.Input = []byte(`{"file":"` + file + `","size":20}`)
		got := jobhost.Run(shrink, at)
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		all = append(all, got.Output)
	}
	var half thumbnail
	if err := json.Unmarshal(all[0], &half); err != nil {
		t.Fatal(err)
	}
	picture, err := jpeg.Decode(bytes.NewReader(half.JPEG))
	if err != nil || picture.Bounds().Size() != image.Pt(20, 10) || half.Width != 200 {
		t.Fatalf("%v: %+v", err, half)
	}
	for x, want := range map[int]uint8{2: 0, 17: 255} {
		if got := color.GrayModel.Convert(picture.At(x, 5)).(color.Gray).Y; max(got, want)-min(got, want) > 8 {
			t.Errorf("the gray at %d is %d", x, got)
		}
	}
	at.Input, err = json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	page := string(jobhost.Run(sheet, at).Output)
	if strings.Count(page, "<figure>") != 2 || !strings.Contains(page, "<p>none.png: image: unknown format</p>") || !strings.Contains(page, "half.png, 200 × 100") {
		t.Error(page)
	}
}

func TestWrongTasks(t *testing.T) {
	t.Parallel()
	at := setup(t)
	for _, input := range []string{`{"file":"half.png"}`, `{"file":"half.png","size":1000}`, `x`, `{"file":"gone.png","size":20}`} {
		at.Input = []byte(input)
		if got := jobhost.Run(shrink, at); got.Err == nil {
			t.Errorf("%s is taken", input)
		}
	}
}
