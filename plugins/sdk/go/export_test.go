package jobhost

// FailText is the text that the host gets for an error.
var FailText = failText

// ReadEvent reads an event of a watch.
func ReadEvent(text []byte) (e StateEvent, ok bool) {
	r := jsonReader{rest: text}
	e = r.event()
	return e, r.ended()
}
