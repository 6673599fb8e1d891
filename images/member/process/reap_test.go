// SPDX-License-Identifier: Apache-2.0

package process

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		stat string
		want Process
		ok   bool
	}{
		"Runs":    {"7 (postgres) S 1 7 7 0", Process{PID: 7, Parent: 1, Name: "postgres"}, true},
		"Dead":    {"7 (patroni) Z 1 7 7 0", Process{PID: 7, Parent: 1, Name: "patroni", Dead: true}, true},
		"Stopped": {"7 (patroni) T 1 7 7 0", Process{PID: 7, Parent: 1, Name: "patroni", Stopped: true}, true},
		"Name":    {"7 (a) Z 9 (b) S 1 7", Process{PID: 7, Parent: 1, Name: "a) Z 9 (b"}, true},
		"Short":   {"7 (postgres) S", Process{}, false},
		"Nothing": {"", Process{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parse(7, tc.stat)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("parse(%q): %v, -want, +got:\n%s", tc.stat, ok, diff)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	child, err := Start("/bin/sleep", nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("/bin/sleep 60", Title(child.PID())); diff != "" {
		t.Errorf("Title(...): -want, +got:\n%s", diff)
	}
	if err := child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if got := Title(child.PID()); got != "" {
		t.Errorf("Title(...) of one that ended = %q, want nothing", got)
	}
}
