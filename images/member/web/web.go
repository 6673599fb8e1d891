// SPDX-License-Identifier: Apache-2.0

// Package web answers and sends HTTP requests within a Database.
package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// MaxAnswer is how long an answer may be, in bytes.
const MaxAnswer = 1 << 20

// Serve requests that come to a listener, until the context ends.
func Serve(ctx context.Context, l net.Listener, s *http.Server) error {
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot answer requests: %w", err)
	}
	return nil
}

// Send a request, with the JSON of a body unless that is nil, and return status and content of the answer. With any status, an
// answer is no error.
func Send(ctx context.Context, c *http.Client, method, url string, body any) (int, []byte, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	return Do(c, r)
}

// Do a request like Send.
func Do(c *http.Client, r *http.Request) (int, []byte, error) {
	answer, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
	if err == nil && len(content) > MaxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	return answer.StatusCode, content, err
}
