// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// askTimeout of a request with its answer. The coordinator answers from its memory.
	askTimeout = 3 * time.Second

	// maxAnswer in bytes: a State in which some thousand members are missing.
	maxAnswer = 256 << 10

	// maxHeader of an answer, in bytes.
	maxHeader = 8 << 10
)

// An ask for the State of a coordinator in a pod. An error is a refusal, or says nothing about the coordinator.
type ask func(ctx context.Context, p *corev1.Pod, number int32) (*crew.State, error)

// A refusal is why there is no State to be had. It names no address and nothing that a server said.
type refusal struct {
	why string

	// certain: another request would get the same.
	certain bool
}

// Error of the coordinator.
func (r *refusal) Error() string { return r.why }

const (
	remedyLogs    = "see the log of the pod with index 0"
	remedyNetwork = remedyLogs + ", and that NetworkPolicies admit the provider on port 7701"
)

// newAsker asks over HTTP. Where it asks is up to the API server: the address that the status of the pod has. A tenant who may write the
// status of pods could put any address there, and a pod in the network of its node has the address of the node. So
//   - the dialer refuses loopback, link-local, metadata and API server addresses, for which only the provider's place would be special;
//   - pods in the network of their node get no request;
//   - each request is a GET of one path on one port without any credentials, follows no redirect and takes no proxy;
//   - of an answer only the fields of a State for this run count, each bounded, and a refusal has one of a few texts. So no tenant
//     learns more of a server than whether it answers on port 7701.
func newAsker(dialer func(net.Dialer) outside.Dial) ask {
	c := &http.Client{
		Timeout: askTimeout,
		Transport: &http.Transport{
			DialContext: dialer(net.Dialer{Timeout: askTimeout}),
			// One request in 15 seconds needs no open connection between.
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, p *corev1.Pod, number int32) (*crew.State, error) {
		if p.Status.PodIP == "" {
			return nil, &refusal{why: "its pod has no address yet"}
		}
		if p.Spec.HostNetwork || p.Status.PodIP == p.Status.HostIP {
			return nil, &refusal{why: "the pod is in the network of its node, where the provider sends no request: leave out hostNetwork", certain: true}
		}
		host := net.JoinHostPort(p.Status.PodIP, strconv.Itoa(crew.StatePort))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+crew.StatePath, nil)
		if err != nil {
			return nil, &refusal{why: "the address of the pod is none"}
		}
		req.Header.Set("User-Agent", "capstan")
		res, err := c.Do(req)
		if err != nil {
			return nil, unanswered(err)
		}
		defer res.Body.Close() //nolint:errcheck // It was read, or is not needed.
		if res.StatusCode != http.StatusOK {
			return nil, &refusal{why: fmt.Sprintf("it answers with HTTP status %d: %s", res.StatusCode, remedyLogs)}
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		if err != nil {
			return nil, unanswered(err)
		}
		if len(body) > maxAnswer {
			return nil, &refusal{why: "its answer is longer than any State: " + remedyLogs}
		}
		s, err := parse(body, number)
		if err != nil {
			return nil, &refusal{why: err.Error() + ": " + remedyLogs}
		}
		return s, nil
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
		return &refusal{why: "its address is " + forbidden.Kind + ", to which the provider sends no request", certain: true}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &refusal{why: "nothing listens on port 7701: " + remedyLogs}
	default:
		return &refusal{why: "it does not answer: " + remedyNetwork}
	}
}
