package netproxy

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const encodingGzip = "gzip"

// ratedFrom is the number of decoded bytes from which the ratio is checked: a
// short response may consist of nothing but spaces.
const ratedFrom = 64 << 10

// isEncoded reports whether the body of a response has to be decoded here. Encodings that the
// client did not ask for are left to the author of the request.
func isEncoded(resp *http.Response) (bool, *fault) {
	encodings := resp.Header["Content-Encoding"]
	if encodings == nil {
		return false, nil
	}
	encoding := strings.ToLower(strings.Join(encodings, ","))
	if strings.Contains(encoding, ",") {
		return false, &fault{code: CodeProtocol, message: "the response is encoded more than once"}
	}
	encoding = strings.TrimSpace(encoding)
	gzipped := encoding == encodingGzip || encoding == "x-gzip"
	partial := resp.StatusCode == http.StatusPartialContent
	return gzipped && !partial && resp.Body != http.NoBody, nil
}

// decoder decodes a body and checks how much it expands.
type decoder struct {
	raw     countingReader
	readers *sync.Pool // of *gzip.Reader
	gzip    *gzip.Reader
	decoded int64
}

// Read implements [io.Reader].
func (d *decoder) Read(p []byte) (int, error) {
	if d.gzip == nil {
		if err := d.begin(); err != nil {
			return 0, badEncoding(err)
		}
	}
	n, err := d.gzip.Read(p)
	if d.decoded += int64(n); d.decoded > ratedFrom && d.decoded > MaxDecodeRatio*d.raw.n {
		return n, errRatio
	}
	return n, badEncoding(err)
}

func (d *decoder) begin() (err error) {
	if reader, ok := d.readers.Get().(*gzip.Reader); ok {
		d.gzip = reader
		return reader.Reset(&d.raw)
	}
	d.gzip, err = gzip.NewReader(&d.raw)
	return err
}

// badEncoding turns the errors of gzip into faults.
func badEncoding(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return &fault{code: CodeProtocol, message: "the response is not encoded as it says", cause: err}
	}
	return err
}

// release returns the gzip reader to the pool.
func (d *decoder) release() {
	if d.gzip != nil {
		d.readers.Put(d.gzip)
		d.gzip = nil
	}
}

// countingReader counts the bytes received.
type countingReader struct {
	r io.Reader
	n int64
}

// Read implements [io.Reader].
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func statusText(status int) string {
	text := strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
	}
	return text
}
