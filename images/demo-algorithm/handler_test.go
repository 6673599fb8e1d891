// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHandler(t *testing.T) {
	cases := map[string]struct {
		reason    string
		behaviour Behaviour
		random    float64
		method    string
		path      string
		body      string
		code      int
		want      string
	}{
		"Predict": {
			reason: "A prediction echoes its input and names who made it.",
			method: http.MethodPost, path: "/predict", body: `{"user":7}`,
			code: http.StatusOK,
			want: `{"score":0.95,"input":{"user":7},"version":"v1","host":"me"}`,
		},
		"PredictNothing": {
			reason: "A browser can ask too.",
			method: http.MethodGet, path: "/predict",
			code: http.StatusOK,
			want: `{"score":0.45,"input":null,"version":"v1","host":"me"}`,
		},
		"PredictGarbage": {
			reason: "What is not JSON could not be echoed in JSON.",
			method: http.MethodPost, path: "/predict", body: `{`,
			code: http.StatusBadRequest,
			want: `{"error":"cannot read the input: it is not JSON"}`,
		},
		"PredictTooMuch": {
			reason: "Memory is bounded.",
			method: http.MethodPost, path: "/predict", body: `"` + strings.Repeat("x", maxInput) + `"`,
			code: http.StatusBadRequest,
			want: `{"error":"cannot read the input: http: request body too large"}`,
		},
		"PredictFails": {
			reason:    "A random number below the rate is a failure.",
			behaviour: Behaviour{ErrorRate: 0.5}, random: 0.49,
			method: http.MethodPost, path: "/predict", body: `{}`,
			code: http.StatusInternalServerError,
			want: `{"error":"cannot predict: set to fail this often"}`,
		},
		"PredictSucceeds": {
			reason:    "A random number at the rate is not.",
			behaviour: Behaviour{ErrorRate: 0.5}, random: 0.5,
			method: http.MethodPost, path: "/predict", body: `{}`,
			code: http.StatusOK,
			want: `{"score":0.26,"input":{},"version":"v1","host":"me"}`,
		},
		"PredictGoodAtFirst": {
			reason:    "Failures begin after their time.",
			behaviour: Behaviour{ErrorRate: 1, FailAfterSeconds: 60},
			method:    http.MethodPost, path: "/predict", body: `{}`,
			code: http.StatusOK,
			want: `{"score":0.26,"input":{},"version":"v1","host":"me"}`,
		},
		"PredictShifted": {
			reason:    "A shift moves the score of an input, and no further than to the end.",
			behaviour: Behaviour{ScoreShift: 0.9},
			method:    http.MethodPost, path: "/predict", body: `{}`,
			code: http.StatusOK,
			want: `{"score":1,"input":{},"version":"v1","host":"me"}`,
		},
		"Behave": {
			reason: "The answer is the behaviour as it is now.",
			method: http.MethodPost, path: "/admin/behaviour?latencyMs=20&errorRate=0.25&workers=2&failAfterSeconds=90&scoreShift=0.5",
			code: http.StatusOK,
			want: `{"latencyMs":20,"jitterMs":0,"errorRate":0.25,"workers":2,"failAfterSeconds":90,"scoreShift":0.5}`,
		},
		"BehaveImpossibly": {
			reason:    "A bad value changes nothing.",
			behaviour: Behaviour{ErrorRate: 0.5},
			method:    http.MethodPost, path: "/admin/behaviour?errorRate=2",
			code: http.StatusBadRequest,
			want: `{"error":"errorRate must be from 0 to 1"}`,
		},
		"Healthy": {
			reason: "Probes ask for this.",
			method: http.MethodGet, path: "/healthz",
			code: http.StatusOK,
			want: `{"version":"v1"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := newHandler("v1", tc.behaviour)
			if err != nil {
				t.Fatal(err)
			}
			h.host, h.random = "me", func() float64 { return tc.random }
			rsp := httptest.NewRecorder()
			h.ServeHTTP(rsp, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
			if rsp.Code != tc.code {
				t.Errorf("%s\n%s %s: want status %d, got %d", tc.reason, tc.method, tc.path, tc.code, rsp.Code)
			}
			if diff := cmp.Diff(decode(t, tc.want), decode(t, rsp.Body.String())); diff != "" {
				t.Errorf("%s\n%s %s: -want, +got:\n%s", tc.reason, tc.method, tc.path, diff)
			}
		})
	}
}

// decode rounds scores to two digits, which is enough to see that they depend on the input.
func decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("cannot decode %q: %v", body, err)
	}
	if s, ok := m["score"].(float64); ok {
		m["score"] = float64(int(s*100)) / 100
	}
	return m
}

func TestMetrics(t *testing.T) {
	h, err := newHandler("v1", Behaviour{ErrorRate: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	for _, random := range []float64{0.6, 0.7, 0.1} {
		h.random = func() float64 { return random }
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/predict", nil))
	}
	rsp := httptest.NewRecorder()
	h.ServeHTTP(rsp, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`algorithm_requests_total{code="200"} 2`,
		`algorithm_requests_total{code="500"} 1`,
		`algorithm_request_duration_seconds_count{code="200"} 2`,
		`algorithm_request_duration_seconds_count{code="500"} 1`,
		"algorithm_inflight 0",
		// The score of no input at all, 0.45, twice.
		`algorithm_prediction_score_bucket{le="0.4"} 0`,
		`algorithm_prediction_score_bucket{le="0.5"} 2`,
		`algorithm_prediction_score_bucket{le="1"} 2`,
		"algorithm_prediction_score_count 2",
	} {
		if !strings.Contains(rsp.Body.String(), line+"\n") {
			t.Errorf("/metrics: want line %q, got:\n%s", line, rsp.Body.String())
		}
	}
}
