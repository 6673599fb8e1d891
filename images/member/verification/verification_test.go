// SPDX-License-Identifier: Apache-2.0

package verification

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestBecause(t *testing.T) {
	slow := &Failure{members.VerifySlow, "too slow"}
	other := errors.New("killed")
	ended, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, slow)
	defer cancel()
	<-ended.Done()
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // It is what is tested.
		want   error
	}{
		"Limit":   {"What was ended for its time says so, and not what it came to.", ended, slow},
		"Stopped": {"What was told to stop is nobody's fault.", stopped, context.Canceled},
		"Other":   {"All else is what it is.", context.Background(), other},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Because(tc.ctx, other); !errors.Is(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// objects in memory.
type objects map[string][]byte

func (o objects) Read(_ context.Context, key string, into any) (bool, error) {
	raw, ok := o[key]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(raw, into)
}

func (o objects) Write(_ context.Context, key string, value any) (err error) {
	o[key], err = json.Marshal(value)
	return err
}

func TestRun(t *testing.T) {
	passed := Passed{Backup: "b2", Took: 90 * time.Second, ReplayedTo: time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC), Assertions: 2}
	before := members.VerificationReport{ID: "old", Passed: members.VerificationPassed{Backup: "b1"}}
	stopped, stop := context.WithCancel(t.Context())
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context //nolint:containedctx // It is what is tested.
		try    func(context.Context) (Passed, error)
		want   members.VerificationReport
	}{
		"Passed": {
			"One that passes is told with what it came to.", t.Context(),
			func(context.Context) (Passed, error) { return passed, nil },
			members.VerificationReport{ID: "new", Backup: "b2", Passed: members.VerificationPassed{Backup: "b2", Seconds: 90, ReplayedTo: "2026-11-26T03:00:00Z", Assertions: 2}},
		},
		"Failed": {
			"One that fails keeps the last one that passed.", t.Context(),
			func(context.Context) (Passed, error) { return passed, &Failure{members.VerifyData, "damaged"} },
			members.VerificationReport{ID: "new", Backup: "b2", Failure: members.VerifyData, Message: "damaged", Passed: before.Passed},
		},
		"Late": {
			"One that takes too long is ended.", t.Context(),
			func(ctx context.Context) (Passed, error) { <-ctx.Done(); return Passed{}, Because(ctx, ctx.Err()) },
			members.VerificationReport{ID: "new", Failure: members.VerifyOther, Message: "the verification did not end within 50ms", Passed: before.Passed},
		},
		"Stopped": {
			"One that a signal stops has no result.", stopped,
			func(context.Context) (Passed, error) { stop(); return Passed{}, context.Canceled },
			before,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := objects{}
			if err := o.Write(t.Context(), "key", before); err != nil {
				t.Fatal(err)
			}
			r := Run{ID: "new", Limit: 50 * time.Millisecond, Objects: o, Key: "key", Folder: t.TempDir() + "/data", Log: slog.New(slog.DiscardHandler)}
			err := r.Run(tc.ctx, tc.try)
			if (err != nil) != (name != "Passed") {
				t.Errorf("%s: it came to %v", tc.reason, err)
			}
			var got members.VerificationReport
			if _, err := o.Read(t.Context(), "key", &got); err != nil {
				t.Fatal(err)
			}
			if name == "Stopped" == (got.Began == "") {
				t.Errorf("%s: it began at %q", tc.reason, got.Began)
			}
			got.Began, got.Ended, got.Passed.At = "", "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
