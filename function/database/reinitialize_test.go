// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// TestReinitialize gives a request to the members, restarts nothing, and reports only what the member itself does.
func TestReinitialize(t *testing.T) {
	for name, spec := range map[string]string{"PostgreSQL": basic, "MySQL": group} {
		t.Run(name, func(t *testing.T) { reinitializes(t, spec) })
	}
}

func reinitializes(t *testing.T, spec string) {
	t.Helper()
	w := running(t, spec)
	before := w.revisions()
	w.edit(with(spec, `reinitialize: {id: "1", member: orders-db-b}`))
	p := w.pass()
	if told := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(told, `"reinitialize":{"id":"1","member":"orders-db-b"}`) {
		t.Errorf("members have no request: %s", told)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a request restarts members: -before, +after:\n%s", diff)
	}
	status := func(p *compose.Plan) v1alpha1.ReinitializeStatus {
		t.Helper()
		return *told(t, p).Reinitialize
	}
	if got := status(p); got.Outcome != members.ReinitializeWaiting || got.ID != "1" || got.Member != "orders-db-b" {
		t.Errorf("before the member reports it is %v", got)
	}
	w.edit(with(spec, `reinitialize: {id: "1", member: orders-db-x}`))
	p = w.pass()
	if got := status(p); !strings.Contains(got.Message, "is not one of the members [orders-db-a orders-db-b orders-db-c]") {
		t.Errorf("a member that does not exist: %v", got)
	}
	if s, reason, _ := condition(p, "Accepted"); s != "True" {
		t.Errorf("after a restore members have other names, so the spec must stay accepted, got %s", reason)
	}
}
