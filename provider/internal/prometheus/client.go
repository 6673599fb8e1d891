// SPDX-License-Identifier: Apache-2.0

// Package prometheus asks Prometheus about the metrics of one namespace.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// timeout of a query, which is repeated soon.
const timeout = 10 * time.Second

// A Client asks one Prometheus, or what speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).
type Client struct {
	api promv1.API
	// secrets are the credentials as they are in requests. A server that is no Prometheus may repeat them.
	secrets []string
}

// Service is what a pool of Clients needs.
func Service() outside.Service[*Client] {
	return outside.Service[*Client]{New: New, Ask: ask, Explain: Explain}
}

// New makes a Client of a connection.
func New(c *outside.Connection) (*Client, error) {
	h := *c.HTTP
	h.Transport = &authorized{inner: c.HTTP.Transport, authorize: c.Authorize}
	a, err := api.NewClient(api.Config{Address: c.Prometheus.URL, Client: &h})
	if err != nil {
		return nil, &outside.Failure{
			Reason:  v1alpha1.ReasonInvalidConfig,
			Message: "the URL of the config cannot be used",
			Remedy:  "correct spec.prometheus.url",
			Cause:   err,
		}
	}
	secrets, err := credentials(c.Authorize)
	if err != nil {
		return nil, err
	}
	return &Client{api: promv1.NewAPI(a), secrets: secrets}, nil
}

// QueryAt evaluates a PromQL expression at a time, or now by the clock of Prometheus when it is zero, on series of these pods
// only. Tenants that share a Prometheus see nothing of each other, and a tenant with a Prometheus of its own sees the same.
func (c *Client) QueryAt(ctx context.Context, pods Pods, query string, at time.Time) (model.Value, error) {
	narrow, err := pods.Narrow(query)
	if err != nil {
		return nil, err
	}
	return c.evaluate(ctx, narrow, at)
}

// A Range of evaluations, the first at its start.
type Range = promv1.Range

// QueryRange evaluates a PromQL expression at each step of a range, on series of these pods only, as QueryAt does.
func (c *Client) QueryRange(ctx context.Context, pods Pods, query string, r Range) (model.Matrix, error) {
	narrow, err := pods.Narrow(query)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(outside.WithOperation(ctx, "QueryRange"), timeout)
	defer cancel()
	v, _, err := c.api.QueryRange(ctx, narrow, r, promv1.WithTimeout(timeout))
	if err != nil {
		return nil, fmt.Errorf("cannot query: %w", c.discreet(err))
	}
	lines, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("cannot read an answer of type %s", v.Type())
	}
	return lines, nil
}

// evaluate a query as it is. It takes no longer than timeout, at this end or the other.
func (c *Client) evaluate(ctx context.Context, query string, at time.Time) (model.Value, error) {
	ctx, cancel := context.WithTimeout(outside.WithOperation(ctx, "Query"), timeout)
	defer cancel()
	v, _, err := c.api.Query(ctx, query, at, promv1.WithTimeout(timeout))
	if err != nil {
		return nil, fmt.Errorf("cannot query: %w", c.discreet(err))
	}
	return v, nil
}

// discreet leaves out the words of the server when they repeat credentials.
func (c *Client) discreet(err error) error {
	e := (*promv1.Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	plain := strings.ToLower(e.Msg)
	if unescaped, err := url.QueryUnescape(plain); err == nil {
		plain += " " + unescaped
	}
	if slices.ContainsFunc(c.secrets, func(s string) bool { return strings.Contains(plain, strings.ToLower(s)) }) {
		return &promv1.Error{Type: e.Type}
	}
	return err
}

// credentials that authorize puts into requests, in every form that they have there.
func credentials(authorize func(*http.Request)) ([]string, error) {
	r, err := http.NewRequest(http.MethodGet, "http://localhost", nil)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the credentials: %w", err)
	}
	authorize(r)
	_, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	_, password, _ := r.BasicAuth()
	return slices.DeleteFunc([]string{value, password}, func(s string) bool { return s == "" }), nil
}

// ask for something that needs no series.
func ask(ctx context.Context, c *Client) error {
	_, err := c.evaluate(ctx, "vector(1)", time.Time{})
	return err
}

// authorized puts credentials into requests, and makes Failures of answers that are not about the query: the API's library only
// has their numbers in text.
type authorized struct {
	inner     http.RoundTripper
	authorize func(*http.Request)
}

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	a.authorize(r)
	res, err := a.inner.RoundTrip(r)
	if err != nil {
		return nil, err // net/http wraps it with method and URL
	}
	if f := refused(res.StatusCode); f != nil {
		_ = res.Body.Close()
		return nil, f
	}
	return res, nil
}

func refused(status int) *outside.Failure {
	switch {
	case status == http.StatusUnauthorized:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonCredentialsRefused,
			Message: "Prometheus refuses the credentials",
			Remedy:  "correct the Secret that the config names in spec.prometheus.credentials",
		}
	case status == http.StatusForbidden:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonForbidden,
			Message: "Prometheus does not let these credentials query",
			Remedy:  "give them the right to query, or name others in spec.prometheus.credentials",
		}
	case status == http.StatusTooManyRequests:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonThrottled,
			Message: "Prometheus wants fewer requests",
			Remedy:  "nothing to do: the provider tries again, less and less often",
		}
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest, status == http.StatusNotFound:
		return &outside.Failure{
			Reason:  v1alpha1.ReasonUnknownAnswer,
			Message: fmt.Sprintf("the server answers %d where Prometheus would evaluate a query", status),
			Remedy:  "check spec.prometheus.url of the config, with its path",
		}
	default:
		return nil
	}
}

// Explain an error of Prometheus.
func Explain(err error) *outside.Failure {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return f
	}
	e := (*promv1.Error)(nil)
	if !errors.As(err, &e) {
		return nil
	}
	f := &outside.Failure{Cause: err}
	switch e.Type {
	case promv1.ErrBadData, promv1.ErrExec:
		f.Reason, f.Message = v1alpha1.ReasonRejected, "Prometheus cannot evaluate the query"
		if words := Words(listed.ReplaceAllString(e.Msg, "{…}")); words != "" {
			f.Message += ": " + words
		}
		f.Remedy = "correct the query"
	case promv1.ErrServer, promv1.ErrTimeout, promv1.ErrCanceled:
		f.Reason, f.Message = v1alpha1.ReasonServerError, "Prometheus failed, or did not finish in time"
		f.Remedy = "look at its log; make the query cheaper if it is slow"
	case promv1.ErrBadResponse, promv1.ErrClient:
		f.Reason, f.Message = v1alpha1.ReasonUnknownAnswer, "the answer is not what Prometheus says"
		f.Remedy = "check spec.prometheus.url of the config, and proxies before the server"
	}
	return f
}
