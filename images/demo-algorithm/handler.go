// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxInput is the largest input of a prediction, in bytes.
const maxInput = 1 << 20

// A handler answers
//
//	GET, POST /predict      a Prediction; the input is the body, any JSON
//	GET, POST /admin/behaviour  the Behaviour; POST changes what its query names
//	GET /healthz            200, and 503 while draining
//	GET /metrics            for Prometheus
//	demo.v1.Predictor/Predict, grpc.health.v1.Health/Check  the same by gRPC, with HTTP/2 without TLS
type handler struct {
	http.Handler

	version     string
	modelDigest string
	host        string
	metrics     *metrics
	llm         *llm
	behaviour   atomic.Pointer[Behaviour]
	workers     workers
	draining    atomic.Bool
	began       time.Time

	// called is closed by the first prediction.
	called chan struct{}
	first  sync.Once

	// random returns a number from 0 to 1, without 1.
	random func() float64
}

// A Prediction is the answer to an input.
type Prediction struct {
	// Score from 0 to 1. The same input has the same score, as long as scores are shifted alike.
	Score float64 `json:"score"`
	// Input as it came.
	Input json.RawMessage `json:"input"`
	// Version that answered.
	Version string `json:"version"`
	// ModelDigest is the digest of the model file that was loaded, if one was.
	ModelDigest string `json:"modelDigest,omitempty"`
	// Host that answered, in Kubernetes the pod.
	Host string `json:"host"`
}

func newHandler(version string, b Behaviour) (*handler, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot find out the name of this replica: %w", err)
	}
	h := &handler{version: version, host: host, metrics: newMetrics(), began: time.Now(), called: make(chan struct{}), random: rand.Float64}
	h.behaviour.Store(&b)
	h.workers.limit(b.Workers)
	predict := h.metrics.measure(http.HandlerFunc(h.predict))
	mux := http.NewServeMux()
	mux.Handle("GET /predict", predict)
	mux.Handle("POST /predict", predict)
	mux.HandleFunc("GET /admin/behaviour", h.tell)
	mux.HandleFunc("POST /admin/behaviour", h.behave)
	mux.HandleFunc("GET /healthz", h.health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}))
	h.Handler = h.parting(either(newGRPC(h), mux))
	return h, nil
}

// drain makes the server not ready. It continues to answer.
func (h *handler) drain() { h.draining.Store(true) }

// parting asks clients of a server that drains to make their next connection elsewhere. To close it behind their backs would lose
// the request that is just being sent.
func (h *handler) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) predict(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInput))
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("cannot read the input: %w", err))
		return
	}
	switch p, err := h.compute(r.Context(), input(body)); {
	case errors.Is(err, errInput):
		fail(w, http.StatusBadRequest, err)
	case errors.Is(err, errPrediction):
		fail(w, http.StatusInternalServerError, err)
	case err != nil: // The client has hung up.
	default:
		reply(w, http.StatusOK, p)
	}
}

// What a prediction can fail with, beside the end of its context.
var (
	errInput      = errors.New("cannot read the input: it is not JSON")
	errPrediction = errors.New("cannot predict: set to fail this often")
)

// compute a prediction, as slowly and as wrongly as the behaviour says.
func (h *handler) compute(ctx context.Context, input json.RawMessage) (Prediction, error) {
	h.first.Do(func() { close(h.called) })
	if !json.Valid(input) {
		return Prediction{}, errInput
	}
	// A request that waits for a turn counts as in flight and takes longer, as clients see it.
	began, over := time.Now(), h.llm.wait()
	took := h.workers.take(ctx)
	over()
	if !took {
		return Prediction{}, ctx.Err()
	}
	defer h.workers.giveBack()
	defer h.llm.run()()
	b := *h.behaviour.Load()
	if !pause(ctx, b.latency(h.random())) {
		return Prediction{}, ctx.Err()
	}
	first := time.Now()
	if b.fails(h.random(), time.Since(h.began)) {
		h.llm.done(began, first, true)
		return Prediction{}, errPrediction
	}
	if !pause(ctx, h.llm.rest()) {
		return Prediction{}, ctx.Err()
	}
	h.llm.done(began, first, false)
	s := b.shifted(score(input))
	h.metrics.score.Observe(s)
	return Prediction{Score: s, Input: input, Version: h.version, ModelDigest: h.modelDigest, Host: h.host}, nil
}

// pause for a time, and report whether the context was not done before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *handler) tell(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, h.behaviour.Load())
}

func (h *handler) behave(w http.ResponseWriter, r *http.Request) {
	b, err := h.behaviour.Load().with(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	h.behaviour.Store(&b)
	h.workers.limit(b.Workers)
	reply(w, http.StatusOK, b)
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	if h.draining.Load() {
		fail(w, http.StatusServiceUnavailable, errors.New("draining"))
		return
	}
	reply(w, http.StatusOK, map[string]string{"version": h.version})
}

// input of a prediction: the body, or null without one.
func input(body []byte) json.RawMessage {
	if len(body) == 0 {
		return json.RawMessage("null")
	}
	return body
}

// score spreads inputs evenly over 0 to 1.
func score(input []byte) float64 {
	sum := sha256.Sum256(input)
	return float64(binary.BigEndian.Uint64(sum[:])) / math.MaxUint64
}

func fail(w http.ResponseWriter, code int, err error) {
	reply(w, code, map[string]string{"error": err.Error()})
}

// reply ignores that a client may have hung up: no one would read an error.
func reply(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // All answers are ours and can be encoded.
}

// text of an answer.
func text(answer any) string {
	raw, _ := json.Marshal(answer) //nolint:errchkjson // All answers are ours and can be encoded.
	return string(raw)
}
