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
	for word, rest := cutWord(text); len(word) > 0; word, rest = cutWord(rest) {
		r.Words++
		lower = appendLower(lower[:0], trim(word))
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

// Most text is ASCII, and these tables spare it the functions of package
// unicode, which would be two thirds of the work.
var (
	asciiSpace = [256]bool{'\t': true, '\n': true, '\v': true, '\f': true, '\r': true, ' ': true}
	asciiAlnum = func() (is [256]bool) {
		for c := range utf8.RuneSelf {
			is[c] = !isPunctuation(rune(c))
		}
		return is
	}()
)

func isPunctuation(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// cutWord returns the first word of text and what follows it; no word = none is left.
func cutWord(text []byte) (word, rest []byte) {
	start, size := 0, 0
	for start < len(text) {
		if size = spaceAt(text[start:]); size == 0 {
			break
		}
		start += size
	}
	end := start
	for end < len(text) && !asciiSpace[text[end]] {
		if text[end] >= utf8.RuneSelf && spaceAt(text[end:]) > 0 {
			break
		}
		end++
	}
	return text[start:end], text[end:]
}

// spaceAt returns how many bytes the white space has that text begins with; 0 = none.
func spaceAt(text []byte) int {
	if c := text[0]; c < utf8.RuneSelf {
		if asciiSpace[c] {
			return 1
		}
		return 0
	}
	if r, size := utf8.DecodeRune(text); unicode.IsSpace(r) {
		return size
	}
	return 0
}

// trim removes the punctuation around a word.
func trim(word []byte) []byte {
	if len(word) > 0 && asciiAlnum[word[0]] && asciiAlnum[word[len(word)-1]] {
		return word
	}
	return bytes.TrimFunc(word, isPunctuation)
}

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
