//go:build ignore

// genpictures writes pictures into a folder: PNGs and JPEGs of several sizes, and one
// truncated file. They are the same in every run.
//
//	go run genpictures.go pictures
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"log"
	"math"
	"math/cmplx"
	"os"
	"path/filepath"
)

// patterns assign a color to each point of a picture, both coordinates from 0 to 1.
var patterns = []struct {
	name string
	at   func(x, y float64) color.RGBA
}{
	{"dawn", func(_, y float64) color.RGBA {
		return mix(color.RGBA{R: 40, G: 30, B: 90}, color.RGBA{R: 255, G: 170, B: 90}, y)
	}},
	{"hills", func(x, y float64) color.RGBA {
		if y > 0.6+0.15*math.Sin(7*x)+0.05*math.Sin(23*x) {
			return color.RGBA{R: 40, G: uint8(90 + 60*y), B: 50, A: 255}
		}
		return mix(color.RGBA{R: 120, G: 170, B: 230}, color.RGBA{R: 230, G: 240, B: 255}, y)
	}},
	{"mandelbrot", func(x, y float64) color.RGBA {
		z, c := complex128(0), complex(3.2*x-2.3, 2.4*y-1.2)
		for n := range 60 {
			if z = z*z + c; cmplx.Abs(z) > 2 {
				return mix(color.RGBA{R: 10, G: 10, B: 40}, color.RGBA{R: 255, G: 220, B: 120}, math.Sqrt(float64(n)/60))
			}
		}
		return color.RGBA{A: 255}
	}},
	{"rings", func(x, y float64) color.RGBA {
		return mix(color.RGBA{R: 200, G: 40, B: 60}, color.RGBA{R: 250, G: 250, B: 245}, 0.5+0.5*math.Sin(60*math.Hypot(x-0.5, y-0.5)))
	}},
}

var sizes = []image.Point{{X: 640, Y: 480}, {X: 480, Y: 800}, {X: 1024, Y: 256}}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: genpictures FOLDER")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i, p := range patterns {
		for k, size := range sizes {
			picture := image.NewRGBA(image.Rectangle{Max: size})
			for y := range size.Y {
				for x := range size.X {
					picture.SetRGBA(x, y, p.at(float64(x)/float64(size.X), float64(y)/float64(size.Y)))
				}
			}
			var b bytes.Buffer
			suffix, err := ".jpg", error(nil)
			if (i+k)%2 == 0 {
				suffix, err = ".png", png.Encode(&b, picture)
			} else {
				err = jpeg.Encode(&b, picture, nil)
			}
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s-%d%s", p.name, k+1, suffix)
			if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	whole, err := os.ReadFile(filepath.Join(folder, "dawn-2.jpg"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "cut-off.jpg"), whole[:len(whole)/2], 0o644)
}

func mix(a, b color.RGBA, t float64) color.RGBA {
	of := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*min(max(t, 0), 1)) }
	return color.RGBA{R: of(a.R, b.R), G: of(a.G, b.G), B: of(a.B, b.B), A: 255}
}
