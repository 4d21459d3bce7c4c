package journal

import (
	"bytes"
	"encoding/binary"
)

// The layout of the header, which is one page. There are two memos, used alternately, so
// that one half-written at a crash doesn't replace its predecessor.
const (
	atMagic   = 0
	atRunning = 8  // uint32: 1 while a host runs
	atMemo    = 12 // uint32: which memo is valid, 0 or 1
	atBoot    = 16
	bootBytes = 48
	atMemos   = 64
	// MaxMemo is the maximum length of a memo.
	MaxMemo = 1900
	memoGap = 4 + MaxMemo // including its length

	headerBytes = 4096
	fileBytes   = headerBytes + Slots*slotSize
)

// magic identifies the format and its version.
const magic = "jhtasks1"

// isHeader reports whether a host has written the header since the machine was booted.
func isHeader(head []byte, boot string) bool {
	return string(head[atMagic:atMagic+len(magic)]) == magic &&
		string(bytes.TrimRight(head[atBoot:atBoot+bootBytes], "\x00")) == boot
}

// readHeader reads what the previous host left; nothing from a new file.
func (j *Journal) readHeader() {
	if string(j.mem[atMagic:atMagic+len(magic)]) != magic {
		return
	}
	j.previous.Crashed = j.word(atRunning).Load() != 0
	memo := j.memoAt(j.word(atMemo).Load() & 1)
	if n := binary.LittleEndian.Uint32(memo); 0 < n && n <= MaxMemo {
		j.previous.Memo = bytes.Clone(memo[4 : 4+n])
	}
}

func (j *Journal) writeHeader(boot string) {
	copy(j.mem[atMagic:], magic)
	clear(j.mem[atBoot : atBoot+bootBytes])
	copy(j.mem[atBoot:atBoot+bootBytes], boot)
	j.word(atRunning).Store(1)
}

func (j *Journal) memoAt(which uint32) []byte {
	at := atMemos + int(which)*memoGap
	return j.mem[at : at+memoGap]
}

// Remember stores a text for the next host, replacing the previous one. A text longer
// than [MaxMemo] is ignored.
func (j *Journal) Remember(memo []byte) {
	if j == nil || len(memo) > MaxMemo {
		return
	}
	j.memo.Lock()
	defer j.memo.Unlock()
	j.guarded(func() {
		other := 1 - j.word(atMemo).Load()&1
		m := j.memoAt(other)
		binary.LittleEndian.PutUint32(m, uint32(len(memo)))
		copy(m[4:], memo)
		j.word(atMemo).Store(other)
	})
}
