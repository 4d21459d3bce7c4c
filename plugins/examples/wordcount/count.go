package main

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// report is the result. For plain text Lines, Words and Bytes are what wc says.
type report struct {
	// Lines counts a last line without an end too, which wc doesn't.
	Lines int `json:"lines"`
	// Words are what stands between white space as Unicode has it.
	Words int `json:"words"`
	Bytes int `json:"bytes"`
	// Distinct is how many different words there are, and Top the most
	// frequent of them: in lower case, without the punctuation around them.
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
	index := make(map[string]int) // of a word in ranks
	var ranks []rank
	var lower []byte // of the word at hand, used again for each
	for word := range bytes.FieldsSeq(text) {
		r.Words++
		lower = appendLower(lower[:0], bytes.TrimFunc(word, isPunctuation))
		if len(lower) == 0 {
			continue
		}
		// The compiler looks a []byte up without making a string of it; only
		// new words are copied.
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

// highest returns the most frequent words; those that are equally frequent are
// in the order of the alphabet.
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
