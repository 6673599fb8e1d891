// SPDX-License-Identifier: Apache-2.0

// Package podask asks the companions in pods for their State, and remembers what they said.
package podask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// askTimeout of a request with its answer. The companion answers from its memory.
	askTimeout = 3 * time.Second

	// MaxAnswer in bytes: a State in which some thousand members are missing.
	MaxAnswer = 256 << 10

	// maxHeader of an answer, in bytes.
	maxHeader = 8 << 10
)

// StatePort serves StatePath in each pod with a companion.
const (
	statePort = 7701
	statePath = "/v1/state"
)

// An Ask gets the answer of the companion in a pod, or a Refusal. Another error says nothing about the companion.
type Ask func(ctx context.Context, p *corev1.Pod) ([]byte, error)

// A Refusal is why there is no State to be had. It names no address and nothing that a server said.
type Refusal struct { //nolint:errname // It is what the error is.
	Why string

	// Certain: another request would get the same.
	Certain bool
}

// Error of the companion.
func (r *Refusal) Error() string { return r.Why }

// RemedyLogs is what to do when a companion does not say what it should.
const (
	RemedyLogs    = "see the log of the pod with index 0"
	remedyNetwork = RemedyLogs + ", and that NetworkPolicies admit the provider on port 7701"
)

// New asks over HTTP. Where it asks is up to the API server: the address that the status of the pod has. A tenant who may write the
// status of pods could put any address there, and a pod in the network of its node has the address of the node. So
//   - the dialer refuses loopback, link-local, metadata and API server addresses, for which only the provider's place would be special;
//   - pods in the network of their node get no request;
//   - each request is a GET of one path on one port without any credentials, follows no redirect and takes no proxy;
//   - of an answer only the fields of a State count, each bounded, and a refusal has one of a few texts. So no tenant
//     learns more of a server than whether it answers on port 7701.
func New(dialer func(net.Dialer) outside.Dial) Ask {
	c := &http.Client{
		Timeout: askTimeout,
		Transport: &http.Transport{
			DialContext: dialer(net.Dialer{Timeout: askTimeout}),
			// One request in 15 seconds needs no open connection between.
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, p *corev1.Pod) ([]byte, error) {
		if p.Status.PodIP == "" {
			return nil, &Refusal{Why: "its pod has no address yet"}
		}
		if p.Spec.HostNetwork || p.Status.PodIP == p.Status.HostIP {
			return nil, &Refusal{Why: "the pod is in the network of its node, where the provider sends no request: leave out hostNetwork", Certain: true}
		}
		host := net.JoinHostPort(p.Status.PodIP, strconv.Itoa(statePort))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+statePath, nil)
		if err != nil {
			return nil, &Refusal{Why: "the address of the pod is none"}
		}
		req.Header.Set("User-Agent", "capstan")
		res, err := c.Do(req)
		if err != nil {
			return nil, unanswered(err)
		}
		defer res.Body.Close() //nolint:errcheck // It was read, or is not needed.
		if res.StatusCode != http.StatusOK {
			return nil, &Refusal{Why: fmt.Sprintf("it answers with HTTP status %d: %s", res.StatusCode, RemedyLogs)}
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
		if err != nil {
			return nil, unanswered(err)
		}
		if len(body) > MaxAnswer {
			return nil, &Refusal{Why: "its answer is longer than any State: " + RemedyLogs}
		}
		return body, nil
	}
}

// unanswered says why there is no answer, in words that do not change with each try.
func unanswered(err error) error {
	var (
		forbidden *outside.AddressError
		cluster   *outside.ClusterError
	)
	switch {
	case errors.As(err, &cluster):
		return cluster
	case errors.As(err, &forbidden):
		return &Refusal{Why: "its address is " + forbidden.Kind + ", to which the provider sends no request", Certain: true}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Refusal{Why: "nothing listens on port 7701: " + RemedyLogs}
	default:
		return &Refusal{Why: "it does not answer: " + remedyNetwork}
	}
}

// Parsed asks for a State of a kind. An answer that cannot be parsed is a refusal. The number is passed on to parse.
func Parsed[S any](answer Ask, parse func(raw []byte, number int32) (*S, error)) func(context.Context, *corev1.Pod, int32) (*S, error) {
	return func(ctx context.Context, p *corev1.Pod, number int32) (*S, error) {
		raw, err := answer(ctx, p)
		if err != nil {
			return nil, err
		}
		s, err := parse(raw, number)
		if err != nil {
			return nil, &Refusal{Why: err.Error() + ": " + RemedyLogs}
		}
		return s, nil
	}
}

// Decode a State: one JSON object, and nothing follows it. It reports whether it could. Fields that this provider does not know are no
// error, because the companion may be newer.
func Decode[S any](raw []byte) (*S, bool) {
	s, d := new(S), json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(s); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return s, errors.Is(err, io.EOF)
}
