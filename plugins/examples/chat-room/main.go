// Command chat-room is a fiber for each room of a chat: it receives lines, and
// publishes what everyone in the room gets to read.
package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

func init() { jobhost.Handle(room) }

func main() {}

// mostPeople bounds what the room remembers of them: a fiber may live long.
const mostPeople = 1000

// room talks until it receives /close or the fiber is interrupted, and returns how
// much was said. Its input is the topic. The total number of lines ever said in a
// room of this name is kept in a key, which outlives the fiber.
func room(job *jobhost.Job) ([]byte, error) {
	var people []string // in the order of arrival, kept from message to message
	lines := 0
	say := func(text string) error { return job.Emit([]byte(text)) }
	if topic := string(job.Input()); topic != "" {
		if err := say("* today: " + topic); err != nil {
			return nil, err
		}
	}
	for message, err := range job.Messages() {
		if errors.Is(err, jobhost.ErrStopped) {
			return nil, say("* the room is being closed")
		}
		if err != nil {
			return nil, err
		}
		name, text, ok := strings.Cut(string(message), ": ")
		switch {
		case string(message) == "/close":
			if err := say("* closed"); err != nil {
				return nil, err
			}
			return []byte(count(lines, "line") + " by " + count(len(people), "person")), nil
		case string(message) == "/who":
			err = say("* here: " + strings.Join(people, ", "))
		case !ok || name == "" || strings.ContainsAny(name, " /*"):
			err = say("* write it as NAME: TEXT")
		default:
			err = hear(job, &people, name, text)
			lines++
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, say("* the room is being closed")
}

// hear publishes a line, with its number since the room was first opened.
func hear(job *jobhost.Job, people *[]string, name, text string) error {
	if !slices.Contains(*people, name) {
		if len(*people) >= mostPeople {
			return job.Emit([]byte("* the room is full, " + name))
		}
		*people = append(*people, name)
		if err := job.Emit([]byte("* " + name + " is here")); err != nil {
			return err
		}
	}
	n, err := job.KV().Add("lines/"+job.ID(), 1)
	if err != nil {
		return err
	}
	return job.Emit([]byte(strconv.FormatInt(n, 10) + " " + name + ": " + text))
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "person":
		what = "people"
	default:
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
