// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLLM shows that the names of a server take the place of our own, and what one answer of 5 tokens counts.
func TestLLM(t *testing.T) {
	cases := map[string]struct {
		reason string
		server string
		want   []string
	}{
		"VLLM": {
			reason: "A request is one sample of the time per token.", server: serverVLLM,
			want: []string{
				`vllm:request_success_total{finished_reason="stop",model_name="demo"} 1`,
				`vllm:request_success_total{finished_reason="error",model_name="demo"} 0`,
				`vllm:time_to_first_token_seconds_count{model_name="demo"} 1`,
				`vllm:request_time_per_output_token_seconds_count{model_name="demo"} 1`,
				`vllm:generation_tokens_total{model_name="demo"} 5`, `vllm:num_requests_waiting{model_name="demo"} 0`,
				`vllm:kv_cache_usage_perc{model_name="demo"} 0`,
			},
		},
		"SGLang": {
			reason: "Each token after the first is one.", server: serverSGLang,
			want: []string{
				`sglang:http_responses_total{endpoint="/generate",method="POST",model_name="demo",status_code="200"} 1`,
				`sglang:time_to_first_token_seconds_count{model_name="demo"} 1`,
				`sglang:inter_token_latency_seconds_count{model_name="demo"} 4`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := newHandler("v1", Behaviour{})
			if err != nil {
				t.Fatal(err)
			}
			h.metrics.hide()
			h.llm = newLLM(tc.server, 5, time.Millisecond, h.metrics.registry)
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/predict", nil))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			for _, line := range tc.want {
				if !strings.Contains(w.Body.String(), line+"\n") {
					t.Errorf("\n%s\nmetrics lack %s:\n%s", tc.reason, line, w.Body.String())
				}
			}
			if strings.Contains(w.Body.String(), "algorithm_") {
				t.Errorf("our own names should be hidden:\n%s", w.Body.String())
			}
		})
	}
}
