package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/api/wire"
)

// aboutKey returns a request about a key, which may be any text: a slash is
// escaped, and so are the names that stand for a folder.
func aboutKey(method, worker, key string) request {
	name := url.PathEscape(key)
	if key == "." || key == ".." {
		name = strings.ReplaceAll(key, ".", "%2E")
	}
	return request{
		method: method, path: "/v1/kv/" + worker + "/" + name,
		err: errors.Join(jobhost.CheckWorker(worker), jobhost.CheckKey(key)),
	}
}

// Keys implements [jobhost.KeyKeeper].
func (c *Client) Keys(ctx context.Context, filter jobhost.KeyFilter) (page jobhost.KeyPage, err error) {
	if err := filter.Check(); err != nil {
		return page, err
	}
	q := url.Values{}
	for name, value := range map[string]string{"prefix": filter.Prefix, "cursor": filter.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if filter.Limit != 0 {
		q.Set("limit", strconv.Itoa(filter.Limit))
	}
	err = c.ask(ctx, request{method: "GET", path: "/v1/kv/" + filter.Worker + "?" + q.Encode()}, &page)
	return page, err
}

// KeyValue implements [jobhost.KeyKeeper].
func (c *Client) KeyValue(ctx context.Context, worker, name string) (jobhost.Key, []byte, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	header, value, err := c.fetchWithHeader(ctx, aboutKey("GET", worker, name))
	if err != nil {
		return jobhost.Key{}, nil, err
	}
	key := jobhost.Key{Name: name, Size: len(value)}
	var errs [3]error
	key.Version, errs[0] = strconv.ParseInt(header.Get(wire.KeyVersion), 10, 64)
	key.ChangedAt, errs[1] = time.Parse(time.RFC3339Nano, header.Get(wire.KeyChangedAt))
	if text := header.Get(wire.KeyExpiresAt); text != "" {
		key.ExpiresAt = new(time.Time)
		*key.ExpiresAt, errs[2] = time.Parse(time.RFC3339Nano, text)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return jobhost.Key{}, nil, &jobhost.Error{
			Code: jobhost.CodeInternal, Message: "the answer of " + c.base + " cannot be read", Cause: err,
			Hint: "are client and host of the same version?",
		}
	}
	return key, value, nil
}

// SetKey implements [jobhost.KeyKeeper].
func (c *Client) SetKey(ctx context.Context, worker, key string, value []byte, ttl time.Duration) error {
	rq := aboutKey("PUT", worker, key)
	rq.err = errors.Join(rq.err, jobhost.CheckValue(value, ttl))
	if ttl > 0 {
		rq.path += "?ttl=" + jobhost.Duration(ttl).String()
	}
	rq.contentType, rq.body = wire.Bytes, bytes.NewReader(value)
	return c.ask(ctx, rq, nil)
}

// DeleteKey implements [jobhost.KeyKeeper].
func (c *Client) DeleteKey(ctx context.Context, worker, key string) error {
	return c.ask(ctx, aboutKey("DELETE", worker, key), nil)
}

// fetchWithHeader sends a request and returns the header and all of the body.
func (c *Client) fetchWithHeader(ctx context.Context, rq request) (http.Header, []byte, error) {
	resp, err := c.send(ctx, rq)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := c.readBody(ctx, resp.Body)
	return resp.Header, body, err
}
