package main

import "github.com/spf13/cobra"

// meant are the commands for words that other programs have for them, by the group
// in which the word was looked for.
var meant = map[string]map[string]string{
	"jobhost": {
		"ps": "job ls", "list": "job ls", "ls": "job ls", "jobs": "job ls", "queue": "job ls",
		"show": "job show", "get": "job show", "describe": "job show", "logs": "job logs", "log": "job logs", "tail": "job logs",
		"result": "job result", "wait": "job watch", "watch": "job watch", "why": "job why",
		"cancel": "job cancel", "kill": "job cancel", "retry": "job retry", "delete": "job rm", "rm": "job rm",
		"status": "worker ls", "top": "worker ls", "stats": "worker ls", "workers": "worker ls", "info": "worker ls",
		"start": "run", "serve": "run", "server": "run", "up": "run", "daemon": "run",
		"new": "worker new", "init": "worker new", "create": "worker new", "test": "worker test", "inspect": "worker inspect", "reload": "worker reload",
		"add": "submit", "push": "submit", "enqueue": "submit", "send": "submit", "call": "exec", "invoke": "exec",
		"check": "manifest check", "validate": "manifest check", "lint": "manifest check", "config": "manifest show",
		"cron": "schedule", "flow": "workflow",
	},
	"jobhost job": {"list": "ls", "get": "show", "describe": "show", "delete": "rm", "remove": "rm", "log": "logs", "wait": "watch", "kill": "cancel", "output": "result"},
}

// synonym returns the command that is meant by a word in a group; "" = none is known.
func synonym(group *cobra.Command, word string) string {
	if to := meant[group.CommandPath()][word]; to != "" {
		return group.CommandPath() + " " + to
	}
	return ""
}
