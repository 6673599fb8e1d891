// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/edge"
)

// held is a server whose calls end when they are told to.
type held struct {
	*running

	inside, most atomic.Int32

	calls   atomic.Int32
	release chan struct{}
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{release: make(chan struct{})}
	h.running = start(t, func(req *edge.Request) *edge.Answer {
		h.calls.Add(1)
		n := h.inside.Add(1)
		for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
		}
		<-h.release
		h.inside.Add(-1)
		return echo(req)
	})
	return h
}

// call n times at once with a request whose tag has a size in bytes.
func (h *held) call(ctx context.Context, client fnv1.FunctionRunnerServiceClient, n, size int) chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := client.RunFunction(ctx, request(strings.Repeat("x", size), "Algorithm"))
			errs <- err
		}()
	}
	return errs
}

func (h *held) waiting(t *testing.T, n string) func() bool {
	t.Helper()
	return func() bool {
		_, body := h.get(t, 1, "/metrics")
		return strings.Contains(body, "\ncapstan_function_waiting_calls "+n+"\n")
	}
}

// TestGate lets as many calls in as are decoded within bounds. The others wait, are counted, and are answered in their turn.
func TestGate(t *testing.T) {
	h := hold(t)
	client := h.client(t)
	eventually(t, "the metric of calls that wait", h.waiting(t, "0"))
	errs := h.call(t.Context(), client, 3, maxDecoded*4/9)
	eventually(t, "one call to wait", h.waiting(t, "1"))
	eventually(t, "two calls to run", func() bool { return h.inside.Load() == 2 })

	impatient, cancel := context.WithCancel(t.Context())
	gone := h.call(impatient, client, 1, maxDecoded*4/9)
	eventually(t, "a second one to wait", h.waiting(t, "2"))
	cancel()
	if err := <-gone; status.Code(err) != codes.Canceled {
		t.Errorf("Who gives up should get that, got %v", err)
	}
	eventually(t, "it to wait no more", h.waiting(t, "1"))

	close(h.release)
	for range 3 {
		if err := <-errs; err != nil {
			t.Errorf("Who waits should be answered: %v", err)
		}
	}
	if n := h.calls.Load(); n != 3 {
		t.Errorf("The function should be called once for each that did not give up, got %d calls", n)
	}
	eventually(t, "nobody to wait", h.waiting(t, "0"))
	if err := <-h.call(t.Context(), client, 1, maxDecoded+(1<<20)); err != nil {
		t.Errorf("A request that is larger than what is decoded at a time is decoded alone: %v", err)
	}
}

// TestStreams lets a client call so many times at once. The rest stays with it.
func TestStreams(t *testing.T) {
	const calls = 12 * maxStreams
	h := hold(t)
	errs := h.call(t.Context(), h.client(t), calls, 1)
	eventually(t, "as many calls as may run", func() bool { return h.inside.Load() >= maxStreams })
	close(h.release)
	for range calls {
		if err := <-errs; err != nil {
			t.Errorf("Every call should be answered: %v", err)
		}
	}
	if n := h.most.Load(); n != maxStreams {
		t.Errorf("At most %d calls should run at once, got %d", maxStreams, n)
	}
}

// bytesOut sends bytes as they are.
type bytesOut struct{}

func (bytesOut) Name() string { return "proto" }

func (bytesOut) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send %T", v)
	}
	return b, nil
}

func (bytesOut) Unmarshal([]byte, any) error { return nil }

// TestNotARequest answers what cannot be decoded with an error, and goes on.
func TestNotARequest(t *testing.T) {
	r := start(t, echo)
	conn := dial(t, r.Addr(), insecure.NewCredentials())
	client, answer := fnv1.NewFunctionRunnerServiceClient(conn), &fnv1.RunFunctionResponse{}
	err := conn.Invoke(t.Context(), fnv1.FunctionRunnerService_RunFunction_FullMethodName, []byte{0xff, 0xff, 0xff}, answer, grpc.ForceCodec(bytesOut{}))
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "cannot decode the request") {
		t.Errorf("What is no request should be refused, got %v", err)
	}
	for range 4 {
		if _, err := client.RunFunction(t.Context(), request(strings.Repeat("x", 1<<20), "Algorithm")); err != nil {
			t.Errorf("A request after it should be answered: %v", err)
		}
	}
}
