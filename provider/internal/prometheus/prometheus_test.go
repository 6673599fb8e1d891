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

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

var pods = Pods{Namespace: "shop", Algorithm: "reco", Slots: []string{"a"}}

func TestNarrow(t *testing.T) {
	cases := map[string]struct {
		reason string
		query  string
		pods   Pods
		want   string
		failed bool
	}{
		"Plain":     {reason: "A selector gets the matchers.", query: `up`, want: `up{@A,@N,@S}`},
		"Matchers":  {reason: "What it matches anyway stays.", query: `up{job="x"}`, want: `up{@A,job="x",@N,@S}`},
		"Others":    {reason: "Asking for another namespace finds nothing.", query: `up{namespace="bank"}`, want: `up{@A,namespace="bank",@N,@S}`},
		"OtherPods": {reason: "Asking for another Algorithm or slot finds nothing.", query: `up{algorithm="other",slot="b"}`, want: `up{algorithm="other",@A,@N,@S,slot="b"}`},
		"AnyOf":     {reason: "A pattern does not widen it.", query: `up{namespace=~".*",slot!="a"}`, want: `up{@A,@N,namespace=~".*",slot!="a",@S}`},
		"Nameless":  {reason: "A selector needs no name.", query: `{job="x"}`, want: `{@A,job="x",@N,@S}`},
		"Rate":      {reason: "Ranges are selectors.", query: `rate(x_total[5m])`, want: `rate(x_total{@A,@N,@S}[5m])`},
		"Both":      {reason: "Each side is narrowed.", query: `a / on (pod) b`, want: `a{@A,@N,@S} / on (pod) b{@A,@N,@S}`},
		"Subquery":  {reason: "Inside a subquery, too.", query: `max_over_time(rate(x[1m])[5m:1m])`, want: `max_over_time(rate(x{@A,@N,@S}[1m])[5m:1m])`},
		"Parameter": {reason: "Parameters of aggregations are expressions.", query: `topk(scalar(a), b)`, want: `topk(scalar(a{@A,@N,@S}), b{@A,@N,@S})`},
		"Absent":    {reason: "What is absent is absent there.", query: `absent(up)`, want: `absent(up{@A,@N,@S})`},
		"Number":    {reason: "What selects nothing stays.", query: `vector(1)`, want: `vector(1)`},
		"Escape":    {reason: "Nothing gets around the parser.", query: `up{job="x"} # }`, want: `up{@A,job="x",@N,@S}`},
		"AnySlot":   {reason: "All slots are those of the Algorithm, and what has no slot is in none.", query: `up{slot="b"}`, pods: Pods{Namespace: "shop", Algorithm: "reco", AnySlot: true}, want: `up{@A,@N,slot="b",slot=~".+"}`},
		"Quotes":    {reason: "Nothing gets out of a label.", query: `up`, pods: Pods{Namespace: "shop", Algorithm: `r"} or {a="`, Slots: []string{"a"}}, want: `up{algorithm="r\"} or {a=\"",@N,@S}`},
		"TwoSlots":  {reason: "Of two slots a selector sees both, and of their names no pattern.", query: `up`, pods: Pods{Namespace: "shop", Algorithm: "reco", Slots: []string{"a", "b.*"}}, want: `up{@A,@N,slot=~"a|b\\.\\*"}`},
		"Nonsense":  {reason: "What is no PromQL is told.", query: `up{`, failed: true},
		"Info":      {reason: "Functions that select by themselves are not allowed.", query: `info(up)`, failed: true},
	}
	long := strings.NewReplacer("@A", `algorithm="reco"`, "@N", `namespace="shop"`, "@S", `slot="a"`)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := pods
			if tc.pods.Algorithm != "" {
				of = tc.pods
			}
			got, err := of.Narrow(tc.query)
			if f := (*outside.Failure)(nil); got != long.Replace(tc.want) || errors.As(err, &f) != tc.failed {
				t.Errorf("\n%s\nNarrow(%q): want %q, got %q, %v", tc.reason, tc.query, long.Replace(tc.want), got, err)
			}
		})
	}
	for _, none := range []Pods{
		{Algorithm: "reco", Slots: []string{"a"}},
		{Namespace: "shop", Slots: []string{"a"}},
		{Namespace: "shop", Algorithm: "reco"},
		{Namespace: "shop", Algorithm: "reco", Slots: []string{""}},
		{Algorithm: "reco", AnySlot: true},
		{Namespace: "shop", AnySlot: true},
	} {
		if got, err := none.Narrow("up"); err == nil {
			t.Errorf("Series without a label are nobody's to see: %+v gave %q", none, got)
		}
	}
}

// FuzzNarrow shows that every selector of whatever comes out matches the labels.
func FuzzNarrow(f *testing.F) {
	for _, q := range []string{`up`, `sum by (a) (rate(x{a=~"b|c"}[5m] offset 1m)) > bool 3`, `{"a.b", c!~"d"} @ end()`, `label_replace(up, "namespace", "shop", "", "")`} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		narrow, err := pods.Narrow(query)
		if err != nil {
			return
		}
		e, err := parser.NewParser(parser.Options{}).ParseExpr(narrow)
		if err != nil {
			t.Fatalf("%q became %q, which is no PromQL: %v", query, narrow, err)
		}
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			s, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			for label, value := range map[string]string{"namespace": "shop", "algorithm": "reco", "slot": "a"} {
				if !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
					return m.Type == labels.MatchEqual && m.Name == label && m.Value == value
				}) {
					t.Errorf("%q became %q, in which %s is not narrowed to %s %q", query, narrow, s, label, value)
				}
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
	c, form, header := server(t, http.StatusOK, one)
	v, err := c.QueryAt(t.Context(), pods, "up", time.Time{})
	if err != nil || v.String() == "" {
		t.Fatalf("Query(...): %v, %v", v, err)
	}
	want := url.Values{"query": {`up{algorithm="reco",namespace="shop",slot="a"}`}, "timeout": {"10s"}}
	if diff := cmp.Diff(want, *form); diff != "" {
		t.Errorf("Every query should be narrowed, bounded, and about the time of the server: -want, +got:\n%s", diff)
	}
	if _, err := c.QueryAt(t.Context(), pods, "up", time.Unix(1000, 0)); err != nil || form.Get("time") != "1000" {
		t.Errorf("The time should be told, got %v, %v", form, err)
	}
	if got := header.Get("Authorization"); got != "Bearer token" {
		t.Errorf("Query(...): the credentials are missing, got %q", got)
	}
}

func TestQueryRange(t *testing.T) {
	r := Range{Start: time.Unix(1000, 0), End: time.Unix(1120, 0), Step: time.Minute}
	c, form, _ := server(t, http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000,"1"]]}]}}`)
	if lines, err := c.QueryRange(t.Context(), pods, "up", r); err != nil || len(lines) != 1 {
		t.Fatalf("QueryRange(...): %v, %v", lines, err)
	}
	want := url.Values{"query": {`up{algorithm="reco",namespace="shop",slot="a"}`}, "timeout": {"10s"}, "start": {"1000"}, "end": {"1120"}, "step": {"60"}}
	if diff := cmp.Diff(want, *form); diff != "" {
		t.Errorf("Every query should be narrowed and bounded: -want, +got:\n%s", diff)
	}
	*form = nil
	if _, err := c.QueryRange(t.Context(), Pods{Algorithm: "reco", Slots: []string{"a"}}, "up", r); err == nil || *form != nil {
		t.Errorf("What cannot be narrowed should not be sent, got %v, %v", *form, err)
	}
	c, _, _ = server(t, http.StatusOK, one)
	if _, err := c.QueryRange(t.Context(), pods, "up", r); err == nil {
		t.Error("An answer that is no range is none")
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
	for _, said := range []string{"you sent Bearer token", "you sent TOKEN", "you sent %74oken"} {
		c, _, _ := server(t, http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"`+said+`"}`)
		if f := Explain(Service().Ask(t.Context(), c)); f.Message != "Prometheus cannot evaluate the query" {
			t.Errorf("What says credentials back should not be told, got %q", f.Message)
		}
	}
	if Explain(errors.New("boom")) != nil {
		t.Error("What it does not know it does not explain")
	}
}
