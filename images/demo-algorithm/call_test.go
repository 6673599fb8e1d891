// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// TestCall has the program call itself, and reads what it writes.
func TestCall(t *testing.T) {
	h, err := newHandler("v7", Behaviour{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	var out bytes.Buffer
	if err := call(t.Context(), &out, CallOptions{
		URL: srv.URL + "/predict", Concurrency: 2, For: 100 * time.Millisecond, Timeout: time.Second,
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "no call of ") {
		t.Fatalf("want a summary and a report, a line each, got %q", out.String())
	}
	var r load.Report
	if err := json.Unmarshal([]byte(lines[1]), &r); err != nil || !strings.Contains(lines[1], `"broken":""`) {
		t.Fatalf("want a report in which nothing is broken, got %q (%v)", lines[1], err)
	}
	if r.Lost() != 0 || r.Answered == 0 || r.Versions["v7"] == nil || r.Versions["v7"].Answered != r.Answered {
		t.Errorf("want only answers of v7, got %s", out.String())
	}
}

// TestCommands expects that the program serves when it gets flags alone.
func TestCommands(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Nothing": {reason: "Images are run without arguments.", want: "serve"},
		"Flags":   {reason: "What is written for the server alone stays right.", args: []string{"--latency-ms=40"}, want: "serve"},
		"Serve":   {reason: "One may say so.", args: []string{"serve", "--latency-ms=40"}, want: "serve"},
		"Expect":  {reason: "Kinds of failures have blanks.", args: []string{"call", "--url=http://reco/predict", "--expect=status 500"}, want: "call"},
		"Call":    {reason: "Calling is a command of its own.", args: []string{"call", "--url=http://reco/predict", "--rate=5", "--no-keep-alive"}, want: "call"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parser, err := kong.New(&cli{}, kong.Vars{"version": "v1"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := parser.Parse(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			if got.Command() != tc.want {
				t.Errorf("%s\narguments %q: want %q, got %q", tc.reason, tc.args, tc.want, got.Command())
			}
		})
	}
}
