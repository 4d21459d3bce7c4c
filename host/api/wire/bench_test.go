package wire_test

import (
	"strings"
	"testing"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

func BenchmarkDecode(b *testing.B) {
	bodies := map[string]string{
		"least": `{"worker":"test"}`,
		"text":  `{"worker":"test","id":"job-1","payload":"` + strings.Repeat("0123456789abcdef", 64) + `","priority":"high"}`,
		"json":  `{"worker":"test","payload":[` + strings.Repeat(`{"id":1,"name":"somebody"},`, 37) + `0]}`,
	}
	for name, body := range bodies {
		b.Run(name, func(b *testing.B) {
			d := wire.NewDecoder(maxPayload)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendSubmit(b *testing.B) {
	spec := jobhost.Spec{Worker: "test", ID: "job-1", Payload: []byte(strings.Repeat("0123456789abcdef", 64))}
	var body []byte
	b.ReportAllocs()
	for b.Loop() {
		body = wire.AppendSubmit(body[:0], &spec)
	}
}
