package main

import (
	"image"
	"image/color"
)

// scale scales a picture down, so that its longer side has size pixels. Each pixel is the mean
// of those that it replaces. A small picture is unchanged.
func scale(from image.Image, size int) image.Image {
	b := from.Bounds()
	longer := max(b.Dx(), b.Dy())
	if longer <= size {
		return from
	}
	width, height := max(b.Dx()*size/longer, 1), max(b.Dy()*size/longer, 1)
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			to.SetRGBA(x, y, mean(from, image.Rect(
				b.Min.X+x*b.Dx()/width, b.Min.Y+y*b.Dy()/height,
				b.Min.X+(x+1)*b.Dx()/width, b.Min.Y+(y+1)*b.Dy()/height,
			)))
		}
	}
	return to
}

// mean is the mean color of a part of a picture.
func mean(from image.Image, part image.Rectangle) color.RGBA {
	var red, green, blue, count uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			r, g, b, _ := from.At(x, y).RGBA()
			red, green, blue = red+uint64(r), green+uint64(g), blue+uint64(b)
			count++
		}
	}
	count = max(count, 1) << 8
	return color.RGBA{R: uint8(red / count), G: uint8(green / count), B: uint8(blue / count), A: 255} //nolint:gosec // means of 16 bits, shifted by 8
}
