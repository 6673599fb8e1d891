// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

func TestNarrow(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  string
		want   string
		failed bool
	}{
		"Plain":     {reason: "A selector gets the matcher.", query: `up`, want: `up{namespace="shop"}`},
		"Matchers":  {reason: "What it matches anyway stays.", query: `up{job="x"}`, want: `up{job="x",namespace="shop"}`},
		"Others":    {reason: "Asking for another namespace finds nothing.", query: `up{namespace="bank"}`, want: `up{namespace="bank",namespace="shop"}`},
		"AnyOf":     {reason: "A pattern does not widen it.", query: `up{namespace=~".*"}`, want: `up{namespace="shop",namespace=~".*"}`},
		"Nameless":  {reason: "A selector needs no name.", query: `{job="x"}`, want: `{job="x",namespace="shop"}`},
		"Rate":      {reason: "Ranges are selectors.", query: `rate(x_total[5m])`, want: `rate(x_total{namespace="shop"}[5m])`},
		"Both":      {reason: "Each side is narrowed.", query: `a / on (pod) b`, want: `a{namespace="shop"} / on (pod) b{namespace="shop"}`},
		"Subquery":  {reason: "Inside a subquery, too.", query: `max_over_time(rate(x[1m])[5m:1m])`, want: `max_over_time(rate(x{namespace="shop"}[1m])[5m:1m])`},
		"Parameter": {reason: "Parameters of aggregations are expressions.", query: `topk(scalar(a), b)`, want: `topk(scalar(a{namespace="shop"}), b{namespace="shop"})`},
		"Absent":    {reason: "What is absent is absent there.", query: `absent(up)`, want: `absent(up{namespace="shop"})`},
		"Number":    {reason: "What selects nothing stays.", query: `vector(1)`, want: `vector(1)`},
		"Nonsense":  {reason: "What is no PromQL is told.", query: `up{`, failed: true},
		"Escape":    {reason: "Nothing gets around the parser.", query: `up{job="x"} # }`, want: `up{job="x",namespace="shop"}`},
		"Info":      {reason: "Functions that select by themselves are not allowed.", query: `info(up)`, failed: true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Narrow(tc.query, "shop")
			if f := (*outside.Failure)(nil); got != tc.want || errors.As(err, &f) != tc.failed {
				t.Errorf("\n%s\nNarrow(%q): want %q, got %q, %v", tc.reason, tc.query, tc.want, got, err)
			}
		})
	}
}

// FuzzNarrow shows that every selector of whatever comes out matches the
// namespace.
func FuzzNarrow(f *testing.F) {
	for _, q := range []string{`up`, `sum by (a) (rate(x{a=~"b|c"}[5m] offset 1m)) > bool 3`, `{"a.b", c!~"d"} @ end()`, `label_replace(up, "namespace", "shop", "", "")`} {
		f.Add(q)
	}

	f.Fuzz(func(t *testing.T, query string) {
		narrow, err := Narrow(query, "shop")
		if err != nil {
			return
		}

		e, err := parser.ParseExpr(narrow)
		if err != nil {
			t.Fatalf("%q became %q, which is no PromQL: %v", query, narrow, err)
		}

		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok && !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
				return m.Type == labels.MatchEqual && m.Name == "namespace" && m.Value == "shop"
			}) {
				t.Errorf("%q became %q, in which %s is not narrowed", query, narrow, s)
			}

			return nil
		})
	})
}

// server answers with status and body, and tells what it was asked.
func server(t *testing.T, status int, body string) (*Client, *url.Values, *http.Header) {
	t.Helper()

	form, header := &url.Values{}, &http.Header{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		*form, *header = r.Form, r.Header

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)

	c, err := New(&outside.Connection{
		Prometheus: &v1alpha1.PrometheusConfig{URL: s.URL + "/prefix"},
		Authorize:  func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") },
		HTTP:       s.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}

	return c, form, header
}

const one = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`

func TestQuery(t *testing.T) {
	cases := map[string]struct {
		reason string
		tenant outside.Tenant
		want   string
	}{
		"Own":    {reason: "A tenant's own Prometheus is asked as it is.", tenant: outside.Tenant{Namespace: "shop"}, want: "up"},
		"Shared": {reason: "On shared ground every query is narrowed.", tenant: outside.Tenant{Namespace: "shop", Shared: true}, want: `up{namespace="shop"}`},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, form, header := server(t, http.StatusOK, one)

			v, err := c.Query(t.Context(), tc.tenant, "up", time.Unix(1, 0))
			if err != nil || v.String() == "" {
				t.Fatalf("\n%s\nQuery(...): %v, %v", tc.reason, v, err)
			}

			if got := form.Get("query"); got != tc.want {
				t.Errorf("\n%s\nQuery(...): want %q asked, got %q", tc.reason, tc.want, got)
			}

			if got := header.Get("Authorization"); got != "Bearer token" {
				t.Errorf("\n%s\nQuery(...): the credentials are missing, got %q", tc.reason, got)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		body   string
		want   xpv2.ConditionReason
	}{
		"Unauthorized": {reason: "Unknown credentials.", status: 401, want: v1alpha1.ReasonCredentialsRefused},
		"Forbidden":    {reason: "Credentials without the right.", status: 403, want: v1alpha1.ReasonForbidden},
		"TooMany":      {reason: "A busy server.", status: 429, want: v1alpha1.ReasonThrottled},
		"NotFound":     {reason: "A wrong path.", status: 404, want: v1alpha1.ReasonUnknownAnswer},
		"Redirect":     {reason: "A login page.", status: 302, want: v1alpha1.ReasonUnknownAnswer},
		"BadData":      {reason: "A query that is wrong.", status: 400, body: `{"status":"error","errorType":"bad_data","error":"x"}`, want: v1alpha1.ReasonRejected},
		"Timeout":      {reason: "A query that takes too long.", status: 503, body: `{"status":"error","errorType":"timeout","error":"x"}`, want: v1alpha1.ReasonServerError},
		"Internal":     {reason: "A server that fails.", status: 500, body: `{"status":"error","errorType":"internal","error":"x"}`, want: v1alpha1.ReasonServerError},
		"HTML":         {reason: "A proxy that answers.", status: 200, body: "<html>", want: v1alpha1.ReasonUnknownAnswer},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _, _ := server(t, tc.status, tc.body)

			err := Service().Ask(t.Context(), c)
			if f := Explain(err); f == nil || f.Reason != tc.want || strings.Contains(f.Error(), tc.body) && tc.body != "" {
				t.Errorf("\n%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}

	if Explain(errors.New("boom")) != nil {
		t.Error("What it does not know it does not explain")
	}
}
