// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// llm exposes metrics under the names of a server of language models: a prediction is its first token after the latency, and more
// tokens after it.
type llm struct {
	tokens int
	each   time.Duration

	first, perToken, whole, answer prometheus.Histogram
	running, waiting, cache        prometheus.Gauge
	generated                      prometheus.Counter
	finished                       *prometheus.CounterVec
	succeeded, failed              []string
	samplesOfEach                  int
}

// Servers whose names it can expose.
const (
	serverVLLM   = "vLLM"
	serverSGLang = "SGLang"
)

// llmNames are the names of the metrics, in the order of the fields.
type llmNames struct {
	first, perToken, whole, answer, running, waiting, cache, generated, finished string
	labels                                                                       []string
}

// newLLM registers the metrics of a server, each with the buckets that it has around usual times.
func newLLM(server string, tokens int, each time.Duration, registry *prometheus.Registry) *llm {
	l := &llm{tokens: tokens, each: each, samplesOfEach: 1}
	var n llmNames
	if server == serverVLLM {
		n = llmNames{
			"vllm:time_to_first_token_seconds", "vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds",
			"vllm:request_generation_tokens", "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
			"vllm:generation_tokens_total", "vllm:request_success_total",
			[]string{"finished_reason"},
		}
		l.succeeded, l.failed = []string{"stop"}, []string{"error"}
	} else {
		n = llmNames{
			"sglang:time_to_first_token_seconds", "sglang:inter_token_latency_seconds", "sglang:e2e_request_latency_seconds",
			"sglang:generation_tokens_histogram", "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
			"sglang:generation_tokens_total", "sglang:http_responses_total",
			[]string{"endpoint", "status_code", "method"},
		}
		l.succeeded = []string{"/generate", strconv.Itoa(http.StatusOK), http.MethodPost}
		l.failed = []string{"/generate", strconv.Itoa(http.StatusInternalServerError), http.MethodPost}
		l.samplesOfEach = max(tokens-1, 0)
	}
	model := prometheus.Labels{"model_name": "demo"}
	histogram := func(name string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: "As the server has it.", ConstLabels: model, Buckets: buckets})
	}
	gauge := func(name string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "As the server has it.", ConstLabels: model})
	}
	l.first = histogram(n.first, .001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10)
	l.perToken = histogram(n.perToken, .002, .004, .006, .008, .01, .015, .02, .025, .04, .06, .08, .1, .2, .4, .8, 1, 2)
	l.whole = histogram(n.whole, .1, .2, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10)
	l.answer = histogram(n.answer, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
	l.running, l.waiting, l.cache = gauge(n.running), gauge(n.waiting), gauge(n.cache)
	l.generated = prometheus.NewCounter(prometheus.CounterOpts{Name: n.generated, Help: "As the server has it.", ConstLabels: model})
	l.finished = prometheus.NewCounterVec(prometheus.CounterOpts{Name: n.finished, Help: "As the server has it.", ConstLabels: model}, n.labels)
	l.finished.WithLabelValues(l.succeeded...)
	l.finished.WithLabelValues(l.failed...)
	registry.MustRegister(l.first, l.perToken, l.whole, l.answer, l.running, l.waiting, l.cache, l.generated, l.finished)
	return l
}

// wait counts a request that waits for its turn, until it is called. Without an llm nothing is counted.
func (l *llm) wait() (over func()) {
	if l == nil {
		return func() {}
	}
	l.waiting.Inc()
	return l.waiting.Dec
}

// run counts a request that is worked on, until it is called.
func (l *llm) run() (over func()) {
	if l == nil {
		return func() {}
	}
	l.running.Inc()
	l.cache.Add(cacheOfRequest)
	return func() {
		l.running.Dec()
		l.cache.Sub(cacheOfRequest)
	}
}

// cacheOfRequest is the share of the cache that a request takes.
const cacheOfRequest = 0.01

// rest is how long the tokens after the first one take.
func (l *llm) rest() time.Duration {
	if l == nil {
		return 0
	}
	return time.Duration(max(l.tokens-1, 0)) * l.each
}

// done counts an answer that began at a time, had its first token at another, and failed or not.
func (l *llm) done(began, first time.Time, failed bool) {
	switch {
	case l == nil:
		return
	case failed:
		l.finished.WithLabelValues(l.failed...).Inc()
		return
	}
	l.finished.WithLabelValues(l.succeeded...).Inc()
	l.first.Observe(first.Sub(began).Seconds())
	for range l.samplesOfEach {
		l.perToken.Observe(time.Since(first).Seconds() / float64(max(l.tokens-1, 1)))
	}
	l.whole.Observe(time.Since(began).Seconds())
	l.answer.Observe(float64(l.tokens))
	l.generated.Add(float64(l.tokens))
}
