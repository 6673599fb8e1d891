// SPDX-License-Identifier: Apache-2.0

// Package mlflow is a thin client of MLflow's model registry.
//
// It speaks the official REST API below /api/2.0/mlflow. Names and types are from the published protocol,
// mlflow/protos/model_registry.proto. It knows nothing of managed resources and decides nothing. The rules for changes are in
// package registry.
//
// Anything but the registry's own answer (a page of a proxy, half an answer, an answer about something else) is an error. In
// particular, something does not exist only when the registry itself says so: see IsNotFound.
package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// root of the API, below the URL of a config.
	root = "api/2.0/mlflow"

	// maxRequest is more than any request has that the schemas let through: fifty tags and a description of 5,000 characters
	// each.
	maxRequest = 2 << 20
)

// A Client of one registry.
type Client struct {
	// AllowedSources of the config: prefixes of the sources of new versions.
	AllowedSources []string

	base      *url.URL
	http      *http.Client
	authorize func(*http.Request)
}

// Service is what a pool of clients has to know.
func Service() outside.Service[*Client] {
	return outside.Service[*Client]{New: New, Ask: ask, Explain: Explain}
}

// ask for any one model. Every user with access may ask, and gets the models that it may see.
func ask(ctx context.Context, c *Client) error {
	return c.get(ctx, "SearchRegisteredModels", "registered-models/search", url.Values{"max_results": {"1"}}, nil)
}

// New client of the registry that a connection leads to.
func New(c *outside.Connection) (*Client, error) {
	if c.MLflow == nil {
		return nil, &outside.Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: "the config is not about MLflow",
			Remedy:  "set spec.mlflow",
		}
	}
	u, err := url.Parse(c.MLflow.URL)
	if err != nil || u.Host == "" {
		return nil, &outside.Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: "spec.mlflow.url of the config cannot be read",
			Remedy:  "use a URL such as https://mlflow.example.org",
			Cause:   err,
		}
	}
	return &Client{
		AllowedSources: c.MLflow.AllowedSources,
		base:           u.JoinPath(root),
		http:           c.HTTP,
		authorize:      c.Authorize,
	}, nil
}

// get something. What to read goes into the query string.
func (c *Client) get(ctx context.Context, operation, path string, query url.Values, answer any) error {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(outside.WithOperation(ctx, operation), http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("cannot make a request: %w", err)
	}
	return c.do(r, operation, answer)
}

// send a change. It is JSON, with DELETE too.
func (c *Client) send(ctx context.Context, operation, method, path string, change, answer any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("cannot encode a request: %w", err)
	}
	if len(body) > maxRequest {
		return &outside.Failure{
			Reason:  v1alpha1.ReasonRejected,
			Message: fmt.Sprintf("the request is larger than %d MiB", maxRequest>>20),
			Remedy:  "use fewer or shorter tags",
		}
	}
	r, err := http.NewRequestWithContext(
		outside.WithOperation(ctx, operation), method, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot make a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	return c.do(r, operation, answer)
}

// do a request and read its answer.
func (c *Client) do(r *http.Request, operation string, answer any) error {
	r.Header.Set("Accept", "application/json")
	c.authorize(r)
	res, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", operation, err)
	}
	body, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w", operation, err)
	}
	if res.StatusCode != http.StatusOK {
		return newError(operation, res.StatusCode, body)
	}

	// What is no JSON object is none of the registry's answers, however good its status is: login pages of proxies come with 200.
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return &Error{Operation: operation, Status: res.StatusCode, unreadable: true}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return &Error{Operation: operation, Status: res.StatusCode, unreadable: true}
	}
	return nil
}
