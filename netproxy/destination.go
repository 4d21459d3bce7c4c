package netproxy

import (
	"context"
	"net/http"
	"time"

	"github.com/jobhost/jobhost/internal/httpurl"
)

type destinations struct{}

func newDestinations(DestinationConfig) *destinations { return nil }

func (d *destinations) enter(context.Context, httpurl.URL, time.Duration) (passage, error) {
	return passage{}, nil
}

type passage struct{}

func (passage) end(*http.Response, error, error) {}
