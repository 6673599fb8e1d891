// SPDX-License-Identifier: Apache-2.0

// Package openlineage sends events about runs and their data to a server that takes them as OpenLineage defines, such as Marquez or DataHub.
//
// It knows the few fields that Capstan sends. OpenLineage has a client for Go, too, which brings the libraries of a cloud along.
package openlineage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// endpoint of a server, as in all clients of OpenLineage.
const endpoint = "api/v1/lineage"

// placeholder of the namespace of a Pipeline in the namespace of its job.
const placeholder = "{namespace}"

// A Client of one server.
type Client struct {
	http      *http.Client
	url       string
	namespace string
	authorize func(*http.Request)
}

// Service is what a pool of Clients needs.
func Service() outside.Service[*Client] {
	return outside.Service[*Client]{New: New, Ask: ask, Explain: Explain}
}

// New makes a Client of a connection.
func New(c *outside.Connection) (*Client, error) {
	u, err := url.Parse(c.OpenLineage.URL)
	if err != nil {
		return nil, &outside.Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: "the URL of the config cannot be used",
			Remedy:  "correct spec.openLineage.url",
			Cause:   err,
		}
	}
	return &Client{http: c.HTTP, url: u.JoinPath(endpoint).String(), namespace: c.OpenLineage.JobNamespace, authorize: c.Authorize}, nil
}

// JobNamespace is the namespace of the jobs of a namespace of the cluster.
func (c *Client) JobNamespace(namespace string) string {
	if !strings.Contains(c.namespace, placeholder) {
		return namespace
	}
	return strings.ReplaceAll(c.namespace, placeholder, namespace)
}

// Send an event. Of the answer only the status counts.
func (c *Client) Send(ctx context.Context, e Event) error {
	body, err := json.Marshal(e.wire())
	if err != nil {
		return fmt.Errorf("cannot write the event: %w", err)
	}
	status, err := c.do(outside.WithOperation(ctx, "Send"), http.MethodPost, body)
	if err != nil {
		return err
	}
	if status < http.StatusOK || status >= http.StatusMultipleChoices {
		return &Error{Status: status}
	}
	return nil
}

// ask whether the server lets these credentials in. It has nothing to ask that every server answers, so that any answer of its own will do.
func ask(ctx context.Context, c *Client) error {
	status, err := c.do(outside.WithOperation(ctx, "Ask"), http.MethodGet, nil)
	if err != nil {
		return err
	}
	if e := (&Error{Status: status}); e.ofConfig() || status >= http.StatusInternalServerError {
		return e
	}
	return nil
}

// do a request, and leave the body of its answer unread.
func (c *Client) do(ctx context.Context, method string, body []byte) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("cannot make the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "capstan")
	c.authorize(r)
	res, err := c.http.Do(r)
	if err != nil {
		return 0, fmt.Errorf("cannot send the request: %w", err)
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// An Error is an answer that is no success.
type Error struct{ Status int }

// Error has the status only: the words of a server do not belong to a tenant.
func (e *Error) Error() string { return fmt.Sprintf("the server answers %d", e.Status) }

// ofConfig reports whether a config is the cause, and not an event.
func (e *Error) ofConfig() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return true
	}
	return e.Status >= http.StatusMultipleChoices && e.Status < http.StatusBadRequest
}

// Refuses reports whether an error is a refusal of the event itself, which another try would not change.
func Refuses(err error) bool {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// Explain what a server answered. It returns nil when the error is not about an answer.
func Explain(err error) *outside.Failure {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return nil
	}
	f := &outside.Failure{Cause: err}
	switch status := e.Status; {
	case Refuses(e):
		f.Reason, f.Message = v1alpha1.ReasonRejected, fmt.Sprintf("the server refused the event with status %d", status)
		f.Remedy = "check the names of inputs and outputs; the log of the server says which value it does not take"
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		f.Reason, f.Message = v1alpha1.ReasonCredentialsRefused, "the server refuses the credentials"
		f.Remedy = "correct the Secret that the config names in spec.openLineage.credentials"
	case status == http.StatusForbidden:
		f.Reason, f.Message = v1alpha1.ReasonForbidden, "the server does not let these credentials send events"
		f.Remedy = "give them the right, or name others in spec.openLineage.credentials"
	case status == http.StatusTooManyRequests:
		f.Reason, f.Message = v1alpha1.ReasonThrottled, "the server wants fewer requests"
		f.Remedy = "nothing to do: the provider tries again, less and less often"
	case status >= http.StatusInternalServerError, status == http.StatusRequestTimeout:
		f.Reason, f.Message = v1alpha1.ReasonServerError, fmt.Sprintf("the server failed with status %d", status)
		f.Remedy = "look at its log; the provider tries again"
	default:
		f.Reason, f.Message = v1alpha1.ReasonUnknownAnswer, fmt.Sprintf("the server answers %d where it would take an event", status)
		f.Remedy = "check spec.openLineage.url of the config, with its path; redirects are not followed"
	}
	return f
}
