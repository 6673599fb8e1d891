// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestRepeat: a call before or during a turn makes the next one come at once, however many calls there were.
func TestRepeat(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	wake, turns := NewWakeup(), 0
	wake.Call()
	wake.Call()
	Repeat(ctx, wake, func(context.Context) time.Duration {
		if turns++; turns == 2 {
			cancel()
		}
		return time.Hour
	})
	if turns != 2 {
		t.Errorf("Repeat(...): %d turns, want 2", turns)
	}
}

func TestOutlast(t *testing.T) {
	broken := errors.New("broken")
	cases := map[string]struct {
		reason string
		signal bool
		loop   error
		want   error
	}{
		"Signal": {"A signal ends the main function, and then the loops.", true, nil, nil},
		"Broken": {"A loop that fails ends the main function, too.", false, broken, broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, signal := context.WithCancel(t.Context())
			defer signal()
			if tc.signal {
				signal()
			}
			ended, late := false, false
			err := Outlast(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				ended = true
				return nil
			}, func(ctx context.Context) error {
				if tc.loop != nil {
					return tc.loop
				}
				<-ctx.Done()
				late = ended
				return nil
			})
			if !errors.Is(err, tc.want) || !ended || late != tc.signal {
				t.Errorf("\n%s\nOutlast(...): error %v, main ended %t, the loop after it %t", tc.reason, err, ended, late)
			}
		})
	}
}
