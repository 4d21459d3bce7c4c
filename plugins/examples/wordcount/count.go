package main

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// report is the result. For plain text Lines, Words and Bytes are the same as from wc.
type report struct {
	// Lines includes a last line without a newline, which wc doesn't count.
	Lines int `json:"lines"`
	// Words are separated by white space as defined by Unicode.
	Words int `json:"words"`
	Bytes int `json:"bytes"`
	// Distinct is the number of different words, and Top the most frequent of
	// them: in lower case, without the punctuation around them.
	Distinct int    `json:"distinct"`
	Top      []rank `json:"top"`
}

type rank struct {
	Word  string `json:"word"`
	Count int    `json:"count"`
}

// top is how many words a report names.
const top = 10

func count(text []byte) report {
	r := report{Lines: bytes.Count(text, []byte{'\n'}), Bytes: len(text)}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		r.Lines++
	}
	index := make(map[string]int) // from a word to its index in ranks
	var ranks []rank
	var lower []byte // of the current word, reused for each
	for word := range bytes.FieldsSeq(text) {
		r.Words++
		lower = appendLower(lower[:0], bytes.TrimFunc(word, isPunctuation))
		if len(lower) == 0 {
			continue
		}
		// The compiler looks up a []byte without converting it to a string;
		// only new words are copied.
		i, known := index[string(lower)]
		if !known {
			i = len(ranks)
			ranks = append(ranks, rank{Word: string(lower)})
			index[ranks[i].Word] = i
		}
		ranks[i].Count++
	}
	r.Distinct = len(ranks)
	r.Top = highest(ranks)
	return r
}

// highest returns the most frequent words; equally frequent ones are in
// alphabetical order.
func highest(ranks []rank) []rank {
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Word, b.Word))
	})
	return append([]rank{}, ranks[:min(len(ranks), top)]...)
}

func isPunctuation(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// appendLower appends word in lower case. Bytes that are not UTF-8 become U+FFFD.
func appendLower(b, word []byte) []byte {
	for i := 0; i < len(word); {
		if c := word[i]; c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			b = append(b, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(word[i:])
		b = utf8.AppendRune(b, unicode.ToLower(r))
		i += size
	}
	return b
}
