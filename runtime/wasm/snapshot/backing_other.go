//go:build !linux

package snapshot

// bestMethod returns the fastest method that works here.
func bestMethod() Method { return ByCopy }

func newBacking(limit int, image *Image, _ Method) (backing, error) {
	return newPlain(limit, image), nil
}
