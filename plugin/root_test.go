// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamed(t *testing.T) {
	for in, want := range map[string]string{
		"reco": " reco", "algorithm reco": "algorithm reco", "algo/reco": "algorithm reco", "db orders": "database orders", "databases.capstan.dev/orders": "database orders",
		"bucket models": "cannot understand \"bucket models\"", "db/a/b": "cannot understand \"db/a/b\"", "db/": "cannot understand \"db/\"",
	} {
		k, name, err := named(strings.Fields(in))
		got := string(k) + " " + name
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: want %q, got %q", in, want, got)
		}
	}
}

func TestFind(t *testing.T) {
	double := object(t, orders, nil)
	double.SetName("reco")
	r := newRig(object(t, reco, nil), object(t, orders, nil), double)
	for args, want := range map[string]string{
		"status reco":   "there are an Algorithm and a Database reco: write algorithm/reco or database/reco",
		"status nobody": "there is no Algorithm nobody in namespace demo",
	} {
		if _, err := r.run(t.Context(), "", strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want error %q, got %v", args, want, err)
		}
	}
	out, err := r.run(t.Context(), "", "status", "orders")
	if err != nil || !strings.HasPrefix(out, "Database demo/orders is Running") {
		t.Errorf("got %q, %v", out, err)
	}
	out, err = r.run(t.Context(), "", "status")
	if err != nil || !strings.Contains(out, "algorithm   reco     Progressing   3/3     Stepping 20 %") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := r.run(t.Context(), "", "status", "orders", "--watch", "--until=Stable"); err == nil || !strings.Contains(err.Error(), `"Stable" is no phase of a database: choose from Pending,`) {
		t.Errorf("a phase that never comes: got %v", err)
	}
}

// TestComplete asks as a shell does, by the script that kubectl runs.
func TestComplete(t *testing.T) {
	r := newRig(object(t, reco, nil), object(t, orders, nil))
	for args, want := range map[string]string{
		"status |":                          "reco\norders\n:4",
		"switchover |":                      "orders\n:4",
		"switchover orders --to |":          "orders-g2-a\norders-g2-b\n:4",
		"reinitialize orders --member |":    "orders-g2-a\norders-g2-b\n:4",
		"fence orders --member |":           "orders-g2-a\norders-g2-b\n:4",
		"promote |":                         "reco\n:4",
		"promote reco |":                    ":4",
		"reinit|":                           "reinitialize\tCopy the data of a standby again\n:4",
		"psql orders --member orders-g2-a|": "orders-g2-a\norders-g2-b\n:4",
	} {
		words := strings.Split(args, " ")
		words[len(words)-1] = strings.TrimSuffix(words[len(words)-1], "|")
		out, err := r.run(t.Context(), "", append([]string{"__complete"}, words...)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		got, _, _ := strings.Cut(out, "\nCompletion ended")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", args, diff)
		}
	}
	script, err := os.ReadFile("kubectl_complete-capstan")
	if err != nil || !strings.HasSuffix(string(script), "exec kubectl capstan __complete \"$@\"\n") {
		t.Errorf("the script is %q, %v", script, err)
	}
}
