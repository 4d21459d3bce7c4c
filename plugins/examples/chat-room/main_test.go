package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func messages(texts ...string) []jobhost.Message {
	list := []jobhost.Message{}
	for i, text := range texts {
		list = append(list, jobhost.Message{Data: []byte(text), After: time.Duration(i) * time.Second})
	}
	return list
}

func TestRoom(t *testing.T) {
	t.Parallel()
	got := jobhost.Run(room, jobhost.Attempt{
		ID: "lobby", Input: []byte("fibers"), Keys: map[string]string{"lines/lobby": "41"},
		Messages: messages("ann: hello", "bob: hi: there", "nonsense", "a b: c", "/who", "ann: bye", "/close"),
	})
	want := []string{
		"* today: fibers", "* ann is here", "42 ann: hello", "* bob is here", "43 bob: hi: there",
		"* write it as NAME: TEXT", "* write it as NAME: TEXT", "* here: ann, bob", "44 ann: bye", "* closed",
	}
	var said []string
	for _, data := range got.Emitted {
		said = append(said, string(data))
	}
	if diff := cmp.Diff(want, said); diff != "" || got.Err != nil || string(got.Output) != "3 lines by 2 people" {
		t.Errorf("%v, %q\n%s", got.Err, got.Output, diff)
	}
	if got.Keys["lines/lobby"] != "44" {
		t.Errorf("the keys are %v", got.Keys)
	}
}

// TestRoomEnds: when no more messages can come, the room closes.
func TestRoomEnds(t *testing.T) {
	t.Parallel()
	got := jobhost.Run(room, jobhost.Attempt{ID: "lobby", Messages: messages()})
	if got.Err != nil || len(got.Emitted) != 1 || string(got.Emitted[0]) != "* the room is being closed" {
		t.Errorf("%v, %q", got.Err, got.Emitted)
	}
}
