// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// askEvery is the time between two requests to a companion, and askAgain when an event of a pod comes between.
	askEvery = 15 * time.Second
	askAgain = 4 * time.Second
	// tolerated is the number of refusals in a row after which they are reported. A companion begins to listen a moment after its container.
	tolerated = 3
	// askTimeout of a request with its answer. The companion answers from its memory.
	askTimeout = 3 * time.Second
	// maxAnswer and maxHeader bound an answer, in bytes.
	maxAnswer = 64 << 10
	maxHeader = 8 << 10

	stateVersion = 1

	remedyLogs    = "see the log of the JobManager's pod"
	remedyNetwork = remedyLogs + ", and that NetworkPolicies admit the provider on port 7701"
)

var (
	phases = []flink.Phase{
		flink.PhaseStarting, flink.PhaseRunning, flink.PhaseRestarting, flink.PhaseStopping, flink.PhaseStopped, flink.PhaseFinished,
		flink.PhaseCanceled, flink.PhaseBlocked,
	}

	errNoState = errors.New("its answer is no State of a stream")
)

// An ask for the State of the companion in a pod. An error is a refusal, or says nothing about the companion.
type ask func(ctx context.Context, p *corev1.Pod) (*flink.State, error)

// A refusal is why there is no State to be had. It names no address and nothing that a server said.
type refusal struct{ why string }

// Error of the companion.
func (r *refusal) Error() string { return r.why }

// newAsker asks over HTTP. As for Runs: the dialer refuses addresses for which only the provider's place would be special, pods in the network
// of their node get no request, each request is a GET without credentials, redirects and proxies, and of an answer only the fields of a
// State count, each bounded.
func newAsker(dialer func(net.Dialer) outside.Dial) ask {
	c := &http.Client{
		Timeout: askTimeout,
		Transport: &http.Transport{
			DialContext:       dialer(net.Dialer{Timeout: askTimeout}),
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, p *corev1.Pod) (*flink.State, error) {
		if p.Status.PodIP == "" {
			return nil, &refusal{why: "its pod has no address yet"}
		}
		if p.Spec.HostNetwork || p.Status.PodIP == p.Status.HostIP {
			return nil, &refusal{why: "the pod is in the network of its node, where the provider sends no request: leave out hostNetwork"}
		}
		host := net.JoinHostPort(p.Status.PodIP, strconv.Itoa(flink.StatePort))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+flink.StatePath, nil)
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
		s, err := parse(body)
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
		return &refusal{why: "its address is " + forbidden.Kind + ", to which the provider sends no request"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &refusal{why: "nothing listens on port 7701: " + remedyLogs}
	default:
		return &refusal{why: "it does not answer: " + remedyNetwork}
	}
}

// parse a State. It is one JSON object, and nothing follows it. Fields that this provider does not know are no error, because the companion
// may be newer; phases that it does not know are.
func parse(raw []byte) (*flink.State, error) {
	s, d := &flink.State{}, json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(s); err != nil {
		return nil, errNoState
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoState
	}
	switch {
	case s.Version > stateVersion:
		return nil, fmt.Errorf("its State has version %d, and this provider knows versions up to %d", s.Version, stateVersion)
	case s.Revision < 1 || s.Revision > maxCount || !slices.Contains(phases, s.Phase):
		return nil, errNoState
	}
	return s, nil
}

// A phone asks companions and remembers what they said. Nothing that matters is lost with it.
type phone struct {
	ask ask
	now func() time.Time

	mu    sync.Mutex
	calls map[types.UID]*call
}

// A call with a companion.
type call struct {
	pod     types.UID
	at      time.Time
	state   *flink.State
	refused int
	why     string
}

func newPhone(a ask, now func() time.Time) *phone {
	return &phone{ask: a, now: now, calls: map[types.UID]*call{}}
}

// call the companion in a pod for a FlinkJob, unless it was called a moment ago. The state is nil when it did not answer the last time; silent
// is why, once that is no accident. It errs when the cluster does not answer.
func (f *phone) call(ctx context.Context, of types.UID, p *corev1.Pod) (state *flink.State, silent string, err error) {
	f.mu.Lock()
	c := call{pod: p.GetUID()}
	if last := f.calls[of]; last != nil && last.pod == c.pod {
		c = *last
	}
	f.mu.Unlock()
	if now := f.now(); c.at.IsZero() || !now.Before(c.at.Add(askAgain)) {
		c.at = now
		c.state, err = f.ask(ctx, p)
		var r *refusal
		switch {
		case errors.As(err, &r):
			c.refused, c.why = c.refused+1, r.why
		case err != nil:
			return nil, "", err
		default:
			c.refused, c.why = 0, ""
		}
		f.mu.Lock()
		f.calls[of] = &c
		f.mu.Unlock()
	}
	if c.refused >= tolerated {
		silent = c.why
	}
	return c.state, silent, nil
}

// forget a deleted FlinkJob.
func (f *phone) forget(of types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, of)
}
