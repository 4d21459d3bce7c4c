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

// ratedFrom is from how many decoded bytes on the ratio counts: a short answer
// may be nothing but spaces.
const ratedFrom = 64 << 10

// isEncoded reports whether the body of a response has to be decoded here. An
// encoding that nobody asked for is left to whoever wrote the request.
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

// decoder decodes a body and watches how much comes of how little.
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

// badEncoding makes what gzip has to say a fault.
func badEncoding(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return &fault{code: CodeProtocol, message: "the response is not encoded as it says", cause: err}
	}
	return err
}

// release gives the memory of the decoder back.
func (d *decoder) release() {
	if d.gzip != nil {
		d.readers.Put(d.gzip)
		d.gzip = nil
	}
}

// countingReader counts what was received.
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
