package link

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// maxWhole bounds a frame that arrives in pieces: the largest request a worker may send,
// and some room.
const maxWhole = 80 << 20

var errTooLarge = errors.New("a frame in pieces is larger than 80 MiB")

// Pieces reassembles a frame that arrives in pieces. The zero value has none.
type Pieces struct{ data []byte }

// Size returns how many bytes there are of an incomplete frame.
func (p *Pieces) Size() int { return len(p.data) }

// Add adds a piece and reports whether it was the last; if so frame is decoded.
func (p *Pieces) Add(piece *protocol.Piece, frame proto.Message) (whole bool, err error) {
	if len(p.data)+len(piece.GetData()) > maxWhole {
		p.data = nil
		return false, errTooLarge
	}
	p.data = append(p.data, piece.GetData()...)
	if !piece.GetLast() {
		return false, nil
	}
	data := p.data
	p.data = nil
	return true, proto.Unmarshal(data, frame)
}
