// SPDX-License-Identifier: Apache-2.0

// Package modelserver knows the metrics of model servers: under which names they count requests and failures, in which unit they
// measure how long requests take, and how many they are working on. The queries of Analyses and the recording rules for
// autoscalers are both made from its one table.
//
// What is in the table was read in the source or the documentation of the server that it names. What was not found there is left
// out.
package modelserver

import (
	"slices"
	"strings"
)

// Labels that every series of a pod of an Algorithm has.
const (
	LabelNamespace = "namespace"
	LabelAlgorithm = "algorithm"
	LabelSlot      = "slot"
	LabelPod       = "pod"
)

// A Server is a program that serves models, or a convention of metrics that many follow. Each measure is a list of selectors
// whose series are added up. An empty list means that the server does not expose it.
type Server struct {
	// Name for people, as status.atProvider.server of an Analysis has it.
	Name string
	// Requests are counters of the requests answered, failed ones among them.
	Requests []string
	// Failures are counters of the requests that failed by the server's fault.
	Failures []string
	// Latency is the histogram of how long requests take.
	Latency Histogram
	// InFlight are gauges of the requests that wait or are worked on.
	InFlight []string
	// Tokens is what a server that generates tokens exposes about them.
	Tokens Tokens
	// Distribution is the histogram of what it answers that drift is measured by, beside the one that any server can expose. None
	// when empty.
	Distribution string
	// Signs are metrics that show the server before its first request, beside those above.
	Signs []string
	// WithoutLatency is what to do when there is no histogram of the latency.
	WithoutLatency string
}

// A Histogram of how long requests take.
type Histogram struct {
	// Buckets is the selector of its buckets. None when empty.
	Buckets string
	// Milliseconds that its unit has.
	Milliseconds float64
	// EachToken means that every token is a sample. Samples of one request depend on each other, so that they say together no
	// more than one sample for each request does.
	EachToken bool
}

// Tokens are the measures of a server that generates tokens.
type Tokens struct {
	// First is the histogram of the time from a request's arrival to its first token, and Each of the time for each further one.
	First, Each Histogram
	// Generated are counters of the tokens that requests were answered with.
	Generated []string
	// Waiting are gauges of the requests that wait for their turn.
	Waiting []string
	// Cache are gauges of the share of the key-value cache that is in use, from 0 to 1.
	Cache []string
}

// Units of histograms, in milliseconds.
const (
	seconds      = 1000
	milliseconds = 1
	microseconds = 0.001
)

// Distribution is the histogram by which any server can expose how what it answers is distributed, for instance its scores.
const Distribution = `algorithm_prediction_score_bucket`

// notProbes leaves out what is no request of a user, by the labels that the usual libraries put the path in: starlette_exporter,
// prometheus-fastapi-instrumentator and the ones of Express, Gin and Echo. Series without such a label stay.
const notProbes = `handler!~"/metrics|/health.*|/livez|/ready.*|/ping",` +
	`path!~"/metrics|/health.*|/livez|/ready.*|/ping",` +
	`endpoint!~"/metrics|/health.*|/livez|/ready.*|/ping"`

// generates leaves out what generates nothing: health, metrics and administration.
const generates = `endpoint=~"/v1/.*|/generate|/encode|/classify",endpoint!="/v1/models"`

// Servers that are known, the most specific first: a pod that exposes the metrics of several counts as the first of them.
func Servers() []Server {
	return []Server{
		{
			// images/demo-algorithm/metrics.go of this repository. Histogram in seconds.
			Name:     "Algorithm",
			Requests: []string{`algorithm_requests_total`},
			Failures: []string{`algorithm_requests_total{code=~"5.."}`},
			Latency:  Histogram{Buckets: `algorithm_request_duration_seconds_bucket`, Milliseconds: seconds},
			InFlight: []string{`algorithm_inflight`},
		},
		{
			// vllm-project/vllm, vllm/v1/metrics/loggers.py and the page Production Metrics of its documentation. Counters exist
			// from the start, by finished_reason: stop, length, abort (by the client), error, repetition
			// (vllm/v1/engine/__init__.py). Histogram in seconds, from arrival to the last token. Requests that the HTTP server
			// refuses are counted nowhere here.
			Name:     "vLLM",
			Requests: []string{`vllm:request_success_total`},
			Failures: []string{`vllm:request_success_total{finished_reason="error"}`},
			Latency:  Histogram{Buckets: `vllm:e2e_request_latency_seconds_bucket`, Milliseconds: seconds},
			InFlight: []string{`vllm:num_requests_running`, `vllm:num_requests_waiting`},
			// In the same file, of the engine V1. request_time_per_output_token_seconds has a sample for each finished request, beside
			// inter_token_latency_seconds, which has one for each token. Older releases have only the latter, as
			// time_per_output_token_seconds, and gpu_cache_usage_perc.
			Tokens: Tokens{
				First:     Histogram{Buckets: `vllm:time_to_first_token_seconds_bucket`, Milliseconds: seconds},
				Each:      Histogram{Buckets: `vllm:request_time_per_output_token_seconds_bucket`, Milliseconds: seconds},
				Generated: []string{`vllm:generation_tokens_total`},
				Waiting:   []string{`vllm:num_requests_waiting`},
				Cache:     []string{`vllm:kv_cache_usage_perc`},
			},
			// How many tokens a request was answered with, in the same file.
			Distribution: `vllm:request_generation_tokens_bucket`,
		},
		{
			// sgl-project/sglang, python/sglang/srt/observability/metrics_collector.py (commit 016d860), and
			// add_prometheus_track_response_middleware beside it: with --enable-metrics. Histograms in seconds. The counters of the
			// engine leave out what failed, so that requests are counted by the answers of the HTTP server. A stream counts when it
			// begins: what fails later is not counted.
			Name:     "SGLang",
			Requests: []string{`sglang:http_responses_total{` + generates + `}`},
			Failures: []string{`sglang:http_responses_total{status_code=~"5..",` + generates + `}`},
			Latency:  Histogram{Buckets: `sglang:e2e_request_latency_seconds_bucket`, Milliseconds: seconds},
			InFlight: []string{`sglang:num_running_reqs`, `sglang:num_queue_reqs`},
			Tokens: Tokens{
				First: Histogram{Buckets: `sglang:time_to_first_token_seconds_bucket`, Milliseconds: seconds},
				// A sample for each token.
				Each:      Histogram{Buckets: `sglang:inter_token_latency_seconds_bucket`, Milliseconds: seconds, EachToken: true},
				Generated: []string{`sglang:generation_tokens_total`},
				Waiting:   []string{`sglang:num_queue_reqs`},
				Cache:     []string{`sglang:token_usage`},
			},
			Distribution: `sglang:generation_tokens_histogram_bucket`,
		},
		{
			// huggingface/text-generation-inference, docs/source/reference/metrics.md (commit 53fdbe6) and the counters
			// tgi_request_failure of router/src: by err. The client causes validation, and dropped is when it leaves.
			// Histograms in seconds. There is none of the time to the first token, and tgi_request_mean_time_per_token_duration
			// contains that time.
			Name:     "TGI",
			Requests: []string{`tgi_request_count`},
			Failures: []string{`tgi_request_failure{err!~"validation|dropped"}`},
			Latency:  Histogram{Buckets: `tgi_request_duration_bucket`, Milliseconds: seconds},
			InFlight: []string{`tgi_batch_current_size`, `tgi_queue_size`},
			Tokens: Tokens{
				Generated: []string{`tgi_request_generated_tokens_sum`},
				Waiting:   []string{`tgi_queue_size`},
			},
			Distribution: `tgi_request_generated_tokens_bucket`,
		},
		{
			// triton-inference-server/server, docs/user_guide/metrics.md and qa/L0_metrics. Durations are only summed up
			// (nv_inference_request_duration_us) unless --metrics-config histogram_latencies=true, which gives a histogram in
			// milliseconds of the time to the first response: for models that are not decoupled, the only one.
			Name:           "Triton",
			Requests:       []string{`nv_inference_request_success`, `nv_inference_request_failure`},
			Failures:       []string{`nv_inference_request_failure`},
			Latency:        Histogram{Buckets: `nv_inference_first_response_histogram_ms_bucket`, Milliseconds: milliseconds},
			WithoutLatency: "start Triton with --metrics-config histogram_latencies=true",
		},
		{
			// pytorch/serve, ts/configs/metrics.yaml and docs/metrics.md, metrics_mode prometheus. Durations are only summed up
			// (ts_inference_latency_microseconds).
			Name:     "TorchServe",
			Requests: []string{`ts_inference_requests_total`},
			Failures: []string{`Requests5XX`},
			WithoutLatency: "TorchServe only sums durations up: give the handler a histogram of its own and name it in " +
				"the query latency of spec.metrics.queries",
		},
		{
			// tensorflow/serving, servables/tensorflow/util.cc: counter by status (the name of the absl status code), histogram
			// in microseconds. Slashes of names become colons in util/prometheus_exporter.cc. Served at
			// /monitoring/prometheus/metrics when --monitoring_config_file enables it.
			Name:     "TensorFlowServing",
			Requests: []string{`:tensorflow:serving:request_count`},
			Failures: []string{`:tensorflow:serving:request_count{status!~"OK|CANCELLED|INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION|OUT_OF_RANGE"}`},
			Latency:  Histogram{Buckets: `:tensorflow:serving:request_latency_bucket`, Milliseconds: microseconds},
		},
		{
			// SeldonIO/MLServer, mlserver/handlers/dataplane.py and docs/user-guide/metrics.md: counters of inferences;
			// starlette_exporter counts REST with the prefix rest_server, in seconds, by the template of the path. Inferences
			// over gRPC are in the counters, not in the histogram.
			Name:     "MLServer",
			Requests: []string{`model_infer_request_success_total`, `model_infer_request_failure_total`},
			Failures: []string{`model_infer_request_failure_total`},
			Latency:  Histogram{Buckets: `rest_server_request_duration_seconds_bucket{path=~".*/infer"}`, Milliseconds: seconds},
			InFlight: []string{`rest_server_requests_in_progress`},
			Signs:    []string{`rest_server_requests_total`},
		},
		{
			// kserve/kserve, python/kserve/kserve/metrics.py: histograms of the steps in seconds, by model_name. Failures are
			// counted nowhere.
			Name:     "KServe",
			Requests: []string{`request_predict_seconds_count`},
			Latency:  Histogram{Buckets: `request_predict_seconds_bucket`, Milliseconds: seconds},
		},
		{
			// The names that the documentation of Prometheus uses in its examples (Querying basics, Histograms and summaries),
			// and that most libraries for HTTP servers took over: the status is in code, status (also as 5xx) or status_code;
			// http_requests_inprogress is what prometheus-fastapi-instrumentator calls its gauge.
			Name:     "HTTP",
			Requests: []string{`http_requests_total{` + notProbes + `}`},
			Failures: []string{
				`http_requests_total{code=~"5..",` + notProbes + `}`,
				`http_requests_total{code="",status=~"5..",` + notProbes + `}`,
				`http_requests_total{code="",status="",status_code=~"5..",` + notProbes + `}`,
			},
			Latency:        Histogram{Buckets: `http_request_duration_seconds_bucket{` + notProbes + `}`, Milliseconds: seconds},
			InFlight:       []string{`http_requests_inprogress`},
			WithoutLatency: "let the server expose a histogram http_request_duration_seconds",
		},
	}
}

// Names of the metrics by which the server is recognised, each once, sorted.
func (s Server) Names() []string {
	all := slices.Concat(s.Requests, s.Failures, s.InFlight, s.Signs, s.Tokens.Generated, s.Tokens.Waiting, s.Tokens.Cache)
	for _, h := range []Histogram{s.Latency, s.Tokens.First, s.Tokens.Each} {
		if h.Buckets != "" {
			all = append(all, h.Buckets)
		}
	}
	for i, selector := range all {
		all[i], _, _ = strings.Cut(selector, "{")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Distributions are the histograms that drift is measured by, the one that any server can expose first.
func Distributions() []string {
	all := []string{Distribution}
	for _, s := range Servers() {
		if s.Distribution != "" {
			all = append(all, s.Distribution)
		}
	}
	return all
}

// Exposes reports whether some of the names belong to a measure.
func Exposes(selectors []string, names map[string]bool) bool {
	return slices.ContainsFunc(selectors, func(selector string) bool {
		name, _, _ := strings.Cut(selector, "{")
		return names[name]
	})
}

// Recognise the server that exposes metrics of these names.
func Recognise(names map[string]bool) (Server, bool) {
	for _, s := range Servers() {
		if slices.ContainsFunc(s.Names(), func(n string) bool { return names[n] }) {
			return s, true
		}
	}
	return Server{}, false
}

// Find a server by its name.
func Find(name string) (Server, bool) {
	all := Servers()
	if i := slices.IndexFunc(all, func(s Server) bool { return s.Name == name }); i >= 0 {
		return all[i], true
	}
	return Server{}, false
}
