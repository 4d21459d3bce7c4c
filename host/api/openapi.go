package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/jobhost/jobhost/host/api/wire"
)

// object is a JSON object of the OpenAPI document; encoding/json sorts its
// names, so that the document is the same every time.
type object map[string]any

// describe makes the OpenAPI document from the table of routes.
func describe(table []route) ([]byte, error) {
	models := &models{schemas: object{
		"Submit":     bodySchema(wire.Members(), "worker"),
		"StateSet":   bodySchema(wire.StateMembers(), "status"),
		"FiberStart": bodySchema(wire.FiberMembers(), "id", "worker"),
		"Cleanup":    bodySchema(wire.CleanupMembers(), "tombstone_age", "delete_age"),

		"WorkflowStart":  bodySchema(wire.WorkflowMembers()),
		"WorkflowSignal": bodySchema(wire.SignalMembers()),
		"WorkflowCancel": bodySchema(wire.CancelMembers()),
		"WorkflowRetry":  bodySchema(wire.RetryMembers()),
	}}
	paths := object{}
	for i := range table {
		r := &table[i]
		path, ok := paths[r.path].(object)
		if !ok {
			path = object{}
			paths[r.path] = path
		}
		path[strings.ToLower(r.method)] = operation(r, models)
	}
	problem := models.of(reflect.TypeFor[wire.Problem]())
	document, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "jobhost",
			"version":     "1",
			"description": "A job server whose workers are sandboxed WebAssembly plugins. See docs/api.md.",
		},
		"paths": paths,
		"components": object{
			"schemas":         models.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"Problem": object{
				"description": "What was wrong, as RFC 9457 has it.",
				"content":     object{wire.Trouble: object{"schema": problem}},
			}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe api: %w", err)
	}
	return append(document, '\n'), nil
}

// bodies names the schemas of JSON bodies that are no submits, by the name of the route.
var bodies = map[string]string{
	"setState": "StateSet", "cleanStates": "Cleanup", "startFiber": "FiberStart",
	"startWorkflow": "WorkflowStart", "checkWorkflow": "Workflow",
	"signalWorkflow": "WorkflowSignal", "cancelWorkflow": "WorkflowCancel", "retryWorkflow": "WorkflowRetry",
}

func operation(r *route, models *models) object {
	op := object{"operationId": r.name, "summary": r.summary, "responses": responses(r, models)}
	switch r.access {
	case writes, reads:
		op["security"] = []object{{"token": []string{}}}
	case figures:
		op["security"] = []object{{}, {"token": []string{}}}
	case open:
	}
	if params := parameters(r); len(params) > 0 {
		op["parameters"] = params
	}
	if r.body != "" {
		content := object{"schema": object{"$ref": "#/components/schemas/" + cmp.Or(bodies[r.name], "Submit")}}
		if r.body == wire.Bytes {
			content = object{}
		}
		kind, optional := strings.CutSuffix(r.body, "?")
		op["requestBody"] = object{"required": !optional, "content": object{kind: content}}
	}
	return op
}

func parameters(r *route) []object {
	var list []object
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			list = append(list, object{
				"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"},
			})
		}
	}
	for _, p := range r.query {
		list = append(list, object{"name": p.name, "in": "query", "description": p.doc, "schema": object{"type": "string"}})
	}
	return list
}

func responses(r *route, models *models) object {
	list := object{"default": object{"$ref": "#/components/responses/Problem"}}
	for _, a := range r.answers {
		response := object{"description": a.doc}
		var schemas []object
		for _, t := range a.models {
			schemas = append(schemas, models.of(t))
		}
		switch {
		case a.body == "":
		case len(schemas) == 0:
			response["content"] = object{a.body: object{}}
		case len(schemas) == 1:
			response["content"] = object{a.body: object{"schema": schemas[0]}}
		default:
			response["content"] = object{a.body: object{"schema": object{"anyOf": schemas}}}
		}
		list[strconv.Itoa(a.status)] = response
	}
	return list
}

// bodySchema describes a body with some members.
func bodySchema(members []wire.Member, required ...string) object {
	properties := object{}
	for _, m := range members {
		property := object{"description": m.Doc}
		if m.Type != "" {
			property["type"] = m.Type
		}
		if m.Name == "labels" || m.Name == "callback" {
			property["additionalProperties"] = object{"type": "string"}
		}
		properties[m.Name] = property
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
