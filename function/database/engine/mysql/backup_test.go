// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// TestArchiving: while binary logs are archived the server does not remove them, which reaches members that run without a restart.
func TestArchiving(t *testing.T) {
	e := mySQL{}
	off := member("1Gi", 50, 100, nil)
	on := off
	on.Archives, on.Archiving = true, true
	if diff := cmp.Diff(e.Restarting(off), e.Restarting(on)); diff != "" {
		t.Errorf("members restart for it: -off, +on:\n%s", diff)
	}
	for want, s := range map[string]engine.Server{"ON": off, "OFF": on} {
		d, err := mysqlmember.ParseDynamic(e.Coordination(s))
		if err != nil {
			t.Fatal(err)
		}
		// A member that does not find it there would keep what its server was started with, or restart for it.
		if got := d.Parameters[parameterBinlogPurge]; got != want || !strings.Contains(server(s), parameterBinlogPurge+"="+want+"\n") {
			t.Errorf("archiving %t: members set it to %q, and start with\n%s", s.Archiving, got, server(s))
		}
	}
	want := []v1alpha1.ChangeEffect{{
		Field: "spec.backup.enabled", Effect: v1alpha1.EffectReload, Parameters: []string{parameterBinlogPurge}, Cause: v1alpha1.ChangedBySpec,
	}}
	for name, change := range map[string]engine.Reload{
		"On":  {Before: e.Coordination(off), After: e.Coordination(on), Server: on},
		"Off": {Before: e.Coordination(on), After: e.Coordination(off), Server: off},
	} {
		if diff := cmp.Diff(want, e.Reloaded(change)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}
