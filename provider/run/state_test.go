// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		raw    string
		want   string
	}{
		"State":   {"It is what a coordinator answers.", `{"run":1,"phase":"Running"}`, ""},
		"Newer":   {"A newer companion may say more.", `{"run":1,"phase":"Running","weather":"fine"}`, ""},
		"Version": {"What an older provider would misunderstand has another version.", `{"run":1,"phase":"Running","version":2}`, "version 2"},
		"Another": {"A pod may have kept an older plan.", `{"run":2,"phase":"Running"}`, "another run"},
		"Nothing": {"An empty answer is none.", ``, "no State"},
		"Null":    {"Null is about no run.", `null`, "another run"},
		"List":    {"A list is none.", `[{"run":1,"phase":"Running"}]`, "no State"},
		"More":    {"Nothing follows it.", `{"run":1,"phase":"Running"}{}`, "no State"},
		"Cut":     {"Half of it is none.", `{"run":1,"phase":"Run`, "no State"},
		"Phase":   {"A word that is unknown means nothing.", `{"run":1,"phase":"Paused"}`, "no State"},
		"Class":   {"Nor does such a class.", `{"run":1,"phase":"Running","lastFault":{"class":"Moon"}}`, "no State"},
		"Number":  {"A number that is too large is none.", `{"run":1,"phase":"Running","progress":{"step":1e30}}`, "no State"},
		"Text":    {"A text is no number.", `{"run":"1","phase":"Running"}`, "no State"},
		"Page":    {"A page of a server that is none of ours.", `<html></html>`, "no State"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := parse([]byte(tc.raw), 1)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || (s == nil) == (err == nil) {
				t.Errorf("%s\nparse(%q): got %v, %v, want %q", tc.reason, tc.raw, s, err, tc.want)
			}
		})
	}
}

// TestBounds of what a tenant can have the provider write.
func TestBounds(t *testing.T) {
	long := strings.Repeat("ä\x1b[31m\x00\n", 10_000)
	missing := make([]crew.Missing, 5000)
	for i := range missing {
		missing[i] = crew.Missing{Index: i - 10, Since: now.Add(time.Hour)}
	}
	v := newView(runOf(v1alpha1.RunObservation{}), nil, now)
	got := v.was
	v.take(&got, &crew.State{
		Run: 1, Phase: crew.PhaseFailed, Attempt: math.MaxInt, Restarts: -1, WithoutProgress: math.MaxInt, GoodputPercent: 1000, Message: long, Missing: missing,
		Progress:     crew.Progress{Step: -1, Of: -1, Loss: long, StepsPerSecond: math.MaxFloat64},
		Checkpoint:   &crew.Checkpoint{Step: -5, URI: "/checkpoints/1", At: now.AddDate(9000, 0, 0)},
		OverdueSince: new(now.AddDate(9000, 0, 0)), Unremoved: long,
		LastFault: &crew.Fault{Attempt: -1, Class: crew.ClassUser, Index: -7, Rank: math.MaxInt, Message: long},
	})
	if len(got.Missing) != maxMissing || got.Missing[0].Index != 0 || got.Missing[0].Since.Time != now {
		t.Errorf("want %d members from index 0 that are not missing in the future, got %d", maxMissing, len(got.Missing))
	}
	for what, diff := range map[string]string{
		"attempt": cmp.Diff(int32(maxCount), *got.Attempt), "restarts": cmp.Diff(int32(0), got.Restarts), "withoutProgress": cmp.Diff(int32(maxCount), got.WithoutProgress),
		"goodput": cmp.Diff(int32(100), *got.GoodputPercent), "step": cmp.Diff(int64(0), got.Progress.Step), "of": cmp.Diff(int64(0), got.Progress.Of),
		"checkpoint": cmp.Diff(now, got.Checkpoint.At.Time), "index": cmp.Diff([]int32{-1, -1}, []int32{got.LastFault.Index, got.LastFault.Rank}),
		"rate": cmp.Diff(maxRate, got.Progress.StepsPerMinute), "fault": cmp.Diff(now, got.LastFault.At.Time),
		"overdue": cmp.Diff(now, got.OverdueSince.Time),
	} {
		if diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
	}
	sane(t, got)
	for _, uri := range []string{"/checkpoints/" + long, "/checkpoints/a b\n", " /checkpoints/1", strings.Repeat("x", maxURI+1)} {
		v.take(&got, &crew.State{Run: 1, Phase: crew.PhaseRunning, Checkpoint: &crew.Checkpoint{Step: 7, URI: uri}})
		if got.Checkpoint.URI != "/checkpoints/1" {
			t.Errorf("a part of %q names something else, got %q", uri, got.Checkpoint.URI)
		}
	}
}

func TestRounded(t *testing.T) {
	for in, want := range map[float64]float64{74.0736: 74.1, 0.0012345: 0.00123, 123456: 123000, 0: 0, -1: 0, math.Inf(1): maxRate, math.Inf(-1): 0, math.NaN(): 0, 5e-324: 5e-324} {
		if got := rounded(in); math.Abs(got-want) > want*1e-9 {
			t.Errorf("rounded(%g): want %g, got %g", in, want, got)
		}
	}
}

// sane checks that an observation can be stored and shown.
func sane(t *testing.T, o v1alpha1.RunObservation) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatalf("it cannot be stored: %v", err)
	}
	if len(raw) > 32<<10 {
		t.Errorf("it has %d bytes", len(raw))
	}
	texts := map[string]int{o.Message: maxMessage, o.Unremoved: maxMessage}
	if o.Progress != nil {
		texts[o.Progress.Loss] = maxLoss
		if o.Progress.Step < 0 || o.Progress.Of < 0 || o.Progress.StepsPerMinute < 0 || o.Progress.StepsPerMinute > maxRate {
			t.Errorf("progress is out of bounds: %+v", o.Progress)
		}
	}
	if o.Checkpoint != nil {
		texts[o.Checkpoint.URI] = maxURI
		if o.Checkpoint.At.After(now) {
			t.Errorf("the checkpoint is of the future: %s", o.Checkpoint.At)
		}
	}
	if o.LastFault != nil {
		texts[o.LastFault.Message] = maxMessage
		if o.LastFault.At.After(now) || o.LastFault.Index < -1 || o.LastFault.Rank < -1 {
			t.Errorf("the fault is out of bounds: %+v", o.LastFault)
		}
	}
	for s, n := range texts {
		if len(s) > n || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("want at most %d bytes that can be printed, got %q", n, s)
		}
	}
	for _, m := range o.Missing {
		if m.Index < 0 || m.Since.After(now) {
			t.Errorf("a missing member is out of bounds: %+v", m)
		}
	}
}

func FuzzState(f *testing.F) {
	for _, s := range []string{
		`{"run":1,"phase":"Running","attempt":2,"progress":{"step":5,"of":10,"loss":"nan","stepsPerSecond":1e308}}`,
		`{"run":1,"phase":"Failed","message":"\u001b[31m\u0000\ud800","missing":[{"index":-1},{"index":3,"since":"9999-12-31T23:59:59Z"},{"index":3}]}`,
		`{"run":1,"phase":"Recovering","lastFault":{"class":"User","index":99999999999,"rank":-9,"at":"0000-01-01T00:00:00Z"},"checkpoint":{"uri":"x","at":"2999-01-01T00:00:00+14:00"}}`,
		`{"run":1,"phase":"Succeeded","goodputPercent":-1,"restarts":9223372036854775807}`, `[]`, ``,
	} {
		f.Add([]byte(s), int32(0), false)
		f.Add([]byte(s), int32(64), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, code int32, over bool) {
		p := pod(0)
		v := newView(runOf(saw()), nil, now)
		if over {
			p = pod(0, ended(code, "Error", string(raw)))
		} else {
			v.state, _ = parse(raw, 1)
		}
		v.pods[0] = append(v.pods[0], &p)
		got := v.facts()
		sane(t, got)

		// The same words say the same.
		w := newView(runOf(got), nil, now)
		w.pods, w.state = v.pods, v.state
		if diff := cmp.Diff(got, w.facts()); diff != "" {
			t.Errorf("-first, +second:\n%s", diff)
		}
	})
}
