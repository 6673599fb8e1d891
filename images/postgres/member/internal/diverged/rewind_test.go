// SPDX-License-Identifier: Apache-2.0

package diverged

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/member/volume"
)

func TestRewound(t *testing.T) {
	const dry, wet = "--dry-run -D data", "-D data"
	failed := errors.New("exit status 1")
	type result struct {
		said string
		err  error
	}
	for name, tc := range map[string]struct {
		reason string
		// before are results of an earlier try, and now of this one.
		before, now []result
		runs        []string
		kept        bool
		err         error
	}{
		"Works": {"It follows.", nil, []result{{}, {}}, []string{dry, wet}, false, nil},
		"Fails": {"The data has not been touched.", nil, []result{{"permission denied", failed}}, []string{dry}, true, failed},
		"Unclean": {
			"Only a run that changes the data can recover it.", nil,
			[]result{{"target server must be shut down cleanly", failed}, {}},
			[]string{dry, wet},
			false, nil,
		},
		"Breaks": {"What is left is better than nothing.", nil, []result{{}, {"connection lost", failed}}, []string{dry, wet}, true, failed},
		"Later":  {"What was kept changes with the data that follows.", []result{{"x", failed}}, []result{{}, {}}, []string{dry, wet}, false, nil},
		"Again":  {"The leader was away for both.", []result{{"x", failed}}, []result{{"x", failed}}, []string{dry}, true, failed},
	} {
		t.Run(name, func(t *testing.T) {
			f := made(t, 1<<19)
			var runs []string
			try := func(results []result) error {
				runs = nil
				_, err := f.Rewound(func(args []string) (string, error) {
					runs = append(runs, strings.Join(args, " "))
					r := results[len(runs)-1]
					return r.said, r.err
				}, []string{"-D", "data"}, func() time.Time { return now })
				return err
			}
			if tc.before != nil {
				_ = try(tc.before)
			}
			if err := try(tc.now); !errors.Is(err, tc.err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.runs, runs); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if since, err := f.Since(now, volume.DiskOk); err != nil || since.IsZero() == tc.kept {
				t.Errorf("%s: it is kept since %s (%v)", tc.reason, since, err)
			}
		})
	}
}
